//! Runs the recorded calls of read-only tools again in the working directory.

use super::source::RecordedSession;
use crate::error::Result;
use crate::executor;
use rondo_core::ports::Record;
use rondo_core::replay::Rerun;
use rondo_runtime::replay::{ReadingTools, RecordedTools};
use rondo_runtime::settings::Settings;
use tokio::runtime::Runtime;

/// The tools that only read, ready to be run again in the working directory.
pub(super) struct Live {
    tools: ReadingTools,
    runtime: Runtime,
}

impl Live {
    /// Finds out what the session's turns ran with, and builds it.
    ///
    /// # Errors
    /// When the session cannot be read, or the tools cannot be built.
    pub(super) fn new(recorded: &RecordedSession, settings: &Settings) -> Result<Self> {
        let mut tools = RecordedTools::default();
        recorded.each_turn(|records| {
            tools.gather(records);
            Ok(())
        })?;
        let runtime = executor::of_this_thread()?;
        Ok(Self {
            tools: tools.reading_tools(&recorded.session, settings)?,
            runtime,
        })
    }

    /// Runs the recorded calls of a turn again, if they only read.
    pub(super) fn rerun(&self, records: &[Record]) -> Vec<Rerun> {
        self.runtime.block_on(self.tools.rerun(records))
    }
}
