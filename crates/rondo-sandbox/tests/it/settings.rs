//! Effects of variables on programs in the sandbox.

use crate::place::{self, Place};
use rondo_sandbox::{Enforcement, NetworkAccess, SandboxMode};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Far below what these programs take if they try again.
const AT_ONCE: Duration = Duration::from_secs(30);

fn is_enforced() -> bool {
    place::is_enforced(Enforcement::Full)
}

#[test]
fn a_download_fails_at_once() {
    if !is_enforced() || !Path::new("/usr/bin/npm").exists() {
        return;
    }
    for network in [NetworkAccess::Loopback, NetworkAccess::Nothing] {
        let mut place = Place::new(SandboxMode::WorkspaceWrite);
        place.network = network;
        let begun = Instant::now();
        place.fails("npm install left-pad@1.3.0");
        assert!(begun.elapsed() < AT_ONCE, "{network:?}");
    }
}

#[test]
fn programs_are_told_that_there_is_no_network_only_if_there_is_none() {
    if !is_enforced() {
        return;
    }
    let mut place = Place::new(SandboxMode::WorkspaceWrite);
    let shown = "echo $npm_config_fetch_retries $CARGO_NET_OFFLINE $POETRY_REQUESTS_TIMEOUT $GIT_TERMINAL_PROMPT";
    assert_eq!(place.works(shown), "0 true 0 0\n");
    place.network = NetworkAccess::Host;
    assert_eq!(place.works(shown), "0\n");
}

#[test]
fn garbage_of_git_is_collected_before_the_commit_ends() {
    if !is_enforced() {
        return;
    }
    let place = Place::with_repository();
    let set_up = "for it in $(seq 700); do echo $it > $it; done; git add .; git config gc.auto 1";
    let done = Command::new("bash")
        .args(["-c", set_up])
        .current_dir(&place.workspace)
        .status();
    assert!(done.unwrap().success());
    place.works("git -c user.name=A -c user.email=a@b commit -qm a");
    let packs = place.works("ls .git/objects/pack");
    assert!(
        packs.contains(".pack") && !place.workspace.join(".git/gc.pid").exists(),
        "{packs}"
    );
}

#[test]
fn stores_of_the_user_are_read_and_other_caches_are_ones_of_the_session() {
    if !is_enforced() {
        return;
    }
    let variables = "echo $pnpm_config_store_dir $POETRY_VIRTUALENVS_PATH";
    let place = Place::new(SandboxMode::WorkspaceWrite).with_home(":");
    let scratch = place.scratch.display();
    assert_eq!(place.works(variables), format!("{scratch}/pnpm\n"));
    place.works("touch $pnpm_config_store_dir/a $PRE_COMMIT_HOME/a $POETRY_CACHE_DIR/a");
    let place = Place::new(SandboxMode::WorkspaceWrite)
        .with_home("mkdir -p .local/share/pnpm/store/v10 .cache/pypoetry/virtualenvs/a");
    let home = place.home.as_ref().unwrap().display();
    let store = format!("{home}/.local/share/pnpm/store");
    let environments = format!("{home}/.cache/pypoetry/virtualenvs");
    assert_eq!(place.works(variables), format!("{store} {environments}\n"));
    place.works("ls -d $pnpm_config_store_dir/v10 $POETRY_VIRTUALENVS_PATH/a");
}

#[test]
fn environments_of_pre_commit_are_read_and_new_ones_belong_to_the_session() {
    for enforcement in [Enforcement::Full, Enforcement::Partial] {
        if !place::is_enforced(enforcement) {
            continue;
        }
        let mut place = Place::new(SandboxMode::WorkspaceWrite)
            .with_home("mkdir -p .cache/pre-commit/repo && echo list > .cache/pre-commit/db.db");
        place.enforcement = enforcement;
        let shown = place.works(
            "cat $PRE_COMMIT_HOME/db.db; echo new > $PRE_COMMIT_HOME/db.db; ls ~/.cache/pre-commit",
        );
        assert_eq!(shown, "list\ndb.db\nrepo\n");
        assert_eq!(place.works("cat $PRE_COMMIT_HOME/db.db"), "new\n");
        assert_eq!(place.works("cat ~/.cache/pre-commit/db.db"), "list\n");
        place.works("rm -r $PRE_COMMIT_HOME && ln -s $OUTSIDE $PRE_COMMIT_HOME");
        place.works("true");
        assert!(!place.outside.join("db.db").exists());
    }
}

/// Landlock says that what it refuses to write can be written.
#[test]
fn a_shim_of_pyenv_does_not_wait_for_a_lock_that_it_cannot_take() {
    let rehash = "bin/../libexec/pyenv-rehash";
    let root = std::env::var_os("PYENV_ROOT").or_else(|| Some("/root/.pyenv".into()));
    let root = Path::new(&root.unwrap()).to_owned();
    if !place::is_enforced(Enforcement::Partial) || !root.join(rehash).exists() {
        return;
    }
    let mut place = Place::new(SandboxMode::WorkspaceWrite);
    place.enforcement = Enforcement::Partial;
    let begun = Instant::now();
    let root = root.display();
    place.run(&format!(
        "PYENV_ROOT={root} PATH={root}/bin:$PATH pyenv rehash"
    ));
    assert!(begun.elapsed() < AT_ONCE);
}
