//! Supervisors that wait for the next call.

use crate::agent::wait_until;
use crate::fixture::{Fixture, failure, result};
use crate::keeper::{Process, alone, descriptors, keeper, kept, process, send};
use crate::sandbox::{is_enforced, spec};
use rondo_core::ports::Tool as _;
use rondo_core::redact::Secrets;
use rondo_exec::ExecTool;
use rondo_sandbox::SandboxMode;
use rondo_types::ToolErrorCode;
use rustix::process::Signal;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The processes of a spare: its guard, its supervisor, and what becomes the command.
type Spare = [Process; 3];

/// Prepares a waiting spare, and returns it.
async fn spare(fixture: &Fixture, program: &Path) -> Spare {
    loop {
        // The first one is not known to have another follow.
        for _ in 0..2 {
            assert_eq!(fixture.stdout("echo on").await, "on\n");
        }
        let is_waiting = || found(program).is_some_and(|it| it.iter().all(|it| it.state == 'S'));
        // Tests that run at the same time have keepers too, and an agent has four.
        wait_until(|| is_waiting() || kept(program).is_empty());
        if let Some(spare) = found(program) {
            return spare;
        }
    }
}

/// Returns the only spare of the program's keeper, if it has no other process.
fn found(program: &Path) -> Option<Spare> {
    let all = kept(program);
    if all.is_empty() {
        return None;
    }
    let child_of = |parent: u32| all.iter().find(|it| it.parent == parent).cloned();
    let guard = child_of(keeper(program))?;
    let supervisor = child_of(guard.pid)?;
    let waiting = child_of(supervisor.pid)?;
    // In a sandbox, it stands for the first process of the command's namespace and the one that becomes the command.
    let in_namespace = match child_of(waiting.pid) {
        Some(init) => 1 + usize::from(child_of(init.pid).is_some()),
        None => 0,
    };
    (all.len() == 4 + in_namespace).then_some([guard, supervisor, waiting])
}

/// Returns a fixture whose spare waits, and the spare.
async fn waiting() -> (Fixture, PathBuf, Spare) {
    let (fixture, program) = alone();
    let spare = spare(&fixture, &program).await;
    (fixture, program, spare)
}

#[tokio::test]
async fn the_next_call_is_supervised_by_the_one_that_waits() {
    let (fixture, _program, [_, supervisor, waiting]) = waiting().await;
    let told = fixture.stdout("echo $PPID $$; exec 9>&1; true").await;
    assert_eq!(told, format!("{} {}\n", supervisor.pid, waiting.pid));
}

/// Runs commands one after another, the first by a spare, and returns what they wrote. All have the same keeper, which those
/// of tests that run at the same time can take the place of.
async fn one_after_another(fixture: &Fixture, program: &Path, commands: &[&str]) -> Vec<String> {
    loop {
        let [guard, ..] = spare(fixture, program).await;
        let mut told = Vec::new();
        for command in commands {
            told.push(fixture.stdout(command).await);
        }
        if kept(program).iter().any(|it| it.pid == guard.parent) {
            return told;
        }
    }
}

#[tokio::test]
async fn a_supervisor_takes_one_call_after_another() {
    let (fixture, program) = alone();
    let supervisor = "echo $PPID";
    let commands = [supervisor, "echo $$", supervisor, "echo $$", supervisor];
    let told = one_after_another(&fixture, &program, &commands).await;
    assert!(told[0] == told[2] && told[2] == told[4], "{told:?}");
    assert_ne!(told[1], told[3]);
    let command = told[3].trim().parse().unwrap();
    wait_until(|| process(command).is_none());
}

#[tokio::test]
async fn a_supervisor_takes_the_next_call_whatever_its_command_left_or_did_to_it() {
    let (fixture, program) = alone();
    let left = "sleep 60 & setsid sleep 61 & true";
    let commands = [
        "echo $PPID",
        left,
        "echo $PPID",
        "kill -STOP $PPID; sleep 0.2",
        "echo $PPID",
    ];
    let told = one_after_another(&fixture, &program, &commands).await;
    assert!(told[0] == told[2] && told[2] == told[4], "{told:?}");
    wait_until(|| kept(&program).len() <= 4);
}

#[tokio::test]
async fn what_a_command_changes_of_its_supervisor_is_not_inherited_by_the_next() {
    let (fixture, program) = alone();
    for change in [
        "renice -n 5 -p $PPID",
        "prlimit --pid $PPID --fsize=4096:4096",
        "taskset -pc 0 $PPID",
    ] {
        let shown = "nice; ulimit -f; nproc";
        let commands = [shown, change, shown];
        let told = one_after_another(&fixture, &program, &commands).await;
        assert_eq!(told[0], told[2], "{change}: {told:?}");
    }
}

