//! Keepers, which fork supervisors for their agent.

use crate::agent::{program, wait_until};
use crate::deaths::{FIND_GUARD, after, without_keeper};
use crate::fixture::{Fixture, PATIENCE, marker, open_gate, result, survivors};
use rondo_core::ports::Tool;
use rondo_exec::supervisor::SUPERVISE_ARG;
use rondo_exec::{ExecTool, SupervisorCommand};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tokio::task::JoinSet;

/// Prints the process id of the keeper, or of whatever else started the guard.
const SHOW_KEEPER: &str = "sed -n 's/^PPid:.//p' /proc/$guard/status";

/// A fixture whose supervisors and keepers are no other test's.
pub(crate) fn alone() -> (Fixture, PathBuf) {
    let mut fixture = Fixture::new();
    let link = fixture.path().join("supervisor");
    std::os::unix::fs::symlink(program(), &link).unwrap();
    fixture.options.supervisor = SupervisorCommand::Path(link.clone());
    (fixture, link)
}

/// A process of a program, with that of its parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) state: char,
}

/// Lists the processes that a keeper of the program is, or has forked.
pub(crate) fn kept(program: &Path) -> Vec<Process> {
    let asked = format!("{}\0{SUPERVISE_ARG}\0keeper\0", program.display());
    let is_asked = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline"));
        line.is_ok_and(|line| line == asked.as_bytes())
    };
    pids().filter(is_asked).filter_map(process).collect()
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

pub(crate) fn process(pid: u32) -> Option<Process> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    Some(Process {
        pid,
        state: fields.next()?.chars().next()?,
        parent: fields.next()?.parse().ok()?,
    })
}

/// Returns the only keeper of the program.
pub(crate) fn keeper(program: &Path) -> u32 {
    let own = std::process::id();
    let keepers = kept(program).into_iter().filter(|it| it.parent == own);
    let [keeper] = keepers.collect::<Vec<_>>().try_into().unwrap();
    keeper.pid
}

pub(crate) fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    // It may be gone already.
    let _ = kill_process(pid, signal);
}

/// Lists where the descriptors of a process lead; none of one that is hidden from the user.
pub(crate) fn descriptors(pid: u32) -> Option<Vec<String>> {
    let entries = match std::fs::read_dir(format!("/proc/{pid}/fd")) {
        Err(err) if err.kind() == std::io::ErrorKind::PermissionDenied => return None,
        entries => entries.unwrap(),
    };
    let links = entries.map(|entry| std::fs::read_link(entry.unwrap().path()).unwrap());
    let mut links: Vec<_> = links.map(|it| it.display().to_string()).collect();
    links.sort();
    Some(links)
}

fn mkfifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[tokio::test]
async fn one_keeper_forks_the_supervisors_of_all_calls() {
    let (fixture, program) = alone();
    let show = format!("{FIND_GUARD}; {SHOW_KEEPER}");
    let first = fixture.stdout(&show).await;
    let again = fixture.stdout(&show).await;
    assert_eq!(first, format!("{}\n", keeper(&program)));
    assert_eq!(first, again);
}

#[tokio::test]
async fn a_keeper_that_was_killed_is_replaced_before_the_next_call() {
    let (fixture, program) = alone();
    let show = format!("{FIND_GUARD}; {SHOW_KEEPER}");
    let first = fixture.stdout(&show).await;
    let killed = keeper(&program);
    send(killed, Signal::KILL);
    // The runtime waits for it, and has no time to.
    let is_gone = || process(killed).is_none_or(|it| it.state == 'Z');
    wait_until(is_gone);
    let second = fixture.stdout(&show).await;
    assert_eq!(second, format!("{}\n", keeper(&program)));
    assert_ne!(first, second);
}

