//! A host: asks what its arguments say, and goes on with the session of this directory.

use async_trait::async_trait;
use rondo_core::{Approval, ApprovalReply, ApprovalRequest, Approver};
use rondo_runtime::error::Result;
use rondo_runtime::{
    Env, Layer, Notices, Runtime, SessionOptions, SessionSource, TurnHost, secrets,
};
use rondo_types::{EventBody, Message};
use std::io::{BufRead as _, Write};
use std::sync::Arc;

struct Terminal;

impl Notices for Terminal {
    fn note(&self, text: &str) {
        let _ = writeln!(std::io::stderr(), "note: {text}");
    }
}

#[async_trait]
impl Approver for Terminal {
    async fn ask(&self, request: &ApprovalRequest) -> ApprovalReply {
        let _ = write!(std::io::stderr(), "{}\nRun it? y/n: ", request.prompt);
        let (mut line, reason) = (String::new(), "denied by the user".to_owned());
        match std::io::stdin().lock().read_line(&mut line) {
            Ok(_) if line.trim() == "y" => ApprovalReply::Now(Approval::Approved),
            _ => ApprovalReply::Now(Approval::Denied { reason }),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    rondo_exec::supervisor::run_if_requested();
    let question = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
    answer(Env::from_env(), ".", &question, &mut std::io::stdout()).await
}

pub(crate) async fn answer(
    env: Env,
    dir: &str,
    question: &str,
    out: &mut impl Write,
) -> Result<()> {
    let runtime = Runtime::new(env, Layer::default(), Arc::new(Terminal));
    let options = SessionOptions::in_directory(dir);
    let latest = runtime.session(&SessionSource::Latest, &options);
    let mut session = latest.or_else(|_| runtime.session(&SessionSource::New, &options))?;
    let host = TurnHost::new(Arc::new(Terminal), secrets::of_env(&session.settings));
    let outcome = session.ask(Message::user(question), host, |event| {
        if let EventBody::TextDelta { text } = event.body {
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        }
    });
    outcome.await.map(drop)
}
