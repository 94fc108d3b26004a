//! Files of the workspace that a command does not see.

use crate::place::{self, Place};
use rondo_sandbox::{Enforcement, NetworkAccess, SandboxMode};
use std::fs;

/// A workspace with a hidden directory and hidden files.
fn place(mode: SandboxMode) -> Place {
    let mut place = Place::new(mode);
    let workspace = &place.workspace;
    fs::create_dir_all(workspace.join("secrets/deep")).unwrap();
    fs::write(workspace.join("secrets/k"), "KEY").unwrap();
    fs::write(workspace.join("secrets/deep/k"), "KEY").unwrap();
    fs::create_dir(workspace.join("src")).unwrap();
    fs::write(workspace.join("src/a"), "some text KEY").unwrap();
    fs::write(workspace.join(".env"), "KEY").unwrap();
    std::os::unix::fs::symlink("secrets/k", workspace.join("link")).unwrap();
    place.hidden = vec!["secrets", ".env", "missing"];
    place
}

fn is_enforced() -> bool {
    place::is_enforced(Enforcement::Full)
}

#[test]
fn a_command_reads_nothing_of_a_hidden_file_or_directory_whatever_leads_to_it() {
    if !is_enforced() {
        return;
    }
    for mode in [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite] {
        let mut place = place(mode);
        for network in [NetworkAccess::Loopback, NetworkAccess::Nothing] {
            place.network = network;
            assert_eq!(place.works("grep -rhs KEY .; true"), "some text KEY\n");
            assert_eq!(place.works("ls -A secrets"), "");
            for script in [
                "cat secrets/k",
                "cd secrets && cat k",
                "cat link",
                "cat .env",
                "cp .env /dev/stdout",
                "head -c 1 < .env",
                "cat $PWD/secrets/deep/k",
                "cat /proc/self/cwd/secrets/k",
                "python3 -c 'print(open(\".env\").read())'",
                "umount secrets && cat secrets/k",
                "umount .env && cat .env",
            ] {
                place.fails(script);
            }
        }
    }
}

#[test]
fn a_hidden_file_is_neither_changed_nor_moved_nor_removed() {
    if !is_enforced() {
        return;
    }
    let place = place(SandboxMode::WorkspaceWrite);
    for script in [
        "echo a > secrets/k",
        "echo a > secrets/new",
        "rm secrets/k",
        "mv secrets other",
        "mv .env other",
        "rm .env",
        "echo a > .env",
        "ln .env other && cat other",
        "ln secrets/k other",
        "rm -r secrets",
    ] {
        place.fails(script);
    }
    place.works("mkdir made && echo a > made/b");
    let kept = |name: &str| fs::read_to_string(place.workspace.join(name)).unwrap();
    assert_eq!(
        (kept("secrets/k"), kept(".env")),
        ("KEY".to_owned(), "KEY".to_owned())
    );
    assert!(!place.workspace.join("secrets/new").exists());
}

#[test]
fn a_directory_around_hidden_files_takes_their_covers_with_it_where_it_is_moved() {
    if !is_enforced() {
        return;
    }
    let mut place = place(SandboxMode::WorkspaceWrite);
    place.hidden = vec!["secrets/deep", "secrets/k"];
    place.fails("mv secrets moved && cat moved/k");
    place.fails("cp -r secrets copied && cat copied/k copied/deep/k");
}

#[test]
fn a_directory_above_a_hidden_file_is_not_moved_from_under_its_rule() {
    if !is_enforced() {
        return;
    }
    let mut place = Place::new(SandboxMode::WorkspaceWrite);
    std::fs::create_dir_all(place.workspace.join("conf/deep")).unwrap();
    std::fs::write(place.workspace.join("conf/deep/.env"), "secret").unwrap();
    place.hidden = vec!["conf/deep/.env"];
    for refused in ["mv conf conf2", "mv conf/deep elsewhere", "rm -rf conf"] {
        place.fails(refused);
    }
    place.fails("cat conf/deep/.env");
    place.works("echo a > conf/deep/a && mv conf/deep/a conf/deep/b && rm conf/deep/b");
}
