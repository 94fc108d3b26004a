//! Opening sessions: one of 10,000 records, from its first and from a snapshot, and one of 2 GB.

use crate::Failure;
use crate::sessions::{TURN_RECORDS, append, store, turn};
use crate::turns::{Scene, turn as run};
use rondo_core::ports::Seq;
use rondo_journal::{Durability, Store};
use rondo_types::{SessionId, TimeMs, Transcript};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

/// Records of the long session.
const LONG: u32 = 10_000;
/// Turns between two summaries: about what fits a context of 128,000 tokens.
const COMPACT_EVERY: u32 = 150;
/// The large session: results of the bound on one, and a model that holds a few of them, so that it
/// is summed up again and again, as a session of that size is.
const LARGE: Scene = Scene {
    context_tokens: Some(400_000),
    result_bytes: 256 << 10,
};
/// Turns of the large session, of one result each: two gigabytes.
const LARGE_TURNS: u32 = 8192;
const LARGE_NAME: &str = "large";
/// Openings of which the median counts.
const OPENINGS: usize = 9;

pub(crate) async fn measure(dir: &Path) -> Result<Value, Failure> {
    let long = dir.join("long");
    let name = SessionId::new("long");
    build(&long, &name, LONG / TURN_RECORDS, 600, COMPACT_EVERY).await?;
    let (cold, warm) = (times(&long, &name, true)?, times(&long, &name, false)?);
    let messages = store(&long, Durability::Full)?
        .history(&name)?
        .transcript()
        .len();
    fs::remove_dir_all(&long)?;
    let large = dir.join("large");
    let bytes = self::large(&large, LARGE_TURNS).await?;
    let opened = Command::new(std::env::current_exe()?)
        .arg("open")
        .args([&large])
        .arg(LARGE_NAME)
        .output()?;
    let opened: Value = serde_json::from_slice(&opened.stdout)?;
    fs::remove_dir_all(&large)?;
    Ok(json!({
        "records": LONG,
        "messages": messages,
        "cold_ms": cold,
        "snapshot_ms": warm,
        "large_bytes": bytes,
        "large": opened,
    }))
}

/// Opens a session in this process.
pub(crate) fn open(dir: &Path, session: &str) -> Result<Value, Failure> {
    let started = Instant::now();
    let history = store(dir, Durability::Full)?.history(&SessionId::new(session))?;
    let took = started.elapsed().as_secs_f64();
    let status = fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: u64 = peak
        .ok_or("no peak")?
        .trim()
        .trim_end_matches(" kB")
        .parse()?;
    Ok(json!({
        "records": history.head().0,
        "messages": history.transcript().len(),
        "peak_kib": kib,
        "took_s": took,
    }))
}

/// Builds a session of turns under the driver, and returns the size of its file.
pub(crate) async fn large(dir: &Path, turns: u32) -> Result<u64, Failure> {
    let store = store(dir, Durability::Normal)?;
    let session = Arc::new(store.create(&SessionId::new(LARGE_NAME), TimeMs(1))?);
    let mut history = Transcript::new();
    for number in 1..=turns {
        history = run(LARGE, &session, number, history).await?.transcript;
    }
    Ok(fs::metadata(store.path())?.len())
}

async fn build(
    dir: &Path,
    name: &SessionId,
    turns: u32,
    result_bytes: usize,
    compact_every: u32,
) -> Result<(), Failure> {
    let store = store(dir, Durability::Normal)?;
    let session = store.create(name, TimeMs(1))?;
    let mut at = Seq(0);
    for n in 1..=turns {
        at = append(&session, at, turn(n, result_bytes, compact_every)).await?;
    }
    Ok(())
}

/// Returns the median time, in milliseconds, from opening the file to the transcript.
fn times(dir: &Path, name: &SessionId, is_cold: bool) -> Result<f64, Failure> {
    let mut times = Vec::new();
    for _ in 0..OPENINGS {
        if is_cold {
            forget_snapshots(&store(dir, Durability::Full)?)?;
        }
        let store = store(dir, Durability::Full)?;
        let started = Instant::now();
        let history = store.history(name)?;
        drop(history.transcript());
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_unstable_by(f64::total_cmp);
    Ok(times.get(times.len() / 2).copied().unwrap_or_default())
}

fn forget_snapshots(store: &Store) -> Result<(), Failure> {
    let connection = rusqlite::Connection::open(store.path())?;
    Ok(connection.execute_batch("DELETE FROM snapshots")?)
}
