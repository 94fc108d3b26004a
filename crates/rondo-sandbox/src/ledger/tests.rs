//! Findings of the ledger after a command, and entries that it drops.

use super::*;
use crate::PROTECTED;
use std::os::unix::fs::{PermissionsExt as _, symlink};

/// A folder with a repository, and a ledger elsewhere.
struct Folder {
    place: tempfile::TempDir,
    root: PathBuf,
    ledger: Ledger,
}

/// State of the command's supervisor at the time of comparison.
#[derive(Clone, Copy)]
enum Supervisor {
    Runs,
    WasKilled,
}

impl Folder {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("project");
        for folder in [".git/hooks", "sub/.git/hooks", ".vscode"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        for file in [
            ".git/config",
            ".git/hooks/pre-commit",
            ".vscode/tasks.json",
            "sub/.git/HEAD",
            "sub/.git/config",
            "CLAUDE.md",
        ] {
            fs::write(root.join(file), "mine").unwrap();
        }
        symlink("CLAUDE.md", root.join("AGENTS.md")).unwrap();
        Self {
            ledger: Ledger::at(place.path().join("state/ledger")),
            place,
            root,
        }
    }

    fn roots(&self) -> Vec<PathBuf> {
        vec![self.root.clone()]
    }

    fn without_repository_below() -> Self {
        let folder = Self::new();
        fs::remove_dir_all(folder.root.join("sub")).unwrap();
        folder
    }

    fn begin(&self, supervisor: Supervisor) -> Entry {
        self.begin_as("first", supervisor)
    }

    fn begin_as(&self, key: &str, supervisor: Supervisor) -> Entry {
        let own = std::process::id();
        let stat = fs::read_to_string(format!("/proc/{own}/stat")).unwrap();
        let after_name = stat.rsplit_once(") ").unwrap().1;
        let start_time = after_name.split(' ').nth(19).unwrap().parse().unwrap();
        let process = match supervisor {
            Supervisor::Runs => (own, start_time),
            // Another process had the same id before.
            Supervisor::WasKilled => (own, start_time - 1),
        };
        let roots = self.roots();
        self.ledger.begin(key, process, &roots, &PROTECTED).unwrap()
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.root.join(path), text).unwrap();
    }

    /// Returns the differences by their paths below the folder.
    fn differences(&self) -> Vec<(String, DifferenceKind)> {
        let found = self.ledger.differences(&self.roots()).into_iter();
        let below = |path: PathBuf| match path.strip_prefix(&self.root) {
            Ok(below) => below.display().to_string(),
            Err(_) => path.display().to_string(),
        };
        found.map(|it| (below(it.path), it.kind)).collect()
    }
}

fn named(path: &str, kind: DifferenceKind) -> (String, DifferenceKind) {
    (path.to_owned(), kind)
}

#[test]
fn a_command_that_changes_nothing_protected_leaves_no_entry() {
    let folder = Folder::new();
    let entry = folder.begin(Supervisor::Runs);
    folder.write("ordinary", "theirs");
    folder.write(".git/index", "theirs");
    assert!(entry.end(&[]).unwrap());
    assert_eq!(
        fs::read_dir(folder.place.path().join("state/ledger"))
            .unwrap()
            .count(),
        0
    );
    folder.write(".git/config", "mine, later");
    assert!(folder.differences().is_empty());
}

