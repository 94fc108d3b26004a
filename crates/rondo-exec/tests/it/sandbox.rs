//! Commands that run because they only look, and those that ask to run outside of the sandbox.

use crate::agent::{self, PATIENCE_MS, kill_agent_of, wait_until};
use crate::fixture::{Fixture, marker, result, survivors};
use rondo_core::ports::Tool as _;
use rondo_exec::supervisor::CallStatus;
use rondo_exec::{ExecOptions, ExecTool};
use rondo_policy::{LookingCalls, Workdir};
use rondo_sandbox::{
    Difference, DifferenceKind, Enforcement, Ledger, SandboxMode, SandboxSpec, probe,
    readable_roots,
};
use rondo_types::ToolOutcome;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::sync::Arc;

/// Most containers do not let a process confine itself.
#[expect(clippy::print_stderr, reason = "what is not run is said")]
pub(crate) fn is_enforced() -> bool {
    let support = rondo_sandbox::support();
    let is_full = support.enforcement() == Some(Enforcement::Full);
    if !is_full {
        eprintln!("not run, since the sandbox is not enforced here: {support:?}");
    }
    is_full
}

pub(crate) fn spec(fixture: &Fixture, mode: SandboxMode) -> SandboxSpec {
    let search_path = std::env::var_os("PATH");
    SandboxSpec {
        readable: Arc::new(readable_roots(None, search_path.as_deref())),
        ..SandboxSpec::new(mode, vec![fixture.path().to_owned()])
    }
}

async fn run(options: ExecOptions, fixture: &Fixture, arguments: Value) -> Value {
    let mut invocation = fixture.invocation(arguments);
    invocation.idempotency_key = format!("key-{}", crate::fixture::marker());
    result(ExecTool::exec(options).call(invocation).await)
}

#[tokio::test]
async fn a_hole_in_the_gate_has_no_effect() {
    if !is_enforced() {
        return;
    }
    let fixture = Fixture::new();
    let calls = LookingCalls::default();
    let mut options = fixture.options.clone();
    options.looking = Some((calls.clone(), spec(&fixture, SandboxMode::ReadOnly)));
    for (number, hole) in [
        "touch made",
        "echo a > ${TMPDIR:-/tmp}/rondo-made",
        "echo > /dev/tcp/127.0.0.1/9",
    ]
    .into_iter()
    .enumerate()
    {
        let arguments = json!({ "command": hole });
        let id = fixture.invocation(Value::Null).call_id;
        calls.note(&rondo_types::SessionId::new("s"), &id, &arguments, true);
        let held = run(options.clone(), &fixture, arguments).await;
        assert_eq!(held["exitCode"] == 0, number == 1, "{hole}: {held}");
    }
    assert!(!fixture.path().join("made").exists());
    for folder in ["/tmp", "/var/tmp"] {
        assert!(!std::path::Path::new(folder).join("rondo-made").exists());
    }
    // It was allowed for another reason.
    let free = run(options, &fixture, json!({ "command": "touch made" })).await;
    assert_eq!(free["exitCode"], 0, "{free}");
    assert!(fixture.path().join("made").exists());
}

#[tokio::test]
async fn what_the_sandbox_refuses_says_how_to_ask_and_runs_outside_then() {
    if !is_enforced() {
        return;
    }
    let fixture = Fixture::new();
    // What is in `/tmp` is not refused: it is not there. What is protected is refused wherever the project lies.
    let hooks = fixture.path().join(".git/hooks");
    let done = std::process::Command::new("git")
        .args(["init", "-q"])
        .current_dir(fixture.path())
        .status();
    assert!(done.unwrap().success());
    std::fs::create_dir_all(&hooks).unwrap();
    let target = hooks.join("made");
    let command = "touch .git/hooks/made";
    let mut options = fixture.options.clone();
    options.sandbox = Some(spec(&fixture, SandboxMode::WorkspaceWrite));
    let refused = run(options.clone(), &fixture, json!({ "command": command })).await;
    let said = refused["sandbox"].as_str().unwrap_or_default();
    assert!(said.contains("`outside_sandbox`: true"), "{refused}");
    let arguments = json!({ "command": command, "outside_sandbox": true, "justification": "a" });
    let done = run(options, &fixture, arguments).await;
    assert!(done["exitCode"] == 0 && target.exists(), "{done}");
}

