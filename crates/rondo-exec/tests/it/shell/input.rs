//! Input of the user while a command runs.

use super::{Kept, SHELLS, rest, until};
use crate::fixture::PATIENCE;
use rondo_exec::supervisor::{PtySize, SupervisorCommand};
use std::time::Duration;

#[tokio::test]
async fn a_program_reads_what_is_typed() {
    for name in SHELLS {
        let kept = Kept::new(name);
        let mut stream = kept.begin("echo ask; read x; echo \"got $x\"").await;
        until(&mut stream, "ask").await;
        stream
            .keyboard()
            .input("t\u{e4}xx\x7f\x7ft\n".as_bytes())
            .await;
        let ran = rest(stream).await;
        assert!(
            ran.output.ends_with("got t\u{e4}t\n"),
            "{name}: {:?}",
            ran.output
        );
        assert_eq!(ran.end.unread_input, b"", "{name}");
    }
}

#[tokio::test]
async fn typed_ahead_input_is_given_back_and_never_run() {
    for name in SHELLS {
        let kept = Kept::new(name);
        let mut stream = kept.begin("mkfifo go; echo up; read y < go; true").await;
        until(&mut stream, "up").await;
        stream.keyboard().input(b"touch made\nhalf").await;
        // The terminal's echo tells that it has arrived.
        until(&mut stream, "half").await;
        std::fs::write(kept.path().join("go"), "on\n").unwrap();
        let ran = rest(stream).await;
        assert_eq!(ran.end.unread_input, b"touch made\nhalf", "{name}");
        assert_eq!(kept.output("echo next").await, "next\n", "{name}");
        assert!(!kept.path().join("made").exists(), "{name}");
    }
}

/// When a key is pressed again that had no effect.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

#[tokio::test]
async fn ctrl_c_ends_what_is_in_the_foreground() {
    for name in SHELLS {
        let kept = Kept::new(name);
        for line in [
            "bash -c 'echo up; exec sleep 1000'",
            "for i in 1 2 3; do bash -c 'echo up; exec sleep 1000'; done",
            "echo up; while :; do :; done",
            "bash -c 'echo up; exec cat'",
            "echo up; read x",
        ] {
            let mut stream = kept.begin(line).await;
            until(&mut stream, "up").await;
            let keyboard = stream.keyboard();
            keyboard.interrupt().await;
            let mut ended = std::pin::pin!(rest(stream));
            // A shell takes no notice of a key that comes right before its own `read` waits; people
            // press it again.
            let ran = loop {
                match tokio::time::timeout(AGAIN_AFTER, &mut ended).await {
                    Ok(ran) => break ran,
                    Err(_) if line.contains("read") => keyboard.interrupt().await,
                    Err(_) => {}
                }
            };
            // Zsh says 130 or another, of its own commands.
            let code = ran.end.exit_code;
            assert!(
                code == 130 || name == "zsh" && code != 0,
                "{name}: {line}: {code}"
            );
            assert_eq!(ran.end.shell_end, None, "{name}: {line}");
            assert_eq!(kept.output("echo next").await, "next\n", "{name}: {line}");
        }
    }
}

#[tokio::test]
async fn a_program_that_ignores_the_first_ctrl_c_gets_the_second() {
    for name in SHELLS {
        let kept = Kept::new(name);
        // It wakes now and then: a signal that comes right before `pause` waits for the next one.
        let child = "import signal as s, time\n\
            def once(*_): s.signal(s.SIGINT, s.SIG_DFL); print(\"once\", flush=True)\n\
            s.signal(s.SIGINT, once); print(\"up\", flush=True)\n\
            while True: time.sleep(0.01)";
        let mut stream = kept.begin(&format!("python3 -c '{child}'")).await;
        until(&mut stream, "up").await;
        stream.keyboard().input(b"\x03").await;
        until(&mut stream, "once").await;
        stream.keyboard().input(b"\x03").await;
        assert_eq!(rest(stream).await.end.exit_code, 130, "{name}");
    }
}

#[tokio::test]
async fn a_stopped_job_ends_the_command_and_goes_on_in_the_foreground() {
    for name in SHELLS {
        let kept = Kept::new(name);
        let mut stream = kept.begin("bash -c 'echo up; read x; echo got $x'").await;
        until(&mut stream, "up").await;
        stream.keyboard().input(b"\x1a").await;
        let stopped = rest(stream).await;
        let codes = [146, 148];
        assert!(
            codes.contains(&stopped.end.exit_code),
            "{name}: {:?}",
            stopped.end
        );
        let jobs = kept.output("jobs").await.to_lowercase();
        assert!(
            jobs.contains("stopped") || jobs.contains("suspended"),
            "{name}: {jobs}"
        );
        let mut stream = kept.begin("fg").await;
        until(&mut stream, "bash").await;
        stream.keyboard().input(b"more\n").await;
        let ran = rest(stream).await;
        assert!(ran.output.ends_with("got more\n"), "{name}: {}", ran.output);
        assert_eq!(ran.end.exit_code, 0, "{name}");
    }
}

