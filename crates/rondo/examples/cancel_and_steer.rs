//! Says something to a running turn, and stops it on Ctrl-C without losing what it has.
//!
//! `cargo run -p rondo --example cancel_and_steer -- openai-chat http://127.0.0.1:8080/v1 any`

mod common;

use common::{Failure, model_from_env};
use rondo::{Agent, EventBody, HttpModel, JsonSchema, Run};
use serde::Deserialize;
use std::io::Write;

#[derive(Deserialize, JsonSchema)]
struct Page {
    /// From 1.
    number: u32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let model = model_from_env(&mut std::env::args().skip(1))?;
    let stop = async {
        // Without a signal handler there is no Ctrl-C to wait for.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    run(model, stop, &mut std::io::stdout()).await
}

pub(crate) async fn run(
    model: HttpModel,
    stop: impl Future<Output = ()>,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let read = |page: Page, _cx| async move { Ok::<_, Failure>(format!("page {}", page.number)) };
    let agent = Agent::builder(model)
        .tool(rondo::tool("read_page", "Reads a page of the book.", read))
        .build()?;
    let mut turn = agent.start("Summarise the book, page by page.");
    // It is taken between two steps, as whatever a person says meanwhile.
    if !turn.steer("In Portuguese, please.") {
        writeln!(out, "(it was not taken)")?;
    }
    let handle = turn.handle();
    let stopped = async {
        stop.await;
        handle.cancel();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = stopped => {}
        shown = show(&mut turn, out) => shown?,
    }
    let outcome = turn.outcome().await?;
    let messages = outcome.transcript.len();
    writeln!(out, "[{}, {messages} messages kept]", outcome.stop_reason)?;
    Ok(())
}

async fn show(turn: &mut Run, out: &mut impl Write) -> Result<(), Failure> {
    while let Some(event) = turn.next().await {
        match event.body {
            EventBody::Steered { text, .. } => writeln!(out, "you: {text}")?,
            EventBody::TextDelta { text } => writeln!(out, "{text}")?,
            _ => {}
        }
    }
    Ok(())
}
