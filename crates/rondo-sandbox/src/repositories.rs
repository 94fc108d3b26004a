//! The repositories and the settings of Rondo that a command can have made or changed, compared with what was there before
//! it.
//!
//! To clone a repository or to make one is ordinary work. What is not: settings that run a program when a person looks
//! at the repository later, hooks, and whatever leads `git` to such settings. Each that was not there before is renamed.

use crate::UNDONE_MAX;
use crate::Unchecked;
use crate::UndoneChange;
use crate::content::{Budget, Content};
use crate::directory::{Directory, Identity, identity};
use crate::git_files::{self, List, Lists};
use crate::nested::{FoundKind, GIT, NestedRepository, Search};
use crate::repository::{self, Bound, Finding, line, resolved};
use crate::set_aside::{SetAsideNote, SetAsideNotes};
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The bound on a file that names a repository, in bytes.
const POINTER_BYTES_MAX: u64 = 4_096;
/// Prefix of such a file.
const POINTER: &[u8] = b"gitdir: ";
/// Directories of a repository whose repositories `git` itself changes all the time.
const PARTS: [&str; 2] = ["modules", "worktrees"];

/// The bound on directories of which it is kept what was found.
const SEARCHED_MAX: usize = 8;

/// The bounds on all settings of Rondo further down that are compared.
const COMPARED: Budget = Budget {
    bytes: 16 << 20,
    entries: 8_192,
};

/// Findings after the latest commands of this process, which can have several, one after another.
static SEARCHED: Mutex<Vec<(Identity, Search)>> = Mutex::new(Vec::new());

/// The repositories below what a command may write.
#[derive(Debug, Default)]
pub(crate) struct Repositories {
    bases: Vec<Base>,
    /// Permitted destinations of paths in a repository.
    bounds: Vec<Bound>,
    /// Those whose settings and hooks are kept by other means: the ones at the top.
    top: HashSet<Identity>,
    before: State,
    /// Notes about entries of other commands that were set aside.
    notes: Option<SetAsideNotes>,
}

/// A directory that is searched.
#[derive(Debug)]
struct Base {
    directory: Directory,
    search: Search,
}

/// Findings in all repositories.
#[derive(Debug, Default)]
struct State {
    findings: HashMap<Identity, Vec<Finding>>,
    /// The lists of paths of each.
    lists: HashMap<Identity, Vec<List>>,
    /// The settings of Rondo, by the directory that they are in and their name there.
    rondo: HashMap<(Identity, OsString), Content>,
    /// Destinations of files and links that name a repository outside.
    outside: HashSet<PathBuf>,
    unchecked: Vec<Unchecked>,
}

/// The settings without which no `git` works in a repository.
const SETTINGS: &str = "config";
/// Addition to the message about renamed entries.
const UNUSABLE: &str = "; `git` fails there until a person has read the file and renamed it back";

/// Something in a repository, and how to reach it.
struct Harm {
    place: Directory,
    finding: Finding,
}

impl Repositories {
    /// Looks for them below the `roots`, and in repositories outside of these that are written too.
    pub(crate) fn find(roots: Vec<Directory>, repositories: Vec<Directory>) -> Self {
        let mut found = Self::default();
        for root in &roots {
            let git = root.stat(GIT).ok().flatten();
            found.top.extend(git.as_ref().map(identity));
            if is_repository(root) {
                found
                    .top
                    .extend(root.own_stat().ok().as_ref().map(identity));
            }
        }
        for repository in &repositories {
            found
                .top
                .extend(repository.own_stat().ok().as_ref().map(identity));
            let around = repository.path().parent().map(Directory::open);
            let around = around.and_then(Result::ok);
            found.bounds.extend(around.map(|place| Bound {
                place,
                is_written: false,
            }));
        }
        let all = roots.into_iter().map(|it| (it, false));
        let all = all.chain(repositories.into_iter().map(|it| (it, true)));
        for (directory, is_in_git) in all {
            found
                .bounds
                .extend(directory.open_below("").map(|place| Bound {
                    place,
                    is_written: true,
                }));
            found.bases.push(Base::search(directory, is_in_git));
        }
        found.before = found.look(false).0;
        found
    }

    /// Returns the directories of repositories further down that are there, nearest first. Those are left out that `git`
    /// keeps in another one.
    pub(crate) fn directories(&self) -> impl Iterator<Item = io::Result<Directory>> {
        self.bases.iter().flat_map(|base| {
            let found = base.search.found().into_iter();
            let found = found.filter(|it| it.kind == FoundKind::Repository && !is_part(&it.below));
            found.map(|it| base.directory.open_below(&it.below))
        })
    }

