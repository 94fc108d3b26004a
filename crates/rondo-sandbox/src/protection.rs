//! Keeps what is protected as it was, if no mount can: what does not exist yet, links, and everything if there
//! are no namespaces.
//!
//! A file system cannot be told that a name must not come to be, and a mount needs something to be put on: made for
//! it, it would be seen by all programs, and left behind by a crash. So the directories are watched while the command
//! runs, and a name that appears is changed to one that nothing reads. All of it is done through descriptors that are
//! opened before the command begins: a command can have a path lead anywhere.

use crate::content::{Budget, Content, kind};
use crate::directory::{Directory, identity};
use crate::enclosing::{EnclosingRepository, linked_worktrees};
use crate::lost::PrivateDirectory;
use crate::nested::GIT;
use crate::repositories::{Repositories, is_repository};
use crate::repository::{linked, linked_hooks, named_by_settings};
use crate::roots::{
    PROTECTED, PROTECTED_OF_GIT, PROTECTED_OF_OTHER_WORKTREE, PROTECTED_OF_WORKTREE,
};
use crate::set_aside::SetAsideNotes;
use crate::watch::Watch;
use crate::{Enforcement, RefusedChanges, Root, SandboxMode, SandboxSpec, Unchecked, UndoneChange};
use crate::{passing, sockets};
use rustix::fs::{FileType, Stat};
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The bounds on the kept copies of protected files, where mounts do not protect them.
const KEPT: Budget = Budget {
    bytes: 16 << 20,
    entries: 8_192,
};
/// The bound on repositories further down that mounts protect; of all others, what a command made of them is refused.
const REPOSITORIES_MAX: usize = 64;
/// The bound on sockets that are hidden from a command.
const SOCKETS_MAX: usize = 64;
/// The bound on links that lead from a protected name to what is protected with it.
const LINKS_MAX: usize = 8;
/// A command that makes the same name again within this time after it was refused does so by a loop.
const REPEATED_WITHIN: Duration = Duration::from_secs(1);
/// Message about a name that a command made again at once, or that could not be renamed.
const ENDED: &str = "it was made again at once or could not be renamed, so the command was ended";

/// Protected entries of the directories that a command may write.
#[derive(Default)]
pub(crate) struct Protected {
    /// All that is written: the writable directories, and repositories outside of these.
    written: Vec<PathBuf>,
    /// Parents first, whether they exist or not.
    pub(crate) paths: Vec<PathBuf>,
    /// The directories of worktrees, which may be written inside of what may not.
    pub(crate) own: Vec<PathBuf>,
    /// The sockets on which programs outside listen, which a command could have do something for it.
    pub(crate) sockets: Vec<PathBuf>,
    places: Vec<ProtectedDirectory>,
    repositories: Repositories,
    /// Entries that cannot be protected, with reasons.
    unchecked: Vec<Unchecked>,
    /// Why a directory could not be opened.
    failed: Option<io::Error>,
}

/// A directory with protected names.
#[derive(Debug)]
struct ProtectedDirectory {
    directory: Directory,
    names: Vec<Name>,
    /// Set for an entry of a nested repository, in which new entries are judged by their content.
    is_nested: bool,
}

/// A protected name of a directory.
#[derive(Debug)]
struct Name {
    name: OsString,
    before: NameBefore,
}

/// State of a protected name before the command.
#[derive(Debug)]
enum NameBefore {
    /// It is kept by other means.
    Held,
    Content(Content),
    /// A directory whose contents may change.
    Directory(Directory),
}

impl Protected {
    /// Looks for it; there is nothing to protect from a command that may only read.
    pub(crate) fn find(
        mode: SandboxMode,
        roots: &[PathBuf],
        enclosing: &[EnclosingRepository],
        kept: &[PathBuf],
    ) -> Self {
        let mut protected = Self::default();
        if mode == SandboxMode::WorkspaceWrite {
            protected.failed = protected.look(roots, enclosing).err();
            kept.iter().for_each(|it| protected.protect_named(it));
        }
        protected
    }

