//! Settings of `git` that the user's own configuration names.

use crate::place::{self, Place};
use rondo_sandbox::{Enforcement, HiddenHooks, SandboxMode, SandboxSpec, hidden_hooks};
use std::sync::Arc;

/// A configuration that is spread over linked and included files, as users of dotfiles have it.
const HOME: &str = "
    mkdir -p dotfiles/hooks .config/git work .ssh
    ln -s dotfiles/gitconfig .gitconfig
    ln -s ../../dotfiles/attributes .config/git/attributes
    printf '[include]\\n path = ~/dotfiles/name\\n[includeIf \"gitdir:/\"]\\n path = mail\\n' > dotfiles/gitconfig
    printf '[core]\\n excludesFile = ~/dotfiles/ignore\\n hooksPath = ~/dotfiles/hooks\\n' >> dotfiles/gitconfig
    printf '[commit]\\n template = ~/work/template\\n' >> dotfiles/gitconfig
    printf '[user]\\n name = Some Body\\n' > dotfiles/name
    printf '[user]\\n email = some@body.example\\n' > mail
    printf '[github]\\n token = hidden\\n' > tokens
    printf '[a]\\n b = hidden\\n' > .ssh/config
    echo .env > dotfiles/ignore; echo '*.bin binary' > dotfiles/attributes; echo subject > work/template
    echo https://user:hidden@host > .config/git/credentials; echo hidden > work/other
    printf '#!/bin/sh\\necho hook ran >&2\\n' > dotfiles/hooks/pre-commit; chmod +x dotfiles/hooks/pre-commit
";

/// Includes that are not opened. Without namespaces they are there and cannot be read, for which `git` stops.
const HIDDEN: &str =
    "printf '[include]\\n path = ~/.ssh/config\\n path = tokens\\n' >> dotfiles/gitconfig";

fn settings_are_found(enforcement: Enforcement) {
    if !place::is_enforced(enforcement) {
        return;
    }
    let home = match enforcement {
        Enforcement::Full => format!("{HOME}{HIDDEN}"),
        Enforcement::Partial => HOME.to_owned(),
    };
    let mut place = Place::with_repository().with_home(&home);
    place.enforcement = enforcement;
    place.works("echo SECRET > .env && echo a > a && git add -A");
    assert_eq!(place.works("git ls-files"), "a\n", "`.env` is ignored");
    let output = place.run("git commit -m first");
    let shown = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.success() && shown.contains("hook ran"),
        "{shown}"
    );
    let author = place.works("git log --format='%an <%ae>'");
    assert_eq!(author, "Some Body <some@body.example>\n");
    place.works("cat ~/work/template && git check-attr binary x.bin | grep -q ': set'");
    for script in [
        "cat ~/.ssh/config",
        "cat ~/tokens",
        "cat ~/.config/git/credentials",
        "cat ~/work/other",
        "echo a > ~/dotfiles/hooks/pre-commit",
        "echo a >> ~/.gitconfig",
    ] {
        place.fails(script);
    }
}

#[test]
fn what_the_users_configuration_of_git_names_is_found_and_secrets_are_not() {
    settings_are_found(Enforcement::Full);
}

#[test]
fn what_the_users_configuration_of_git_names_is_found_without_namespaces() {
    settings_are_found(Enforcement::Partial);
}

#[test]
fn a_status_that_only_reads_leaves_out_what_the_user_ignores() {
    if !place::is_enforced(Enforcement::Full) {
        return;
    }
    let place = Place::new(SandboxMode::ReadOnly).with_home(HOME);
    place.make_repository();
    std::fs::write(place.workspace.join(".env"), "SECRET").unwrap();
    assert_eq!(place.works("git status --short"), "");
}

#[test]
fn hooks_that_the_sandbox_hides_are_known() {
    let place = Place::with_repository().with_home(
        "mkdir hooks $WORKSPACE/own $WORKSPACE/sub; touch hooks/pre-commit hooks/commit-msg hooks/README $WORKSPACE/own/pre-commit",
    );
    let home = place.home.clone().unwrap().canonicalize().unwrap();
    let mut spec = SandboxSpec::new(SandboxMode::WorkspaceWrite, vec![place.workspace.clone()]);
    spec.home = Some(home.clone());
    let directory = home.join("hooks");
    let hidden = HiddenHooks {
        directory: directory.clone(),
        names: vec!["commit-msg", "pre-commit"],
    };
    let config = place.workspace.join(".git/config");
    let configure = |value: &str| std::fs::write(&config, format!("[core]\nhooksPath = {value}\n"));
    let found = |spec: &SandboxSpec, below: &str| hidden_hooks(spec, &place.workspace.join(below));
    assert_eq!(found(&spec, ""), None);
    for value in ["~/hooks", "../home/hooks"] {
        configure(value).unwrap();
        assert_eq!(found(&spec, ""), Some(hidden.clone()), "{value}");
        assert_eq!(found(&spec, "sub"), Some(hidden.clone()), "{value}");
    }
    spec.readable = Arc::new(vec![directory]);
    assert_eq!(found(&spec, ""), None);
    spec.readable = Arc::default();
    for value in ["own", "~/nothing", "~"] {
        configure(value).unwrap();
        assert_eq!(found(&spec, ""), None, "{value}");
    }
}

#[test]
fn the_configuration_of_a_repository_opens_nothing() {
    if !place::is_enforced(Enforcement::Full) {
        return;
    }
    let place = Place::with_repository().with_home(
        "mkdir notes && echo hidden > notes/a
         printf '[core]\\n excludesFile = ~/notes/a\\n[include]\\n path = ~/notes/a\\n' >> $WORKSPACE/.git/config
         printf '[core]\\n excludesFile = ~/notes/a\\n' > $WORKSPACE/settings
         printf '[include]\\n path = %s\\n' $WORKSPACE/settings > .gitconfig",
    );
    place.fails("cat ~/notes/a");
}
