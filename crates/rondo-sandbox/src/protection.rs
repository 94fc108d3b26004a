//! Keeps what is protected as it was, where no mount can: what does not exist yet, links, and everything where there
//! are no namespaces.
//!
//! A file system cannot be told that a name must not come to be, and a mount needs something to be put on: made for
//! it, it would be seen by everybody, and left behind by a crash. So it is looked for when the command has ended, and
//! set aside beside itself, under a name that nothing reads.

use crate::content::{Budget, Content, is_absent};
use crate::nested::{self, GIT};
use crate::roots::{PROTECTED, PROTECTED_OF_GIT, PROTECTED_OF_WORKTREE};
use crate::worktree::Worktree;
use crate::{Enforcement, SandboxMode, Undone};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The bounds on what is kept of protected files, where mounts do not protect them.
const KEPT: Budget = Budget {
    bytes: 16 << 20,
    entries: 8_192,
};
/// What follows the name of something that was set aside; then a number.
const ASIDE: &str = ".refused";
/// The bound on things that are set aside under one name.
const ASIDE_MAX: u32 = 100;

/// What is protected in the directories that a command may write.
pub(crate) struct Protected {
    /// The writable directories.
    roots: Vec<PathBuf>,
    /// Parents first, whether they exist or not.
    pub(crate) paths: Vec<PathBuf>,
    /// The directories of worktrees, which may be written inside of what may not.
    pub(crate) own: Vec<PathBuf>,
    /// Repositories outside of the writable directories that are written too.
    repositories: Vec<PathBuf>,
    nested: Nested,
}

/// Where each repository further down was. It may be moved with the directory that it is in.
type Nested = HashMap<Identity, PathBuf>;
/// The device and the number of a file.
type Identity = (u64, u64);

impl Protected {
    /// Looks for it; there is nothing to protect from a command that may only read.
    pub(crate) fn find(mode: SandboxMode, roots: &[PathBuf], worktrees: &[Worktree]) -> Self {
        let (roots, worktrees) = match mode {
            SandboxMode::ReadOnly => (Vec::new(), &[][..]),
            SandboxMode::WorkspaceWrite => (roots.to_vec(), worktrees),
        };
        let of_worktrees = worktrees.iter().flat_map(|it| {
            let shared = PROTECTED_OF_GIT.map(|name| it.common.join(name));
            let own = PROTECTED_OF_WORKTREE.map(|name| it.own.join(name));
            let own = std::iter::once(it.own.clone()).chain(own);
            shared.into_iter().chain(own).collect::<Vec<_>>()
        });
        let found: Vec<PathBuf> = roots.iter().flat_map(|root| nested::find(root)).collect();
        let own = roots
            .iter()
            .flat_map(|root| PROTECTED.map(|name| root.join(name)));
        let of_nested = found.iter().flat_map(|git| {
            let inside = PROTECTED_OF_GIT.map(|name| git.join(name));
            std::iter::once(git.clone()).chain(inside)
        });
        Self {
            paths: own.chain(of_nested).chain(of_worktrees).collect(),
            own: worktrees.iter().map(|it| it.own.clone()).collect(),
            repositories: worktrees.iter().map(|it| it.common.clone()).collect(),
            nested: found
                .into_iter()
                .filter_map(|path| Some((identity(&path)?, path)))
                .collect(),
            roots,
        }
    }

    /// Returns whether what is at a path can be covered by a mount: a link can, by what it leads to.
    pub(crate) fn can_be_mounted(&self, path: &Path) -> bool {
        let mut roots = self.roots.iter().chain(&self.repositories);
        path.canonicalize()
            .is_ok_and(|real| roots.any(|root| real.starts_with(root)))
    }
}

/// What is to be as it was when a command has ended.
#[derive(Debug, Default)]
#[must_use = "what is protected and did not exist is only protected by `restore`"]
pub struct Protection {
    roots: Vec<PathBuf>,
    repositories: Vec<PathBuf>,
    before: Vec<(PathBuf, Before)>,
    nested: Nested,
    /// While it is open, the command's proxy serves it.
    proxy: Option<OwnedFd>,
    /// While it is open, the command's namespaces are there, and may have processes.
    namespaces: Option<OwnedFd>,
}