    fn look(&mut self, roots: &[PathBuf], enclosing: &[EnclosingRepository]) -> io::Result<()> {
        let commons = enclosing.iter().map(|it| it.common.clone());
        self.written = roots.iter().cloned().chain(commons).collect();
        let mut opened = Vec::new();
        for root in roots {
            let directory = Directory::open(root)?;
            let at_top = PROTECTED.iter().filter(|it| !it.contains('/'));
            // The target of a link is protected as well, in its own directory.
            let targets = linked(&directory, at_top.clone().map(OsStr::new));
            self.protect(directory.open_below("")?, at_top, false);
            targets.iter().for_each(|it| self.protect_named(it));
            let git = directory.stat(GIT)?;
            if git.is_some_and(|it| kind(&it) == FileType::Directory) {
                self.protect_repository(directory.open_below(GIT)?, root, false);
            }
            if is_repository(&directory) {
                self.protect_repository(directory.open_below("")?, root, false);
            }
            if git.is_some_and(|it| kind(&it) == FileType::Directory) {
                self.protect_other_worktrees(&directory.open_below(GIT)?);
            }
            opened.push(directory);
        }
        let mut commons = Vec::new();
        for repository in enclosing {
            let common = Directory::open(&repository.common)?;
            self.protect_repository(common.open_below("")?, &repository.top, false);
            if repository.own != repository.common {
                let own = Directory::open(&repository.own)?;
                self.own.push(repository.own.clone());
                self.paths.push(repository.own.clone());
                self.protect(own, &PROTECTED_OF_WORKTREE, false);
            }
            self.protect_other_worktrees(&common);
            commons.push(common);
        }
        self.repositories = Repositories::find(opened, commons);
        self.look_further_down();
        self.find_sockets(&sockets::names());
        Ok(())
    }

    fn look_further_down(&mut self) {
        let found = self.repositories.directories().flatten();
        let found = found.filter(|it| !self.repositories.is_top(it) && !self.is_held(it.path()));
        let found: Vec<Directory> = found.take(REPOSITORIES_MAX).collect();
        for git in found {
            let path = git.path().to_owned();
            let around = match path.file_name() == Some(OsStr::new(GIT)) {
                true => path.parent().unwrap_or(&path).to_owned(),
                false => path.clone(),
            };
            self.paths.extend(path.ends_with(GIT).then_some(path));
            self.protect_repository(git, &around, true);
        }
        self.protect_rondo();
    }

    /// Finds the sockets that are in use. Of a program that has ended, the file is the command's to remove.
    fn find_sockets(&mut self, in_use: &HashSet<OsString>) {
        let all = self.repositories.sockets();
        let mut used = all.filter(|it| it.file_name().is_some_and(|it| in_use.contains(it)));
        self.sockets = used.by_ref().take(SOCKETS_MAX).collect();
        if let Some(path) = used.next() {
            let reason = format!("more than {SOCKETS_MAX} sockets are in use");
            self.unchecked.push(Unchecked { path, reason });
        }
    }

    /// Protects the settings of Rondo further down that are there.
    fn protect_rondo(&mut self) {
        let found = self.repositories.of_rondo();
        let found = found.filter_map(|(place, name)| Some((place.ok()?, name)));
        let found: Vec<(Directory, OsString)> = found
            .filter(|(place, _)| !self.is_held(place.path()))
            .take(REPOSITORIES_MAX)
            .collect();
        for (place, name) in found {
            self.protect(place, [&&*name.to_string_lossy()], true);
        }
    }

    /// Returns whether a path lies below something that is protected as a whole.
    fn is_held(&self, path: &Path) -> bool {
        let below = self
            .written
            .iter()
            .filter_map(|it| path.strip_prefix(it).ok());
        let mut first = below.filter_map(|it| it.iter().next());
        first.any(|it| it != GIT && PROTECTED.iter().any(|name| it == *name))
    }

