//! Files that a command writes outside of the directories it may change, which are gone after it.

use crate::fixture::{Fixture, marker, result};
use crate::sandbox::{is_enforced, spec};
use rondo_core::ports::Tool as _;
use rondo_exec::{ExecTool, sandbox_note};
use rondo_sandbox::{SandboxMode, SandboxSpec};
use serde_json::{Value, json};

/// Runs a command in the sandbox, which has the user's home directory.
async fn run(mode: SandboxMode, command: &str) -> Value {
    let fixture = Fixture::new();
    let mut options = fixture.options.clone();
    options.sandbox = Some(SandboxSpec {
        home: std::env::home_dir(),
        ..spec(&fixture, mode)
    });
    let mut invocation = fixture.invocation(json!({ "command": command }));
    invocation.idempotency_key = format!("key-{}", marker());
    result(ExecTool::exec(options).call(invocation).await)
}

#[tokio::test]
async fn files_that_are_gone_after_a_command_are_named_in_its_result() {
    if !is_enforced() {
        return;
    }
    let command = "echo a > ~/lost.txt; mkdir -p ~/lost/deep ~/.cache/lost; echo a > ~/lost/deep/a; echo a > ~/.cache/lost/a; \
                   echo a > /tmp/lost-note; mkdir /tmp/lost-directory; echo a > ~/.lostrc; echo a > kept";
    let done = run(SandboxMode::WorkspaceWrite, command).await;
    let home = std::env::home_dir().unwrap();
    let home = home.display();
    assert_eq!(
        sandbox_note(&done).unwrap_or_default(),
        format!(
            "`{home}/.lostrc`, `{home}/lost`, `{home}/lost.txt`, `/tmp/lost-directory`, `/tmp/lost-note` are gone now: \
             a sandboxed command has its own temporary home directory and `/tmp`, which are deleted when it ends"
        ),
        "{done}"
    );
    assert!(
        done["sandbox"]
            .as_str()
            .unwrap()
            .contains("`outside_sandbox`"),
        "{done}"
    );
}

#[tokio::test]
async fn of_many_files_that_are_gone_a_few_are_named_and_all_are_counted() {
    if !is_enforced() {
        return;
    }
    let command = "for i in 1 2 3 4 5 6 7 8 9; do echo a > ~/lost-$i; done";
    let done = run(SandboxMode::WorkspaceWrite, command).await;
    let said = sandbox_note(&done).unwrap_or_default();
    assert!(said.contains("lost-5`, and 4 more are gone now"), "{done}");
    assert!(!said.contains("lost-6"), "{done}");
}

#[tokio::test]
async fn what_programs_leave_for_themselves_is_not_named() {
    if !is_enforced() {
        return;
    }
    let done = run(SandboxMode::ReadOnly, "f=$(mktemp); echo a > $f; cat $f").await;
    assert_eq!(done.get("sandbox"), None, "{done}");
    for command in [
        "true",
        "f=$(mktemp); echo a > $f; cat $f",
        "echo a > /tmp/a; rm /tmp/a",
        "d=$(printf %s pytest-of); mkdir -p /tmp/$d-me/0 /tmp/v8-$(echo compile)-cache; echo a > /tmp/$d-me/0/a",
        "mkdir -p ~/.npm/_logs ~/.$(echo config)/configstore ~/go/pkg/mod/cache; echo a > ~/.npm/_logs/a; echo a > ~/go/pkg/mod/cache/a",
        "cd ~; cd /tmp; echo a > /dev/shm/a",
    ] {
        let done = run(SandboxMode::WorkspaceWrite, command).await;
        assert_eq!(done.get("sandbox"), None, "{command}: {done}");
    }
}
