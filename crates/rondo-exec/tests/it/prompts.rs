//! Programs that want a user to type, whom no command has.

use crate::fixture::{Fixture, failure};
use crate::sandbox::{is_enforced, spec};
use rondo_sandbox::SandboxMode;
use rondo_types::ToolErrorCode;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Far less than a command may take here, and enough for a slow machine to start a few programs.
const AT_ONCE: Duration = Duration::from_secs(60);

/// Runs a command that would wait for a person, and returns its result.
async fn asked(fixture: &Fixture, command: &str) -> Value {
    let begun = Instant::now();
    let result = fixture.run(command).await;
    assert!(begun.elapsed() < AT_ONCE, "{command}: {result}");
    result
}

#[tokio::test]
async fn a_program_that_reads_a_line_from_the_terminal_gets_the_end_of_input_and_is_named() {
    let fixture = Fixture::new();
    let result = asked(
        &fixture,
        "bash -c 'read -s -p \"Password: \" x < /dev/tty; echo \"got [$x] $?\"'",
    )
    .await;
    assert_eq!(result["stdout"], "Password: got [] 1\n");
    assert_eq!(
        result["note"],
        "`bash` waited for input on the terminal, after the line `Password:`, which has no user, and was given the end of input. Pass the input as an option, a file or a variable"
    );
}

#[tokio::test]
async fn programs_that_ask_for_passwords_fail_at_once() {
    let fixture = Fixture::new();
    fixture
        .run("ssh-keygen -q -t ed25519 -N secret -f key && chmod 600 key")
        .await;
    let result = asked(&fixture, "ssh-keygen -y -f key").await;
    assert_ne!(result["exitCode"], 0, "{result}");
    let result = asked(
        &fixture,
        "python3 -c 'import getpass; getpass.getpass(\"Secret word: \")'",
    )
    .await;
    assert_ne!(result["exitCode"], 0, "{result}");
    let note = result["note"].as_str().unwrap();
    assert!(note.starts_with("`python3` waited for input"), "{note}");
    assert!(note.contains("`Secret word:`"), "{note}");
}

/// The kernel does not tell the input state of a program that runs as another user.
#[tokio::test]
async fn sudo_fails_at_once_where_it_asks_an_ordinary_user() {
    let has_sudo = std::path::Path::new("/usr/bin/sudo").exists();
    if rustix::process::geteuid().is_root() || !has_sudo {
        return;
    }
    let fixture = Fixture::new();
    let result = asked(&fixture, "sudo -k; sudo id; echo after").await;
    let stdout = result["stdout"].as_str().unwrap();
    assert!(stdout.ends_with("after\n"), "{result}");
    // If no password is wanted, it does not ask.
    if stdout.contains("password") {
        let note = result["note"].as_str().unwrap();
        assert!(note.starts_with("`sudo` waited for input"), "{note}");
    }
}

#[tokio::test]
async fn pagers_and_editors_that_read_keys_are_ended_and_the_command_goes_on() {
    let fixture = Fixture::new();
    fixture.run("seq 1 500 > long").await;
    for program in ["less", "vim", "more"] {
        let result = asked(&fixture, &format!("{program} long; echo after")).await;
        let stdout = result["stdout"].as_str().unwrap();
        assert!(stdout.ends_with("after\n"), "{program}: {result}");
        if program == "more" {
            // It prints everything if it cannot read keys.
            continue;
        }
        let note = result["note"].as_str().unwrap();
        let begin = format!("`{program}` waited for key presses on the terminal");
        assert!(
            note.starts_with(&begin) && note.contains("was ended"),
            "{note}"
        );
    }
}

