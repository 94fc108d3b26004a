//! A host that serves sessions, and the program beside it: what one does, the listeners of the other hear.

use crate::harness::{Shown, TestEnv, ask_args, calls, says, serve};
use rondo_core::session::Delivery;
use rondo_exec::SupervisorCommand;
use rondo_exec::shell::{Shell, ShellProgram, ShellSettings};
use rondo_policy::Workdir;
use rondo_runtime::cells::KeptShell;
use rondo_runtime::service::{
    Cell, CellEnd, CellEvent, Cursor, NoHost, SessionHandle, SessionService, Subscription,
    UpdateBody,
};
use rondo_runtime::{Env, Layer, NoNotices, Runtime, SessionOptions};
use rondo_testkit::Server;
use rondo_types::{EventBody, Message};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

const LONG: Duration = Duration::from_secs(60);
/// The exit code if another process has the session.
const IN_USE: i32 = 46;

/// The exit code if there is nothing to answer.
const NO_SESSION: i32 = 45;

/// How a command ended, once no other process had its session.
struct Free {
    shown: Shown,
    /// Set if another process had it before.
    was_in_use: bool,
}

async fn once_free(env: &TestEnv, args: &[&str]) -> Free {
    let running = async {
        let mut was_in_use = false;
        loop {
            let shown = env.run(args).await;
            if shown.code != Some(IN_USE) {
                return Free { shown, was_in_use };
            }
            was_in_use = true;
        }
    };
    timeout(LONG, running).await.unwrap()
}

fn service(env: &TestEnv, server: &Server) -> SessionService {
    let home = env.home();
    let env = Env::of(&[
        ("RONDO_HOME", home.to_str().unwrap()),
        ("RONDO_MODEL", "openai/test"),
        ("RONDO_BASE_URL", &server.url("/v1")),
    ]);
    let runtime = Runtime::new(env, Layer::default(), Arc::new(NoNotices));
    SessionService::open(runtime, home, NoHost).unwrap()
}

/// Returns the answer of the turn that is over next, or what it waits for.
async fn heard(listener: &mut Subscription) -> String {
    let mut said = String::new();
    loop {
        let update = timeout(LONG, listener.next()).await;
        let update = update.expect("nothing was told").unwrap();
        let UpdateBody::Turn { event } = update.body else {
            continue;
        };
        match event.body {
            EventBody::TextDelta { text } => said += &text,
            EventBody::Parked { questions } => return format!("{said}?{}", questions[0].id),
            EventBody::Result(_) => return said,
            _ => {}
        }
    }
}

#[tokio::test]
async fn who_listens_to_a_service_hears_what_the_program_does_in_the_session() {
    let env = TestEnv::new();
    let home = env.home();
    let env = env.var("RONDO_HOME", home.to_str().unwrap());
    let write = calls(
        "write_file",
        &json!({"path": "made.txt", "content": "made"}),
    );
    let server = serve(vec![write, says("Made."), says("Again.")]).await;
    let service = service(&env, &server);
    let options = SessionOptions::in_directory(env.project());
    let session = service.new_session(options);
    let mut listeners = [(), ()].map(|()| session.subscribe(Cursor::START));
    let message = Message::user("make it");
    session.submit(message, Delivery::Queue).await.unwrap();
    for listener in &mut listeners {
        assert_eq!(heard(listener).await, "?r00100100");
    }
    let url = server.url("/v1");
    // The service lets go of the session a moment after it has told what it waits for. In that moment the answer is kept all
    // the same, and the service may continue with it.
    let answered = once_free(&env, &["answer", "--base-url", &url, "latest", "y"]).await;
    let has_gone_on = answered.was_in_use && answered.shown.code == Some(NO_SESSION);
    assert!(
        has_gone_on || answered.shown.code == Some(0),
        "{:?}",
        answered.shown
    );
    for listener in &mut listeners {
        assert_eq!(heard(listener).await, "Made.");
    }
    assert!(env.project().join("made.txt").exists());
    let id = session.id().to_string();
    let ask = ask_args(&url, &["--session", &id, "once more"]);
    let asked = once_free(&env, &ask).await.shown;
    assert_eq!(asked.code, Some(0), "{asked:?}");
    for listener in &mut listeners {
        assert_eq!(heard(listener).await, "Again.");
    }
}

fn kept_shell(env: &TestEnv, directory: &Path) -> (Arc<KeptShell>, tempfile::TempDir) {
    let state = tempfile::tempdir().unwrap();
    let mut settings = ShellSettings::new(
        SupervisorCommand::Path(env!("CARGO_BIN_EXE_rondo").into()),
        ShellProgram::new("/bin/bash").unwrap(),
        Workdir::new(directory.to_owned()),
        state.path().to_owned(),
    );
    settings.environment = vec![("HOME".into(), Some(env.home().into()))];
    (Arc::new(KeptShell::new(Shell::start(settings))), state)
}

/// Returns the output of a cell, and its end.
async fn heard_cell(listener: &mut Subscription) -> (String, CellEnd) {
    let mut output = String::new();
    loop {
        let update = timeout(LONG, listener.next()).await.unwrap().unwrap();
        match update.body {
            UpdateBody::Cell {
                event: CellEvent::Output { text },
            } => output += &text,
            UpdateBody::Cell {
                event: CellEvent::Ended { end },
            } => return (output, end),
            _ => {}
        }
    }
}

