//! Protection without namespaces, and its gaps.

use crate::place::{self, Place};
use rondo_sandbox::{Enforcement, SandboxMode};
use std::fs;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use tempfile::TempDir;

fn is_enforced() -> bool {
    place::is_enforced(Enforcement::Partial)
}

fn place(mode: SandboxMode) -> Place {
    let mut place = Place::new(mode);
    place.enforcement = Enforcement::Partial;
    place
}

#[test]
fn files_are_held_without_namespaces() {
    if !is_enforced() {
        return;
    }
    let writes = place(SandboxMode::WorkspaceWrite);
    writes.works("echo a > made && mkdir -p b/c && mv made b/c && rm b/c/made && mktemp");
    for script in [
        "echo a > $OUTSIDE/made",
        "cat $OUTSIDE/.ssh/id",
        "rm $OUTSIDE/.ssh/id",
        "truncate -s 0 $OUTSIDE/.ssh/id",
        "ln $OUTSIDE/.ssh/id key",
        "ls /tmp",
        "echo a > /tmp/rondo-sandbox-made",
        "cat /proc/$PPID/environ",
        "cat /dev/pts/0 < /dev/null",
    ] {
        writes.fails(script);
    }
    let reads = place(SandboxMode::ReadOnly);
    fs::write(reads.workspace.join("a"), "text").unwrap();
    assert_eq!(reads.works("cat a"), "text");
    reads.fails("echo b > a || touch b || rm a");
}

#[test]
fn there_are_no_sockets_without_namespaces() {
    if !is_enforced() {
        return;
    }
    let place = place(SandboxMode::WorkspaceWrite);
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    let shared = TempDir::new().unwrap();
    let path = shared.path().join("socket");
    let _service = UnixListener::bind(&path).unwrap();
    place.refused(&format!(
        "socket.create_connection(('127.0.0.1', {port}), 2)"
    ));
    place.refused(&format!(
        "socket.socket(socket.AF_UNIX).connect('{}')",
        path.display()
    ));
    place.refused("socket.socket(socket.AF_INET, socket.SOCK_DGRAM)");
    place.refused("socket.socket(40, socket.SOCK_STREAM)");
    place.works("python3 -c 'import socket; a, b = socket.socketpair(); a.send(b\"x\")'");
}

#[test]
fn what_reaches_past_files_is_refused_without_namespaces() {
    if !is_enforced() {
        return;
    }
    let place = place(SandboxMode::WorkspaceWrite);
    for call in [
        "call(425, 8, 0)",
        "call(101, 16, os.getppid(), 0, 0)",
        "call(165, b'none', b'/tmp', b'tmpfs', 0, 0)",
        "call(272, 0x10000000)",
        "call(310, os.getppid(), 0, 0, 0, 0, 0)",
        // Shared memory, queues and semaphores of the machine.
        "call(29, 0x4a4b, 4096, 0o1600)",
        "call(68, 0x4a4b, 0o1600)",
        "call(64, 0x4a4b, 1, 0o1600)",
        "call(240, b'queue', 0o102, 0o600, 0)",
        "os.setuid(1)",
        "os.chroot('.')",
    ] {
        if cfg!(target_arch = "x86_64") || call.starts_with("os.") {
            place.refused(call);
        }
    }
}

#[test]
fn what_is_protected_is_put_back_without_namespaces() {
    if !is_enforced() {
        return;
    }
    let place = place(SandboxMode::WorkspaceWrite);
    place.make_repository();
    fs::write(place.workspace.join("AGENTS.md"), "mine").unwrap();
    let config = || fs::read_to_string(place.workspace.join(".git/config")).unwrap();
    let before = config();
    place.works(
        "echo a > .git/hooks/pre-commit; git config core.fsmonitor x; echo a > AGENTS.md; echo a > .envrc
         mv .git moved && mkdir -p .git/hooks && echo a > .git/config",
    );
    assert_eq!(config(), before);
    let undone = place.undone.take();
    assert!(undone.iter().all(|it| it.is_restored), "{undone:?}");
    assert!(!place.workspace.join(".git/hooks/pre-commit").exists());
    assert!(!place.workspace.join(".envrc").exists());
    let instructions = fs::read_to_string(place.workspace.join("AGENTS.md")).unwrap();
    assert_eq!(instructions, "mine");
    place.works("echo a > a && git add a && git -c user.name=A -c user.email=a@b commit -qm a");
    assert!(place.undone.borrow().is_empty(), "{:?}", place.undone);
}

#[test]
fn other_processes_are_neither_limited_nor_signalled_by_number_without_namespaces() {
    if !is_enforced() {
        return;
    }
    let place = place(SandboxMode::WorkspaceWrite);
    // The parent is the test, which stands for a supervisor here.
    let parent = std::process::id();
    for refused in [
        format!("prlimit --pid {parent} --nofile=0:0"),
        format!("kill -CONT {parent}"),
        format!("kill -CONT -- -{parent}"),
        format!("renice -n 19 -p {parent}"),
        format!("ionice -c 3 -p {parent}"),
        format!("chrt -i -p 0 {parent}"),
    ] {
        place.fails(&refused);
    }
    for work in [
        "nice true",
        "taskset 1 true",
        "ulimit -n 64; true",
        "sleep 1000 & kill $!",
        "kill -CONT $$",
        "ionice -c 3 true",
    ] {
        place.works(work);
    }
}
