//! Holds a conversation: a line of input is a turn, and each knows the ones before.
//!
//! `cargo run -p rondo --example conversation -- openai-chat http://127.0.0.1:8080/v1 any`

mod common;

use common::{Failure, model_from_env};
use rondo::{Agent, HttpModel};
use std::io::{BufRead, Write};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let model = model_from_env(&mut std::env::args().skip(1))?;
    run(model, std::io::stdin().lock(), &mut std::io::stdout()).await
}

pub(crate) async fn run(
    model: HttpModel,
    input: impl BufRead,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let agent = Agent::builder(model).system("You are brief.").build()?;
    let session = agent.session();
    for line in input.lines() {
        match session.run(line?).await {
            Ok(outcome) => writeln!(out, "{}", outcome.text)?,
            // What was said before is still there, so the next line may succeed.
            Err(error) => writeln!(out, "({error})")?,
        }
    }
    let transcript = session.transcript().await;
    writeln!(out, "[{} messages]", transcript.len())?;
    Ok(())
}
