//! The repository that a working directory belongs to, if it lies outside of that directory: the working directory is
//! a subdirectory of it, a submodule, or a linked worktree.

use crate::git_config;
use crate::nested::GIT;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The bound on the files that say where a repository is, in bytes.
const POINTER_BYTES_MAX: u64 = 4_096;
/// The first word of a file that says where the repository of its directory is.
const POINTER: &str = "gitdir:";
/// Marks a directory whose contents can be made again, such as the build directory of cargo. The repository around
/// one has nothing to do with what lies in it.
const CACHE_MARK: &str = "CACHEDIR.TAG";
/// The bound on directories above the working directory that are looked at.
const ANCESTORS_MAX: usize = 64;
/// The bound on linked worktrees of a repository that `git` should see.
const WORKTREES_MAX: usize = 256;
/// The bound on repositories within each other that a submodule is in.
const DEPTH_MAX: usize = 8;
/// Entries that make a directory the directory of a repository.
const OF_REPOSITORY: [&str; 3] = ["HEAD", "objects", "refs"];
/// World-writable directories: a repository in one of them does not make it a user's working tree.
const SHARED: [&str; 4] = ["/tmp", "/var/tmp", "/dev/shm", "/run"];
/// The bound on a manifest that may make a directory the root of a workspace of cargo, in bytes.
const MANIFEST_BYTES_MAX: u64 = 256 << 10;

/// The repository around a working directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EnclosingRepository {
    /// The top of the working tree. It may be read.
    pub(crate) top: PathBuf,
    /// The directory that all worktrees share. `git` writes it.
    pub(crate) common: PathBuf,
    /// The directory of this worktree: inside of the common one if it is a linked worktree, otherwise the same.
    pub(crate) own: PathBuf,
    /// Directories that `cargo` writes at the root of its workspace when it builds a member.
    pub(crate) build_output: Vec<PathBuf>,
}

impl EnclosingRepository {
    /// Finds the repository around a directory; none if there is none, or the directory itself has it.
    ///
    /// The repository is opened to commands, so what the directory says is not enough, since it may have come with an
    /// archive. A linked worktree and a submodule count only if the repository names the directory too. The directories
    /// above count only if they are of the same owner, and are neither world-writable nor one that has
    /// the home directory in it.
    pub(crate) fn find(root: &Path, home: Option<&Path>) -> Option<Self> {
        let mut found = Self::around(root, home)?;
        let is_inside = found.common.starts_with(root) || root.starts_with(&found.common);
        found.build_output = build_output(root, &found.top);
        (!is_inside).then_some(found)
    }

    /// Finds the repository that a directory is in, or has itself.
    pub(crate) fn around(directory: &Path, home: Option<&Path>) -> Option<Self> {
        Self::around_at(directory, home, 0)
    }

    /// Does what [`Self::around`] does for a directory in that many submodules.
    fn around_at(start: &Path, home: Option<&Path>, depth: usize) -> Option<Self> {
        let owner = start.symlink_metadata().ok()?.uid();
        for directory in start.ancestors().take(ANCESTORS_MAX) {
            let git = directory.join(GIT);
            let metadata = git.symlink_metadata().ok();
            let is_repository = match &metadata {
                None => false,
                Some(it) if it.is_dir() => OF_REPOSITORY.iter().all(|it| git.join(it).exists()),
                Some(_) => true,
            };
            if let (Some(metadata), true) = (metadata, is_repository) {
                let is_trusted = metadata.uid() == owner && is_opened(directory, owner, home);
                if directory != start && !is_trusted {
                    return None;
                }
                return match metadata.is_file() {
                    true => Self::pointed(directory, &git, home, depth),
                    false => Self::in_its_top(directory, git),
                };
            }
            if directory.join(CACHE_MARK).exists() {
                return None;
            }
        }
        None
    }

    /// Returns the repository in the directory `.git` of the top of its working tree.
    fn in_its_top(top: &Path, git: PathBuf) -> Option<Self> {
        let is_whole = git.is_dir() && !git.is_symlink() && !exists(&git.join("commondir"));
        is_whole.then(|| Self {
            top: top.to_owned(),
            common: git.clone(),
            own: git,
            build_output: Vec::new(),
        })
    }