#[tokio::test]
async fn git_and_other_programs_that_want_an_editor_do_not_wait_for_one() {
    let fixture = Fixture::new();
    let git =
        "git -c user.name=a -c user.email=a@example.org -c core.editor=vim -c sequence.editor=vim";
    fixture
        .run(&format!(
            "git init -q && echo 1 > a && git add a && {git} commit -qm one && echo 2 > a && {git} commit -qam two"
        ))
        .await;
    let result = asked(&fixture, &format!("echo 3 > a; {git} commit -a")).await;
    assert_eq!(result["exitCode"], 1, "{result}");
    let result = asked(
        &fixture,
        &format!("git checkout -q a; {git} rebase -i HEAD~1"),
    )
    .await;
    assert_eq!(result["exitCode"], 0, "{result}");
    let result = asked(&fixture, "$EDITOR file || $VISUAL file || echo none").await;
    assert_eq!(result["stdout"], "none\n");
    let result = asked(
        &fixture,
        "git log --color=never | head -1 > /dev/null; git log -p --format=%s",
    )
    .await;
    assert!(
        result["stdout"].as_str().unwrap().starts_with("two\n"),
        "{result}"
    );
}

#[tokio::test]
async fn one_that_asks_again_and_again_is_ended() {
    let fixture = Fixture::new();
    let result = asked(
        &fixture,
        "bash -c 'for n in 1 2 3; do read -p \"$n? \" x < /dev/tty; done; echo end'",
    )
    .await;
    assert_eq!(result["stdout"], "1? 2? 3? end\n");
    let note = result["note"].as_str().unwrap();
    assert_eq!(note.lines().count(), 3, "{note}");
}

#[tokio::test]
async fn a_program_in_the_sandbox_that_asks_is_answered_too() {
    if !is_enforced() {
        return;
    }
    let mut fixture = Fixture::new();
    fixture.options.sandbox = Some(spec(&fixture, SandboxMode::WorkspaceWrite));
    let result = asked(
        &fixture,
        "read -p 'Name: ' x < /dev/tty; less /etc/services; echo end",
    )
    .await;
    assert!(
        result["stdout"].as_str().unwrap().ends_with("end\n"),
        "{result}"
    );
    let note = result["note"].as_str().unwrap();
    let begins: Vec<&str> = note
        .lines()
        .filter_map(|it| it.split(" on the").next())
        .collect();
    assert_eq!(
        begins,
        ["`bash` waited for input", "`less` waited for key presses"]
    );
}

#[tokio::test]
async fn a_command_that_works_in_silence_is_left_alone() {
    let fixture = Fixture::new();
    let result = asked(&fixture, "sleep 2; sleep 1 | cat; echo done").await;
    assert_eq!(result, json!({ "stdout": "done\n", "exitCode": 0 }));
}

#[tokio::test]
async fn a_time_limit_below_the_timeout_asked_for_is_named() {
    let fixture = Fixture::new();
    let tool = rondo_exec::ExecTool::exec(fixture.options.clone());
    let mut invocation = fixture.invocation(json!({ "command": "sleep 1000", "timeout": 900 }));
    invocation.timeout = Some(Duration::from_secs(1));
    let error = failure(rondo_core::ports::Tool::call(&tool, invocation).await);
    assert_eq!(error.code, ToolErrorCode::Timeout);
    assert_eq!(
        error.message,
        "the command exceeded its time limit of 1 s and was ended; `timeout` asked for 900 s, and a call may take no longer \
         than that limit here (`limits.tool_timeout_ms` of the profile, or what is left of the turn)"
    );
    let fixture = Fixture::new();
    let error = failure(
        fixture
            .call(json!({ "command": "sleep 1000", "timeout": 1 }))
            .await,
    );
    assert_eq!(
        error.message,
        "the command exceeded its time limit of 1 s and was ended"
    );
}

/// As `ssh -t` and the like do: it reads keys for a program elsewhere.
const RELAY: &str = "import os, sys, threading, time, tty\n\
    keys = os.open('/dev/tty', os.O_RDWR)\n\
    tty.setraw(keys)\n\
    threading.Thread(target=lambda: os.read(keys, 1), daemon=True).start()\n\
    time.sleep(4)\n\
    print('done', end='\\r\\n', flush=True)\n\
    os._exit(0)\n";

#[tokio::test]
async fn one_that_reads_keys_for_a_busy_program_elsewhere_is_not_ended() {
    let fixture = Fixture::new();
    std::fs::write(fixture.path().join("relay.py"), RELAY).unwrap();
    let result = fixture.run("python3 relay.py").await;
    assert_eq!(result["stdout"], "done\n", "{result}");
    assert_eq!(result["note"], Value::Null);
}