    fn protect<'a>(
        &mut self,
        directory: Directory,
        names: impl IntoIterator<Item = &'a &'a str>,
        is_nested: bool,
    ) {
        let name = |it: &&str| Name {
            name: it.into(),
            before: NameBefore::Held,
        };
        let names: Vec<Name> = names.into_iter().map(name).collect();
        let paths = names.iter().map(|it| directory.path().join(&it.name));
        self.paths.extend(paths);
        self.places.push(ProtectedDirectory {
            directory,
            names,
            is_nested,
        });
    }

    /// Protects a repository whose files are `around` it, and what its settings name: hooks, more settings and programs.
    fn protect_repository(&mut self, git: Directory, around: &Path, is_nested: bool) {
        let mut named = linked_hooks(&git);
        named.extend(named_by_settings(&git, around));
        self.protect(git, &PROTECTED_OF_GIT, is_nested);
        named.iter().for_each(|it| self.protect_named(it));
    }

    /// Protects the directories of the worktrees of a repository that lie where the command may not write. By mounts alone:
    /// a person who works in one of them meanwhile changes them.
    fn protect_other_worktrees(&mut self, common: &Directory) {
        for (own, file) in linked_worktrees(common.path()) {
            let is_written = self.written.iter().any(|it| file.starts_with(it));
            if !is_written && !self.own.contains(&own) {
                let names = PROTECTED_OF_OTHER_WORKTREE.iter().map(|it| own.join(it));
                self.paths.push(own.clone());
                self.paths.extend(names);
                // It may be written but for these, so that `git` collects garbage, and is not moved.
                self.own.push(own);
            }
        }
    }

    /// Protects a file or a directory that lies where the command may write, and what it leads to if it is a link.
    fn protect_named(&mut self, path: &Path) {
        let mut path = path.to_owned();
        for _ in 0..LINKS_MAX {
            match self.protect_path(&path) {
                Some(target) => path = target,
                None => return,
            }
        }
        let reason = "too many links lead on from it".to_owned();
        self.unchecked.push(Unchecked { path, reason });
    }

    /// Protects a file or a directory that lies where the command may write, and keeps the directories above it in their
    /// places; if it is not there, protects what would lead to it. Returns what a link on the way makes of the path.
    fn protect_path(&mut self, path: &Path) -> Option<PathBuf> {
        let root = self.written.iter().find(|it| path.starts_with(it))?;
        if path == root {
            let reason =
                "settings of `git`, or a protected link, name the directory itself".to_owned();
            let path = path.to_owned();
            self.unchecked.push(Unchecked { path, reason });
            return None;
        }
        let mut place = Directory::open(root).ok()?;
        let below = path.strip_prefix(root).ok()?.to_owned();
        let mut parts = below.iter();
        while let Some(part) = parts.next() {
            match place.open_below(part) {
                Ok(next) if next.path() != path => {
                    if !self.paths.iter().any(|it| it == next.path()) {
                        self.paths.push(next.path().to_owned());
                        self.own.push(next.path().to_owned());
                    }
                    place = next;
                }
                _ => {
                    let target = linked(&place, [part].into_iter()).pop();
                    if !self.paths.iter().any(|it| *it == place.path().join(part)) {
                        self.protect(place, [&&*part.to_string_lossy()], false);
                    }
                    return target.map(|it| it.iter().chain(parts).collect());
                }
            }
        }
        None
    }

    /// Returns the protected files that have another name, by which a command could change them.
    fn linked(&self) -> Vec<Unchecked> {
        let mut linked = Vec::new();
        for place in &self.places {
            for it in &place.names {
                let found = place.directory.stat(&it.name).ok().flatten();
                let is_linked = |it: &Stat| kind(it) == FileType::RegularFile && it.st_nlink > 1;
                if found.as_ref().is_some_and(is_linked) {
                    linked.push(Unchecked {
                        path: place.directory.path().join(&it.name),
                        reason: "it has a second hard link, by which it can be changed".to_owned(),
                    });
                }
            }
        }
        linked
    }

    /// Returns the note if the system watches no more directories.
    fn watched_in_vain(&self) -> Option<Unchecked> {
        let watched = self.places.iter();
        let watched = watched.map(|it| (!it.is_nested).then_some(&it.directory));
        let err = Watch::new(watched).err()?;
        let path = self.places.first()?.directory.path().to_owned();
        let reason = format!("it cannot be watched while a command runs: {err}");
        Some(Unchecked { path, reason })
    }

    /// Returns whether what is at a path can be covered by a mount: a link can, by what it leads to.
    pub(crate) fn can_be_mounted(&self, path: &Path) -> bool {
        let mut roots = self.written.iter();
        path.canonicalize()
            .is_ok_and(|real| roots.any(|root| real.starts_with(root)))
    }
}