#[derive(Debug)]
enum Before {
    Content(Content),
    /// A directory whose contents may change.
    Place(OwnedFd),
}

impl Protection {
    /// Keeps a connection to the command's proxy.
    pub(crate) fn serves_until_dropped(&mut self, proxy: OwnedFd) {
        self.proxy = Some(proxy);
    }

    /// Takes over what another one holds until it is dropped.
    pub(crate) fn take_held(&mut self, held: Self) {
        self.proxy = held.proxy;
        self.namespaces = held.namespaces;
    }

    /// Keeps the end of a socket to which the command sends what holds its mounts, and which nobody reads.
    pub(crate) fn holds_namespaces(&mut self, lifeline: OwnedFd) {
        self.namespaces = Some(lifeline);
    }

    /// Returns whether the command has namespaces of its own.
    #[must_use]
    pub fn has_namespaces(&self) -> bool {
        self.namespaces.is_some()
    }

    /// Remembers what is there now.
    ///
    /// # Errors
    /// When something is to be kept and cannot be read, or is too much.
    pub(crate) fn new(enforcement: Enforcement, protected: Protected) -> io::Result<Self> {
        let mut budget = KEPT;
        let mut before = Vec::new();
        for path in protected.paths {
            let kept = match enforcement {
                Enforcement::Full => without_mounts(&path)?.map(Before::Content),
                Enforcement::Partial => kept(&path, &mut budget).map(Some).map_err(|err| {
                    let path = path.display();
                    io::Error::new(err.kind(), format!("failed to keep `{path}`: {err}"))
                })?,
            };
            before.extend(kept.map(|kept| (path, kept)));
        }
        Ok(Self {
            roots: protected.roots,
            repositories: protected.repositories,
            before,
            nested: protected.nested,
            proxy: None,
            namespaces: None,
        })
    }

    /// Puts everything back that is not as it was, and returns what that was. To be called when all processes of the
    /// command have ended.
    ///
    /// The command's mounts stay until this is dropped, since to take them down takes as long as a short command does.
    #[must_use]
    pub fn restore(&mut self) -> Vec<Undone> {
        let mut undone = Vec::new();
        for (path, before) in &self.before {
            let changed = match before {
                Before::Content(content) => self.restore_content(path, content),
                Before::Place(file) => self.restore_place(path, file),
            };
            undone.extend(changed);
        }
        let found = self.roots.iter().flat_map(|root| nested::find(root));
        let made = found.flat_map(|git| self.made_of(git));
        undone.extend(made.map(|path| self.undone(&path)));
        undone
    }

    /// Returns what was made of a repository that is there now: all of it, or parts of one that was moved.
    fn made_of(&self, git: PathBuf) -> Vec<PathBuf> {
        let was = identity(&git).and_then(|it| self.nested.get(&it));
        let Some(was) = was else {
            return vec![git];
        };
        let is_made = |name: &&str| {
            let before = self.before.iter().find(|it| it.0 == was.join(name));
            let was_absent =
                before.is_some_and(|it| matches!(it.1, Before::Content(Content::Absent)));
            was_absent && identity(&git.join(name)).is_some()
        };
        let made = PROTECTED_OF_GIT.into_iter().filter(is_made);
        made.map(|name| git.join(name)).collect()
    }

    fn restore_content(&self, path: &Path, before: &Content) -> Option<Undone> {
        let is_same = match before {
            Content::Absent => path.symlink_metadata().is_err_and(|err| is_absent(&err)),
            _ => {
                let mut budget = KEPT;
                Content::read(path, &mut budget).is_ok_and(|now| now == *before)
            }
        };
        if is_same {
            return None;
        }
        let undone = self.undone(path);
        let is_restored = undone.is_restored && before.write(path).is_ok();
        Some(Undone {
            is_restored,
            ..undone
        })
    }

    /// Puts a directory back that was moved.
    fn restore_place(&self, path: &Path, file: &OwnedFd) -> Option<Undone> {
        let opened = rustix::fs::fstat(file)
            .ok()
            .map(|it| (it.st_dev, it.st_ino));
        if opened.is_some() && identity(path) == opened {
            return None;
        }
        let mut undone = self.undone(path);
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        let moved_to = fs::read_link(link).ok();
        let moved_to = moved_to.filter(|it| identity(it) == opened);
        undone.is_restored = moved_to.is_some_and(|it| fs::rename(it, path).is_ok());
        Some(undone)
    }

