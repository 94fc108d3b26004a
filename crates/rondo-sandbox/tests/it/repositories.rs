//! `git` and builds in a directory whose repository lies outside of it.

use crate::place::{self, Place};
use rondo_sandbox::{Enforcement, Preparation, SandboxMode, SandboxSpec};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Runs a script outside of the sandbox.
#[track_caller]
fn set_up(place: &Place, script: &str) {
    let done = Command::new("bash")
        .args(["-ec", script])
        .current_dir(&place.outside)
        .env("GIT_AUTHOR_NAME", "A")
        .env("GIT_AUTHOR_EMAIL", "a@b")
        .env("GIT_COMMITTER_NAME", "A")
        .env("GIT_COMMITTER_EMAIL", "a@b")
        .output()
        .unwrap();
    assert!(done.status.success(), "{script}: {done:?}");
}

const COMMIT: &str = "git add -A . && git -c user.name=A -c user.email=a@b commit -qm more";

/// Makes a repository and returns a place that works in a directory below it.
fn with_subdirectory(enforcement: Enforcement) -> Place {
    let mut place = Place::new(SandboxMode::WorkspaceWrite);
    place.enforcement = enforcement;
    set_up(
        &place,
        "git init -q -b main top && cd top && mkdir -p crates/a && echo a > a && echo target > .gitignore
         echo a > crates/a/a && git add -A && git commit -qm first",
    );
    place.workspace = place.outside.join("top/crates/a");
    place
}

fn works_in_a_subdirectory(enforcement: Enforcement) {
    let place = with_subdirectory(enforcement);
    place.works("test \"$(git rev-parse --show-prefix)\" = crates/a/ && cat ../../a");
    let worked = place.works(&format!(
        "echo b > b && {COMMIT} && git status --short && git switch -qc other && git stash list && git log --oneline"
    ));
    assert_eq!(worked.lines().count(), 2, "{worked}");
    for script in [
        "echo b > ../../b",
        "echo b > ../../a",
        "rm -r ../../.gitignore",
        "mv ../../.git ../../moved",
        "cat $OUTSIDE/.ssh/id",
    ] {
        place.fails(script);
    }
    assert!(place.outside.join("top/.git/config").exists());
}

#[test]
fn git_works_in_a_subdirectory_of_a_repository_and_the_rest_of_it_is_only_read() {
    if !place::is_enforced(Enforcement::Full) {
        return;
    }
    works_in_a_subdirectory(Enforcement::Full);
    let place = with_subdirectory(Enforcement::Full);
    for script in [
        "git config core.fsmonitor x",
        "echo a > ../../.git/hooks/pre-commit",
        "mv ../../.git/hooks ../../.git/moved",
    ] {
        place.fails(script);
    }
    place.works("git gc -q");
}

#[test]
fn git_works_in_a_subdirectory_without_namespaces() {
    if !place::is_enforced(Enforcement::Partial) {
        return;
    }
    works_in_a_subdirectory(Enforcement::Partial);
    let place = with_subdirectory(Enforcement::Partial);
    let config = place.outside.join("top/.git/config");
    let before = fs::read(&config).unwrap();
    place.works("git config core.fsmonitor x; echo a > ../../.git/hooks/pre-commit");
    assert_eq!(fs::read(&config).unwrap(), before);
    assert!(!place.outside.join("top/.git/hooks/pre-commit").exists());
}

#[test]
fn a_command_that_only_reads_sees_the_repository_around_it() {
    if !place::is_enforced(Enforcement::Full) {
        return;
    }
    let mut place = Place::new(SandboxMode::ReadOnly);
    set_up(
        &place,
        "git init -q top && cd top && mkdir sub && echo a > sub/a && git add -A && git commit -qm first",
    );
    place.workspace = place.outside.join("top/sub");
    let shown = place.works("git log --format=%s && git status --short && git show :sub/a");
    assert_eq!(shown, "first\na\n");
    place.fails("git branch b");
}

/// Returns a place for each enforcement that this system has.
fn writable_places() -> impl Iterator<Item = Place> {
    let all = [Enforcement::Full, Enforcement::Partial];
    let enforced = all.into_iter().filter(|it| place::is_enforced(*it));
    enforced.map(|enforcement| {
        let mut place = Place::new(SandboxMode::WorkspaceWrite);
        place.enforcement = enforcement;
        place
    })
}

#[test]
fn git_works_in_a_submodule() {
    for mut place in writable_places() {
        set_up(
            &place,
            "git init -q lib && git -C lib commit -q --allow-empty -m first && git init -q top && cd top
             git -c protocol.file.allow=always submodule --quiet add ../lib deep/lib && git commit -qm first",
        );
        let top = place.outside.join("top");
        place.workspace = top.join("deep/lib");
        let log = place.works(&format!(
            "echo b > b && {COMMIT} && git switch -qc other && git log --oneline"
        ));
        assert_eq!(log.lines().count(), 2);
        place.makes_nothing("echo a > ../../a", &top.join("a"));
        if place.enforcement == Enforcement::Full {
            place.fails("git config core.fsmonitor x");
            place.fails("echo a > ../../.git/modules/deep/lib/hooks/pre-commit");
            // From the top, git changes the submodule's settings itself, so they are judged by what they say.
            place.workspace = top;
            place.works(&format!("cd deep/lib && echo c > c && {COMMIT}"));
            let own = place.workspace.join(".git/modules/deep/lib");
            place.works(
                "cd .git/modules/deep/lib/hooks && echo a > pre-commit && chmod +x pre-commit",
            );
            assert!(!own.join("hooks/pre-commit").exists(), "{:?}", place.undone);
            place.works("git -C deep/lib config core.fsmonitor x");
            assert!(!own.join("config").exists(), "{:?}", place.undone);
        }
    }
}

