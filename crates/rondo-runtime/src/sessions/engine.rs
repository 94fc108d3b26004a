//! Opens the journal. This is the only place that names the engine behind the ports of `rondo-core`.

use super::{ELSEWHERE, failed};
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::settings::Settings;
use crate::values::DurabilityLevel;
use rondo_core::storage::{SalvagedStore, Store};
pub use rondo_journal::sync_above;
use rondo_journal::{Durability, JournalError, Options, Store as Journal};
use std::path::Path;
use std::sync::Arc;

/// Opens the journal of all sessions.
///
/// # Errors
/// When its directory or its file cannot be used.
pub fn open(settings: &Settings) -> Result<Store> {
    open_by(settings, Journal::open)
}

/// Opens the journal of all sessions for reading, even if it is read-only or the disk is full.
///
/// # Errors
/// When its directory or its file cannot be used.
pub fn open_to_read(settings: &Settings) -> Result<Store> {
    open_by(settings, Journal::open_to_read)
}

/// Opens the journal of all sessions to remove some, even if the disk is full.
///
/// # Errors
/// When its directory or its file cannot be used.
pub fn open_to_remove(settings: &Settings) -> Result<Store> {
    open_by(settings, Journal::open_to_remove)
}

/// Opens the journal of all sessions to repair it. One that SQLite calls malformed is replaced with what can be read of it.
///
/// # Errors
/// When its directory or its file cannot be used, or nothing of it can be read.
pub fn open_to_repair(settings: &Settings) -> Result<(Store, Option<SalvagedStore>)> {
    let dir = settings.paths.sessions();
    let is_malformed = match Journal::open(&dir, Options::default()) {
        Ok(journal) => journal.malformed().map_err(opening_failed)?.is_some(),
        Err(error) => error.is_malformed(),
    };
    if !is_malformed {
        return Ok((open(settings)?, None));
    }
    let salvaged = Journal::salvage(&dir, Options::default()).map_err(|error| {
        let what = format!(
            "failed to save the content of the journal in `{}`",
            dir.display()
        );
        opening_failed(error).context(what)
    })?;
    Ok((open(settings)?, Some(salvaged)))
}

/// Makes a journal in the memory of this process.
///
/// # Errors
/// When there is no room for it.
pub fn in_memory() -> Result<Store> {
    Ok(Arc::new(Journal::in_memory().map_err(opening_failed)?))
}

fn open_by(
    settings: &Settings,
    open: fn(&Path, Options) -> std::result::Result<Journal, JournalError>,
) -> Result<Store> {
    let defaults = Options::default();
    let deadline = settings.values.deadline.map(|span| span.0);
    let options = Options {
        // A journal that another process has locked must not outlast the turn.
        busy_timeout: deadline.map_or(defaults.busy_timeout, |it| it.min(defaults.busy_timeout)),
        durability: match settings.values.durability {
            Some(DurabilityLevel::Full) => Durability::Full,
            Some(DurabilityLevel::Normal) => Durability::Normal,
            None => defaults.durability,
        },
        ..defaults
    };
    let dir = settings.paths.sessions();
    match open(&dir, options) {
        Ok(journal) => Ok(Arc::new(journal)),
        Err(error) => {
            let what = format!("failed to open the journal in `{}`", dir.display());
            let mut error = opening_failed(error).context(what);
            error.hint.get_or_insert_with(|| ELSEWHERE.to_owned());
            Err(error)
        }
    }
}

/// Converts an error of opening a journal to one for the user, with a hint.
fn opening_failed(error: JournalError) -> SetupError {
    let hint = match &error {
        JournalError::TooNew { .. } => "install the version that wrote it, or a later one",
        JournalError::NoLogIndex { .. } => {
            "copy both files to `rondo/sessions` in a directory that can be written, and set `XDG_DATA_HOME` to that"
        }
        JournalError::NetworkFileSystem { .. } => ELSEWHERE,
        _ => return failed(error.into()),
    };
    SetupError::caused(SetupErrorKind::Journal, error).hint(hint)
}
