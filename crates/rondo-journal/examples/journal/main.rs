//! Cost of the journal on this disk, for `cargo xtask bench --journal`.
//!
//! `journal measure DIR` prints one JSON object of figures; `journal open DIR SESSION` opens a
//! session and prints how much memory that took at most. Every figure is taken next to what a bare
//! `fdatasync` costs in the same run. `journal large DIR TURNS` builds the large session alone, of so
//! many turns, `journal talk DIR TURNS` one as the full screen opens it, and `journal fixtures DIR` the sessions that are
//! kept for later versions, with those that the prompt exported to the files named behind it; `journal parked DIR` those of parked turns, `journal amended DIR` those of
//! turns with interceptors and budgets, `journal equipped DIR` one of a turn whose tools changed, `journal ruled DIR` one
//! whose profile names sets of rules, `journal folder DIR` one that asked about its folder.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what it measures is its output"
)]

mod appends;
mod fakes;
mod fixtures;
mod opening;
mod raw;
mod sessions;
mod stage;
mod steps;
mod talk;
mod turns;

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
        ["large", dir, turns] => large(Path::new(dir), turns),
        ["talk", dir, turns] => talk(Path::new(dir), turns),
        ["fixtures", dir, cells @ ..] => fixtures(fixtures::write(Path::new(dir), cells)),
        ["parked", dir] => fixtures(fixtures::write_parked(Path::new(dir))),
        ["equipped", dir] => fixtures(fixtures::write_equipped(Path::new(dir))),
        ["folder", dir] => fixtures(fixtures::write_folder(Path::new(dir))),
        ["ruled", dir] => fixtures(fixtures::write_ruled(Path::new(dir))),
        ["amended", dir] => fixtures(fixtures::write_amended(Path::new(dir))),
        _ => Err(USAGE.into()),
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

const USAGE: &str = "usage: journal measure DIR | journal open DIR SESSION | \
     journal large DIR TURNS | journal talk DIR TURNS | journal fixtures DIR [EXPORTED...] | \
     journal parked DIR | journal amended DIR | journal equipped DIR | journal ruled DIR | \
     journal folder DIR";

fn block_on(work: impl Future<Output = Result<Value, Failure>>) -> Result<Value, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(work)
}

/// Under a clock that stands still but for what is waited for, so that the same is written each time.
fn fixtures(written: impl Future<Output = Result<Value, Failure>>) -> Result<Value, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()?;
    runtime.block_on(written)
}

fn talk(dir: &Path, turns: &str) -> Result<Value, Failure> {
    let turns = turns.parse()?;
    block_on(async { Ok(json!({ "messages": talk::build(dir, turns).await? })) })
}

fn large(dir: &Path, turns: &str) -> Result<Value, Failure> {
    let turns = turns.parse()?;
    block_on(async { Ok(json!({ "bytes": opening::large(dir, turns).await? })) })
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