#[tokio::test]
async fn what_a_command_of_a_person_printed_goes_along_with_the_next_message() {
    let env = TestEnv::new();
    let server = serve(vec![says("I see.")]).await;
    let service = service(&env, &server);
    let options = SessionOptions::in_directory(env.project());
    let [session, other] = [(), ()].map(|()| service.new_session(options.clone()));
    let mut listener = session.subscribe(Cursor::START);
    let directory = env.project().canonicalize().unwrap();
    let (shell, _state) = kept_shell(&env, &directory);
    session.lend_shell(&shell);
    let run = async |session: &SessionHandle, command: &str| {
        let cell = Cell::Shell(command.to_owned());
        timeout(LONG, session.cell(cell)).await.unwrap().unwrap()
    };
    let ended = |exit_code, output: &str| CellEnd::Shell {
        exit_code,
        directory: directory.clone(),
        output: output.to_owned(),
        omitted_bytes: 0,
        is_restarted: false,
        has_shell_ended: false,
    };
    let end = run(
        &session,
        "word=kept; printf '\\033[31m%s\\033[0m\\n' $word; false",
    )
    .await;
    assert_eq!(end, ended(1, "kept\n"));
    assert_eq!(heard_cell(&mut listener).await, ("kept\n".to_owned(), end));
    // A command that waits forever is interrupted by a cancel, and the shell lives on.
    let stop = async {
        loop {
            let update = timeout(LONG, listener.next()).await.unwrap().unwrap();
            if let UpdateBody::Cell {
                event: CellEvent::Output { .. },
            } = update.body
            {
                return session.cancel().await.unwrap();
            }
        }
    };
    let (end, ()) = tokio::join!(run(&session, "echo runs; sleep 600"), stop);
    assert!(
        matches!(end, CellEnd::Shell { exit_code: 130, .. }),
        "{end:?}"
    );
    let message = Message::user("What was that?");
    session.submit(message, Delivery::Queue).await.unwrap();
    assert_eq!(heard(&mut listener).await, "I see.");
    let asked = String::from_utf8(server.requests()[0].body.to_vec()).unwrap();
    let shown = format!(
        "<shell directory=\\\"{}\\\" exit_code=\\\"1\\\">",
        directory.display()
    );
    assert!(
        asked.contains(&shown) && asked.contains("What was that?"),
        "{asked}"
    );
    // It moves to another session with what was set in it.
    other.lend_shell(&shell);
    assert!(session.take_shell().is_none());
    assert_eq!(run(&other, "echo $word").await, ended(0, "kept\n"));
}

#[tokio::test]
async fn a_key_that_is_exported_in_a_cell_is_told_to_nobody() {
    let env = TestEnv::new();
    let server = serve(vec![says("I see.")]).await;
    let service = service(&env, &server);
    let session = service.new_session(SessionOptions::in_directory(env.project()));
    let mut listener = session.subscribe(Cursor::START);
    let directory = env.project().canonicalize().unwrap();
    let rc = "export START_API_KEY=start-0123456789\n";
    std::fs::write(env.home().join(".bashrc"), rc).unwrap();
    let (shell, _state) = kept_shell(&env, &directory);
    session.lend_shell(&shell);
    let keys = ["typed-0123456789", "start-0123456789", "late-0123456789"];
    let mut all = String::new();
    for command in [
        "echo $START_API_KEY",
        "export MY_API_KEY=typed-0123456789; echo $MY_API_KEY",
        "part=late-; part+=0123456789; export LATE_API_KEY=$part",
        "echo $LATE_API_KEY $MY_API_KEY",
    ] {
        let cell = Cell::Shell(command.to_owned());
        let end = timeout(LONG, session.cell(cell)).await.unwrap().unwrap();
        all += &format!("{end:?}\n");
        loop {
            let update = timeout(LONG, listener.next()).await.unwrap().unwrap();
            all += &format!("{update:?}\n");
            if let UpdateBody::Cell {
                event: CellEvent::Ended { .. },
            } = update.body
            {
                break;
            }
        }
    }
    let message = Message::user("What was that?");
    session.submit(message, Delivery::Queue).await.unwrap();
    assert_eq!(heard(&mut listener).await, "I see.");
    all += &String::from_utf8_lossy(&server.requests()[0].body);
    assert!(all.contains("[redacted]"), "{all}");
    for key in keys {
        assert!(!all.contains(key), "{key} in {all}");
    }
}

#[tokio::test]
async fn what_goes_along_with_a_message_stays_where_that_is_edited_and_comes_back_where_it_is_taken_back()
 {
    let env = TestEnv::new();
    let server = serve(vec![says("I see.")]).await;
    let [one, other] = [(), ()].map(|()| service(&env, &server));
    let options = SessionOptions::in_directory(env.project());
    let session = one.new_session(options.clone());
    let directory = env.project().canonicalize().unwrap();
    let (shell, _state) = kept_shell(&env, &directory);
    session.lend_shell(&shell);
    let cell = Cell::Shell("echo printed".to_owned());
    timeout(LONG, session.cell(cell)).await.unwrap().unwrap();
    // Its messages wait from here on.
    session.close().await;
    let submit = async |words: &str| {
        let message = Message::user(words);
        session.submit(message, Delivery::Queue).await.unwrap()
    };
    assert!(submit("never asked").await.withdraw().await.unwrap());
    let ticket = submit("misspelt").await;
    assert!(ticket.edit(Message::user("well spelt")).await.unwrap());
    let session = other.session(session.id().clone(), options);
    let mut listener = session.subscribe(Cursor::START);
    session.resume();
    assert_eq!(heard(&mut listener).await, "I see.");
    let asked = String::from_utf8(server.requests()[0].body.to_vec()).unwrap();
    assert_eq!(asked.matches("$ echo printed").count(), 1, "{asked}");
    assert!(asked.contains("well spelt") && !asked.contains("misspelt"));
}