    /// Returns the directories further down that have settings of Rondo, nearest first, and the name of these.
    pub(crate) fn of_rondo(&self) -> impl Iterator<Item = (io::Result<Directory>, OsString)> {
        self.bases.iter().flat_map(|base| {
            let found = base.search.found().into_iter();
            let found = found.filter(|it| it.kind == FoundKind::Rondo);
            found.filter_map(|it| {
                let place = base.directory.open_below(it.below.parent()?);
                Some((place, it.below.file_name()?.to_owned()))
            })
        })
    }

    /// Returns the sockets below the directories that have a path.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = PathBuf> {
        let bases = self.bases.iter();
        bases.flat_map(|base| {
            base.search
                .sockets()
                .map(|it| base.directory.path().join(it))
        })
    }

    /// Returns whether the settings of a repository are kept by other means.
    pub(crate) fn is_top(&self, git: &Directory) -> bool {
        let found = git.own_stat();
        found.is_ok_and(|it| self.top.contains(&identity(&it)))
    }

    /// Returns the files that could not be looked at before the command.
    pub(crate) fn unchecked(&self) -> &[Unchecked] {
        &self.before.unchecked
    }

    /// Sets the notes of the files that are set aside for other commands, and reads theirs.
    pub(crate) fn notes(&mut self, notes: SetAsideNotes) {
        self.notes = Some(notes);
    }

    /// Renames everything harmful that was not there before, and returns it, with what can no longer be looked at.
    pub(crate) fn refuse(&mut self) -> Vec<UndoneChange> {
        for base in &mut self.bases {
            base.search = std::mem::take(&mut base.search).again(&base.directory);
        }
        let (now, harms) = self.look(true);
        self.bases.iter_mut().for_each(Base::keep);
        let mut undone: Vec<UndoneChange> = Vec::new();
        let mut seen = HashSet::new();
        if let Some(notes) = &self.notes {
            notes.add(harms.iter().filter_map(Harm::mark));
        }
        for harm in harms {
            let path = harm.place.path().join(&harm.finding.file);
            // One renaming is enough for all that a file says.
            if seen.insert(path.clone()) {
                undone.push(harm.refuse(path));
            }
        }
        let is_new = |it: &Unchecked| !self.before.unchecked.contains(it);
        let unchecked = now.unchecked.into_iter().filter(is_new);
        undone.extend(unchecked.map(UndoneChange::from));
        bounded(undone)
    }

    /// Looks at everything, and returns what was not there before. A list of paths is read after the command alone: it takes
    /// long, and `git` writes none that is harmful.
    fn look(&self, is_after: bool) -> (State, Vec<Harm>) {
        let mut look = RepositoryCheck {
            all: self,
            is_after,
            state: State::default(),
            harms: Vec::new(),
            budget: COMPARED,
            set_aside: match &self.notes {
                Some(notes) if is_after => notes.since_it_began(),
                _ => HashSet::new(),
            },
        };
        for base in &self.bases {
            look.state
                .unchecked
                .extend_from_slice(&base.search.unchecked);
            for found in base.search.found() {
                if let Err(err) = look.take(base, found) {
                    look.fail(base.directory.path().join(&found.below), &err);
                }
            }
        }
        (look.state, look.harms)
    }
}

impl Base {
    /// Searches a directory. If a command before had the same one, what has changed since is looked at.
    fn search(directory: Directory, is_in_git: bool) -> Self {
        let of = directory.own_stat().ok().as_ref().map(identity);
        let before = SEARCHED.lock().ok().and_then(|mut it| {
            let is_same =
                |it: &(Identity, Search)| Some(it.0) == of && it.1.is_in_git() == is_in_git;
            let at = it.iter().position(is_same)?;
            Some(it.swap_remove(at).1)
        });
        let search = match before {
            Some(before) => before.again(&directory),
            None => Search::new(&directory, is_in_git),
        };
        Self { directory, search }
    }

    /// Keeps what was found, for the next command in the same directory.
    fn keep(&mut self) {
        let (Ok(found), Ok(mut kept)) = (self.directory.own_stat(), SEARCHED.lock()) else {
            return;
        };
        kept.retain(|it| it.0 != identity(&found));
        kept.truncate(SEARCHED_MAX.saturating_sub(1));
        kept.push((identity(&found), std::mem::take(&mut self.search)));
    }
}