    /// Returns the repository that a file `.git` names.
    fn pointed(top: &Path, file: &Path, home: Option<&Path>, depth: usize) -> Option<Self> {
        let pointer = read(file)?;
        let own = top.join(pointer.strip_prefix(POINTER)?.trim());
        let own = own.canonicalize().ok()?;
        let common = match exists(&own.join("commondir")) {
            true => common_of_worktree(&own, file)?,
            false => {
                let around = Self::around_at(top.parent()?, home, depth + 1);
                let around = around.filter(|_| depth < DEPTH_MAX)?;
                is_submodule(&own, top, &around).then(|| own.clone())?
            }
        };
        Some(Self {
            top: top.to_owned(),
            common,
            own,
            build_output: Vec::new(),
        })
    }

    /// Returns everything of it that commands may write.
    pub(crate) fn written(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.common).chain(&self.build_output)
    }
}

/// Returns the directories of the linked worktrees of a repository, each with the file `.git` of the worktree, which names it. If `git` does not
/// see one, it takes the worktree for removed, and forgets what was staged in it.
pub(crate) fn linked_worktrees(common: &Path) -> Vec<(PathBuf, PathBuf)> {
    let entries = std::fs::read_dir(common.join("worktrees"));
    let entries = entries.into_iter().flatten().flatten().take(WORKTREES_MAX);
    let file_of = |own: PathBuf| {
        let named = PathBuf::from(read(&own.join("gitdir"))?.trim());
        let file = own.join(named);
        let back = read(&file)?;
        let back = Path::new(back.strip_prefix(POINTER)?.trim())
            .canonicalize()
            .ok()?;
        (back == own.canonicalize().ok()?).then_some((own, file))
    };
    entries.filter_map(|it| file_of(it.path())).collect()
}

/// Returns whether the top of a working tree above the working directory is one whose files commands may read.
fn is_opened(top: &Path, owner: u32, home: Option<&Path>) -> bool {
    let is_owned = top.symlink_metadata().is_ok_and(|it| it.uid() == owner);
    let has_home = home.is_some_and(|home| home.starts_with(top));
    let is_shared = SHARED.iter().any(|it| Path::new(it) == top);
    is_owned && !has_home && !is_shared && top.parent().is_some()
}

/// Returns the common directory of a linked worktree, if its repository names the worktree's `.git`.
fn common_of_worktree(own: &Path, file: &Path) -> Option<PathBuf> {
    let named = own.join(read(&own.join("gitdir"))?.trim());
    if named.canonicalize().ok()? != file.canonicalize().ok()? {
        return None;
    }
    let common = own.join(read(&own.join("commondir"))?.trim());
    let common = common.canonicalize().ok()?;
    (own.parent()? == common.join("worktrees")).then_some(common)
}

/// Returns whether the repository around a directory has it as a submodule, in that directory of its modules.
fn is_submodule(own: &Path, top: &Path, around: &EnclosingRepository) -> bool {
    let names_top = || {
        let settings = git_config::read(&own.join("config"));
        let worktree = settings.iter().rfind(|it| it.key == b"core.worktree");
        let worktree = worktree.and_then(|it| own.join(it.path()?).canonicalize().ok());
        worktree.is_some() && worktree == top.canonicalize().ok()
    };
    own.starts_with(around.own.join("modules")) && names_top()
}

/// Returns the files that `cargo` writes at the root of its workspace when it builds the member in a directory. Those
/// that do not
/// exist are not among them.
fn build_output(member: &Path, top: &Path) -> Vec<PathBuf> {
    let Some(workspace) = cargo_workspace(member, top) else {
        return Vec::new();
    };
    let (target, lock) = (workspace.join("target"), workspace.join("Cargo.lock"));
    let target = Some(target).filter(|it| it.is_dir() && !it.is_symlink());
    let lock = Some(lock).filter(|it| it.is_file() && !it.is_symlink());
    target.into_iter().chain(lock).collect()
}