#[tokio::test]
async fn a_keeper_that_was_killed_is_no_zombie_though_no_call_follows() {
    let (fixture, program) = alone();
    fixture.stdout("true").await;
    let killed = keeper(&program);
    send(killed, Signal::KILL);
    while process(killed).is_some() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_running_call_does_not_miss_its_keeper() {
    let (fixture, program) = alone();
    let gate = fixture.path().join("gate");
    mkfifo(&gate);
    let killing = async {
        while !fixture.live().contains("up") {
            tokio::task::yield_now().await;
        }
        send(keeper(&program), Signal::KILL);
        open_gate(gate.clone()).await;
    };
    let (told, ()) = tokio::join!(fixture.run("echo up; cat gate; exit 3"), killing);
    assert_eq!(told, json!({ "stdout": "up\nopen\n", "exitCode": 3 }));
}

/// Kills keepers, and what they have just forked, until it is told to stop.
fn kill_again_and_again(program: &Path, is_over: &AtomicBool) -> usize {
    let own = std::process::id();
    let mut killed = BTreeSet::new();
    while !is_over.load(Ordering::Relaxed) {
        let all = kept(program);
        let keepers: Vec<u32> = all
            .iter()
            .filter(|it| it.parent == own)
            .map(|it| it.pid)
            .collect();
        let is_guard = |it: &&Process| keepers.contains(&it.parent);
        for doomed in all.iter().filter(is_guard).map(|it| it.pid) {
            send(doomed, Signal::KILL);
            killed.insert(doomed);
        }
        for doomed in keepers {
            send(doomed, Signal::KILL);
            killed.insert(doomed);
        }
    }
    killed.len()
}

#[tokio::test]
async fn keepers_and_guards_that_are_killed_at_any_time_lose_and_repeat_no_command() {
    const CALLS: usize = 60;
    let (fixture, program) = alone();
    let is_over = AtomicBool::new(false);
    let killed = thread::scope(|scope| {
        let killing = scope.spawn(|| kill_again_and_again(&program, &is_over));
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map(|runtime| {
                // A runtime may not be entered from within another one's thread.
                scope.spawn(move || {
                    runtime.block_on(async {
                        for call in 0..CALLS {
                            let told = fixture.run(&format!("echo {call} >> runs; echo on")).await;
                            assert_eq!(told, json!({ "stdout": "on\n", "exitCode": 0 }));
                        }
                        let runs = std::fs::read_to_string(fixture.path().join("runs"));
                        let expected: String = (0..CALLS).map(|it| format!("{it}\n")).collect();
                        assert_eq!(runs.unwrap(), expected);
                    });
                })
            })
            .unwrap()
            .join()
            .unwrap();
        is_over.store(true, Ordering::Relaxed);
        killing.join().unwrap()
    });
    assert!(killed > 0);
}

#[tokio::test]
async fn a_keeper_that_a_command_has_stopped_goes_on() {
    let (fixture, program) = alone();
    let stop = format!("{FIND_GUARD}; kill -STOP $({SHOW_KEEPER}); echo on");
    for _ in 0..2 {
        assert_eq!(fixture.stdout(&stop).await, "on\n");
    }
    // Its guard, which may be the last one that is there, has woken it too.
    let stopped = keeper(&program);
    wait_until(|| process(stopped).is_some_and(|it| it.state == 'S'));
}

#[tokio::test]
async fn a_call_does_without_a_keeper_that_never_forks() {
    let mut fixture = Fixture::new();
    let mark = marker();
    let hangs = format!("if [ \"$2\" = keeper ]; then M={mark} exec sleep 1000; fi");
    after(&mut fixture, &hangs);
    let show = format!("{FIND_GUARD}; {SHOW_KEEPER}");
    let own = format!("{}\n", std::process::id());
    assert_eq!(fixture.stdout(&show).await, own);
    assert_eq!(survivors(&mark), [""; 0]);
}

#[tokio::test]
async fn where_no_keeper_can_be_each_call_has_a_supervisor_started_for_it() {
    let mut fixture = Fixture::new();
    let tried = "if [ \"$2\" = keeper ]; then echo run >> tried; exit 1; fi";
    after(&mut fixture, &format!("cd \"${{0%/*}}\"; {tried}"));
    let show = format!("{FIND_GUARD}; {SHOW_KEEPER}");
    let own = format!("{}\n", std::process::id());
    for _ in 0..4 {
        assert_eq!(fixture.stdout(&show).await, own);
    }
    // It is not tried forever.
    let tried = || std::fs::read_to_string(fixture.path().join("tried")).unwrap();
    assert!(tried().lines().count() <= 3, "{}", tried());
}

#[tokio::test]
async fn nothing_that_the_agent_or_another_call_has_open_is_open_in_a_command() {
    let (mut fixture, program) = alone();
    let path = fixture.path().join("of the agent");
    let file = std::fs::File::create(&path).unwrap();
    // As what started the agent may have left it: a copy is inherited.
    let _inherited = rustix::io::dup(&file).unwrap();
    let gate = fixture.path().join("gate");
    mkfifo(&gate);
    // In a pipeline the shell itself has a pipe for a moment.
    let show = "ls -l /proc/$$/fd > open; sed -n 's/.* -> //p' open; true";
    let looking = async {
        while !fixture.live().contains("up") {
            tokio::task::yield_now().await;
        }
        let told = fixture
            .stdout(&format!("{FIND_GUARD}; {show}; echo $PPID $guard"))
            .await;
        let lines: Vec<&str> = told.lines().collect();
        let [input, output, errors, processes] = lines[..] else {
            panic!("{told}");
        };
        assert_eq!(input, "/dev/null");
        assert!(
            output.starts_with("/dev/pts/") && output == errors,
            "{told}"
        );
        let agents = path.display().to_string();
        let keeper = keeper(&program);
        assert!(processes.split(' ').count() == 2);
        if let Some(open) = descriptors(keeper) {
            let [nothing @ .., pidfd, socket] = &open[..] else {
                panic!("{open:?}");
            };
            assert_eq!(nothing, ["/dev/null"; 3]);
            assert_eq!(pidfd, "anon_inode:[pidfd]");
            assert!(socket.starts_with("socket:"), "{socket}");
        }
        for open in kept(&program).iter().filter_map(|it| descriptors(it.pid)) {
            let is_strange = |it: &&String| it.contains(&agents) || it.contains("memfd");
            assert_eq!(open.iter().find(is_strange), None, "{open:?}");
        }
        open_gate(gate.clone()).await;
    };
    let (told, ()) = tokio::join!(fixture.run("echo up; cat gate"), looking);
    assert_eq!(told["exitCode"], 0);
    // So it is if the supervisor is started for the call.
    without_keeper(&mut fixture);
    let told = fixture.stdout(show).await;
    assert_eq!(told.lines().count(), 3, "{told}");
}

#[tokio::test]
async fn no_variable_of_the_agent_or_of_a_call_before_is_found_where_it_is_not_given() {
    let (mut fixture, program) = alone();
    let show = "echo ${OF_ONE_CALL:-none} ${CARGO_PKG_NAME:-none}";
    let set = &mut Arc::make_mut(&mut fixture.options.environment).set;
    set.insert("OF_ONE_CALL".to_owned(), "here".to_owned());
    assert_eq!(fixture.stdout(show).await, "here rondo-exec\n");
    let environment = Arc::make_mut(&mut fixture.options.environment);
    environment.set.clear();
    environment.withheld.push("CARGO_PKG_NAME".into());
    assert_eq!(fixture.stdout(show).await, "none none\n");
    let look = format!(
        "{FIND_GUARD}; cat /proc/$PPID/environ /proc/$guard/environ /proc/{}/environ 2> /dev/null | tr '\\0' '\\n' \
         | grep -v -e ^RONDO_CALL= -e ^RUNNER_TRACKING_ID=; true",
        keeper(&program)
    );
    assert_eq!(fixture.stdout(&look).await, "");
}

#[tokio::test]
async fn calls_one_after_another_leave_no_process_behind() {
    let (fixture, program) = alone();
    for call in 0..200 {
        let told = fixture.stdout(&format!("echo {call}")).await;
        assert_eq!(told, format!("{call}\n"));
    }
    // But for the one that waits for the next.
    let keeper = keeper(&program);
    let is_child = |pid: &u32| process(*pid).is_some_and(|it| it.parent == keeper);
    wait_until(|| pids().filter(is_child).count() == 1);
    // It is made ready after the last call has begun.
    wait_until(|| kept(&program).len() == 4);
    wait_until(|| descriptors(keeper).is_none_or(|it| it.len() == 5));
}

#[tokio::test]
async fn calls_at_once_have_each_their_own_result() {
    let (fixture, program) = alone();
    let tool = ExecTool::exec(fixture.options.clone());
    let mut calls = JoinSet::new();
    for call in 0..16 {
        let (tool, command) = (tool.clone(), format!("echo {call}; exit {call}"));
        let mut invocation = fixture.invocation(json!({ "command": command }));
        invocation.idempotency_key = format!("key-{call}");
        calls.spawn(async move { (call, result(tool.call(invocation).await)) });
    }
    let mut told = calls.join_all().await;
    told.sort_by_key(|(call, _)| *call);
    let expected = (0..16).map(|call| {
        (
            call,
            json!({ "stdout": format!("{call}\n"), "exitCode": call }),
        )
    });
    assert_eq!(told, expected.collect::<Vec<_>>());
    keeper(&program);
}

/// Starts a keeper by hand and returns the other end of its socket.
fn by_hand(program: &mut Command) -> (std::process::Child, UnixStream) {
    let (socket, theirs) = UnixStream::pair().unwrap();
    let started = program
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::null())
        .spawn();
    (started.unwrap(), socket)
}

#[test]
fn a_keeper_ends_with_its_socket_whatever_it_was_sent() {
    let kept = || {
        let mut program = Command::new(program());
        program.args([SUPERVISE_ARG, "keeper"]);
        program
    };
    for sent in [&b""[..], b"\n", b"{}\n", &[b'x'; 100_000]] {
        let (mut keeper, mut socket) = by_hand(&mut kept());
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        socket.write_all(sent).unwrap();
        drop(socket);
        assert_eq!(
            keeper.wait().unwrap().code(),
            Some(0),
            "{} bytes",
            sent.len()
        );
    }
}

#[test]
fn a_keeper_serves_its_parent_and_nobody_else() {
    let mut nobody = Command::new(program());
    nobody.args([SUPERVISE_ARG, "keeper"]).stdin(Stdio::null());
    assert_eq!(nobody.status().unwrap().code(), Some(1));
    let script = format!("'{}' {SUPERVISE_ARG} keeper; exit $?", program().display());
    let (mut parent, _socket) = by_hand(Command::new("bash").args(["-c", &script]));
    assert_eq!(parent.wait().unwrap().code(), Some(1));
}