#[tokio::test]
async fn a_file_that_makes_others_run_something_is_set_aside_and_said() {
    if !is_enforced() {
        return;
    }
    let fixture = Fixture::new();
    let mut options = fixture.options.clone();
    options.sandbox = Some(spec(&fixture, SandboxMode::WorkspaceWrite));
    let command = json!({ "command": "echo a > .envrc; (sleep 60; echo b > .envrc) &" });
    let done = run(options, &fixture, command).await;
    let said = done["sandbox"].as_str().unwrap_or_default();
    assert!(said.contains(".envrc.refused` now"), "{done}");
    assert!(!fixture.path().join(".envrc").exists());
}

#[tokio::test]
async fn a_name_that_may_not_be_made_is_refused_while_the_command_runs() {
    if !is_enforced() {
        return;
    }
    let fixture = Fixture::new();
    let mut options = fixture.options.clone();
    options.sandbox = Some(spec(&fixture, SandboxMode::WorkspaceWrite));
    // The command itself sees that the file has gone.
    let command =
        "echo a > .envrc; until test -e .envrc.refused; do :; done; test ! -e .envrc && echo gone";
    let arguments = json!({ "command": command, "timeout": 20 });
    let done = run(options, &fixture, arguments).await;
    assert_eq!(done["exitCode"], 0, "{done}");
    let said = done["sandbox"].as_str().unwrap_or_default();
    assert!(said.contains(".envrc.refused` now"), "{done}");
}

#[tokio::test]
async fn a_command_that_makes_a_refused_name_again_and_again_is_ended() {
    if !is_enforced() {
        return;
    }
    let fixture = Fixture::new();
    let mut options = fixture.options.clone();
    options.sandbox = Some(spec(&fixture, SandboxMode::WorkspaceWrite));
    let command = "while :; do test -e .envrc || echo a > .envrc; done";
    let done = run(
        options,
        &fixture,
        json!({ "command": command, "timeout": 60 }),
    )
    .await;
    assert_ne!(done["exitCode"], 0, "{done}");
    let said = done["sandbox"].as_str().unwrap_or_default();
    assert!(said.contains("so the command was ended"), "{done}");
    assert!(!fixture.path().join(".envrc").exists());
}

#[tokio::test]
async fn files_that_are_hidden_are_named_in_the_result_of_a_command_that_may_be_about_them() {
    if !is_enforced() {
        return;
    }
    let fixture = Fixture::new();
    let place = fixture.path().canonicalize().unwrap();
    for directory in ["secrets", "src"] {
        std::fs::create_dir(place.join(directory)).unwrap();
        std::fs::write(place.join(directory).join("k"), "KEY\n").unwrap();
    }
    std::fs::write(place.join(".env"), "KEY\n").unwrap();
    let calls = LookingCalls::default();
    let hiding = |mode| SandboxSpec {
        hidden: ["secrets", ".env", "secrets"]
            .map(|it| place.join(it))
            .into(),
        ..spec(&fixture, mode)
    };
    let mut looking = fixture.options.clone();
    looking.looking = Some((calls.clone(), hiding(SandboxMode::ReadOnly)));
    let mut confined = fixture.options.clone();
    confined.sandbox = Some(hiding(SandboxMode::WorkspaceWrite));
    for (command, said) in [
        ("grep -r KEY secrets", "`secrets`"),
        ("cp -r . /tmp/all", "`.env`, `secrets`"),
        ("find -name k", "`.env`, `secrets`"),
        ("sh -c 'cat .en*'", "`.env`"),
        ("cat src/k", ""),
        ("grep -r KEY src", ""),
    ] {
        let arguments = json!({ "command": command });
        let id = fixture.invocation(Value::Null).call_id;
        calls.note(&rondo_types::SessionId::new("s"), &id, &arguments, true);
        for options in [&looking, &confined] {
            let done = run(options.clone(), &fixture, arguments.clone()).await;
            let sentence = done["sandbox"].as_str().unwrap_or_default();
            let named = sentence.split("hides from commands: ").nth(1);
            let named = named.and_then(|it| it.split(". ").next());
            assert_eq!(named.unwrap_or_default(), said, "{command}: {done}");
        }
    }
    // Without namespaces nothing is hidden.
    if probe(Enforcement::Partial).is_ok() {
        let sandbox = SandboxSpec {
            enforcement: Enforcement::Partial,
            ..hiding(SandboxMode::WorkspaceWrite)
        };
        confined.sandbox = Some(sandbox);
        let arguments = json!({ "command": "grep -r KEY secrets" });
        let done = run(confined, &fixture, arguments).await;
        assert!(done["exitCode"] == 0 && done["sandbox"].is_null(), "{done}");
    }
}