#[test]
fn worktrees_are_added_and_collected_in_the_main_repository() {
    if !place::is_enforced(Enforcement::Full) {
        return;
    }
    let place = Place::with_repository();
    set_up(
        &place,
        "cd ../workspace && git commit -q --allow-empty -m first && git worktree add -q ../outside/linked",
    );
    place.works("git gc -q && git worktree list");
    place.works(&format!(
        "git worktree add -q new && cd new && echo a > a && {COMMIT}"
    ));
    let leading = place.workspace.join(".git/worktrees/linked/commondir");
    let before = std::fs::read(&leading).unwrap();
    let linked = place.outside.join("linked");
    set_up(&place, "cd linked && echo staged > b && git add b");
    place.fails("echo ../../../evil > .git/worktrees/linked/commondir");
    place.fails("git worktree remove --force ../outside/linked");
    place.fails("mv .git/worktrees/linked .git/worktrees/moved");
    assert_eq!(std::fs::read(&leading).unwrap(), before);
    set_up(
        &place,
        "cd linked && git diff --cached --quiet && exit 1; true",
    );
    let status = Command::new("git")
        .arg("status")
        .current_dir(linked)
        .output();
    assert!(status.unwrap().status.success());
}

#[test]
fn git_works_in_a_subdirectory_of_a_linked_worktree() {
    for mut place in writable_places() {
        set_up(
            &place,
            "git init -q main && cd main && mkdir sub && echo a > sub/a && git add -A && git commit -qm first
             git worktree add -q ../linked",
        );
        place.workspace = place.outside.join("linked/sub");
        let log = place.works(&format!(
            "echo b > b && {COMMIT} && git log --oneline && git status --short"
        ));
        assert_eq!(log.lines().count(), 2);
        if place.enforcement == Enforcement::Full {
            place.fails("mv ../../main/.git/worktrees/linked ../../main/.git/worktrees/moved");
        }
    }
}

#[test]
fn a_member_of_a_cargo_workspace_is_built() {
    if !place::is_enforced(Enforcement::Full) {
        return;
    }
    let mut place = Place::at(TempDir::new().unwrap(), SandboxMode::WorkspaceWrite);
    set_up(
        &place,
        "git init -q top && cd top && mkdir -p a/src b/src && echo target > .gitignore
         printf '[workspace]\\nresolver = \"2\"\\nmembers = [\"a\", \"b\"]\\n' > Cargo.toml
         for it in a b; do printf '[package]\\nname = \"%s\"\\nversion = \"0.1.0\"\\nedition = \"2021\"\\n' $it > $it/Cargo.toml
         echo 'pub fn f() {}' > $it/src/lib.rs; done; printf '[dependencies]\\nb = { path = \"../b\" }\\n' >> a/Cargo.toml",
    );
    let top = place.outside.join("top");
    place.workspace = top.join("a");
    let build = "env -u CARGO_TARGET_DIR cargo build -q --offline";
    // A lock file is not made in a directory that is only read.
    fs::write(top.join("Cargo.lock"), "").unwrap();
    let built = |place: &Path| place.join("debug/liba.rlib").exists();
    place.works("cargo build -q --offline");
    assert!(built(&place.scratch.join("cargo-target")), "target");
    fs::create_dir(top.join("target")).unwrap();
    place.works(build);
    assert!(built(&top.join("target")));
    assert_ne!(fs::read_to_string(top.join("Cargo.lock")).unwrap(), "");
    place.fails("echo a > ../Cargo.toml");
}

#[test]
fn the_top_of_a_worktree_in_the_home_directory_is_written_and_its_siblings_are_not_forgotten() {
    if !place::is_enforced(Enforcement::Full) {
        return;
    }
    let mut place = Place::new(SandboxMode::WorkspaceWrite);
    place.home = Some(place.outside.canonicalize().unwrap());
    set_up(
        &place,
        "git init -q main && cd main && git commit -q --allow-empty -m first
         git worktree add -q ../one && git worktree add -q ../two",
    );
    place.workspace = place.outside.join("one");
    place.works(&format!("echo a > a && {COMMIT}"));
    // From each of them, `git` sees that the others are there.
    for directory in ["one", "main"] {
        place.workspace = place.outside.join(directory);
        place.works("git worktree prune && git gc -q --prune=now && git worktree list");
        for own in ["one", "two"] {
            let own = place.outside.join("main/.git/worktrees").join(own);
            assert!(own.join("HEAD").exists(), "{directory}: {own:?}");
        }
    }
    place.fails("cat ../two/.git && echo a > ../two/.git");
}

#[test]
fn a_sandbox_that_is_used_again_is_out_of_date_once_git_has_another_worktree() {
    if !place::is_enforced(Enforcement::Full) {
        return;
    }
    let place = with_subdirectory(Enforcement::Full);
    let spec = SandboxSpec::new(SandboxMode::WorkspaceWrite, [place.workspace.clone()]);
    let mut preparation = Preparation::new(spec).unwrap();
    preparation.renew().unwrap();
    assert!(preparation.is_current());
    set_up(&place, "cd top && git worktree add -q ../linked");
    preparation.renew().unwrap();
    assert!(!preparation.is_current());
}