#[test]
fn every_kind_of_difference_is_found_when_the_command_has_ended() {
    let folder = Folder::new();
    let entry = folder.begin(Supervisor::Runs);
    folder.write(".git/config", "evil");
    folder.write(".envrc", "theirs");
    folder.write(".git/hooks/post-checkout", "theirs");
    fs::remove_file(folder.root.join(".vscode/tasks.json")).unwrap();
    let hook = folder.root.join(".git/hooks/pre-commit");
    fs::set_permissions(hook, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(!entry.end(&[folder.root.join("sub/.git/config")]).unwrap());
    let found = folder.differences();
    assert_eq!(
        found,
        [
            named(".envrc", DifferenceKind::Added),
            named(".git/config", DifferenceKind::Changed),
            named(".git/hooks/post-checkout", DifferenceKind::Added),
            named(".git/hooks/pre-commit", DifferenceKind::Changed),
            named(".vscode/tasks.json", DifferenceKind::Removed),
            named("sub/.git/config", DifferenceKind::Unchecked),
        ]
    );
    let all = folder.ledger.differences(&folder.roots());
    let config = all.iter().find(|it| it.path.ends_with(".git/config"));
    let config = config.unwrap();
    assert_eq!(config.before.as_deref(), Some(&b"mine"[..]));
    assert_eq!(config.now.as_deref(), Some(&b"evil"[..]));
}

#[test]
fn a_file_of_the_same_length_and_times_is_compared_by_its_content() {
    let folder = Folder::new();
    let config = folder.root.join(".git/config");
    let entry = folder.begin(Supervisor::Runs);
    let before = fs::metadata(&config).unwrap().modified().unwrap();
    folder.write(".git/config", "MINE");
    fs::File::open(&config)
        .unwrap()
        .set_modified(before)
        .unwrap();
    assert!(!entry.end(&[]).unwrap());
    assert_eq!(
        folder.differences(),
        [named(".git/config", DifferenceKind::Changed)]
    );
    folder.write(".git/config", "mine");
    assert!(folder.differences().is_empty());
}

#[test]
fn a_large_file_is_compared_by_its_hash_and_the_bound_is_exact() {
    let folder = Folder::new();
    let bound = usize::try_from(snapshot::FILE_BYTES_MAX).unwrap();
    for (length, is_kept) in [(bound - 1, true), (bound, true), (bound + 1, false)] {
        folder.write(".envrc", &"a".repeat(length));
        let entry = folder.begin(Supervisor::Runs);
        folder.write(".envrc", &"b".repeat(length));
        assert!(!entry.end(&[]).unwrap());
        let found = folder.ledger.differences(&folder.roots());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].kind, DifferenceKind::Changed);
        assert_eq!(found[0].before.is_some(), is_kept, "{length}");
        assert_eq!(found[0].now.is_some(), is_kept, "{length}");
        folder.write(".envrc", &"a".repeat(length));
        assert!(folder.differences().is_empty(), "{length}");
    }
}

#[test]
fn a_running_command_counts_only_once_its_supervisor_is_gone() {
    let folder = Folder::without_repository_below();
    let running = folder.begin(Supervisor::Runs);
    folder.write(".git/config", "evil");
    assert!(folder.differences().is_empty());
    drop(running);
    let folder = Folder::without_repository_below();
    let killed = folder.begin(Supervisor::WasKilled);
    drop(killed);
    let everything = folder.root.display().to_string();
    assert_eq!(
        folder.differences(),
        [named("", DifferenceKind::Unchecked)],
        "{everything}"
    );
    folder.write(".git/config", "evil");
    assert_eq!(
        folder.differences(),
        [named(".git/config", DifferenceKind::Changed)]
    );
}

#[test]
fn repositories_further_down_are_looked_at_if_the_supervisor_was_killed() {
    let folder = Folder::new();
    let killed = folder.begin(Supervisor::WasKilled);
    drop(killed);
    folder.write("sub/.git/config", "evil");
    fs::create_dir_all(folder.root.join("bare/objects")).unwrap();
    folder.write("bare/HEAD", "ref: x");
    folder.write("bare/config", "evil");
    fs::remove_file(folder.root.join("sub/.git/HEAD")).unwrap();
    folder.write("sub/.git/commondir", "../../bare");
    fs::create_dir_all(folder.root.join("sub/.rondo")).unwrap();
    folder.write("sub/.rondo/init.lua", "evil");
    let found = folder.differences();
    for file in ["sub/.rondo/init.lua", "sub/.git/commondir"] {
        assert!(
            found.contains(&named(file, DifferenceKind::Unchecked)),
            "{file}: {found:?}"
        );
    }
    assert!(
        found.contains(&named("sub/.git/config", DifferenceKind::Unchecked)),
        "{found:?}"
    );
    assert!(
        found.contains(&named("bare/config", DifferenceKind::Unchecked)),
        "{found:?}"
    );
}