#[tokio::test]
async fn hooks_that_the_sandbox_hides_are_said() {
    if !is_enforced() {
        return;
    }
    let fixture = Fixture::new();
    let elsewhere = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::write(elsewhere.path().join("pre-commit"), "#!/bin/sh\nexit 1\n").unwrap();
    let set_up = format!(
        "git init -q && git config core.hooksPath '{}'",
        elsewhere.path().display()
    );
    let done = std::process::Command::new("sh")
        .args(["-c", &set_up])
        .current_dir(fixture.path())
        .status();
    assert!(done.unwrap().success());
    let mut options = fixture.options.clone();
    options.sandbox = Some(spec(&fixture, SandboxMode::WorkspaceWrite));
    let commit = "GIT_CONFIG_GLOBAL=/dev/null git -c user.name=A -c user.email=a@b commit --allow-empty -m a";
    let done = run(options.clone(), &fixture, json!({ "command": commit })).await;
    let said = done["sandbox"].as_str().unwrap_or_default();
    assert!(
        done["exitCode"] == 0 && said.contains("`pre-commit` in `"),
        "{done}"
    );
    let looked = run(
        options,
        &fixture,
        json!({ "command": "GIT_CONFIG_GLOBAL=/dev/null git log" }),
    )
    .await;
    assert!(looked["sandbox"].is_null(), "{looked}");
}

/// The program does what version 9 of husky does, in a project that was cloned and whose packages are installed.
#[tokio::test]
async fn hooks_that_an_installation_of_packages_did_not_set_up_are_said_with_what_a_person_can_do()
{
    const PROGRAM: &str = "#!/bin/sh\nif ! git config core.hooksPath .husky/_ 2>&1; then exit 0; fi\n\
                           mkdir -p .husky/_ && echo '*' >.husky/_/.gitignore\n";
    if !is_enforced() {
        return;
    }
    let fixture = Fixture::new();
    let (package, hooks) = (
        fixture.path().join("node_modules/husky"),
        fixture.path().join(".husky"),
    );
    std::fs::create_dir_all(&package).unwrap();
    std::fs::create_dir_all(&hooks).unwrap();
    std::fs::write(package.join("bin.sh"), PROGRAM).unwrap();
    std::fs::write(hooks.join("pre-commit"), "npm test\n").unwrap();
    let done = std::process::Command::new("git")
        .args(["init", "-q"])
        .current_dir(fixture.path())
        .status();
    assert!(done.unwrap().success());
    let mut options = fixture.options.clone();
    options.sandbox = Some(spec(&fixture, SandboxMode::WorkspaceWrite));
    // What a package manager prints of the script `prepare`.
    let command = "export GIT_CONFIG_GLOBAL=/dev/null; echo '> app@1.0.0 prepare'; echo '> husky'; sh node_modules/husky/bin.sh && echo added 1 package";
    let done = run(options, &fixture, json!({ "command": command })).await;
    let said = done["sandbox"].as_str().unwrap_or_default();
    assert!(
        done["exitCode"] == 0
            && said.contains("`husky` did not set up the hooks of `git`")
            && said.contains("`npm run prepare`"),
        "{done}"
    );
}

