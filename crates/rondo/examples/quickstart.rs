//! Asks a model one question.
//!
//! `cargo run -p rondo --example quickstart -- openai-chat http://127.0.0.1:8080/v1 any`

mod common;

use common::{Failure, model_from_env};
use rondo::{Agent, HttpModel};
use std::io::Write;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let model = model_from_env(&mut std::env::args().skip(1))?;
    run(model, &mut std::io::stdout()).await
}

pub(crate) async fn run(model: HttpModel, out: &mut impl Write) -> Result<(), Failure> {
    let agent = Agent::builder(model).build()?;
    let outcome = agent.run("Why is the sky blue? In one sentence.").await?;
    writeln!(out, "{}", outcome.text)?;
    Ok(())
}
