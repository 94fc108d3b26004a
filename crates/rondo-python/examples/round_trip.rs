//! What a call costs: `cargo run --example round_trip -p rondo-python`.
//!
//! Measures the first call, which starts the interpreter, and the way of a short one there and back.

#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use rondo_python::{Capability, Session, Settings, Until};
use serde_json::json;
use std::error::Error;
use std::time::{Duration, Instant};

/// Calls that are measured, after as many that are not.
const CALLS: usize = 2_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::current_dir()?;
    let settings = Settings::from_env(directory).ok_or("there is no `python3`")?;
    println!("interpreter: {}", settings.program.display());
    let session = Session::new(settings);
    let first = call(&session).await?;
    println!("first call:  {first:.1?}");
    let mut times = Vec::with_capacity(CALLS);
    for at in 0..2 * CALLS {
        let took = call(&session).await?;
        if at >= CALLS {
            times.push(took);
        }
    }
    times.sort();
    for (name, share) in [("median", 50), ("99 in 100", 99)] {
        if let Some(took) = times.get(CALLS * share / 100) {
            println!("{name:<12} {took:.0?}");
        }
    }
    Ok(())
}

async fn call(session: &Session) -> Result<Duration, Box<dyn Error>> {
    let begun = Instant::now();
    let args = json!({"expr": "[1, 2]"});
    let outcome = session
        .call(Capability::GetRepr, &args, Until::default())
        .await;
    match outcome.code() {
        None => Ok(begun.elapsed()),
        Some(code) => Err(format!("the call failed: {code}").into()),
    }
}
