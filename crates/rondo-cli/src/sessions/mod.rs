//! Where sessions are kept, and which one is meant.

mod cells;
mod conversation;
mod last_asked;
mod watched;

pub(crate) use cells::{Cells, KeptCell};
pub(crate) use conversation::{Conversation, CutOff};
pub(crate) use last_asked::LastAsked;
pub(crate) use watched::Watched;

use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::settings::Settings;
use rondo_journal::{Durability, Options, SessionInfo, Store, StoreError};
use rondo_types::{SessionId, TimeMs};
use std::path::{Path, PathBuf};

/// Opens the journal of all sessions.
///
/// # Errors
/// When its directory or its file cannot be used.
pub(crate) fn open(settings: &Settings) -> Result<Store> {
    open_by(settings, Store::open)
}

/// Opens the journal of all sessions to read from it, also where it is read-only or the disk is full.
///
/// # Errors
/// When its directory or its file cannot be used.
pub(crate) fn open_to_read(settings: &Settings) -> Result<Store> {
    open_by(settings, Store::open_to_read)
}

/// Opens the journal of all sessions to remove some, also where the disk is full.
///
/// # Errors
/// When its directory or its file cannot be used.
pub(crate) fn open_to_remove(settings: &Settings) -> Result<Store> {
    open_by(settings, Store::open_to_remove)
}

fn open_by(
    settings: &Settings,
    open: fn(&Path, Options) -> std::result::Result<Store, StoreError>,
) -> Result<Store> {
    let defaults = Options::default();
    let deadline = settings.values.deadline.map(|span| span.0);
    let options = Options {
        // A journal that another process has locked must not outlast the turn.
        busy_timeout: deadline.map_or(defaults.busy_timeout, |it| it.min(defaults.busy_timeout)),
        durability: settings
            .values
            .durability
            .map(Durability::from)
            .unwrap_or_default(),
        ..defaults
    };
    let dir = settings.paths.sessions();
    open(&dir, options).map_err(|error| {
        let why = failed(error);
        let context = format!("failed to open the journal in `{}`", dir.display());
        CliError {
            error: why.error.context(context),
            hint: why.hint.or_else(|| Some(ELSEWHERE.to_owned())),
            ..why
        }
    })
}

const ELSEWHERE: &str = "set `RONDO_HOME` or `XDG_DATA_HOME` to a directory that can be written, \
     or keep nothing of this run with `--ephemeral`";

/// Says what failed in the user's words.
pub(crate) fn failed(error: StoreError) -> CliError {
    let (exit, hint) = match &error {
        StoreError::Unknown { .. } => (
            Exit::NoSession,
            Some("`rondo session list` shows the sessions that are there".to_owned()),
        ),
        StoreError::Ambiguous { .. } => (
            Exit::NoSession,
            Some("give more of its id, or `latest`".to_owned()),
        ),
        StoreError::InUse { .. } => (
            Exit::SessionInUse,
            Some("wait for it or stop it; other sessions are free".to_owned()),
        ),
        StoreError::Damaged { session, .. } => (
            Exit::Journal,
            Some(format!(
                "`rondo session fsck {session} --repair` keeps what is sound; other sessions are not touched"
            )),
        ),
        StoreError::BadExport { .. } => (Exit::Input, None),
        StoreError::BadId { .. } => (
            Exit::Input,
            Some("`rondo session import --as NAME` gives it another".to_owned()),
        ),
        StoreError::Exists { .. } => (
            Exit::Error,
            Some("use `--as NAME` to import it under another name".to_owned()),
        ),
        StoreError::HasForks { .. }
        | StoreError::NoSuchRecord { .. } => (Exit::Error, None),
        StoreError::TooNew { .. } => (
            Exit::Journal,
            Some("install the version that wrote it, or a later one".to_owned()),
        ),
        StoreError::ReadOnly { .. } => (
            Exit::Journal,
            Some(format!(
                "its sessions can be listed, shown, exported and replayed; {ELSEWHERE}"
            )),
        ),
        StoreError::NoLogIndex { .. } => (
            Exit::Journal,
            Some(
                "copy both files to `rondo/sessions` in a directory that can be written, and set `XDG_DATA_HOME` to that"
                    .to_owned(),
            ),
        ),
        StoreError::NotAJournal { .. } => (Exit::Journal, None),
        StoreError::NetworkFileSystem { .. } => (Exit::Journal, Some(ELSEWHERE.to_owned())),
        StoreError::Database(_) | StoreError::Io { .. } | StoreError::Closed => {
            (Exit::Journal, None)
        }
    };
    let shown = CliError::caused(exit, anyhow::Error::new(error));
    CliError { hint, ..shown }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        failed(error)
    }
}

/// Finds the session that is meant by an id, the beginning of one, or `latest`.
///
/// # Errors
/// When none or several fit.
pub(crate) fn find(store: &Store, text: &str) -> Result<SessionInfo> {
    let id = store.resolve(text)?;
    store.session(&id).map_err(failed)
}

/// Finds the session that was written last: of this directory, or else of all.
///
/// # Errors
/// When there is none.
pub(crate) fn latest(store: &Store, directory: &Path) -> Result<SessionInfo> {
    let here = store.latest_in(&directory_name(directory))?;
    if let Some(here) = here {
        return Ok(here);
    }
    match find(store, "latest") {
        Err(error) if error.exit == Exit::NoSession => Err(CliError::new(
            Exit::NoSession,
            "nothing to continue: no session yet",
        )
        .hint(match store.sessions(1)?.is_empty() {
            true => "`rondo ask \"...\"` begins one",
            false => "those that there are were imported: name one with `--session ID`; `rondo session list` shows them",
        })),
        found => found,
    }
}

/// Returns the name that a directory is remembered by.
pub(crate) fn directory_name(directory: &Path) -> String {
    let real = directory.canonicalize();
    real.as_deref().unwrap_or(directory).display().to_string()
}

/// Returns a session's own directory, where that is another one than `here`.
///
/// # Errors
/// When it is gone: what the session does would be done elsewhere.
pub(crate) fn own_directory(info: &SessionInfo, here: &Path) -> Result<Option<PathBuf>> {
    if info.directory.is_empty() || info.directory == directory_name(here) {
        return Ok(None);
    }
    let directory = PathBuf::from(&info.directory);
    if directory.is_dir() {
        return Ok(Some(directory));
    }
    Err(CliError::new(
        Exit::Input,
        format_args!(
            "the directory of session `{}` is gone: `{}`",
            info.id, info.directory
        ),
    )
    .hint("name the directory to go on in with `-C DIR`: `-C .` is this one"))
}

/// Names the session that this process begins.
pub(crate) fn new_session(at: TimeMs) -> SessionId {
    SessionId::generated(at, std::process::id().into())
}