    /// Takes away what is at a path.
    fn undone(&self, path: &Path) -> Undone {
        let aside = self.set_aside(path).unwrap_or_default();
        let is_absent = path.symlink_metadata().is_err_and(|err| is_absent(&err));
        Undone {
            path: path.to_owned(),
            aside,
            is_restored: is_absent,
        }
    }

    /// Gives what is at a path a name that nothing reads, and returns it. Where all names are taken, which no work
    /// comes to, it is removed.
    fn set_aside(&self, path: &Path) -> io::Result<Option<PathBuf>> {
        let mut roots = self.roots.iter().chain(&self.repositories);
        let root = roots.find(|root| path.starts_with(root));
        let (Some(root), Some(parent), Some(name)) = (root, path.parent(), path.file_name()) else {
            return Ok(None);
        };
        let directory = open_beneath(root, parent)?;
        let found = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let flags = RenameFlags::NOREPLACE;
        let renamed = (1..=ASIDE_MAX)
            .map(|number| aside_name(name, number))
            .find(|it| rustix::fs::renameat_with(&directory, name, &directory, it, flags).is_ok());
        if let Some(aside) = renamed {
            return Ok(Some(parent.join(aside)));
        }
        let place = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string());
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => fs::remove_dir_all(place.join(name))?,
            _ => fs::remove_file(place.join(name))?,
        }
        Ok(None)
    }
}