/// State to restore after a command.
#[derive(Debug, Default)]
#[must_use = "what is protected and did not exist is only protected by `restore`"]
pub struct Protection {
    places: Vec<ProtectedDirectory>,
    repositories: Repositories,
    unchecked: Vec<Unchecked>,
    watch: Option<Watch>,
    /// Said of the first directory if names are refused at the end of the command only.
    unwatched: Option<Unchecked>,
    /// When a name was refused last.
    refused: HashMap<(usize, usize), Instant>,
    /// While it is open, the command's proxy serves it.
    proxy: Option<OwnedFd>,
    /// While it is open, the command's namespaces are there, and may have processes.
    namespaces: Option<OwnedFd>,
    /// The private directories that are looked at when the command has ended.
    private: Vec<PathBuf>,
    /// Descriptors of the command's mounts, once taken out of that socket.
    mounts: Vec<OwnedFd>,
}

impl Protection {
    /// Keeps a connection to the command's proxy.
    pub(crate) fn serves_until_dropped(&mut self, proxy: OwnedFd) {
        self.proxy = Some(proxy);
    }

    /// Sets the notes of the files that are set aside for other commands, and reads theirs.
    pub(crate) fn notes(&mut self, notes: SetAsideNotes) {
        self.repositories.notes(notes);
    }

    /// Takes over what another one holds until it is dropped.
    pub(crate) fn take_held(&mut self, held: Self) {
        self.proxy = held.proxy;
        self.namespaces = held.namespaces;
        self.private = held.private;
    }

    /// Keeps the end of a socket to which the command sends what holds its mounts, and then the roots of these private
    /// directories. Nothing is read before [`Self::lost`].
    pub(crate) fn holds_namespaces(&mut self, lifeline: OwnedFd, private: Vec<PathBuf>) {
        self.namespaces = Some(lifeline);
        self.private = private;
    }

    /// Returns the holder of the mounts of a command that has ended. They are taken down when it is dropped, which
    /// takes as long as a short command does.
    pub fn take_namespaces(&mut self) -> Option<OwnedFd> {
        self.namespaces.take()
    }

    /// Returns whether the command has namespaces of its own.
    #[must_use]
    pub fn has_namespaces(&self) -> bool {
        self.namespaces.is_some()
    }

    /// Remembers what is there now.
    ///
    /// # Errors
    /// When something must be kept and cannot be read, or is too much.
    pub(crate) fn new(enforcement: Enforcement, protected: Protected) -> io::Result<Self> {
        if let Some(err) = protected.failed {
            return Err(err);
        }
        let mut places = protected.places;
        // Before anything is looked at, so that nothing is missed in between.
        let watched = places.iter();
        let watched = watched.map(|it| (!it.is_nested).then_some(&it.directory));
        let (watch, unwatched) = match Watch::new(watched) {
            Ok(watch) => (watch, None),
            Err(err) => (None, unwatched(&places, &err)),
        };
        let mut budget = KEPT;
        for place in &mut places {
            for it in &mut place.names {
                let found = before(enforcement, &place.directory, &it.name, &mut budget);
                it.before = found.map_err(|err| {
                    let path = place.directory.path().join(&it.name);
                    let path = path.display();
                    io::Error::new(err.kind(), format!("failed to keep `{path}`: {err}"))
                })?;
            }
            if place.is_nested {
                let is_absent =
                    |it: &Name| matches!(it.before, NameBefore::Content(Content::Absent));
                place.names.retain(|it| !is_absent(it));
            }
        }
        Ok(Self {
            places,
            repositories: protected.repositories,
            unchecked: protected.unchecked,
            watch,
            unwatched,
            refused: HashMap::new(),
            proxy: None,
            namespaces: None,
            private: Vec::new(),
            mounts: Vec::new(),
        })
    }

    /// Returns the files that could not be looked at before the command, so that the command's changes there stay.
    pub fn unchecked(&self) -> impl Iterator<Item = &Unchecked> {
        self.unchecked.iter().chain(self.repositories.unchecked())
    }

    /// Returns a descriptor that is readable when [`Self::take_watched`] must be called; `None` if nothing is watched.
    #[must_use]
    pub fn watch_fd(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().and_then(Watch::as_fd)
    }