#[test]
fn what_another_running_command_may_have_changed_before_is_doubtful_and_nothing_else_is() {
    let folder = Folder::new();
    let first = folder.begin(Supervisor::Runs);
    let path = |it: &str| folder.root.join(it);
    for it in ["CLAUDE.md", "sub/.git/config"] {
        assert!(!first.is_doubtful(&path(it)), "no other one runs: {it}");
    }
    folder.write("CLAUDE.md", "evil");
    let second = folder.begin_as("second", Supervisor::Runs);
    for it in ["CLAUDE.md", "sub/.git/config"] {
        assert!(second.is_doubtful(&path(it)), "{it}");
    }
    for it in [".vscode/tasks.json", ".git/hooks", ".envrc"] {
        assert!(!second.is_doubtful(&path(it)), "{it}");
    }
    folder.write("CLAUDE.md", "mine");
    assert!(first.end(&[]).unwrap());
    folder.write("CLAUDE.md", "evil");
    assert!(!second.end(&[path("CLAUDE.md")]).unwrap());
    assert_eq!(
        folder.differences(),
        [named("CLAUDE.md", DifferenceKind::Unchecked)]
    );
}

#[test]
fn what_another_command_had_changed_is_doubtful_too_if_the_supervisor_was_killed() {
    let folder = Folder::without_repository_below();
    let first = folder.begin(Supervisor::Runs);
    folder.write(".profile", "evil");
    fs::remove_dir_all(folder.root.join(".vscode")).unwrap();
    drop(folder.begin_as("second", Supervisor::WasKilled));
    fs::remove_file(folder.root.join(".profile")).unwrap();
    fs::create_dir(folder.root.join(".vscode")).unwrap();
    folder.write(".vscode/tasks.json", "mine");
    assert!(first.end(&[]).unwrap());
    folder.write(".profile", "evil");
    let found = folder.differences();
    let profile = named(".profile", DifferenceKind::Unchecked);
    assert!(found.contains(&profile), "{found:?}");
}

#[test]
fn what_another_command_had_moved_away_is_doubtful_where_it_is_away_again() {
    let folder = Folder::without_repository_below();
    let git = folder.root.join(".git");
    let away = folder.root.join("away");
    let first = folder.begin(Supervisor::Runs);
    fs::rename(&git, &away).unwrap();
    let second = folder.begin_as("second", Supervisor::Runs);
    fs::rename(&away, &git).unwrap();
    assert!(first.end(&[]).unwrap());
    fs::rename(&git, &away).unwrap();
    assert!(second.is_doubtful(&git));
    assert!(!second.end(&[git]).unwrap());
    assert_eq!(
        folder.differences(),
        [named(".git", DifferenceKind::Unchecked)]
    );
}

#[test]
fn interrupted_work_of_a_repository_is_looked_at_if_the_supervisor_was_killed() {
    let folder = Folder::new();
    folder.write(".git/HEAD", "ref: x");
    fs::create_dir_all(folder.root.join("old")).unwrap();
    folder.write("old/todo", "exec evil");
    drop(folder.begin(Supervisor::WasKilled));
    fs::create_dir(folder.root.join(".git/rebase-merge")).unwrap();
    folder.write(".git/rebase-merge/git-rebase-todo", "exec evil");
    fs::rename(folder.root.join("old"), folder.root.join(".git/sequencer")).unwrap();
    let found = folder.differences();
    for path in [".git/rebase-merge/git-rebase-todo", ".git/sequencer"] {
        let unchecked = named(path, DifferenceKind::Unchecked);
        assert!(found.contains(&unchecked), "{path}: {found:?}");
    }
}

#[test]
fn worktrees_and_modules_come_and_go() {
    let folder = Folder::new();
    fs::create_dir_all(folder.root.join(".git/modules/sub")).unwrap();
    let entry = folder.begin(Supervisor::Runs);
    fs::create_dir_all(folder.root.join(".git/worktrees/new")).unwrap();
    fs::remove_dir_all(folder.root.join(".git/modules")).unwrap();
    assert!(entry.end(&[]).unwrap());
}

#[test]
fn what_a_link_leads_to_counts_as_the_link_does() {
    let folder = Folder::new();
    let entry = folder.begin(Supervisor::Runs);
    folder.write("CLAUDE.md", "theirs");
    assert!(!entry.end(&[]).unwrap());
    let found = folder.differences();
    assert!(
        found.contains(&named("AGENTS.md", DifferenceKind::Changed)),
        "{found:?}"
    );
    let shown = folder.ledger.differences(&folder.roots());
    let shown = shown.iter().find(|it| it.path.ends_with("AGENTS.md"));
    let texts = shown.map(|it| [it.before.as_deref(), it.now.as_deref()]);
    let expected = [
        b"a link to CLAUDE.md\nmine",
        b"a link to CLAUDE.md\ntheirs".as_slice(),
    ];
    assert_eq!(texts, Some(expected.map(Some)));
    let folder = Folder::new();
    folder.write("CLAUDE.md", "");
    assert!(folder.begin(Supervisor::Runs).end(&[]).unwrap());
    let entry = folder.begin(Supervisor::Runs);
    fs::remove_file(folder.root.join("AGENTS.md")).unwrap();
    symlink("ordinary", folder.root.join("AGENTS.md")).unwrap();
    assert!(!entry.end(&[]).unwrap());
}

