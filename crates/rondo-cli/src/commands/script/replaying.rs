//! Recorded scripts that run again over their records alone.

use crate::cli::ChangeArgs;
use crate::error::Result;
use crate::executor;
use rondo_core::ports::RecordBody;
use rondo_runtime::settings::Settings;
use rondo_runtime::{Layer, NoNotices, Runtime};
use rondo_script::{ReplayedScript, Script, replay_records};
use std::sync::Arc;

/// Reads the script that runs in place of recorded ones, if one is named.
///
/// # Errors
/// When it cannot be read.
pub(in crate::commands) fn changed_script(changes: &ChangeArgs) -> Result<Option<Script>> {
    let read = |name: &String| super::read(name, Vec::new());
    changes.script.as_ref().map(read).transpose()
}

/// Runs a recorded script again, or a changed one in its place; `None` if the records have no script.
///
/// # Errors
/// When no task can be run.
pub(in crate::commands) fn replayed(
    records: Vec<RecordBody>,
    changed: Option<&Script>,
    settings: &Settings,
) -> Result<Option<ReplayedScript>> {
    if records.is_empty() {
        return Ok(None);
    }
    let tasks = executor::of_this_thread()?;
    let runtime = Runtime::new(settings.env.clone(), Layer::default(), Arc::new(NoNotices));
    Ok(tasks.block_on(replay_records(&runtime, settings, records, changed)))
}
