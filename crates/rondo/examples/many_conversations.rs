//! Runs many conversations at once over one agent, whose connections they share.
//!
//! `cargo run -p rondo --example many_conversations -- openai-chat http://127.0.0.1:8080/v1 any`

mod common;

use common::{Failure, model_from_env};
use rondo::{Agent, HttpModel, TurnError};
use std::io::Write;
use tokio::task::JoinSet;

const CONVERSATIONS: u32 = 20;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let model = model_from_env(&mut std::env::args().skip(1))?;
    run(model, &mut std::io::stdout()).await
}

pub(crate) async fn run(model: HttpModel, out: &mut impl Write) -> Result<(), Failure> {
    let agent = Agent::builder(model)
        .limits(|limits| limits.max_steps = 3)
        .build()?;
    let mut conversations = JoinSet::new();
    for number in 0..CONVERSATIONS {
        conversations.spawn(two_turns(agent.clone(), number));
    }
    let (mut answered, mut tokens) = (0, 0);
    while let Some(ended) = conversations.join_next().await {
        tokens += ended??;
        answered += 1;
    }
    writeln!(out, "{answered} conversations, {tokens} tokens")?;
    Ok(())
}

async fn two_turns(agent: Agent, number: u32) -> Result<u64, TurnError> {
    let session = agent.session();
    let first = session.run(format!("Is {number} prime?")).await?;
    let second = session.run("Why?").await?;
    Ok(first.usage.total() + second.usage.total())
}