#[tokio::test]
async fn a_call_with_secrets_goes_to_no_process_that_others_could_look_into() {
    let (mut fixture, program) = alone();
    let before = one_after_another(&fixture, &program, &["echo $PPID"]).await;
    fixture.options.secrets = Secrets::new(vec!["a-secret-of-one-call".to_owned()]);
    assert_ne!(fixture.stdout("echo $PPID").await, before[0]);
}

#[tokio::test]
async fn a_spare_ends_with_its_keeper() {
    let (fixture, program, spare) = waiting().await;
    send(keeper(&program), Signal::KILL);
    for part in &spare {
        wait_until(|| process(part.pid).is_none_or(|it| it.state == 'Z'));
    }
    assert_eq!(fixture.stdout("echo on").await, "on\n");
}

#[tokio::test]
async fn a_spare_that_is_killed_or_stopped_is_not_missed_and_nothing_runs_twice() {
    let (fixture, program, _) = waiting().await;
    let mut runs = 0;
    for signal in [Signal::KILL, Signal::TERM, Signal::STOP] {
        for part in 0..3 {
            let doomed = spare(&fixture, &program).await[part].pid;
            send(doomed, signal);
            let told = fixture.run("echo run >> runs; echo on; exit 3").await;
            assert_eq!(
                told,
                json!({ "stdout": "on\n", "exitCode": 3 }),
                "{signal:?} {part}"
            );
            runs += 1;
            let ran = std::fs::read_to_string(fixture.path().join("runs")).unwrap();
            assert_eq!(ran.lines().count(), runs, "{signal:?} {part}");
            wait_until(|| process(doomed).is_none());
        }
    }
}

#[tokio::test]
async fn a_call_that_is_cancelled_before_its_supervisor_is_ready_is_not_started_later() {
    let (fixture, _program, [_, supervisor, _]) = waiting().await;
    send(supervisor.pid, Signal::STOP);
    wait_until(|| process(supervisor.pid).is_some_and(|it| it.state == 'T'));
    let tool = ExecTool::exec(fixture.options.clone());
    let mut invocation = fixture.invocation(json!({ "command": "touch made" }));
    invocation.idempotency_key = "key-cancelled".to_owned();
    invocation.cancel.cancel();
    let error = failure(tool.call(invocation).await);
    let told = (error.code, error.message.as_str());
    assert_eq!(
        told,
        (ToolErrorCode::Cancelled, "the command was not started")
    );
    send(supervisor.pid, Signal::CONT);
    wait_until(|| process(supervisor.pid).is_none());
    assert!(!fixture.path().join("made").exists());
}

#[tokio::test]
async fn a_spare_has_nothing_of_a_call() {
    let (mut fixture, program) = alone();
    let set = &mut Arc::make_mut(&mut fixture.options.environment).set;
    set.insert("OF_ONE_CALL".to_owned(), "of_one_call".to_owned());
    let shown = fixture.stdout("echo $OF_ONE_CALL").await;
    assert_eq!(shown, "of_one_call\n");
    for part in spare(&fixture, &program).await {
        // Other processes of the user do not see what a supervisor has; root does.
        let Some(open) = descriptors(part.pid) else {
            continue;
        };
        let environment = std::fs::read(format!("/proc/{}/environ", part.pid)).unwrap();
        assert!(!String::from_utf8_lossy(&environment).contains("OF_ONE_CALL"));
        let is_own = |it: &&String| {
            let own = [
                "/dev/null",
                "/dev/ptmx",
                "/dev/pts/",
                "socket:",
                "pipe:",
                "/proc/",
            ];
            own.iter().any(|own| it.starts_with(own))
        };
        assert!(open.iter().all(|it| is_own(&it)), "{open:?}");
        let is_pipe = |it: &&String| it.starts_with("pipe:");
        // The guard's.
        assert!(open.iter().filter(is_pipe).count() <= 1, "{open:?}");
    }
}

#[tokio::test]
async fn no_more_spares_wait_than_there_are_kinds_in_use() {
    if !is_enforced() {
        return;
    }
    let (mut fixture, program) = alone();
    let modes = [
        None,
        Some(SandboxMode::ReadOnly),
        Some(SandboxMode::WorkspaceWrite),
    ];
    // The keeper, and two spares in namespaces: guard, supervisor, relay, init, and what becomes the command.
    let all = 1 + 2 * 5;
    loop {
        for mode in modes {
            fixture.options.sandbox = mode.map(|mode| spec(&fixture, mode));
            for _ in 0..2 {
                assert_eq!(fixture.stdout("echo on").await, "on\n");
            }
        }
        // Tests that run at the same time have keepers too, and an agent has four.
        wait_until(|| [0, all].contains(&kept(&program).len()));
        if kept(&program).len() == all {
            return;
        }
    }
}

