//! What the journal costs on this disk, for `cargo xtask bench --journal`.
//!
//! `journal measure DIR` prints one JSON object of figures; `journal open DIR SESSION` opens a
//! session and prints how much memory that took at most. Every figure is taken next to what a bare
//! `fdatasync` costs in the same run.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what it measures is its output"
)]

mod appends;
mod opening;
mod raw;
mod sessions;
mod steps;

use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let figures = match arguments.as_slice() {
        ["measure", dir] => measure(Path::new(dir)),
        ["open", dir, session] => opening::open(Path::new(dir), session),
        _ => Err("usage: journal measure DIR | journal open DIR SESSION".into()),
    };
    match figures {
        Ok(figures) => {
            println!("{figures}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(dir: &Path) -> Result<Value, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let raw = raw::syncs(dir)?;
    let appends = runtime.block_on(appends::measure(dir))?;
    let steps = runtime.block_on(steps::measure(dir))?;
    let raw_after = raw::syncs(dir)?;
    let opening = runtime.block_on(opening::measure(dir))?;
    Ok(json!({
        "raw_sync_ms": [raw.median_ms, raw_after.median_ms],
        "raw_syncs_per_s": [raw.per_second, raw_after.per_second],
        "appends": appends,
        "steps": steps,
        "opening": opening,
    }))
}
