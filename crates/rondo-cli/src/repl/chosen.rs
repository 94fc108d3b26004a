//! Chooses the session that the prompt starts with.

use super::talk::Opening;
use crate::cli::AskArgs;
use crate::commands::ask::{AskMode, source};
use crate::error::Result;
use rondo_runtime::{Runtime, SessionOptions, SessionSource};
use std::path::PathBuf;

/// Finds the session that is meant, and what is in force in it. The record of a new one begins with its first question or
/// cell.
///
/// # Errors
/// When the settings make no sense, or there is no such session.
pub(super) fn find(runtime: &Runtime, args: &AskArgs, options: &SessionOptions) -> Result<Opening> {
    let (settings, session) = match source(args, AskMode::Ask) {
        SessionSource::New => (runtime.settings(options.directory.clone())?, None),
        source => {
            let mut found = runtime.find(&source, options)?;
            found.keep_model()?;
            let session = found.found_id().cloned();
            (found.settings, session)
        }
    };
    Ok(Opening {
        runtime: runtime.clone(),
        settings,
        session,
    })
}

impl Opening {
    /// Returns the session's directory, if that is another one than the user's.
    pub(super) fn own_directory(&self, options: &SessionOptions) -> Option<PathBuf> {
        let own = &self.settings.directory;
        (*own != options.directory).then(|| own.clone())
    }
}
