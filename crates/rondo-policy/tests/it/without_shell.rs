//! Commands that are lists of words, without a shell.

use crate::gate::Fixture;
use rondo_core::ports::Verdict;
use rondo_types::ToolKind;
use serde_json::json;
use std::sync::Arc;

fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    let hub = rondo_core::profile::builtin("hub").unwrap();
    for name in &hub.rule_sets {
        let rules = Arc::make_mut(&mut fixture.options.rules);
        rules.put_in_force(name, "hub").unwrap();
    }
    fixture.options.without_shell = true;
    fixture.options.yolo = true;
    fixture
}

async fn run(fixture: &Fixture, argv: &[&str]) -> Verdict {
    let arguments = json!({ "argv": argv });
    fixture.of_kind(ToolKind::Execute, "exec", arguments).await
}

#[tokio::test]
async fn hub_33_the_blacklist_holds_on_lists_of_words() {
    let fixture = fixture();
    for argv in [
        &["rm", "x"][..],
        &["/bin/rm", "x"],
        &["sudo", "ls"],
        &["env", "rm", "x"],
        &["timeout", "5", "nice", "rm", "x"],
        &["find", ".", "-exec", "rm", "{}", "+"],
        &["xargs", "rm"],
        &["make", "rm"],
        &["mkfs.ext4", "/dev/sda"],
        &["time", "rm", "x"],
    ] {
        let verdict = run(&fixture, argv).await;
        assert!(matches!(verdict, Verdict::Deny { .. }), "{argv:?}");
    }
}

#[tokio::test]
async fn no_list_of_words_reaches_a_shell_or_runs_code_from_its_words() {
    let fixture = fixture();
    for argv in [
        &["bash", "-c", "touch x"][..],
        &["/bin/sh", "x.sh"],
        &["bash5.2", "x.sh"],
        &["busybox", "touch", "x"],
        &["env", "bash", "-c", "touch x"],
        &["env", "-S", "bash -c 'touch x'"],
        &["env", "-iS", "touch x"],
        &["env", "--split-string=touch x"],
        &["env", "GIT_PAGER=touch x", "git", "log"],
        &["timeout", "5", "sh", "-c", "touch x"],
        &["nice", "-n", "5", "python3", "-c", "open('x', 'w')"],
        &["python3", "-c", "open('x', 'w')"],
        &["python3.12", "-Ic", "open('x', 'w')"],
        &["python3", "-m", "timeit", "open('x', 'w')"],
        &["python3"],
        &["python3", "/proc/self/environ"],
        &["python3", "/dev/stdin"],
        &["perl", "-e", "unlink 'x'"],
        &["perl", "-pe", "1"],
        &["node", "--eval", "1"],
        &["ruby", "-e", "1"],
        &["php", "-r", "1;"],
        &["deno", "eval", "1"],
        &["awk", "BEGIN { system(\"touch x\") }"],
        &["sed", "1e touch x", "y"],
        &["find", ".", "-exec", "touch", "x", ";"],
        &["xargs", "touch"],
        &["watch", "touch x"],
        &["script", "-c", "touch x"],
        &["ssh", "host", "touch x"],
        &["tmux", "new", "touch x"],
        &["make", "--eval=x:;touch x"],
        &["make", "X=$(shell touch x)"],
        &["cmake", "-E", "touch", "x"],
        &["tar", "-cf", "x", "--checkpoint-action=exec=touch x", "y"],
        &["git", "-c", "core.pager=touch x", "log"],
        &["git", "submodule", "foreach", "touch x"],
        &["vim", "-c", "!touch x"],
        &["sqlite3", "x", ".shell touch x"],
        &["if"],
        &["ls", "x\u{7}"],
    ] {
        let verdict = run(&fixture, argv).await;
        assert!(matches!(verdict, Verdict::Deny { .. }), "{argv:?}");
    }
}

#[tokio::test]
async fn programs_run_with_words_that_a_shell_would_read_as_more() {
    let fixture = fixture();
    for argv in [
        &["ls", "-la"][..],
        &["touch", "a; rm b", "$(rm c)", "it's"],
        &["echo", "rm", "-rf", "/"],
        &["cargo", "test"],
        &["git", "commit", "-m", "no bash; no rm"],
        &["grep", "-r", "bash -c", "."],
        &["python3", "tool.py", "-c", "x"],
        &["python3", "-m", "pytest", "-q"],
        &["env", "LANG=C", "python3", "tool.py"],
        &["timeout", "5", "cargo", "test"],
        &["make", "-j4", "all", "CFLAGS=-O2"],
        &["node", "server.js"],
    ] {
        assert_eq!(run(&fixture, argv).await, Verdict::Allow, "{argv:?}");
    }
}

#[tokio::test]
async fn a_line_for_a_shell_is_refused_unless_it_is_one_program() {
    let fixture = fixture();
    for (line, is_allowed) in [
        ("touch x", true),
        ("touch x; touch y", false),
        ("ls | wc", false),
        ("echo $(touch x)", false),
    ] {
        let allows = fixture.exec(line).await == Verdict::Allow;
        assert_eq!(allows, is_allowed, "{line}");
    }
}
