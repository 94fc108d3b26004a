//! Runs many turns at once against an OpenAI-compatible server, for measurements.
//!
//! `conversations MODEL COUNT` asks the server at `FAKELLM_URL` COUNT times at once, with one tool
//! `noop(n: integer)` that returns `ok`, and prints how many turns ended in `done` and how long all
//! took together. Each conversation has a connection of its own while its request is under way.
#![expect(clippy::print_stdout, reason = "what it measures is its output")]

use rondo::{Agent, Endpoint, HttpModel, JsonSchema, ModelCard};
use serde::Deserialize;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// More steps than any measurement takes.
const STEPS_MAX: u32 = 1000;
/// How many connections are read before the turns take what they brought. By default that is 1,024: every one of so many
/// replies that come at once would be in memory next to a new buffer for what comes after it.
const READ_AT_ONCE_MAX: usize = 64;

type Failure = Box<dyn std::error::Error>;

#[derive(Deserialize, JsonSchema)]
struct Noop {
    #[expect(dead_code, reason = "the model gives it, and nothing is done with it")]
    n: i64,
}

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let name = args.next().ok_or("usage: conversations MODEL COUNT")?;
    let count: usize = args
        .next()
        .ok_or("usage: conversations MODEL COUNT")?
        .parse()?;
    let url = std::env::var("FAKELLM_URL")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_io_events_per_tick(READ_AT_ONCE_MAX)
        .build()?;
    runtime.block_on(converse(name, count, &url))
}

async fn converse(name: String, count: usize, url: &str) -> Result<(), Failure> {
    let endpoint = Endpoint::new("openai", "openai-chat", format!("{url}/v1"));
    let noop = rondo::tool("noop", "Does nothing.", |_: Noop, _cx| async {
        Ok::<_, String>("ok".to_owned())
    });
    let agent = Agent::builder(HttpModel::new(&endpoint, ModelCard::new(name))?)
        .tool(noop)
        .limits(|limits| limits.max_steps = STEPS_MAX)
        .build()?;
    let started = Instant::now();
    let mut turns = JoinSet::new();
    for _ in 0..count {
        let agent = agent.clone();
        turns.spawn(async move { agent.run("go").await });
    }
    let mut ok = 0;
    while let Some(outcome) = turns.join_next().await {
        ok += usize::from(outcome??.text.trim() == "done");
    }
    let wall_s = started.elapsed().as_secs_f64();
    println!("{}", json!({"ok": ok, "wall_s": wall_s}));
    Ok(())
}