    /// Renames what the command has made meanwhile and may not make. The time is that of the call.
    #[must_use]
    pub fn take_watched(&mut self, now: Instant) -> RefusedChanges {
        let Some(watch) = &self.watch else {
            return RefusedChanges::default();
        };
        let made = watch.take();
        let mut watched = RefusedChanges::default();
        for (at_place, place) in self.places.iter().enumerate().filter(|it| !it.1.is_nested) {
            for (at_name, it) in place.names.iter().enumerate() {
                let is_watched = matches!(
                    it.before,
                    NameBefore::Content(Content::Absent | Content::Link(_))
                );
                if !is_watched || !made.contains(at_place, &it.name) {
                    continue;
                }
                let Some(mut undone) = restore(place, it) else {
                    continue;
                };
                let last = self.refused.insert((at_place, at_name), now);
                let is_again =
                    last.is_some_and(|it| now.saturating_duration_since(it) < REPEATED_WITHIN);
                if is_again || !undone.is_restored {
                    watched.is_repeated = true;
                    undone.reason = Some(ENDED.to_owned());
                }
                watched.undone.push(undone);
            }
        }
        watched
    }

    /// Puts everything back that is not as it was, and returns what that was. To be called when all processes of the
    /// command have ended.
    ///
    /// The command's mounts stay until this is dropped, since to take them down takes as long as a short command does.
    #[must_use]
    pub fn restore(&mut self) -> Vec<UndoneChange> {
        let places = self.places.iter();
        // A repository further down may be removed as a whole.
        let places = places.filter(|it| !it.is_nested || !it.directory.is_removed());
        let mut undone: Vec<UndoneChange> = places
            .flat_map(|place| place.names.iter().filter_map(|it| restore(place, it)))
            .collect();
        undone.extend(self.repositories.refuse());
        undone.extend(self.unwatched.take().map(UndoneChange::from));
        undone
    }

    /// Returns the files the command has written into private directories of its own, which are gone after it, as far
    /// as a user
    /// would miss them. To be called once, when all processes of the command have ended.
    #[must_use]
    pub fn lost(&mut self, command: &str, output: &str) -> Vec<PathBuf> {
        let Some(namespaces) = &self.namespaces else {
            return Vec::new();
        };
        let mounts = passing::taken(namespaces);
        let Ok((counts, roots)) = passing::taken(namespaces) else {
            return Vec::new();
        };
        let counts = counts.chunks_exact(size_of::<u64>());
        let counts = counts.filter_map(|it| it.try_into().ok().map(u64::from_ne_bytes));
        let private = std::mem::take(&mut self.private).into_iter();
        let all = private.zip(roots).zip(counts);
        let all: Vec<PrivateDirectory> = all
            .map(|((path, root), files)| PrivateDirectory::new(path, root, files))
            .collect();
        // The home directory is the last one, and what a user misses most.
        let all = all.iter().rev();
        let lost = all.flat_map(|it| it.lost(command, output)).collect();
        // The mounts stay until this is dropped.
        self.mounts = mounts.map(|it| it.1).unwrap_or_default();
        lost
    }
}

/// Returns the note if nothing can be watched.
fn unwatched(places: &[ProtectedDirectory], err: &io::Error) -> Option<Unchecked> {
    let first = places.first()?;
    Some(Unchecked {
        path: first.directory.path().to_owned(),
        reason: format!("it was not watched while the command ran: {err}"),
    })
}

/// Returns the files in the directories of commands that cannot be looked at.
pub(crate) fn unchecked(spec: &SandboxSpec) -> Vec<Unchecked> {
    let verified = |it: &Root| it.verify().ok().map(|()| it.path().to_owned());
    let roots = spec.writable.iter().filter_map(verified);
    let protected = Protected::find(spec.mode, &roots.collect::<Vec<_>>(), &[], &spec.kept);
    let found = protected.repositories.unchecked();
    let all = protected.unchecked.iter().chain(found).cloned();
    all.chain(protected.linked())
        .chain(protected.watched_in_vain())
        .collect()
}

/// Returns the state of a protected name before the command.
fn before(
    enforcement: Enforcement,
    place: &Directory,
    name: &OsStr,
    budget: &mut Budget,
) -> io::Result<NameBefore> {
    let Some(found) = place.stat(name)? else {
        return Ok(NameBefore::Content(Content::Absent));
    };
    match (enforcement, kind(&found)) {
        (Enforcement::Full, FileType::Symlink) => {
            Content::read_link(place, name).map(NameBefore::Content)
        }
        (Enforcement::Full, _) => Ok(NameBefore::Held),
        (Enforcement::Partial, FileType::Directory) if name == GIT => {
            place.open_below(name).map(NameBefore::Directory)
        }
        (Enforcement::Partial, _) => Content::read(place, name, budget).map(NameBefore::Content),
    }
}

