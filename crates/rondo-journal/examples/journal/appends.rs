//! Durable appends of one record each, of one session or of many at once.

use crate::Failure;
use crate::sessions::{append, said, store};
use rondo_core::ports::Seq;
use rondo_journal::{Durability, OwnedSession, Store};
use rondo_types::{SessionId, TimeMs};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How many sessions append at once.
const CROWDS: [u32; 3] = [1, 100, 1000];
/// How long each crowd is measured.
const MEASURED: Duration = Duration::from_secs(4);

pub(crate) async fn measure(dir: &Path) -> Result<Value, Failure> {
    let mut rows = Vec::new();
    for sessions in CROWDS {
        let dir = dir.join(format!("appends-{sessions}"));
        rows.push(crowd(&store(&dir, Durability::Full)?, sessions).await?);
        fs::remove_dir_all(dir)?;
    }
    Ok(Value::Array(rows))
}

async fn crowd(store: &Store, sessions: u32) -> Result<Value, Failure> {
    let mut owned = Vec::new();
    for n in 0..sessions {
        owned.push(store.create(&SessionId::new(format!("s{n}")), TimeMs(1))?);
    }
    let before = fs::metadata(store.path())?.len();
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for session in owned {
        tasks.spawn(async move {
            appends(&session, started)
                .await
                .map_err(|it| it.to_string())
        });
    }
    let mut waits = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        waits.extend(ended??);
    }
    let took = started.elapsed().as_secs_f64();
    waits.sort_unstable();
    let records = u32::try_from(waits.len())?;
    let p99 = waits
        .get(waits.len() * 99 / 100)
        .copied()
        .unwrap_or_default();
    rusqlite::Connection::open(store.path())?.query_row(
        "PRAGMA wal_checkpoint(TRUNCATE)",
        [],
        |_| Ok(()),
    )?;
    let bytes = fs::metadata(store.path())?.len().saturating_sub(before);
    Ok(json!({
        "sessions": sessions,
        "per_s": f64::from(records) / took,
        "p99_ms": p99.as_secs_f64() * 1e3,
        "bytes_per_record": bytes / u64::from(records),
    }))
}

async fn appends(session: &OwnedSession, started: Instant) -> Result<Vec<Duration>, Failure> {
    let (mut at, mut waits) = (Seq(0), Vec::new());
    while started.elapsed() < MEASURED {
        let asked = Instant::now();
        let n = u32::try_from(at.0).unwrap_or_default();
        at = append(session, at, vec![said(n)]).await?;
        waits.push(asked.elapsed());
    }
    Ok(waits)
}