/// Returns whether a directory is a member of a workspace of cargo whose root has no build directory, and lies outside
/// of it.
pub(crate) fn lacks_build_directory(root: &Path, home: Option<&Path>) -> bool {
    let home = home.and_then(|it| it.canonicalize().ok());
    let workspace = root.canonicalize().ok().and_then(|root| {
        let found = EnclosingRepository::find(&root, home.as_deref())?;
        cargo_workspace(&root, &found.top)
    });
    workspace.is_some_and(|it| !it.join("target").is_dir())
}

/// Returns the root of the workspace of cargo that a directory is a member of, not above the top of the repository.
fn cargo_workspace(member: &Path, top: &Path) -> Option<PathBuf> {
    let is_workspace = |directory: &Path| {
        let manifest = read_within(&directory.join("Cargo.toml"), MANIFEST_BYTES_MAX);
        let has_table = |line: &str| line.trim_start().starts_with("[workspace");
        manifest.is_some_and(|it| it.lines().any(has_table))
    };
    if !member.join("Cargo.toml").exists() || is_workspace(member) {
        return None;
    }
    let above = member.ancestors().skip(1).take(ANCESTORS_MAX);
    let mut above = above.take_while(|it| it.starts_with(top));
    above.find(|it| is_workspace(it)).map(Path::to_owned)
}

/// Returns whether something is at a path, a link that leads nowhere too.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn read(path: &Path) -> Option<String> {
    read_within(path, POINTER_BYTES_MAX)
}

