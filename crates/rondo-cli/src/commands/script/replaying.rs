//! Recorded scripts that run again over their records alone.

use crate::error::Result;
use crate::executor;
use rondo_core::ports::RecordBody;
use rondo_runtime::settings::Settings;
use rondo_runtime::{Layer, NoNotices, Runtime};
use rondo_script::{ReplayedScript, replay_records};
use std::sync::Arc;

/// Runs a recorded script again; `None` where the records are of none.
///
/// # Errors
/// When no task can be run.
pub(in crate::commands) fn replayed(
    records: Vec<RecordBody>,
    settings: &Settings,
) -> Result<Option<ReplayedScript>> {
    if records.is_empty() {
        return Ok(None);
    }
    let tasks = executor::of_this_thread()?;
    let runtime = Runtime::new(settings.env.clone(), Layer::default(), Arc::new(NoNotices));
    Ok(tasks.block_on(replay_records(&runtime, settings, records, None)))
}
