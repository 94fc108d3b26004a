//! Moves a conversation from one provider to another that speaks a different protocol.
//!
//! `cargo run -p rondo --example two_dialects -- \
//!    gemini https://generativelanguage.googleapis.com gemini-2.5-flash \
//!    openai-chat http://127.0.0.1:8080/v1 any`

mod common;

use common::{Failure, model_from_env};
use rondo::{Agent, HttpModel, JsonSchema};
use serde::Deserialize;
use std::io::Write;

#[derive(Deserialize, JsonSchema)]
struct Roll {
    sides: u8,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let first = model_from_env(&mut args)?;
    let second = model_from_env(&mut args)?;
    run(first, second, &mut std::io::stdout()).await
}

pub(crate) async fn run(
    first: HttpModel,
    second: HttpModel,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let rolled = agent(first)?.run("Roll a die.").await?;
    writeln!(out, "{}", rolled.text)?;
    // Calls and results go along; what only the first provider can read stays behind.
    let doubled = agent(second)?.continue_from(&rolled, "Twice that?").await?;
    writeln!(out, "{}", doubled.text)?;
    Ok(())
}

fn agent(model: HttpModel) -> Result<Agent, Failure> {
    // It always falls the same way, to keep the example short.
    let roll = |args: Roll, _cx| async move { Ok::<_, Failure>(args.sides.min(4)) };
    let tool = rondo::tool("roll", "Rolls a die.", roll);
    Ok(Agent::builder(model).tool(tool).build()?)
}
