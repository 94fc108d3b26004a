//! Cost of a call: `cargo run --example round_trip -p rondo-python`.
//!
//! Measures the first call, which starts the interpreter, and the way of a short one there and back.

#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use rondo_python::{Capability, CellLimits, Session, Settings};
use serde_json::json;
use std::error::Error;
use std::time::{Duration, Instant};

/// Calls that are measured, after as many that are not.
const CALLS: usize = 2_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::current_dir()?;
    let settings = Settings::from_env(directory).ok_or("there is no `python3`")?;
    let session = Session::new(settings);
    let first = call(&session).await?;
    let mut times = Vec::with_capacity(CALLS);
    for at in 0..2 * CALLS {
        let took = call(&session).await?;
        if at >= CALLS {
            times.push(took);
        }
    }
    times.sort();
    let share = |percent: usize| times.get(CALLS * percent / 100).copied();
    println!("| figure | time | aim |\n| --- | --- | --- |");
    row("first call, which starts the interpreter", Some(first), "");
    row("a call there and back, median", share(50), "< 1 ms");
    row("of 99 in 100", share(99), "");
    Ok(())
}

fn row(figure: &str, took: Option<Duration>, aim: &str) {
    let took = took.unwrap_or_default().as_secs_f64() * 1e3;
    println!("| {figure} | {took:.2} ms | {aim} |");
}

async fn call(session: &Session) -> Result<Duration, Box<dyn Error>> {
    let begun = Instant::now();
    let args = json!({"expr": "[1, 2]"});
    let outcome = session
        .call(Capability::GetRepr, &args, CellLimits::default())
        .await;
    match outcome.code() {
        None => Ok(begun.elapsed()),
        Some(code) => Err(format!("the call failed: {code}").into()),
    }
}
