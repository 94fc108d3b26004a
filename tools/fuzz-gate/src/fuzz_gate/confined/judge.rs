//! Judgment of a command's effects, and of the messages about them.

use super::cases::{Case, Kind};
use super::ground::{CHANGED, ELSEWHERE, GROUND, ORIGINAL, PROJECT, SECRET};
use super::look::{Difference, Snapshot, differences, fingerprint, held, is_same_content};
use super::repositories::{self, Harms};
use super::templates::PROTECTED;
use rondo_launch::CallStatus;
use rondo_sandbox::{SandboxMode, UndoneChange};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Of repositories: what git runs, and where else it looks for that.
const OF_GIT: [&str; 4] = ["config", "config.worktree", "commondir", "hooks"];

/// A kind of finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Fault {
    /// Something outside of the writable directories was made, removed, or has other content.
    OutsideWritten,
    /// Something outside of them has another mode, owner, time or attribute.
    OutsideAbout,
    /// A command that may only read changed something.
    ReadOnlyWritten,
    /// Something protected differs, and neither the report nor the warning that follows it names it.
    ProtectedSilent,
    /// Something protected has another owner, or one of its directories another mode, and neither names it.
    ProtectedAbout,
    /// A repository further down was removed as a whole.
    RepositoryRemoved,
    /// Something protected is as it was, says the report, and is not; and no warning follows.
    ReportWrong,
    /// A protected file differs, and the next start of Rondo in the folder does not name it.
    ReviewSilent,
    /// A repository that runs something is there, and the report does not name it.
    RepositorySilent,
    /// Ordinary work was taken away.
    OrdinaryTaken,
    /// A process of the command continues after its end.
    ProcessLeft,
    /// A foreign process was ended, stopped or limited.
    ProcessReached,
    /// The supervisor did not say how the command ended.
    SupervisorLost,
    /// A file that is secret was shown.
    SecretShown,
    /// A connection to the machine was made.
    NetworkReached,
    /// The fuzzer itself was ended.
    FuzzerEnded,
}

/// Violation by a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Finding {
    pub(super) fault: Fault,
    pub(super) detail: String,
}

impl Finding {
    pub(super) fn new(fault: Fault, detail: impl Into<String>) -> Self {
        Self {
            fault,
            detail: detail.into(),
        }
    }
}

/// State before a command.
pub(super) struct Before {
    pub(super) files: Snapshot,
    protected: BTreeMap<PathBuf, Option<u64>>,
    /// Path of each repository, by the inode of its directory.
    repositories: BTreeMap<(u64, u64), PathBuf>,
    harms: Harms,
}

impl Before {
    /// Takes the snapshot of the existing files.
    pub(super) fn new(files: Snapshot, roots: &[&str]) -> Self {
        let ground = Path::new(GROUND);
        let own = roots.iter().flat_map(|root| {
            // What is inside of `.git` but not protected changes with each commit.
            let tops = PROTECTED
                .iter()
                .filter(|it| !it.contains('/') && **it != ".git");
            tops.map(move |name| Path::new(root).join(name))
        });
        let gits = roots.iter().map(|root| Path::new(root).join(".git"));
        let gits: Vec<PathBuf> = gits
            .chain(repositories::find(&files, ground).map(Path::to_owned))
            .collect();
        let inside = gits
            .iter()
            .flat_map(|git| OF_GIT.map(|name| git.join(name)));
        let protected = own.chain(inside);
        let protected = protected.map(|it| {
            let print = fingerprint(&files, &it);
            (it, print)
        });
        Self {
            protected: protected.collect(),
            repositories: repositories::find(&files, ground)
                .filter_map(|it| Some((files.get(it)?.inode, it.to_owned())))
                .collect(),
            harms: repositories::harms(&files, ground),
            files,
        }
    }
}

/// How the commands of a case ended, and what there is now.
pub(super) struct After {
    pub(super) files: Snapshot,
    pub(super) statuses: Vec<CallStatus>,
    /// Set if each supervisor watched the files to the end.
    pub(super) is_reported: bool,
    /// Differences that the next start of Rondo reports.
    pub(super) review: Vec<PathBuf>,
}

impl After {
    fn undone(&self) -> impl Iterator<Item = &UndoneChange> {
        self.statuses.iter().flat_map(|it| &it.undone)
    }

