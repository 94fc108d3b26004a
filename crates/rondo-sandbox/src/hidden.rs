//! Files and directories inside the roots that a command may not see: what rules deny, and what is ignored.
//!
//! A directory is covered by an empty one that cannot be written. A file is covered by a device where devices do not work,
//! so that opening it is refused to everybody, root included. Both need a mount namespace.

use crate::covered::c_path;
use crate::linux::mount;
use crate::{SandboxSpec, can_be_hidden};
use std::io;
use std::path::PathBuf;

/// What a file is covered by.
const DEVICE: &std::ffi::CStr = c"/dev/null";
/// What holds of each cover.
const FLAGS: libc::c_ulong = libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
/// Returns the files and directories that are hidden, without links in their paths. What does not exist is left out, and
/// so is what a root or the system lies in.
pub(crate) fn places(spec: &SandboxSpec, roots: &[PathBuf]) -> Vec<PathBuf> {
    let real = spec.hidden.iter().filter_map(|it| it.canonicalize().ok());
    let mut places: Vec<PathBuf> = real.filter(|place| can_be_hidden(place, roots)).collect();
    places.sort();
    places.dedup();
    let all = places.clone();
    // What lies in a hidden directory is hidden with it.
    places.retain(|place| !all.iter().any(|it| place != it && place.starts_with(it)));
    places
}

/// Covers them, in a mount namespace of the command's own. What another cover has hidden already is passed over.
///
/// # Errors
/// When one cannot be covered.
pub(crate) fn cover(places: &[PathBuf]) -> io::Result<()> {
    for place in places {
        let Ok(metadata) = place.symlink_metadata() else {
            continue;
        };
        let to = c_path(place)?;
        match metadata.is_dir() {
            true => mount(Some(c"none"), &to, Some(c"tmpfs"), FLAGS)?,
            false => {
                mount(Some(DEVICE), &to, None, libc::MS_BIND)?;
                mount(None, &to, None, libc::MS_REMOUNT | libc::MS_BIND | FLAGS)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SandboxMode;

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