/// The variables are those that cargo sets for tests.
#[tokio::test]
async fn a_command_in_the_sandbox_gets_the_variables_of_the_list_and_those_that_the_user_names() {
    if !is_enforced() {
        return;
    }
    let mut fixture = Fixture::new();
    fixture.options.sandbox = Some(spec(&fixture, SandboxMode::WorkspaceWrite));
    let shell = Workdir::new(fixture.path().to_owned());
    let pairs = [
        ("PATH", "/usr/bin:/bin"),
        ("RUST_LOG", "debug"),
        ("SHOP_REGION", "eu"),
        ("GIT_CONFIG_COUNT", "0"),
        ("NPM_CONFIG__AUTHTOKEN", "t0ken"),
        ("CARGO_INDEX", "https://person:hunter2@example.com"),
    ];
    let pairs = pairs.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    shell.set_environment(pairs.into_iter().collect());
    fixture.options.workdir = Some(shell);
    let show = "env | sort | grep -E '^(RUST_LOG|SHOP_|GIT_CONFIG_COUNT|NPM_|CARGO_INDEX)'; test \"$SHOP_REGION\" = eu";
    let show = json!({ "command": show });
    let done = run(fixture.options.clone(), &fixture, show.clone()).await;
    assert_eq!(done["stdout"], "RUST_LOG=debug\n", "{done}");
    let said = done["sandbox"].as_str().unwrap_or_default();
    assert!(
        said.contains("does not pass `CARGO_INDEX`, `GIT_CONFIG_COUNT`, `SHOP_REGION`;"),
        "{done}"
    );
    Arc::make_mut(&mut fixture.options.environment).passed =
        ["SHOP_REGION", "NPM_CONFIG__AUTHTOKEN"]
            .map(str::to_owned)
            .into();
    let done = run(fixture.options.clone(), &fixture, show).await;
    assert_eq!(
        done["stdout"], "NPM_CONFIG__AUTHTOKEN=t0ken\nRUST_LOG=debug\nSHOP_REGION=eu\n",
        "{done}"
    );
    let said = done["sandbox"].as_str().unwrap_or_default();
    assert!(!said.contains("SHOP_REGION"), "{done}");
}

#[tokio::test]
async fn a_command_that_reached_no_other_machine_brought_nothing_from_outside() {
    if !is_enforced() {
        return;
    }
    let mut fixture = Fixture::new();
    let fetch = json!({ "command": "curl -s http://127.0.0.1:9; true" });
    let mut is_from_outside = Vec::new();
    for sandbox in [None, Some(spec(&fixture, SandboxMode::WorkspaceWrite))] {
        fixture.options.sandbox = sandbox;
        let mut invocation = fixture.invocation(fetch.clone());
        invocation.idempotency_key = format!("key-{}", crate::fixture::marker());
        let outcome = ExecTool::exec(fixture.options.clone())
            .call(invocation)
            .await;
        let ToolOutcome::Ok(output) = outcome else {
            panic!("{outcome:?}");
        };
        is_from_outside.push(output.from_outside);
    }
    assert_eq!(is_from_outside, [true, false]);
}

/// A folder with a repository, whose commands are written into a ledger.
fn with_ledger(fixture: &Fixture) -> (Ledger, SandboxSpec) {
    std::fs::create_dir(fixture.path().join(".git")).unwrap();
    std::fs::write(fixture.path().join(".git/config"), "mine").unwrap();
    let directory = fixture.state.path().join("ledger");
    let sandbox = SandboxSpec {
        ledger: Some(directory.clone()),
        ..spec(fixture, SandboxMode::WorkspaceWrite)
    };
    (Ledger::at(directory), sandbox)
}

fn differences(ledger: &Ledger, fixture: &Fixture) -> Vec<Difference> {
    ledger.differences(&[fixture.path().to_owned()])
}