    /// Returns whether the report names a path, something that it is in, or something in it.
    fn names(&self, path: &Path) -> bool {
        let is_near = |it: &Path| is_near(it, path);
        self.undone()
            .any(|it| is_near(&it.path) || it.aside.as_deref().is_some_and(is_near))
    }

    /// Returns whether the next start of Rondo names a path, something that it is in, or something in it.
    fn is_reviewed(&self, path: &Path) -> bool {
        self.review.iter().any(|it| is_near(it, path))
    }
}

/// Returns whether one path is the other, or in it.
fn is_near(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Returns the faults.
pub(super) fn judge(case: &Case, before: &Before, after: &After) -> Vec<Finding> {
    let writable = match (case.mode, case.is_wide) {
        (SandboxMode::ReadOnly, _) => None,
        (SandboxMode::WorkspaceWrite, true) => Some(Path::new(GROUND)),
        (SandboxMode::WorkspaceWrite, false) => Some(Path::new(PROJECT)),
    };
    let mut found = Vec::new();
    for difference in differences(&before.files, &after.files) {
        found.extend(of_difference(&difference, writable));
    }
    // Each change that a command makes which may only read is a finding already.
    if case.mode == SandboxMode::WorkspaceWrite {
        found.extend(of_protected(before, after));
        found.extend(of_repositories(before, after));
    }
    found.extend(of_ordinary(case, after));
    found.extend(of_output(after));
    found
}

/// Returns whether a secret was shown.
fn of_output(after: &After) -> Option<Finding> {
    let is_shown = |it: &CallStatus| it.stdout.contains(SECRET);
    let is_any = after.statuses.iter().any(is_shown);
    is_any.then(|| Finding::new(Fault::SecretShown, ""))
}

fn of_difference(difference: &Difference, writable: Option<&Path>) -> Option<Finding> {
    let Difference { path, what } = difference;
    let is_about = *what == "about" || is_only_copied(path);
    let detail = format!("{what} `{}`", path.display());
    let is_elsewhere = ELSEWHERE.iter().any(|it| Path::new(it) == path);
    // A name that was made in one of these directories is seen by itself.
    if writable.is_some_and(|it| path.starts_with(it)) || is_elsewhere && is_about {
        return None;
    }
    let fault = match path.starts_with(GROUND) && writable.is_none() {
        _ if is_about => Fault::OutsideAbout,
        true => Fault::ReadOnlyWritten,
        false => Fault::OutsideWritten,
    };
    Some(Finding::new(fault, detail))
}

/// Returns whether something of the root file system is there again with its old content: its mode, owner or times are
/// new, or what is in it.
fn is_only_copied(path: &Path) -> bool {
    let inside = path.strip_prefix(CHANGED).ok();
    inside.is_some_and(|inside| is_same_content(path, &Path::new(ORIGINAL).join(inside)))
}

fn of_protected(before: &Before, after: &After) -> Vec<Finding> {
    let mut found = Vec::new();
    // A command that moves or removes what is around them can leave of a repository no more than what is protected.
    let directories = after.files.iter().filter(|it| it.1.is_directory());
    let now_at: BTreeMap<(u64, u64), &Path> = directories
        .map(|(path, entry)| (entry.inode, path.as_path()))
        .collect();
    for (path, was) in &before.protected {
        let git = before.repositories.iter().find(|it| path.starts_with(it.1));
        // A repository further down may be moved with the directory that it is in.
        let is_top = git.is_some_and(|it| it.1.parent() == Some(Path::new(PROJECT)));
        let moved = git.filter(|_| !is_top).and_then(|(inode, git)| {
            let below = path.strip_prefix(git).ok()?;
            Some(now_at.get(inode)?.join(below))
        });
        let place = moved.as_ref().unwrap_or(path);
        let now = fingerprint(&after.files, place);
        if now == *was {
            continue;
        }
        let detail = format!("`{}`", place.display());
        if git.is_some() && !is_top && moved.is_none() && now.is_none() {
            found.push(Finding::new(Fault::RepositoryRemoved, detail));
            continue;
        }
        let is_held = held(&before.files, path) == held(&after.files, place);
        let is_reviewed = after.is_reviewed(path) || after.is_reviewed(place);
        let is_named = after.names(path) || after.names(place) || is_reviewed;
        let is_said_restored = after.undone().any(|it| it.is_restored && it.path == *place);
        if !is_named && after.is_reported {
            let fault = match is_held && was.is_some() == now.is_some() {
                true => Fault::ProtectedAbout,
                false => Fault::ProtectedSilent,
            };
            found.push(Finding::new(fault, detail.clone()));
        } else if is_said_restored && !is_reviewed {
            found.push(Finding::new(Fault::ReportWrong, detail.clone()));
        }
        if !is_reviewed && !is_held {
            found.push(Finding::new(Fault::ReviewSilent, detail));
        }
    }
    found
}

fn of_repositories(before: &Before, after: &After) -> Vec<Finding> {
    let now = repositories::harms(&after.files, Path::new(GROUND));
    let new = now
        .into_iter()
        .filter(|(path, harms)| before.harms.get(path) != Some(harms));
    let mut found = Vec::new();
    for (path, harms) in new {
        let detail = format!("`{}`: {}", path.display(), harms.join(", "));
        if after.is_reported && !after.names(&path) {
            found.push(Finding::new(Fault::RepositorySilent, detail.clone()));
        }
        if !after.is_reviewed(&path) {
            found.push(Finding::new(Fault::ReviewSilent, detail));
        }
    }
    found
}

fn of_ordinary(case: &Case, after: &After) -> Option<Finding> {
    if case.kind != Kind::Ordinary {
        return None;
    }
    let has_succeeded = after.statuses.iter().all(|it| it.exit_code == Some(0));
    let left = case.leaves.map(|it| Path::new(PROJECT).join(it));
    let is_there = left.as_ref().is_none_or(|it| after.files.contains_key(it));
    let told: Vec<String> = after
        .undone()
        .map(|it| it.path.display().to_string())
        .collect();
    let is_taken = has_succeeded && !is_there || !told.is_empty();
    is_taken.then(|| Finding::new(Fault::OrdinaryTaken, told.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::super::look::look;
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn what_a_command_may_not_write_is_a_finding_of_its_own_kind() {
        let fault = |path: &str, what, writable: Option<&str>| {
            let path = PathBuf::from(path);
            of_difference(&Difference { path, what }, writable.map(Path::new)).map(|it| it.fault)
        };
        let inside = "/mnt/world/ground/project/new";
        assert_eq!(fault(inside, "created", Some(PROJECT)), None);
        assert_eq!(fault(inside, "created", None), Some(Fault::ReadOnlyWritten));
        let beside = "/mnt/world/ground/new";
        assert_eq!(fault(beside, "created", Some(GROUND)), None);
        assert_eq!(
            fault(beside, "created", Some(PROJECT)),
            Some(Fault::OutsideWritten)
        );
        assert_eq!(
            fault("/mnt/world/home/.ssh", "about", Some(PROJECT)),
            Some(Fault::OutsideAbout)
        );
        assert_eq!(
            fault("/mnt/changed/etc/profile", "created", Some(PROJECT)),
            Some(Fault::OutsideWritten)
        );
        assert_eq!(fault("/tmp", "about", Some(PROJECT)), None);
        assert_eq!(
            fault("/tmp/canary", "content", None),
            Some(Fault::OutsideWritten)
        );
    }

    /// Makes a workspace with a repository further down.
    fn workspace() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        for git in ["project/.git", "project/deep/a/b/.git"] {
            for folder in ["objects", "refs", "hooks"] {
                fs::create_dir_all(place.path().join(git).join(folder)).unwrap();
            }
            for name in ["HEAD", "config"] {
                fs::write(place.path().join(git).join(name), name).unwrap();
            }
        }
        place
    }

    /// Looks at a workspace as if it was where the commands' own one is.
    fn look_at(place: &Path) -> Snapshot {
        let files = look(&[place.to_str().unwrap()]).unwrap().into_iter();
        let moved = files.map(|(path, entry)| {
            let below = path.strip_prefix(place).unwrap();
            (Path::new(GROUND).join(below), entry)
        });
        moved.collect()
    }

    /// Returns the kinds of findings about protected files after a change of the workspace that no report names.
    fn faults_after(change: impl Fn(&Path)) -> Vec<Fault> {
        let place = workspace();
        let before = Before::new(look_at(place.path()), &[PROJECT]);
        change(&place.path().join("project"));
        let after = After {
            files: look_at(place.path()),
            statuses: Vec::new(),
            is_reported: true,
            review: Vec::new(),
        };
        let found = of_protected(&before, &after).into_iter();
        let found = found.map(|it| it.fault);
        found.filter(|it| *it != Fault::ReviewSilent).collect()
    }

    fn move_with_the_directory_above(project: &Path) {
        fs::rename(project.join("deep/a"), project.join("n9")).unwrap();
    }

    /// Leaves of a repository what a command cannot remove.
    fn move_the_rest(project: &Path) {
        let git = project.join("deep/a/b/.git");
        for folder in ["objects", "refs"] {
            fs::remove_dir(git.join(folder)).unwrap();
        }
        fs::remove_file(git.join("HEAD")).unwrap();
        move_with_the_directory_above(project);
    }

    #[test]
    fn a_repository_that_is_elsewhere_with_the_same_settings_and_hooks_is_no_finding() {
        assert_eq!(faults_after(move_with_the_directory_above), []);
        assert_eq!(faults_after(move_the_rest), []);
    }

    #[test]
    fn a_repository_that_is_elsewhere_with_other_settings_or_hooks_is_a_finding() {
        for moving in [move_with_the_directory_above, move_the_rest] {
            for (name, text) in [
                ("config", "other"),
                ("commondir", ""),
                ("hooks/post-merge", ""),
            ] {
                let change = |project: &Path| {
                    moving(project);
                    fs::write(project.join("n9/b/.git").join(name), text).unwrap();
                };
                assert_eq!(faults_after(change), [Fault::ProtectedSilent], "{name}");
            }
        }
    }

    #[test]
    fn what_a_protected_file_holds_and_what_it_is_like_are_findings_of_their_own() {
        let mode = |project: &Path| {
            let hooks = project.join(".git/hooks");
            fs::set_permissions(hooks, fs::Permissions::from_mode(0o711)).unwrap();
        };
        assert_eq!(faults_after(mode), [Fault::ProtectedAbout]);
        let run = |project: &Path| fs::write(project.join(".git/hooks/pre-push"), "").unwrap();
        assert_eq!(faults_after(run), [Fault::ProtectedSilent]);
        let removed = |project: &Path| fs::remove_dir_all(project.join("deep")).unwrap();
        let faults = [Fault::RepositoryRemoved; 2];
        assert_eq!(faults_after(removed), faults);
        let removed = |project: &Path| fs::remove_dir_all(project.join(".git")).unwrap();
        assert_eq!(faults_after(removed), [Fault::ProtectedSilent; 2]);
    }

    #[test]
    fn what_the_next_start_does_not_name_is_a_finding_whatever_the_report_names() {
        let place = workspace();
        let before = Before::new(look_at(place.path()), &[PROJECT]);
        fs::write(place.path().join("project/.envrc"), "").unwrap();
        let path = Path::new(PROJECT).join(".envrc");
        let faults = |review: &[&Path], is_reported| {
            let after = After {
                files: look_at(place.path()),
                statuses: Vec::new(),
                is_reported,
                review: review.iter().map(|it| (*it).to_owned()).collect(),
            };
            let found = of_protected(&before, &after).into_iter();
            found.map(|it| it.fault).collect::<Vec<_>>()
        };
        assert_eq!(faults(&[&path], false), []);
        assert_eq!(faults(&[Path::new(PROJECT)], false), []);
        assert_eq!(faults(&[&path], true), []);
        let elsewhere = Path::new(PROJECT).join(".git");
        assert_eq!(faults(&[&elsewhere], false), [Fault::ReviewSilent]);
        let both = [Fault::ProtectedSilent, Fault::ReviewSilent];
        assert_eq!(faults(&[&elsewhere], true), both);
    }

    #[test]
    fn a_copy_of_a_repository_does_not_stand_for_the_one_that_is_gone() {
        let change = |project: &Path| {
            fs::create_dir_all(project.join("n9/.git")).unwrap();
            fs::rename(
                project.join("deep/a/b/.git/config"),
                project.join("n9/.git/config"),
            )
            .unwrap();
            fs::remove_dir_all(project.join("deep")).unwrap();
        };
        assert_eq!(faults_after(change), [Fault::RepositoryRemoved; 2]);
    }
}