/// Makes a name what it was before, and returns what it had become; `None` if it is as it was.
fn restore(place: &ProtectedDirectory, it: &Name) -> Option<UndoneChange> {
    let Name { name, before } = it;
    let place = &place.directory;
    let is_same = match before {
        NameBefore::Held => true,
        NameBefore::Content(Content::Absent) => place.stat(name).is_ok_and(|it| it.is_none()),
        NameBefore::Content(content) => {
            let mut budget = KEPT;
            Content::read(place, name, &mut budget).is_ok_and(|now| now == *content)
        }
        NameBefore::Directory(was) => {
            let now = place.stat(name).ok().flatten();
            let was = was.own_stat().ok();
            now.as_ref().map(identity) == was.as_ref().map(identity)
        }
    };
    if is_same {
        return None;
    }
    let aside = match place.set_aside(name) {
        Ok(aside) => aside,
        // Another process was faster, such as one that watches the directory for a command of its own.
        Err(err) if err.kind() == io::ErrorKind::NotFound => match before {
            NameBefore::Content(Content::Absent) => return None,
            _ => None,
        },
        Err(_) => None,
    };
    let is_absent = place.stat(name).is_ok_and(|it| it.is_none());
    let is_restored = is_absent
        && match before {
            NameBefore::Held => true,
            NameBefore::Content(content) => content.write(place, name).is_ok(),
            NameBefore::Directory(was) => move_back(place, name, was).is_ok(),
        };
    Some(UndoneChange {
        path: place.path().join(name),
        aside,
        is_restored,
        reason: None,
    })
}

/// Gives a directory the name back that it had, if it is still below the directory that it was in.
fn move_back(place: &Directory, name: &OsStr, was: &Directory) -> io::Result<()> {
    let (root, now) = (
        fs::read_link(place.own_path())?,
        fs::read_link(was.own_path())?,
    );
    let below = now.strip_prefix(&root).map_err(io::Error::other)?;
    let (Some(parent), Some(moved)) = (below.parent(), below.file_name()) else {
        return Err(io::ErrorKind::NotFound.into());
    };
    let parent = place.open_below(parent)?;
    let found = parent.stat(moved)?.ok_or(io::ErrorKind::NotFound)?;
    if identity(&found) != identity(&was.own_stat()?) {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(parent.rename(moved, place, name)?)
}

#[cfg(test)]
mod tests {
    use super::*;
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
            let found = Protected::find(spec.mode, std::slice::from_ref(&self.root), &[], &[]);
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
        project.write(".git/commondir");
        fs::create_dir_all(project.root.join("new/.git/hooks")).unwrap();
        let undone = protection.restore();
        assert_eq!(undone.len(), 2, "{undone:?}");
        assert!(undone.iter().all(|it| it.is_restored), "{undone:?}");
        assert!(!project.has(".mcp.json") && project.has(".mcp.json.refused-2"));
        assert!(!project.has(".git/commondir") && project.has(".git/commondir.refused"));
        assert!(project.has("new/.git/hooks"));
        assert!(project.before(Enforcement::Full).restore().is_empty());
    }

    #[test]
    fn a_name_is_refused_when_it_is_made_and_ends_the_command_when_it_is_made_again_at_once() {
        let project = Project::new();
        let mut protection = project.before(Enforcement::Full);
        let begun = Instant::now();
        assert_eq!(protection.take_watched(begun), RefusedChanges::default());
        let mut make = |after: Duration| {
            project.write(".mcp.json");
            project.write("ordinary");
            let watched = protection.take_watched(begun + after);
            assert_eq!(watched.undone.len(), 1, "{watched:?}");
            assert!(!project.has(".mcp.json") && project.has("ordinary"));
            watched.is_repeated
        };
        assert!(!make(Duration::ZERO));
        assert!(make(REPEATED_WITHIN - Duration::from_millis(1)));
        assert!(!make(REPEATED_WITHIN * 2));
        assert!(protection.restore().is_empty());
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
}
