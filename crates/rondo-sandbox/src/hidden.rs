//! Files and directories inside the roots that a command may not see: what rules deny, and what is ignored.
//!
//! A directory is covered by an empty one that cannot be written. A file, or a socket that a program outside uses, is covered by
//! a device where devices do not work, so that opening it is refused to all users, root included. Both need a mount
//! namespace.

use crate::covered::c_path;
use crate::linux::{Access, bind, is_mounted_read_only, mount};
use crate::root::open_without_links;
use crate::{SandboxSpec, can_be_hidden};
use std::io;
use std::path::{Path, PathBuf};

/// Cover of a file.
const DEVICE: &str = "/dev/null";
/// Mount flags of the cover of a directory.
const FLAGS: libc::c_ulong = libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;

/// Returns the files and directories that are hidden, without links in their paths. Missing ones are left out, and
/// so are the parents of a root or of the system.
pub(crate) fn places(spec: &SandboxSpec, roots: &[PathBuf]) -> Vec<PathBuf> {
    let real = spec.hidden.iter().filter_map(|it| it.canonicalize().ok());
    let mut places: Vec<PathBuf> = real.filter(|place| can_be_hidden(place, roots)).collect();
    places.sort();
    places.dedup();
    let all = places.clone();
    // Files in a hidden directory are hidden with it.
    places.retain(|place| !all.iter().any(|it| place != it && place.starts_with(it)));
    places
}

/// Returns the directories between the roots and the hidden places, outer ones first.
pub(crate) fn above(places: &[PathBuf], roots: &[PathBuf]) -> Vec<PathBuf> {
    let is_inside = |it: &&Path| roots.iter().any(|root| it.starts_with(root) && it != root);
    let all = places.iter().flat_map(|it| it.ancestors().skip(1));
    let mut above: Vec<PathBuf> = all.filter(is_inside).map(Path::to_owned).collect();
    above.sort();
    above.dedup();
    above
}

/// Covers them, in a mount namespace of the command's own. Files under another cover are passed over. The
/// directories above them are bound over themselves: a mount can be neither renamed nor removed, so no command moves
/// a hidden file to a place that is not searched.
///
/// # Errors
/// When one cannot be covered.
pub(crate) fn cover(places: &[PathBuf], above: &[PathBuf]) -> io::Result<()> {
    for directory in above {
        // It may lie in a directory that is covered now.
        if let Ok(opened) = open_without_links(directory) {
            let access = Access::read_only_if(is_mounted_read_only(&opened));
            bind(&opened, &opened, access)?;
        }
    }
    for place in places {
        let Ok(metadata) = place.symlink_metadata() else {
            continue;
        };
        match metadata.is_dir() {
            true => mount(Some(c"none"), &c_path(place)?, Some(c"tmpfs"), FLAGS)?,
            false => cover_file(place)?,
        }
    }
    Ok(())
}

/// Covers what is at a path and no directory, unless it is gone. No link that was put into the path meanwhile is followed.
///
/// # Errors
/// When it cannot be covered.
pub(crate) fn cover_file(path: &Path) -> io::Result<()> {
    match open_without_links(path) {
        Ok(file) => bind(
            &open_without_links(Path::new(DEVICE))?,
            &file,
            Access::Nothing,
        ),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(err) => Err(err),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SandboxMode;

    #[test]
    fn directories_above_hidden_places_are_found_within_the_roots() {
        let paths = |all: &[&str]| all.iter().map(PathBuf::from).collect::<Vec<_>>();
        let places = paths(&["/w/a/b/.env", "/w/a/key", "/w/top", "/elsewhere/x"]);
        assert_eq!(above(&places, &paths(&["/w"])), paths(&["/w/a", "/w/a/b"]));
    }

    #[test]
    fn what_is_missing_or_around_a_root_is_left_out_and_what_is_inside_another_is_hidden_with_it() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("secrets/deep")).unwrap();
        std::fs::write(root.join("key"), "").unwrap();
        std::os::unix::fs::symlink("key", root.join("link")).unwrap();
        let mut spec = SandboxSpec::new(SandboxMode::ReadOnly, vec![root.clone()]);
        let hidden = [
            "secrets/deep",
            "secrets",
            "key",
            "link",
            "missing",
            ".",
            "..",
        ];
        spec.hidden = hidden.iter().map(|it| root.join(it)).collect();
        spec.hidden.push("/usr".into());
        let places = places(&spec, std::slice::from_ref(&root));
        assert_eq!(places, [root.join("key"), root.join("secrets")]);
    }
}