#[test]
fn what_is_in_a_directory_that_a_protected_link_leads_to_counts() {
    let folder = Folder::new();
    fs::create_dir_all(folder.root.join("cfg/husky")).unwrap();
    folder.write("cfg/husky/tasks.json", "mine");
    symlink("cfg/husky", folder.root.join(".husky")).unwrap();
    // A link to the directory itself makes no difference of ordinary files.
    symlink(".", folder.root.join(".codex")).unwrap();
    let entry = folder.begin(Supervisor::Runs);
    fs::rename(folder.root.join("cfg"), folder.root.join("cfg2")).unwrap();
    fs::create_dir_all(folder.root.join("cfg/husky")).unwrap();
    folder.write("cfg/husky/tasks.json", "theirs");
    assert!(!entry.end(&[]).unwrap());
    let found = folder.differences();
    assert!(
        found.contains(&named(".husky/tasks.json", DifferenceKind::Changed)),
        "{found:?}"
    );
}

#[test]
fn another_directory_in_the_place_of_a_repository_or_of_the_folder_is_a_difference() {
    let folder = Folder::new();
    let entry = folder.begin(Supervisor::Runs);
    let git = folder.root.join(".git");
    fs::rename(&git, folder.root.join("was")).unwrap();
    let mut copy = std::process::Command::new("cp");
    let copied = copy.args(["-a", "was", ".git"]).current_dir(&folder.root);
    assert!(copied.status().unwrap().success());
    assert!(!entry.end(&[]).unwrap());
    assert!(
        folder
            .differences()
            .contains(&named(".git", DifferenceKind::Changed))
    );

    let folder = Folder::new();
    let entry = folder.begin(Supervisor::Runs);
    fs::rename(&folder.root, folder.place.path().join("was")).unwrap();
    symlink("was", &folder.root).unwrap();
    assert!(!entry.end(&[]).unwrap());
    assert!(
        folder
            .differences()
            .contains(&named("", DifferenceKind::Unchecked))
    );
}

#[test]
fn differences_concern_directories_above_and_below_and_end_when_they_are_accepted() {
    let folder = Folder::new();
    let entry = folder.begin(Supervisor::Runs);
    folder.write(".git/config", "first");
    assert!(!entry.end(&[]).unwrap());
    let entry = folder.begin_as("another", Supervisor::Runs);
    folder.write(".git/config", "second");
    assert!(!entry.end(&[]).unwrap());
    let found = folder.ledger.differences(&folder.roots());
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].before.as_deref(),
        Some(&b"mine"[..]),
        "the earliest counts"
    );
    for (directory, counts) in [
        (folder.root.join("sub"), true),
        (folder.place.path().to_owned(), true),
        (folder.place.path().join("other"), false),
        (folder.place.path().join("projects"), false),
    ] {
        let found = folder.ledger.differences(std::slice::from_ref(&directory));
        assert_eq!(!found.is_empty(), counts, "{}", directory.display());
    }
    folder
        .ledger
        .accept(&[folder.place.path().join("other")])
        .unwrap();
    assert_eq!(folder.differences().len(), 1);
    folder.ledger.accept(&folder.roots()).unwrap();
    assert!(folder.differences().is_empty());
}

#[test]
fn a_file_that_is_no_entry_says_nothing_and_a_missing_ledger_is_clear() {
    let folder = Folder::without_repository_below();
    assert!(folder.differences().is_empty());
    drop(folder.begin(Supervisor::WasKilled));
    fs::write(folder.ledger.0.join("cut.entry"), "{\"version\":1").unwrap();
    fs::write(folder.ledger.0.join("empty.entry"), "").unwrap();
    assert_eq!(folder.differences().len(), 1);
}
