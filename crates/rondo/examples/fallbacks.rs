//! Continues with another model if the first one fails.
//!
//! `cargo run -p rondo --example fallbacks -- \
//!    openai-chat http://127.0.0.1:8080/v1 large openai-chat http://127.0.0.1:8081/v1 small`

mod common;

use common::{Failure, model_from_env};
use rondo::{Agent, HttpModel};
use std::io::Write;

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
    let agent = Agent::builder(first)
        .fallback(second)
        .limits(|limits| limits.retry.max_retries = 0)
        .build()?;
    let outcome = agent.run("Are you there?").await?;
    let answered_by = outcome.transcript.last().and_then(|it| it.origin.as_ref());
    let model = answered_by.map_or("nobody", |origin| origin.model.as_str());
    writeln!(out, "{model}: {}", outcome.text)?;
    Ok(())
}
