//! Shows a turn while it runs: text as it comes, calls and their results.
//!
//! `cargo run -p rondo --example stream_events -- openai-chat http://127.0.0.1:8080/v1 any`

mod common;

use common::{Failure, model_from_env};
use rondo::{Agent, EventBody, HttpModel, NoArgs, ToolContext};
use std::io::Write;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let model = model_from_env(&mut std::env::args().skip(1))?;
    run(model, &mut std::io::stdout()).await
}

pub(crate) async fn run(model: HttpModel, out: &mut impl Write) -> Result<(), Failure> {
    let measure = |_: NoArgs, cx: ToolContext| async move {
        cx.show("warming up\n");
        cx.show("measuring\n");
        Ok::<_, Failure>(21.5)
    };
    let thermometer = rondo::tool("temperature", "Measures the room, in Celsius.", measure);
    let agent = Agent::builder(model).tool(thermometer).build()?;
    let mut turn = agent.start("How warm is it?");
    while let Some(event) = turn.next().await {
        show(&event.body, out)?;
    }
    let outcome = turn.outcome().await?;
    let tokens = outcome.usage.total();
    writeln!(
        out,
        "\n[{}, {} steps, {tokens} tokens]",
        outcome.stop_reason, outcome.steps
    )?;
    Ok(())
}

fn show(event: &EventBody, out: &mut impl Write) -> std::io::Result<()> {
    match event {
        EventBody::TextDelta { text } => write!(out, "{text}")?,
        EventBody::ToolCallPending {
            name, arguments, ..
        } => writeln!(out, "> {name} {arguments}")?,
        EventBody::ToolOutputDelta { text, .. } => write!(out, "| {text}")?,
        EventBody::ToolCallFinished { ok, result, .. } => writeln!(out, "< {result} (ok: {ok})")?,
        _ => return Ok(()),
    }
    out.flush()
}