#[tokio::test]
async fn a_command_is_in_the_ledger_while_it_runs_and_no_longer() {
    if !is_enforced() {
        return;
    }
    let fixture = Fixture::new();
    let (ledger, sandbox) = with_ledger(&fixture);
    let mut options = fixture.options.clone();
    options.sandbox = Some(sandbox);
    let done = run(
        options,
        &fixture,
        json!({ "command": "echo a > .envrc; echo b > b" }),
    )
    .await;
    assert_eq!(done["exitCode"], 0, "{done}");
    let left = std::fs::read_dir(fixture.state.path().join("ledger")).unwrap();
    assert_eq!(left.count(), 0);
    assert!(differences(&ledger, &fixture).is_empty());
}

#[test]
fn a_command_that_begins_while_another_has_changed_protected_files_does_not_plant_them_again_unsaid()
 {
    if probe(Enforcement::Partial).is_err() {
        return;
    }
    let fixture = Fixture::new();
    let (ledger, sandbox) = with_ledger(&fixture);
    let start = |key: &str, command: &str| {
        let mut call = agent::spec(&fixture, command, PATIENCE_MS);
        call.key = key.to_owned();
        call.sandbox = Some(SandboxSpec {
            enforcement: Enforcement::Partial,
            ..sandbox.clone()
        });
        kill_agent_of(&call);
        wait_until(|| fixture.path().join(format!("{key}-runs")).exists());
        call
    };
    let until = "while ! test -e";
    let first = start(
        "first",
        &format!("echo evil > .git/config; touch first-runs; {until} over; do sleep 0.01; done"),
    );
    let second = start(
        "second",
        &format!("touch second-runs; {until} over2; do sleep 0.01; done"),
    );
    std::fs::write(fixture.path().join("over"), "").unwrap();
    let status = agent::wait_for_end(&first);
    assert!(status.undone.iter().all(|it| it.is_restored), "{status:?}");
    std::fs::write(fixture.path().join("over2"), "").unwrap();
    let status = agent::wait_for_end(&second);
    assert!(status.undone.iter().all(|it| !it.is_restored), "{status:?}");
    let found = differences(&ledger, &fixture);
    let [config] = &*found else {
        panic!("{found:?}");
    };
    assert!(config.path.ends_with(".git/config"), "{config:?}");
    assert_eq!(config.kind, DifferenceKind::Unchecked);
    assert_eq!(config.now.as_deref(), Some(&b"evil\n"[..]));
}

#[test]
fn what_a_command_plants_whose_supervisor_and_guard_are_killed_is_in_the_ledger() {
    if probe(Enforcement::Partial).is_err() {
        return;
    }
    let fixture = Fixture::new();
    let (ledger, sandbox) = with_ledger(&fixture);
    let mark = marker();
    let command = format!("export M={mark}; echo evil > .git/config; touch up; sleep 1000");
    let mut call = agent::spec(&fixture, &command, PATIENCE_MS);
    call.sandbox = Some(SandboxSpec {
        enforcement: Enforcement::Partial,
        ..sandbox
    });
    kill_agent_of(&call);
    wait_until(|| fixture.path().join("up").exists());
    assert!(differences(&ledger, &fixture).is_empty(), "it runs");
    let status = CallStatus::read(&call.state_dir, &call.key)
        .unwrap()
        .unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", status.pid)).unwrap();
    let guard = stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap();
    let killed = std::process::Command::new("kill")
        .args(["-KILL", guard, &status.pid.to_string()])
        .status();
    assert!(killed.unwrap().success());
    wait_until(|| !differences(&ledger, &fixture).is_empty());
    let found = differences(&ledger, &fixture);
    let [config] = &*found else {
        panic!("{found:?}");
    };
    assert_eq!(config.kind, DifferenceKind::Changed);
    assert_eq!(config.before.as_deref(), Some(&b"mine"[..]));
    assert_eq!(config.now.as_deref(), Some(&b"evil\n"[..]));
    for process in survivors(&mark) {
        let process = process.split(':').next().unwrap_or_default();
        let _ = std::process::Command::new("kill")
            .args(["-KILL", process])
            .status();
    }
}