fn identity(path: &Path) -> Option<Identity> {
    let metadata = path.symlink_metadata().ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// Opens a directory below another one, following no link on the way: processes may be left that plant them.
fn open_beneath(root: &Path, directory: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(root, flags, Mode::empty())?;
    let below = directory.strip_prefix(root).map_err(io::Error::other)?;
    if below.as_os_str().is_empty() {
        return Ok(opened);
    }
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    Ok(rustix::fs::openat2(
        &opened,
        below,
        flags,
        Mode::empty(),
        resolve,
    )?)
}

fn aside_name(name: &OsStr, number: u32) -> OsString {
    let mut aside = name.to_owned();
    aside.push(ASIDE);
    if number > 1 {
        aside.push(format!("-{number}"));
    }
    aside
}

/// Returns what no mount protects at a path.
fn without_mounts(path: &Path) -> io::Result<Option<Content>> {
    match path.symlink_metadata() {
        Err(err) if is_absent(&err) => Ok(Some(Content::Absent)),
        Err(err) => Err(err),
        Ok(metadata) if metadata.is_symlink() => {
            fs::read_link(path).map(|it| Some(Content::Link(it)))
        }
        Ok(_) => Ok(None),
    }
}

/// Returns what is kept of a path where there are no mounts.
fn kept(path: &Path, budget: &mut Budget) -> io::Result<Before> {
    let is_directory = path.symlink_metadata().is_ok_and(|it| it.is_dir());
    if path.file_name() != Some(OsStr::new(GIT)) || !is_directory {
        return Content::read(path, budget).map(Before::Content);
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(Before::Place(rustix::fs::open(path, flags, Mode::empty())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SandboxSpec;
    use std::os::unix::fs::symlink;

    struct Project {
        _place: tempfile::TempDir,
        root: PathBuf,
    }

    impl Project {
        fn new() -> Self {
            let place = tempfile::tempdir().unwrap();
            let root = place.path().join("project");
            for folder in [".git/hooks", "sub/.git/hooks", ".vscode"] {
                fs::create_dir_all(root.join(folder)).unwrap();
            }
            for file in [
                ".git/config",
                ".git/hooks/pre-commit",
                "CLAUDE.md",
                ".envrc",
            ] {
                fs::write(root.join(file), "mine").unwrap();
            }
            symlink("CLAUDE.md", root.join("AGENTS.md")).unwrap();
            Self {
                _place: place,
                root,
            }
        }

        fn before(&self, enforcement: Enforcement) -> Protection {
            let spec = SandboxSpec {
                enforcement,
                ..SandboxSpec::new(SandboxMode::WorkspaceWrite, vec![self.root.clone()])
            };
            let found = Protected::find(spec.mode, std::slice::from_ref(&self.root), &[]);
            Protection::new(spec.enforcement, found).unwrap()
        }

        fn write(&self, path: &str) {
            fs::write(self.root.join(path), "theirs").unwrap();
        }

        fn has(&self, path: &str) -> bool {
            self.root.join(path).symlink_metadata().is_ok()
        }

        fn text(&self, path: &str) -> String {
            fs::read_to_string(self.root.join(path)).unwrap()
        }
    }

    #[test]
    fn what_did_not_exist_is_set_aside_and_no_name_is_taken_twice() {
        let project = Project::new();
        project.write(".mcp.json.refused");
        let mut protection = project.before(Enforcement::Full);
        project.write(".mcp.json");
        fs::create_dir_all(project.root.join("new/.git/hooks")).unwrap();
        fs::create_dir(project.root.join(".git/modules")).unwrap();
        fs::create_dir(project.root.join("sub/.git/modules")).unwrap();
        let undone = protection.restore();
        assert_eq!(undone.len(), 4, "{undone:?}");
        assert!(undone.iter().all(|it| it.is_restored), "{undone:?}");
        assert!(!project.has(".mcp.json") && project.has(".mcp.json.refused-2"));
        assert!(!project.has("new/.git") && project.has("new/.git.refused/hooks"));
        assert!(!project.has(".git/modules") && !project.has("sub/.git/modules"));
        assert!(project.before(Enforcement::Full).restore().is_empty());
    }

    #[test]
    fn a_link_leads_again_to_where_it_led() {
        let project = Project::new();
        let mut protection = project.before(Enforcement::Full);
        fs::remove_file(project.root.join("AGENTS.md")).unwrap();
        project.write("AGENTS.md");
        let undone = protection.restore();
        assert!(undone.iter().all(|it| it.is_restored), "{undone:?}");
        assert_eq!(project.text("AGENTS.md"), "mine");
        assert_eq!(project.text("AGENTS.md.refused"), "theirs");
    }

    #[test]
    fn everything_is_put_back_where_no_mount_protects_it() {
        let project = Project::new();
        let mut protection = project.before(Enforcement::Partial);
        project.write(".git/config");
        project.write(".git/hooks/post-checkout");
        project.write(".vscode/tasks.json");
        fs::remove_file(project.root.join(".envrc")).unwrap();
        fs::write(project.root.join("sub/.git/config"), "theirs").unwrap();
        fs::rename(project.root.join(".git"), project.root.join("moved")).unwrap();
        fs::create_dir_all(project.root.join(".git/hooks")).unwrap();
        let undone = protection.restore();
        assert!(undone.iter().all(|it| it.is_restored), "{undone:?}");
        assert_eq!(project.text(".git/config"), "mine");
        assert_eq!(project.text(".git/hooks/pre-commit"), "mine");
        assert_eq!(project.text(".envrc"), "mine");
        for path in [
            ".git/hooks/post-checkout",
            ".vscode/tasks.json",
            "moved",
            "sub/.git/config",
        ] {
            assert!(!project.has(path), "{path}");
        }
        assert!(project.has(".git.refused") && project.has(".git/config.refused"));
    }

    #[test]
    fn a_link_in_the_place_of_a_directory_leads_nothing_outside_astray() {
        let project = Project::new();
        let outside = tempfile::tempdir().unwrap();
        fs::create_dir(outside.path().join("hooks")).unwrap();
        fs::remove_dir_all(project.root.join("sub/.git/hooks")).unwrap();
        let mut protection = project.before(Enforcement::Full);
        fs::rename(project.root.join("sub/.git"), project.root.join("was")).unwrap();
        symlink(outside.path(), project.root.join("sub/.git")).unwrap();
        let undone = protection.restore();
        assert!(outside.path().join("hooks").exists(), "{undone:?}");
    }

    #[test]
    fn names_that_are_all_taken_save_nothing() {
        let project = Project::new();
        for number in 1..=ASIDE_MAX {
            let name = aside_name(OsStr::new(".husky"), number);
            fs::write(project.root.join(name), "").unwrap();
        }
        let mut protection = project.before(Enforcement::Full);
        fs::create_dir_all(project.root.join(".husky/_")).unwrap();
        let undone = protection.restore();
        assert_eq!(undone.first().map(|it| it.aside.clone()), Some(None));
        assert!(!project.has(".husky"));
    }
}