#[tokio::test]
async fn a_stopped_job_goes_on_in_the_background() {
    let kept = Kept::new("bash");
    let mut stream = kept
        .begin("bash -c 'mkfifo go; echo up; read x < go; echo $x > out'")
        .await;
    until(&mut stream, "up").await;
    stream.keyboard().input(b"\x1a").await;
    rest(stream).await;
    kept.run("bg").await;
    std::fs::write(kept.path().join("go"), "on\n").unwrap();
    kept.run("wait").await;
    assert_eq!(
        std::fs::read_to_string(kept.path().join("out")).unwrap(),
        "on\n"
    );
}

#[tokio::test]
async fn the_terminal_has_the_size_it_is_given() {
    for name in SHELLS {
        let kept = Kept::new(name);
        let (rows, columns) = (31, 97);
        assert_eq!(kept.output("stty size").await, "24 120\n", "{name}");
        kept.shell.resize(PtySize { rows, columns });
        assert_eq!(kept.output("stty size").await, "31 97\n", "{name}");
        let line = "trap 'stty size; exit 0' WINCH; echo up; while :; do sleep 0.01; done";
        let mut stream = kept.begin(&format!("bash -c \"{line}\"")).await;
        until(&mut stream, "up").await;
        let (rows, columns) = (11, 222);
        stream.keyboard().resize(PtySize { rows, columns }).await;
        assert_eq!(rest(stream).await.output, "11 222\n", "{name}");
    }
}

#[tokio::test]
async fn a_size_that_is_given_while_the_start_files_run_is_not_lost() {
    for name in SHELLS {
        let rc = "mkfifo ~/pipe && : > ~/begun && read go < ~/pipe";
        let kept = Kept::with(name, rc, |_| ());
        let begun = async {
            while !kept.path().join("begun").exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, begun).await.unwrap();
        let (rows, columns) = (31, 97);
        kept.shell.resize(PtySize { rows, columns });
        let pipe = kept.path().join("pipe");
        tokio::task::spawn_blocking(move || std::fs::write(pipe, "go\n").unwrap());
        assert_eq!(kept.output("stty size").await, "31 97\n", "{name}");
    }
}

#[tokio::test]
async fn a_stream_that_is_dropped_interrupts_its_command() {
    let kept = Kept::new("bash");
    let mut stream = kept.begin("bash -c 'echo up; exec sleep 1000'").await;
    until(&mut stream, "up").await;
    drop(stream);
    assert_eq!(kept.output("echo $?").await, "130\n");
}

#[tokio::test]
async fn input_that_nobody_reads_does_not_hold_back_ctrl_c() {
    let kept = Kept::new("bash");
    let mut stream = kept
        .begin("stty -echo; bash -c 'echo quiet; exec sleep 1000'")
        .await;
    until(&mut stream, "quiet").await;
    let keyboard = stream.keyboard();
    keyboard.input(&vec![b'x'; 60_000]).await;
    keyboard.interrupt().await;
    let ran = rest(stream).await;
    assert_eq!(ran.end.exit_code, 130);
    assert_eq!(kept.output("stty echo; echo next").await, "next\n");
}

#[tokio::test]
async fn ctrl_c_at_any_moment_loses_no_end_of_a_command_of_bash() {
    let kept = Kept::new("bash");
    for round in 0..60 {
        let stream = kept.begin("echo up").await;
        let keys = round % 4;
        for _ in 0..keys {
            stream.keyboard().input(b"\x03").await;
            tokio::task::yield_now().await;
        }
        let ran = rest(stream).await;
        // Bash may leave, if the key comes just as its `eval` of the line ends: that is an end too.
        if let Some(end) = ran.end.shell_end {
            assert_eq!((end.signal, ran.end.exit_code), (None, 130), "{round}");
            assert!(kept.run("true").await.restarted, "{round}");
        }
        // As in any terminal, a key that comes too late for one command may hit the next.
        let mut tries = 0;
        while !kept.output("echo next").await.ends_with("next\n") {
            tries += 1;
            assert!(tries <= keys, "{round}");
        }
    }
}

#[tokio::test]
async fn ctrl_c_works_in_a_program_that_was_started_deaf_to_it() {
    let deaf = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/shell/deaf.sh");
    for name in SHELLS {
        let kept = Kept::with(name, "", |settings| {
            let real = env!("CARGO_BIN_EXE_rondo-supervisor");
            settings.supervisor = SupervisorCommand::Path(deaf.into());
            let variable = ("REAL_SUPERVISOR".into(), Some(real.into()));
            settings.environment.push(variable);
        });
        let mut stream = kept.begin("bash -c 'echo up; exec sleep 1000'").await;
        until(&mut stream, "up").await;
        stream.keyboard().interrupt().await;
        assert_eq!(rest(stream).await.end.exit_code, 130, "{name}");
    }
}
