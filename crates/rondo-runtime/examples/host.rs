//! A host whose sessions outlive it. What it asks, another process may answer, and who listens continues where
//! they were:
//!
//! ```text
//! host ask QUESTION          begins a session and prints its answer
//! host answer SESSION        lets the calls run that the session asks about, and continues what was cut off
//! host listen SESSION CURSOR prints what came after the cursor
//! ```

use rondo_core::session::Delivery;
use rondo_runtime::error::{Result, SetupError, SetupErrorKind};
use rondo_runtime::service::{Cursor, NoHost, SessionService, Subscription, UpdateBody};
use rondo_runtime::{Env, Layer, NoNotices, Runtime, SessionOptions};
use rondo_types::{AnswerValue, EventBody, Message};
use std::io::Write;
use std::sync::Arc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    rondo_exec::supervisor::run_if_requested();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let service = open(Env::from_env(), ".")?;
    run(&service, ".", &arguments, &mut std::io::stdout()).await?;
    service.close().await;
    Ok(())
}

pub(crate) fn open(env: Env, dir: &str) -> Result<SessionService> {
    let runtime = Runtime::new(env, Layer::default(), Arc::new(NoNotices));
    SessionService::open(runtime, dir.into(), NoHost)
}

pub(crate) async fn run(
    service: &SessionService,
    dir: &str,
    arguments: &[&str],
    out: &mut impl Write,
) -> Result<()> {
    let options = SessionOptions::in_directory(dir);
    match *arguments {
        ["ask", question] => {
            let session = service.new_session(options);
            session
                .submit(Message::user(question), Delivery::Queue)
                .await?;
            let [answer, calls] = [(), ()].map(|()| session.subscribe(Cursor::START));
            let ((), calls) = tokio::try_join!(show(answer, out), count(calls))?;
            let _ = writeln!(out, "{calls} calls");
            Ok(())
        }
        ["answer", session] => {
            let session = service.find(session, options).await?;
            let listener = session.subscribe(Cursor::START);
            for question in session.questions().await? {
                let answer = question.answered("host", AnswerValue::Approve);
                session.answer(answer).await?;
            }
            session.resume();
            show(listener, out).await
        }
        ["listen", session, cursor] => {
            let cursor = cursor.parse::<Cursor>();
            let cursor = cursor.map_err(|it| SetupError::new(SetupErrorKind::Usage, it))?;
            show(service.find(session, options).await?.subscribe(cursor), out).await
        }
        _ => {
            let usage = "host ask QUESTION | answer SESSION | listen SESSION CURSOR";
            Err(SetupError::new(SetupErrorKind::Usage, usage))
        }
    }
}

/// Prints the answer as it comes, and what to do about questions, until the turn is over.
async fn show(mut listener: Subscription, out: &mut impl Write) -> Result<()> {
    let mut say = |text: &str| drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
    loop {
        let update = listener.next().await?;
        match update.body {
            UpdateBody::Turn { event } => match event.body {
                EventBody::TextDelta { text } => say(&text),
                EventBody::Parked { .. } => {
                    say(&format!("waits for: host answer {}\n", event.session));
                }
                EventBody::Result(_) => {
                    say(&format!("\n{} {}\n", event.session, update.cursor));
                    return Ok(());
                }
                _ => {}
            },
            UpdateBody::Failed { message, .. } => say(&format!("{message}\n")),
            _ => {}
        }
    }
}

/// Counts the calls of the turn, until it is over.
async fn count(mut listener: Subscription) -> Result<u32> {
    let mut calls = 0;
    loop {
        if let UpdateBody::Turn { event } = listener.next().await?.body {
            calls += u32::from(matches!(event.body, EventBody::ToolCallFinished { .. }));
            if matches!(event.body, EventBody::Result(_)) {
                return Ok(calls);
            }
        }
    }
}
