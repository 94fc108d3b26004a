//! A host that other programs drive: one request a line on standard input, one reply or update a line on standard output.
//!
//! ```text
//! {"do": "submit", "text": "What is here?"}                         begins a session; with "session", speaks in that
//! {"do": "answer", "session": "ID", "question": "ID", "value": {"answer": "approve"}}
//! {"do": "cancel", "session": "ID"}
//! {"do": "list"}
//! {"do": "fork", "session": "ID"}
//! {"do": "listen", "session": "ID", "cursor": "CURSOR"}             without "cursor", from the beginning
//! ```
//!
//! A reply is `{"reply": ..}` or `{"error": ..}`, in the order of the requests; an update of a session that is listened to
//! is `{"session": "ID", "cursor": "CURSOR", "update": ..}`. A session may be one that another process works on.

use rondo_core::session::Delivery;
use rondo_runtime::error::{Result, SetupError, SetupErrorKind};
use rondo_runtime::service::{Cursor, KeptSession, NoHost, SessionHandle, SessionService, Update};
use rondo_runtime::{Env, Layer, NoNotices, Runtime, SessionOptions};
use rondo_types::{AnswerValue, Message, Question, QuestionId, SessionId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;

/// Lines that wait for a slow reader, before listeners wait too.
const LINES_MAX: usize = 64;

#[derive(Deserialize)]
struct Request {
    r#do: String,
    /// One that is named exists; a new one begins with its first message.
    session: Option<SessionId>,
    #[serde(default)]
    text: String,
    question: Option<QuestionId>,
    value: Option<AnswerValue>,
    cursor: Option<Cursor>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    rondo_exec::supervisor::run_if_requested();
    let runtime = Runtime::new(Env::from_env(), Layer::default(), Arc::new(NoNotices));
    let service = SessionService::open(runtime, ".".into(), NoHost)?;
    let stdin = BufReader::new(tokio::io::stdin());
    serve(&service, Path::new("."), stdin, tokio::io::stdout()).await;
    Ok(())
}

/// Serves requests until the input ends, and waits for the turns that run then.
pub(crate) async fn serve(
    service: &SessionService,
    directory: &Path,
    input: impl AsyncBufRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
) {
    let (lines, mut updates) = mpsc::channel(LINES_MAX);
    let mut input = input.lines();
    loop {
        let line = tokio::select! {
            Some(update) = updates.recv() => update,
            line = input.next_line() => match line {
                Ok(Some(line)) => match done(service, directory, &line, &lines).await {
                    Ok(reply) => json!({"reply": reply}),
                    Err(error) => json!({"error": error.to_string(), "hint": error.hint}),
                },
                Ok(None) | Err(_) => break,
            },
        };
        let _ = output.write_all(format!("{line}\n").as_bytes()).await;
        let _ = output.flush().await;
    }
    service.close().await;
}

async fn done(
    service: &SessionService,
    directory: &Path,
    line: &str,
    lines: &mpsc::Sender<Value>,
) -> Result<Value> {
    let bad = |err| SetupError::caused(SetupErrorKind::Usage, err);
    let request: Request = serde_json::from_str(line).map_err(bad)?;
    let options = SessionOptions::in_directory(directory);
    let session = match request.session {
        Some(id) => service.session(id, options),
        None => service.new_session(options),
    };
    match request.r#do.as_str() {
        "submit" => {
            let message = Message::user(request.text);
            session.submit(message, Delivery::Queue).await?;
            Ok(json!({"session": session.id()}))
        }
        "answer" => {
            let questions = session.questions().await?;
            let asked = |it: &&Question| Some(&it.id) == request.question.as_ref();
            let nothing = || SetupError::new(SetupErrorKind::Usage, "there is no such question");
            let question = questions.iter().find(asked).ok_or_else(nothing)?;
            let value = request.value.unwrap_or_else(AnswerValue::no);
            session.answer(question.answered("host", value)).await?;
            session.resume();
            Ok(Value::Null)
        }
        "cancel" => session.cancel().await.map(|()| Value::Null),
        "list" => {
            let title = |it: KeptSession| json!({"session": it.info.id, "title": it.info.title});
            let all = service.list("", 20).await?;
            Ok(all.into_iter().map(title).collect())
        }
        "fork" => Ok(json!({"session": session.fork().await?.id()})),
        "listen" => {
            let cursor = request.cursor.unwrap_or(Cursor::START);
            tokio::spawn(listen(session, cursor, lines.clone()));
            Ok(Value::Null)
        }
        _ => Err(SetupError::new(SetupErrorKind::Usage, "no such request")),
    }
}

#[derive(Serialize)]
struct Told {
    session: SessionId,
    #[serde(flatten)]
    update: Update,
}

/// Writes the updates of a session after a cursor.
async fn listen(session: SessionHandle, cursor: Cursor, lines: mpsc::Sender<Value>) {
    let mut listener = session.subscribe(cursor);
    while let Ok(update) = listener.next().await {
        let session = session.id().clone();
        if lines.send(json!(Told { session, update })).await.is_err() {
            return;
        }
    }
}
