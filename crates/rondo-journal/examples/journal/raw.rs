//! The limit: a file that is appended to and synced.

use crate::Failure;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

/// Syncs that are timed.
const SYNCS: u32 = 200;
/// Bytes written before each: a page, as the write-ahead log writes at least.
const BYTES: usize = 4096;

pub(crate) struct Syncs {
    pub(crate) median_ms: f64,
    pub(crate) per_second: f64,
}

pub(crate) fn syncs(dir: &Path) -> Result<Syncs, Failure> {
    let path = dir.join("raw");
    let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
    let page = vec![7; BYTES];
    let mut times = Vec::new();
    let started = Instant::now();
    for _ in 0..SYNCS {
        let at = Instant::now();
        file.write_all(&page)?;
        file.sync_data()?;
        times.push(at.elapsed());
    }
    let all = started.elapsed().as_secs_f64();
    std::fs::remove_file(path)?;
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    Ok(Syncs {
        median_ms: median.as_secs_f64() * 1e3,
        per_second: f64::from(SYNCS) / all,
    })
}