/// One look at all repositories.
struct RepositoryCheck<'a> {
    all: &'a Repositories,
    /// Set after the command.
    is_after: bool,
    state: State,
    harms: Vec<Harm>,
    /// Rest of the bounds on comparisons.
    budget: Budget,
    /// Entries of other commands that were set aside since this one began; they count as absent before.
    set_aside: HashSet<SetAsideNote>,
}

impl RepositoryCheck<'_> {
    fn take(&mut self, base: &Base, found: &NestedRepository) -> io::Result<()> {
        match found.kind {
            FoundKind::Repository => self.inspect(&base.directory.open_below(&found.below)?),
            FoundKind::File | FoundKind::Link => self.follow(base, found),
            FoundKind::Rondo => self.compare(base, found),
        }
    }

    /// Compares settings of Rondo with what they were before.
    fn compare(&mut self, base: &Base, found: &NestedRepository) -> io::Result<()> {
        let (Some(parent), Some(name)) = (found.below.parent(), found.below.file_name()) else {
            return Ok(());
        };
        let place = base.directory.open_below(parent)?;
        let now = Content::read(&place, name, &mut self.budget)?;
        let key = (identity(&place.own_stat()?), name.to_owned());
        let finding = Finding::of_rondo(name.into());
        let mark = SetAsideNote::new(key.0, &finding.file, &finding.value);
        let before = self.all.before.rondo.get(&key);
        let before = before.filter(|_| !self.set_aside.contains(&mark));
        for file in changed(name.as_ref(), before, &now) {
            self.harms.push(Harm {
                place: place.open_below("")?,
                finding: Finding::of_rondo(file),
            });
        }
        self.state.rondo.insert(key, now);
        Ok(())
    }

    fn inspect(&mut self, git: &Directory) -> io::Result<()> {
        let of = identity(&git.own_stat()?);
        if self.state.findings.contains_key(&of) {
            return Ok(());
        }
        let noted = self.all.before.lists.get(&of);
        let (of_files, lists) = git_files::inspect(
            git,
            match self.is_after {
                true => Lists::Changed(noted.map_or(&[][..], Vec::as_slice)),
                false => Lists::Noted,
            },
        )?;
        self.state.lists.insert(of, lists);
        let mut findings = match self.all.top.contains(&of) {
            true => repository::inspect_interrupted(git)?,
            false => repository::inspect(git, &self.all.bounds)?,
        };
        // A file is renamed once, whatever is wrong with it.
        findings.extend(of_files);
        let before = self.all.before.findings.get(&of);
        for finding in &findings {
            let mark = SetAsideNote::new(of, &finding.file, &finding.value);
            let was_there = before.is_some_and(|it| it.contains(finding));
            if !was_there || self.set_aside.contains(&mark) {
                self.harms.push(Harm {
                    place: git.open_below("")?,
                    finding: finding.clone(),
                });
            }
        }
        self.state.findings.insert(of, findings);
        Ok(())
    }

    /// Looks at the repository that a file or a link named `.git` leads to.
    fn follow(&mut self, base: &Base, found: &NestedRepository) -> io::Result<()> {
        let (Some(parent), Some(name)) = (found.below.parent(), found.below.file_name()) else {
            return Ok(());
        };
        let place = base.directory.open_below(parent)?;
        let target = match found.kind {
            FoundKind::Link => {
                rustix::fs::readlinkat(place.as_fd(), name, Vec::new())?.into_bytes()
            }
            _ => {
                let bytes = place.read(name, POINTER_BYTES_MAX)?.unwrap_or_default();
                let is_whole = u64::try_from(bytes.len()).is_ok_and(|it| it <= POINTER_BYTES_MAX);
                match bytes.strip_prefix(POINTER) {
                    Some(target) if is_whole => line(target).to_vec(),
                    // Nothing that git writes is as long: it leads nowhere that would be found.
                    Some(_) => b"/".to_vec(),
                    // It is not a repository.
                    None => return Ok(()),
                }
            }
        };
        let Some(path) = resolved(place.path(), &target) else {
            return Ok(());
        };
        let is_inside = self
            .all
            .bounds
            .iter()
            .any(|it| path.starts_with(it.place.path()));
        match self.open(&path) {
            Some(Ok(git)) => return self.inspect(&git),
            Some(Err(err)) if err.kind() == io::ErrorKind::NotFound && is_inside => return Ok(()),
            _ => {}
        }
        // Files outside are not work of the command's, and nothing else led there either.
        let what = format!("it leads to `{}`", path.display());
        let finding = Finding::of_pointer(name, what);
        let mark = SetAsideNote::new(identity(&place.own_stat()?), &finding.file, &finding.value);
        let was_there = self.all.before.outside.contains(&path);
        let is_new = !was_there || self.set_aside.contains(&mark);
        self.state.outside.insert(path);
        let is_top = parent.as_os_str().is_empty();
        if is_new && !is_top {
            self.harms.push(Harm { place, finding });
        }
        Ok(())
    }

    /// Opens a directory within the bounds; `None` if it is outside of them.
    fn open(&self, path: &Path) -> Option<io::Result<Directory>> {
        let mut opened = self.all.bounds.iter().filter_map(|bound| {
            let below = path.strip_prefix(bound.place.path()).ok()?;
            Some(bound.place.open_below(below))
        });
        let first = opened.next()?;
        Some(first.or_else(|err| opened.find_map(Result::ok).ok_or(err)))
    }

    fn fail(&mut self, path: PathBuf, err: &io::Error) {
        // It was removed since it was found.
        if err.kind() != io::ErrorKind::NotFound {
            let reason = format!("it cannot be looked at: {err}");
            self.state.unchecked.push(Unchecked { path, reason });
        }
    }
}