/// Reads the beginning of a file, up to a bound in bytes.
fn read_within(path: &Path, bytes_max: u64) -> Option<String> {
    if !path.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    let file = File::open(path).ok()?;
    file.take(bytes_max).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    /// A directory that no repository is around.
    fn place() -> (TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().canonicalize().unwrap();
        (place, path)
    }

    fn make_repository(git: &Path) {
        for name in ["objects", "refs", "hooks"] {
            fs::create_dir_all(git.join(name)).unwrap();
        }
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    }

    #[test]
    fn a_linked_worktree_has_a_repository_only_if_that_names_it() {
        let (_place, place) = place();
        let (tree, common) = (place.join("tree"), place.join("main/.git"));
        let own = common.join("worktrees/tree");
        fs::create_dir_all(&own).unwrap();
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
        fs::write(own.join("commondir"), "../..\n").unwrap();
        assert_eq!(EnclosingRepository::find(&tree, None), None);
        fs::write(own.join("gitdir"), format!("{}/.git\n", tree.display())).unwrap();
        let found = EnclosingRepository::find(&tree, None).unwrap();
        assert_eq!((&found.common, &found.own), (&common, &own));
        fs::create_dir_all(tree.join("a/b")).unwrap();
        assert_eq!(
            EnclosingRepository::find(&tree.join("a/b"), None),
            Some(found)
        );
        let other = place.join("other");
        fs::create_dir(&other).unwrap();
        fs::copy(tree.join(".git"), other.join(".git")).unwrap();
        assert_eq!(EnclosingRepository::find(&other, None), None);
        fs::write(own.join("commondir"), "/etc\n").unwrap();
        assert_eq!(EnclosingRepository::find(&tree, None), None);
    }

    #[test]
    fn a_subdirectory_has_the_nearest_repository_above_it() {
        let (_place, place) = place();
        let top = place.join("home/top");
        let inner = top.join("crates/a");
        fs::create_dir_all(&inner).unwrap();
        assert_eq!(EnclosingRepository::find(&inner, None), None);
        make_repository(&top.join(".git"));
        let found = EnclosingRepository::find(&inner, Some(&place.join("home"))).unwrap();
        assert_eq!((&found.top, &found.common), (&top, &top.join(".git")));
        assert_eq!(found.own, found.common);
        assert_eq!(
            EnclosingRepository::find(&top, None),
            None,
            "it has it itself"
        );
        assert_eq!(
            EnclosingRepository::find(&top.join(".git/hooks"), None),
            None
        );
        assert_eq!(
            EnclosingRepository::find(&inner, Some(&top)),
            None,
            "the home"
        );
        assert_eq!(
            EnclosingRepository::find(&inner, Some(&inner.join("home"))),
            None
        );
        fs::write(top.join("crates/CACHEDIR.TAG"), "").unwrap();
        assert_eq!(EnclosingRepository::find(&inner, None), None);
        fs::remove_file(top.join("crates/CACHEDIR.TAG")).unwrap();
        fs::create_dir(top.join("crates/.git")).unwrap();
        assert_eq!(
            EnclosingRepository::find(&inner, None),
            Some(found),
            "no repository"
        );
        fs::write(top.join(".git/commondir"), "/etc").unwrap();
        assert_eq!(EnclosingRepository::find(&inner, None), None);
        fs::remove_file(top.join(".git/commondir")).unwrap();
        fs::rename(top.join(".git"), place.join("elsewhere")).unwrap();
        symlink(place.join("elsewhere"), top.join(".git")).unwrap();
        assert_eq!(EnclosingRepository::find(&inner, None), None);
    }

    #[test]
    fn a_repository_of_another_owner_is_not_opened() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let (_place, place) = place();
        let inner = place.join("mine");
        fs::create_dir(&inner).unwrap();
        make_repository(&place.join(".git"));
        assert!(EnclosingRepository::find(&inner, None).is_some());
        std::os::unix::fs::chown(place.join(".git"), Some(1234), None).unwrap();
        assert_eq!(EnclosingRepository::find(&inner, None), None);
        std::os::unix::fs::chown(&place, Some(1234), None).unwrap();
        assert_eq!(EnclosingRepository::find(&inner, None), None);
        std::os::unix::fs::chown(&inner, Some(1234), None).unwrap();
        assert!(EnclosingRepository::find(&inner, None).is_some());
    }

    #[test]
    fn a_submodule_has_its_directory_in_the_repository_around_it() {
        let (_place, place) = place();
        let (top, sub) = (place.join("top"), place.join("top/lib/sub"));
        let own = top.join(".git/modules/lib/sub");
        fs::create_dir_all(&sub).unwrap();
        make_repository(&own);
        fs::write(sub.join(".git"), "gitdir: ../../.git/modules/lib/sub\n").unwrap();
        let config = "[core]\n\tworktree = ../../../../lib/sub\n";
        fs::write(own.join("config"), config).unwrap();
        assert_eq!(
            EnclosingRepository::find(&sub, None),
            None,
            "nothing around it"
        );
        make_repository(&top.join(".git"));
        let found = EnclosingRepository::find(&sub, None).unwrap();
        let places = (&found.top, &found.common, &found.own);
        assert_eq!(places, (&sub, &own, &own));
        fs::write(own.join("config"), "[core]\n\tworktree = /etc\n").unwrap();
        assert_eq!(EnclosingRepository::find(&sub, None), None);
        let elsewhere = place.join("elsewhere");
        make_repository(&elsewhere);
        fs::write(elsewhere.join("config"), "[core]\nworktree=../top/lib/sub").unwrap();
        fs::write(sub.join(".git"), "gitdir: ../../../elsewhere\n").unwrap();
        assert_eq!(EnclosingRepository::find(&sub, None), None);
    }

    #[test]
    fn a_member_of_a_cargo_workspace_writes_what_a_build_writes_at_its_root() {
        let (_place, place) = place();
        let member = place.join("crates/a");
        fs::create_dir_all(&member).unwrap();
        make_repository(&place.join(".git"));
        fs::write(place.join("Cargo.toml"), "[workspace]\nmembers = []\n").unwrap();
        let outputs = || {
            EnclosingRepository::find(&member, None)
                .unwrap()
                .build_output
        };
        assert_eq!(outputs(), Vec::<PathBuf>::new());
        fs::write(member.join("Cargo.toml"), "[package]\n").unwrap();
        assert_eq!(outputs(), Vec::<PathBuf>::new());
        fs::create_dir(place.join("target")).unwrap();
        fs::write(place.join("Cargo.lock"), "").unwrap();
        assert_eq!(outputs(), [place.join("target"), place.join("Cargo.lock")]);
        fs::remove_dir(place.join("target")).unwrap();
        symlink("/etc", place.join("target")).unwrap();
        assert_eq!(outputs(), [place.join("Cargo.lock")]);
        fs::write(member.join("Cargo.toml"), "[workspace]\n").unwrap();
        assert_eq!(outputs(), Vec::<PathBuf>::new());
    }
}
