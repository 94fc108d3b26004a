//! The user's own terminal, lent to a command.

use super::Kept;
use crate::fixture::PATIENCE;
use rondo_exec::shell::{CommandEnd, RelayError, Terminal, relay};
use rustix::process::Signal;
use rustix::pty::OpenptFlags;
use rustix::termios::{LocalModes, Winsize};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// A terminal with a user at it.
struct Desk {
    user: OwnedFd,
    host: OwnedFd,
}

impl Desk {
    fn new() -> Self {
        let user = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        rustix::pty::grantpt(&user).unwrap();
        rustix::pty::unlockpt(&user).unwrap();
        let name = rustix::pty::ptsname(&user, Vec::new()).unwrap();
        let path = std::path::PathBuf::from(name.into_string().unwrap());
        let host = File::options().read(true).write(true).open(path).unwrap();
        rustix::io::ioctl_fionbio(&user, true).unwrap();
        let desk = Self {
            user,
            host: host.into(),
        };
        desk.resize(30, 90);
        desk
    }

    fn terminal(&self) -> Terminal<'_> {
        Terminal {
            input: self.host.as_fd(),
            output: self.host.as_fd(),
        }
    }

    fn resize(&self, rows: u16, columns: u16) {
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(&self.user, size).unwrap();
    }

    fn types(&self, text: &str) {
        let mut user = File::from(self.user.try_clone().unwrap());
        user.write_all(text.as_bytes()).unwrap();
    }

    /// Reads the screen until it shows `wanted`.
    async fn shows(&self, wanted: &str) -> String {
        let mut shown = String::new();
        let mut buffer = [0; 4096];
        let until = Instant::now() + PATIENCE;
        while !shown.contains(wanted) {
            match rustix::io::read(&self.user, &mut buffer) {
                Ok(length) => {
                    shown.push_str(&String::from_utf8_lossy(buffer.get(..length).unwrap()))
                }
                Err(_) => tokio::task::yield_now().await,
            }
            assert!(Instant::now() < until, "no `{wanted}` in `{shown}`");
        }
        shown
    }

    fn is_raw(&self) -> bool {
        let modes = rustix::termios::tcgetattr(&self.host).unwrap();
        !modes
            .local_modes
            .intersects(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }
}

async fn lend(kept: &Kept, desk: &Desk, line: &str) -> CommandEnd {
    let ended = relay(&kept.shell, line, desk.terminal(), || ());
    tokio::time::timeout(PATIENCE, ended)
        .await
        .unwrap()
        .unwrap()
}

#[tokio::test]
async fn a_command_has_the_terminal_and_gives_it_back() {
    let kept = Kept::new("bash");
    let desk = Desk::new();
    let user = async {
        let shown = desk.shows("ask").await;
        assert!(shown.contains("30 90\r\n"), "{shown:?}");
        assert!(desk.is_raw());
        desk.types("answer\r");
        desk.shows("got answer\r\n").await;
    };
    let line = "stty size; echo ask; read x; echo \"got $x\"; (exit 3)";
    let (end, ()) = tokio::join!(lend(&kept, &desk, line), user);
    assert_eq!(end.exit_code, 3);
    assert!(!desk.is_raw());
}

#[tokio::test]
async fn keys_that_mean_something_reach_the_command() {
    let kept = Kept::new("bash");
    let desk = Desk::new();
    let user = async {
        desk.shows("up").await;
        desk.types("\x03");
    };
    let line = "bash -c 'echo up; exec sleep 1000'";
    let (end, ()) = tokio::join!(lend(&kept, &desk, line), user);
    assert_eq!(end.exit_code, 130);
    let user = async {
        desk.shows("\x1b[?1049h").await;
        desk.types(":q\r");
        desk.shows("\x1b[?1049l").await;
    };
    let (end, ()) = tokio::join!(lend(&kept, &desk, "vim -u NONE -i NONE"), user);
    assert_eq!(end.exit_code, 0);
    assert!(!desk.is_raw());
}

#[tokio::test]
async fn a_new_size_is_passed_on() {
    let kept = Kept::new("bash");
    let desk = Desk::new();
    let user = async {
        desk.shows("up").await;
        desk.resize(20, 70);
        rustix::process::kill_process(rustix::process::getpid(), Signal::WINCH).unwrap();
        desk.shows("20 70\r\n").await;
    };
    let line = "bash -c \"trap 'stty size; exit' WINCH; echo up; while :; do sleep 0.01; done\"";
    let (end, ()) = tokio::join!(lend(&kept, &desk, line), user);
    assert_eq!(end.exit_code, 0);
}

#[tokio::test]
async fn what_nobody_read_is_given_back() {
    let kept = Kept::new("bash");
    let desk = Desk::new();
    kept.run("mkfifo go").await;
    let user = async {
        desk.shows("up").await;
        desk.types("next\r");
        desk.shows("next").await;
        std::fs::write(kept.path().join("go"), "on\n").unwrap();
    };
    let (end, ()) = tokio::join!(lend(&kept, &desk, "echo up; read y < go"), user);
    // The command's terminal has turned the return key into a line feed.
    assert_eq!(end.unread_input, b"next\n");
}

#[tokio::test]
async fn a_relay_that_is_dropped_gives_the_terminal_back_and_interrupts() {
    let kept = Kept::new("bash");
    let desk = Desk::new();
    let line = "bash -c 'echo up; exec sleep 1000'";
    let user = async {
        desk.shows("up").await;
        assert!(desk.is_raw());
    };
    tokio::select! {
        _ = lend(&kept, &desk, line) => panic!("it sleeps"),
        () = user => {}
    }
    assert!(!desk.is_raw());
    assert_eq!(kept.output("echo $?").await, "130\n");
}

#[tokio::test]
async fn a_restart_is_told_before_the_output() {
    let kept = Kept::new("bash");
    let desk = Desk::new();
    kept.run("exit").await;
    let told = AtomicU32::new(0);
    let count = || {
        told.fetch_add(1, Ordering::Relaxed);
    };
    let ended = relay(&kept.shell, "echo new", desk.terminal(), count);
    let (end, _) = tokio::join!(ended, desk.shows("new"));
    assert_eq!((end.unwrap().exit_code, told.into_inner()), (0, 1));
}

#[tokio::test]
async fn what_is_no_terminal_is_refused() {
    let kept = Kept::new("bash");
    let file = tempfile::tempfile().unwrap();
    let terminal = Terminal {
        input: file.as_fd(),
        output: file.as_fd(),
    };
    let refused = relay(&kept.shell, "read x", terminal, || ()).await;
    assert!(matches!(refused, Err(RelayError::Terminal(_))));
    assert_eq!(kept.output("echo next").await, "next\n");
}