/// Returns the changed paths: all of it, or entries of a directory that was there.
fn changed(name: &Path, before: Option<&Content>, now: &Content) -> Vec<PathBuf> {
    match (before, now) {
        (Some(before), now) if before == now => Vec::new(),
        (
            Some(Content::Directory {
                entries: before, ..
            }),
            Content::Directory { entries, .. },
        ) => {
            let is_changed = |(name, now): &(&OsString, &Content)| before.get(*name) != Some(*now);
            let changed = entries.iter().filter(is_changed);
            changed.map(|(entry, _)| name.join(entry)).collect()
        }
        (_, Content::Absent) => Vec::new(),
        _ => vec![name.to_owned()],
    }
}

impl Harm {
    fn mark(&self) -> Option<SetAsideNote> {
        let place = identity(&self.place.own_stat().ok()?);
        Some(SetAsideNote::new(
            place,
            &self.finding.file,
            &self.finding.value,
        ))
    }

    fn refuse(&self, path: PathBuf) -> UndoneChange {
        let file = &self.finding.file;
        let renamed = match (file.parent(), file.file_name()) {
            (Some(parent), Some(name)) => {
                let place = self.place.open_below(parent);
                place.and_then(|it| it.set_aside(name))
            }
            _ => Err(io::ErrorKind::InvalidInput.into()),
        };
        let mut reason = self.finding.what.clone();
        if file == Path::new(SETTINGS) && renamed.is_ok() {
            reason.push_str(UNUSABLE);
        }
        UndoneChange {
            path,
            is_restored: renamed.is_ok(),
            aside: renamed.ok().flatten(),
            reason: Some(reason),
        }
    }
}

/// Leaves the first ones, and those that could not be renamed before all others.
fn bounded(mut undone: Vec<UndoneChange>) -> Vec<UndoneChange> {
    undone.sort_by_key(|it| it.is_restored);
    undone.truncate(UNDONE_MAX);
    undone
}

/// Returns whether a directory has the settings of a repository in itself, as a bare one does.
pub(crate) fn is_repository(directory: &Directory) -> bool {
    let has = |name: &&str| directory.stat(name).is_ok_and(|it| it.is_some());
    ["HEAD", "objects", "refs"].iter().all(has)
}

/// Returns whether a repository is one that `git` keeps in another one.
fn is_part(below: &Path) -> bool {
    let mut parts = below.iter();
    let is_in_git = parts.any(|it| it.as_bytes().eq_ignore_ascii_case(GIT.as_bytes()));
    is_in_git
        && parts
            .next()
            .is_some_and(|it| PARTS.iter().any(|part| it == *part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_named_than_the_bound_and_first_what_could_not_be_renamed() {
        let undone = |is_restored| UndoneChange {
            path: "/a".into(),
            is_restored,
            ..UndoneChange::default()
        };
        let mut all = vec![undone(true); UNDONE_MAX];
        assert_eq!(bounded(all.clone()), all);
        all.push(undone(false));
        let named = bounded(all);
        assert_eq!(named.len(), UNDONE_MAX);
        assert!(!named[0].is_restored && named[1].is_restored);
    }
}