async fn works(fixture: &Fixture, command: &str) {
    let tool = ExecTool::exec(fixture.options.clone());
    let mut invocation = fixture.invocation(json!({ "command": command }));
    invocation.idempotency_key = format!("key-{}", crate::fixture::marker());
    let told = result(tool.call(invocation).await);
    assert_eq!(told.get("exitCode"), Some(&json!(0)), "{command}: {told}");
}

#[tokio::test]
async fn what_is_protected_is_looked_at_when_the_call_comes() {
    if !is_enforced() {
        return;
    }
    let (mut fixture, program) = alone();
    fixture.options.sandbox = Some(spec(&fixture, SandboxMode::WorkspaceWrite));
    works(&fixture, "touch made").await;
    spare(&fixture, &program).await;
    let own = fixture.path().join(".envrc");
    std::fs::write(&own, "mine").unwrap();
    let told = fixture
        .run("echo theirs > .envrc; mv .envrc moved; true")
        .await;
    assert_eq!(told["exitCode"], 0, "{told}");
    assert_eq!(std::fs::read_to_string(own).unwrap(), "mine");
    spare(&fixture, &program).await;
    std::fs::create_dir_all(fixture.path().join("below/.git/hooks")).unwrap();
    works(&fixture, "! touch below/.git/hooks/post-checkout").await;
}

#[tokio::test]
async fn nothing_runs_in_a_directory_that_took_the_place_of_another() {
    if !is_enforced() {
        return;
    }
    let (mut fixture, program) = alone();
    let project = fixture.path().join("project");
    let library = fixture.path().join("library");
    std::fs::create_dir(&project).unwrap();
    fixture.options.directory.clone_from(&project);
    let mut sandbox = spec(&fixture, SandboxMode::WorkspaceWrite);
    sandbox.writable = vec![project.clone().into()];
    Arc::make_mut(&mut sandbox.readable).push(library.clone());
    fixture.options.sandbox = Some(sandbox);
    works(&fixture, "touch first").await;
    spare(&fixture, &program).await;
    // What was not there is read once it is.
    std::fs::create_dir(&library).unwrap();
    std::fs::write(library.join("a"), "").unwrap();
    works(&fixture, &format!("cat {}/a", library.display())).await;
    spare(&fixture, &program).await;
    std::fs::rename(&project, fixture.path().join("before")).unwrap();
    std::os::unix::fs::symlink(fixture.path().join("before"), &project).unwrap();
    for _ in 0..2 {
        let refused = failure(fixture.call(json!({ "command": "touch second" })).await);
        assert!(
            refused.message.contains("was moved or replaced"),
            "{refused:?}"
        );
    }
    assert!(!project.join("second").exists());
}

#[tokio::test]
async fn a_command_in_a_sandbox_that_waited_is_held_as_in_one_that_did_not() {
    if !is_enforced() {
        return;
    }
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (mut fixture, program) = alone();
    for mode in [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite] {
        fixture.options.sandbox = Some(spec(&fixture, mode));
        works(&fixture, "true").await;
        works(&fixture, "true").await;
        let outside = outside.path().display();
        for held in [
            format!("touch {outside}/made"),
            format!("ls {outside}"),
            "unshare -r true".to_owned(),
            "mount -t tmpfs none /mnt".to_owned(),
            "cat /proc/$PPID/environ".to_owned(),
            "kill -0 $PPID".to_owned(),
            "umount /tmp".to_owned(),
        ] {
            // Tests that run at the same time have keepers too, and an agent has four.
            while kept(&program).is_empty() {
                works(&fixture, "true").await;
                works(&fixture, "true").await;
            }
            works(&fixture, &format!("! {held}")).await;
        }
        works(
            &fixture,
            "echo a > ${TMPDIR:-/tmp}/rondo-spare && test -s ${TMPDIR:-/tmp}/rondo-spare",
        )
        .await;
        works(&fixture, "test ! -e ${TMPDIR:-/tmp}/rondo-spare").await;
        let writes = mode == SandboxMode::WorkspaceWrite;
        works(&fixture, if writes { "touch made" } else { "! touch made" }).await;
    }
}
