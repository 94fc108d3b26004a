//! Shells that end, and what they leave.

use super::{Kept, SHELLS, rest, until};
use crate::agent::wait_until;
use crate::fixture::{marker, survivors};
use rondo_exec::SupervisorCommand;
use rondo_exec::shell::{ShellEnd, ShellError};

#[tokio::test]
async fn a_shell_that_ended_is_told_and_started_anew() {
    for name in SHELLS {
        for (line, code, signal) in [
            ("exit 3", 3, None),
            ("exec true", 0, None),
            ("echo last; kill -9 $$", 137, Some("SIGKILL")),
            ("set -e; false", 1, None),
        ] {
            let kept = Kept::new(name);
            std::fs::create_dir(kept.path().join("sub")).unwrap();
            kept.run("cd sub; A=1").await;
            let ran = kept.run(line).await;
            let end = ShellEnd {
                signal: signal.map(str::to_owned),
            };
            assert_eq!(ran.end.shell_end, Some(end), "{name}: {line}");
            assert_eq!(ran.end.exit_code, code, "{name}: {line}");
            assert!(
                !line.contains("last") || ran.output.contains("last"),
                "{name}"
            );
            assert!(!ran.restarted);
            let next = kept.run("echo \"$A:${PWD##*/}\"").await;
            assert_eq!(next.output, ":sub\n", "{name}: {line}");
            assert!(next.restarted, "{name}: {line}");
            assert!(!kept.run("true").await.restarted);
        }
    }
}

#[tokio::test]
async fn options_that_end_scripts_do_not_end_the_shell_on_their_own() {
    let kept = Kept::new("bash");
    kept.run("set -eu; set -o pipefail").await;
    assert_eq!(kept.run("false || true").await.end.exit_code, 0);
    assert_eq!(kept.run("false && true").await.end.exit_code, 1);
    let next = kept.run("echo $?").await;
    assert_eq!((next.output.as_str(), next.restarted), ("1\n", false));
}

#[tokio::test]
async fn a_shell_whose_start_file_ends_it_is_an_error_with_what_it_said() {
    for name in SHELLS {
        let kept = Kept::with(name, "echo going; exit 4\n", |_| ());
        match kept.shell.run("true").await {
            Err(ShellError::EndedEarly(said)) => assert_eq!(said, "going\r\n", "{name}"),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn start_files_that_never_end_are_an_error() {
    let kept = Kept::with("bash", "echo asking; read x\n", |settings| {
        settings.start_timeout = std::time::Duration::from_millis(500);
    });
    let refused = kept.shell.run("true").await;
    assert!(
        matches!(refused, Err(ShellError::NotReady(_))),
        "{refused:?}"
    );
}

#[tokio::test]
async fn what_start_files_write_comes_first_and_is_not_captured() {
    let kept = Kept::with("bash", "echo welcome\n", |_| ());
    let ran = kept.run("echo one").await;
    assert_eq!(ran.output, "welcome\none\n");
    assert_eq!(ran.end.captured, "one\n");
}

#[tokio::test]
async fn a_dropped_shell_takes_its_jobs_along() {
    for name in SHELLS {
        let kept = Kept::new(name);
        let mark = marker();
        kept.run(&format!("export M={mark}; sleep 1000 & sleep 1001 | cat &"))
            .await;
        kept.run("bash -c 'trap \"\" HUP TERM; while :; do sleep 1; done' &")
            .await;
        let mut stream = kept.begin("sleep 1002 & echo up; sleep 1003").await;
        until(&mut stream, "up").await;
        assert!(!survivors(&mark).is_empty(), "{name}");
        drop(stream);
        drop(kept.shell);
        wait_until(|| survivors(&mark).is_empty());
        wait_until(|| {
            std::fs::read_dir(kept.state.path())
                .unwrap()
                .next()
                .is_none()
        });
    }
}

#[tokio::test]
async fn disowned_and_detached_processes_stay() {
    for name in SHELLS {
        let kept = Kept::new(name);
        let [detached, disowned, job] = [marker(), marker(), marker()];
        kept.run(&format!("M={detached} setsid sleep 1000 & sleep 0.05"))
            .await;
        kept.run(&format!("M={disowned} sleep 1000 & disown")).await;
        kept.run(&format!("sleep 0.05; M={job} sleep 1000 &")).await;
        drop(kept.shell);
        wait_until(|| {
            std::fs::read_dir(kept.state.path())
                .unwrap()
                .next()
                .is_none()
        });
        assert_eq!(survivors(&job), [""; 0], "{name}");
        for stays in [detached, disowned] {
            let left = survivors(&stays);
            assert_eq!(left.len(), 1, "{name}: {left:?}");
            let (pid, _) = left[0].split_once(':').unwrap();
            let killed = std::process::Command::new("kill")
                .args(["-KILL", pid])
                .status();
            assert!(killed.unwrap().success());
        }
    }
}

#[tokio::test]
async fn a_shell_that_was_killed_takes_its_jobs_along() {
    let kept = Kept::new("bash");
    let mark = marker();
    kept.run(&format!("export M={mark}; sleep 1000 &")).await;
    let ran = kept.run("kill -9 $$").await;
    assert!(ran.end.shell_end.is_some());
    assert_eq!(survivors(&mark), [""; 0]);
    drop(kept);
}

#[tokio::test]
async fn a_supervisor_that_was_killed_is_an_error_and_the_next_line_starts_anew() {
    let kept = Kept::new("bash");
    let mut stream = kept.begin("kill -9 $PPID; sleep 1000").await;
    let lost = loop {
        match stream.next().await {
            Ok(_) => {}
            Err(err) => break err,
        }
    };
    assert!(matches!(lost, ShellError::Lost(_)));
    drop(stream);
    let next = rest(kept.begin("echo new").await).await;
    assert_eq!((next.output.as_str(), next.restarted), ("new\n", true));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_shell_comes_from_the_keeper_and_does_not_miss_it() {
    use rustix::process::{Pid, Signal, kill_process};
    for name in SHELLS {
        let kept = Kept::with(name, "", |settings| {
            // No other test's keeper.
            let link = settings.workdir.directory().join("supervisor");
            std::os::unix::fs::symlink(crate::agent::program(), &link).unwrap();
            settings.supervisor = SupervisorCommand::Path(link);
        });
        let show = "sed -n 's/^PPid:.//p' /proc/$PPID/status";
        let keeper = kept.output(show).await.trim().to_owned();
        assert_ne!(keeper, std::process::id().to_string(), "{name}");
        let keeper = Pid::from_raw(keeper.parse().unwrap()).unwrap();
        kill_process(keeper, Signal::KILL).unwrap();
        assert_eq!(kept.output("A=1; echo on").await, "on\n", "{name}");
        // The next one has another.
        kept.run("exit").await;
        let ran = kept.run(&format!("echo ${{A-new}}; {show}")).await;
        let keeper = format!("{}\n", keeper.as_raw_pid());
        assert!(ran.restarted && ran.output.starts_with("new\n"), "{ran:?}");
        assert!(!ran.output.ends_with(&keeper), "{ran:?}");
    }
}
