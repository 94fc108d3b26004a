//! A sandboxed command reaches its own processes and no others, and none of them outlives it.

use crate::agent::wait_until;
use crate::fixture::{Fixture, LONG_ENOUGH_SECONDS, failure, marker, supervisor, survivors};
use crate::sandbox::{is_enforced, spec};
use rondo_exec::supervisor::SUPERVISE_ARG;
use rondo_policy::LookingCalls;
use rondo_sandbox::SandboxMode;
use rondo_types::ToolErrorCode;
use rustix::process::{Pid, Resource, Signal};
use serde_json::json;
use std::process::{Child, Command, Stdio};

fn confined(mode: SandboxMode) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.options.sandbox = Some(spec(&fixture, mode));
    fixture
}

/// A process of the same user, which no command started.
struct Bystander(Child);

impl Bystander {
    fn new() -> Self {
        let mut sleep = Command::new("sleep");
        Self(sleep.arg("1000").stdin(Stdio::null()).spawn().unwrap())
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    fn limits(&self) -> String {
        std::fs::read_to_string(format!("/proc/{}/limits", self.0.id())).unwrap()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_command_neither_sees_nor_limits_nor_ends_a_process_of_the_user() {
    if !is_enforced() {
        return;
    }
    for mode in [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite] {
        let fixture = confined(mode);
        let mut bystander = Bystander::new();
        let (pid, before) = (bystander.0.id(), bystander.limits());
        let nice = rustix::process::getpriority_process(Some(bystander.pid())).unwrap();
        for attack in [
            format!("prlimit --pid {pid} --cpu=1:1"),
            format!("prlimit --pid {pid} --nofile=0:0"),
            format!("kill -KILL {pid}"),
            format!("renice 19 {pid}"),
            format!("taskset -p 1 {pid}"),
            format!("chrt -i -p 0 {pid}"),
            format!("ionice -c 3 -p {pid}"),
            format!("test -e /proc/{pid}"),
        ] {
            let told = fixture.run(&format!("{attack} 2>&1")).await;
            assert_ne!(told["exitCode"], 0, "{attack}: {told}");
        }
        // Those that name no process.
        fixture
            .run("kill -KILL -1; killall -KILL sleep; true")
            .await;
        assert_eq!(bystander.0.try_wait().unwrap(), None, "{mode:?}");
        assert_eq!(bystander.limits(), before, "{mode:?}");
        let now = rustix::process::getpriority_process(Some(bystander.pid())).unwrap();
        assert_eq!(now, nice);
    }
}

#[tokio::test]
async fn a_command_cannot_limit_the_supervisor_that_looks_after_protected_files() {
    if !is_enforced() {
        return;
    }
    let fixture = confined(SandboxMode::WorkspaceWrite);
    let attack = "prlimit --pid $PPID --nofile=0:0; prlimit --pid 1 --nofile=0:0 --fsize=0:0; \
                  prlimit --pid 1 --cpu=1:1; kill -STOP 1; kill -KILL 1; echo planted > .envrc; true";
    let told = fixture.run(attack).await;
    let own = rustix::process::getrlimit(Resource::Nofile);
    assert!(own.current.is_none_or(|it| it > 0));
    assert!(!fixture.path().join(".envrc").exists(), "{told}");
    assert!(fixture.path().join(".envrc.refused").exists(), "{told}");
}

#[tokio::test]
async fn what_a_command_left_in_its_namespace_is_counted_and_ended() {
    if !is_enforced() {
        return;
    }
    let fixture = confined(SandboxMode::WorkspaceWrite);
    let mark = marker();
    let command = format!("export M={mark}; (setsid sleep 1000 &); (setsid sleep 1000 &); exit 7");
    let told = fixture.run(&command).await;
    assert_eq!(told["exitCode"], 7, "{told}");
    let note = told["note"].as_str().unwrap_or_default();
    assert!(note.contains("2 processes"), "{told}");
    assert_eq!(survivors(&mark), [""; 0]);
}

#[tokio::test]
async fn processes_that_the_hang_up_of_a_commands_terminal_ended_are_counted() {
    if !is_enforced() {
        return;
    }
    let fixture = confined(SandboxMode::WorkspaceWrite);
    // Which process is collected first differs from run to run.
    for _ in 0..20 {
        let told = fixture.run("(sleep 1000 &); (sleep 1000 &); exit 7").await;
        assert_eq!(told["exitCode"], 7, "{told}");
        let note = told["note"].as_str().unwrap_or_default();
        assert!(note.contains("2 processes"), "{told}");
    }
}

#[tokio::test]
async fn the_end_of_a_command_is_its_own() {
    if !is_enforced() {
        return;
    }
    let fixture = confined(SandboxMode::ReadOnly);
    for (command, code) in [("exit 0", 0), ("exit 255", 255), ("kill -TERM $$", 143)] {
        let told = fixture.run(command).await;
        assert_eq!(told["exitCode"], code, "{command}: {told}");
    }
    let told = fixture.run("kill -SEGV $$").await;
    assert_eq!(told["signal"], "SIGSEGV", "{told}");
}

#[tokio::test]
async fn the_machines_bound_on_process_ids_is_not_a_commands_to_change() {
    if !is_enforced() {
        return;
    }
    const IDS: &str = "/proc/sys/kernel/pid_max";
    let before = std::fs::read_to_string(IDS).unwrap();
    let fixture = confined(SandboxMode::WorkspaceWrite);
    let told = fixture.run(&format!("echo 400 > {IDS}; cat {IDS}")).await;
    let said = told["stdout"].as_str().unwrap_or_default();
    assert!(!said.ends_with("\n400\n"), "{told}");
    assert_eq!(std::fs::read_to_string(IDS).unwrap(), before);
}

#[tokio::test]
async fn a_storm_of_forks_ends_with_its_time() {
    if !is_enforced() {
        return;
    }
    let fixture = confined(SandboxMode::WorkspaceWrite);
    let mark = marker();
    // Each process starts two, none of which its parent waits for. They leave the processors to other tests.
    let storm = format!(
        "export M={mark}; renice -n 19 $$ > /dev/null; f() {{ f & f & sleep 0.2; }}; f; sleep 1000"
    );
    let arguments = json!({ "command": storm, "timeout": LONG_ENOUGH_SECONDS });
    let error = failure(fixture.call(arguments).await);
    assert!(
        matches!(error.code, ToolErrorCode::Timeout | ToolErrorCode::Failed),
        "{error:?}"
    );
    // All are killed by now and start no others, but each needs a processor once more to end.
    wait_until(|| survivors(&mark).is_empty());
}

#[test]
fn a_process_that_hid_itself_ends_with_agent_and_supervisors() {
    if !is_enforced() {
        return;
    }
    let fixture = confined(SandboxMode::WorkspaceWrite);
    let mark = marker();
    let hidden = format!(
        "(env -i /usr/bin/setsid -f /bin/sh -c ': {mark}; sleep 1000; true' &); sleep 1000; true"
    );
    let mut call = crate::agent::spec(&fixture, &hidden, 600_000);
    call.sandbox.clone_from(&fixture.options.sandbox);
    let mut watching = Command::new(match supervisor() {
        rondo_exec::SupervisorCommand::Path(path) => path,
        other => panic!("{other:?}"),
    });
    watching
        .arg(SUPERVISE_ARG)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut guard = watching.spawn().unwrap();
    let line = serde_json::to_string(&call).unwrap();
    let mut stdin = guard.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, format!("{line}\ng").as_bytes()).unwrap();
    wait_until(|| !survivors(&mark).is_empty());
    // The supervisor first would have its guard end the rest.
    let children = format!("/proc/{0}/task/{0}/children", guard.id());
    let supervisor = std::fs::read_to_string(children).unwrap();
    let supervisor: i32 = supervisor
        .split_ascii_whitespace()
        .next()
        .unwrap()
        .parse()
        .unwrap();
    for doomed in [Pid::from_child(&guard), Pid::from_raw(supervisor).unwrap()] {
        rustix::process::kill_process(doomed, Signal::KILL).unwrap();
    }
    guard.wait().unwrap();
    wait_until(|| survivors(&mark).is_empty());
}

#[tokio::test]
async fn a_command_that_takes_the_machines_memory_is_ended_and_the_reason_is_said() {
    if !is_enforced() {
        return;
    }
    let mut fixture = Fixture::new();
    let calls = LookingCalls::default();
    fixture.options.looking = Some((calls.clone(), spec(&fixture, SandboxMode::ReadOnly)));
    for greedy in [
        "seq -s x 1 99999999999 | sort",
        "seq 1 99999999999 | sed -n H",
        "seq -s x 1 99999999999 | grep -z y",
        "python3 -c 'import os; f = os.memfd_create(\"a\"); b = bytes(1 << 24)\nwhile 1: os.write(f, b)'",
    ] {
        let arguments = json!({ "command": greedy });
        let id = fixture.invocation(arguments.clone()).call_id;
        calls.note(&rondo_types::SessionId::new("s"), &id, &arguments, true);
        let error = failure(fixture.call(arguments).await);
        assert!(
            error.message.contains("more than 1024 MiB of memory"),
            "{greedy}: {error:?}"
        );
    }
    // Files in directories of its own are memory too.
    let arguments = json!({ "command": "seq 1 99999999999 > ${TMPDIR:-/tmp}/a" });
    let id = fixture.invocation(arguments.clone()).call_id;
    calls.note(&rondo_types::SessionId::new("s"), &id, &arguments, true);
    let full = crate::fixture::result(fixture.call(arguments).await);
    let said = full["stdout"].as_str().unwrap_or_default();
    assert!(said.contains("No space left on device"), "{full}");
}

#[tokio::test]
async fn a_command_that_takes_more_memory_than_the_options_say_is_ended() {
    let mut fixture = Fixture::new();
    fixture.options.memory_bytes_max = Some(64 << 20);
    let greedy = json!({ "command": "seq 1 99999999999 | sed -n H" });
    let error = failure(fixture.call(greedy).await);
    let said = "more than 64 MiB of memory";
    assert!(error.message.contains(said), "{error:?}");
    let modest = crate::fixture::result(fixture.call(json!({ "command": "seq 3" })).await);
    assert_eq!(modest["exitCode"], 0, "{modest}");
}

#[tokio::test]
async fn a_command_with_too_many_processes_is_ended_and_the_reason_is_said() {
    let fixture = Fixture::new();
    let mark = marker();
    let command = format!("export M={mark}; for i in $(seq 5000); do sleep 1000 & done; wait");
    let error = failure(fixture.call(json!({ "command": command })).await);
    assert!(
        error.message.contains("more than 4096 processes"),
        "{error:?}"
    );
    assert_eq!(survivors(&mark), [""; 0]);
}

#[tokio::test]
async fn a_command_opens_its_own_terminal_by_path_and_no_device_of_the_machine() {
    if !is_enforced() {
        return;
    }
    for mode in [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite] {
        let fixture = confined(mode);
        // The first ones have no process that waits for them.
        for _ in 0..3 {
            let told = fixture
                .run("echo a > /dev/stderr; echo b | tee /dev/stdout")
                .await;
            assert_eq!(told["exitCode"], 0, "{told}");
            assert_eq!(told["stdout"], "a\nb\nb\n", "{told}");
        }
        let told = fixture
            .run("for d in /dev/tty0 /dev/ttyS0 /dev/loop0 /dev/zram0 /dev/vcs; do head -c 1 $d 2>&1; done; ls /dev")
            .await;
        let said = told["stdout"].as_str().unwrap_or_default();
        let refused = said.lines().filter(|it| it.starts_with("head:")).count();
        assert_eq!(refused, 5, "{told}");
    }
}
