//! Finds the session that an id or `latest` names.

mod cells;
mod conversation;
mod directory;
mod engine;
mod fork;
mod last_asked;
mod watched;

pub use cells::{Cells, KeptCell};
pub(crate) use conversation::grants;
pub use conversation::{Conversation, CutOff, note_lost_end};
pub use directory::directory_name;
pub use engine::{in_memory, open, open_to_read, open_to_remove, open_to_repair, sync_above};
pub use fork::{Fork, StepPlace, before_latest_turn, fork, fork_at};
pub use last_asked::LatestModels;
pub use watched::WatchedJournal;

use crate::error::SetupErrorKind;
use crate::error::{Result, SetupError};
use directory::named_directory;
use rondo_core::ports::{Entry, RecordBody, Seq};
use rondo_core::replay::ReplayError;
use rondo_core::session_store::{SessionInfo, StoreError};
use rondo_core::storage::Store;
use rondo_types::SessionId;
use std::path::{Path, PathBuf};

/// Sessions that are looked at for the latest one of a kind.
pub(crate) const LOOKED_AT_MAX: usize = 1000;

const ELSEWHERE: &str = "set `RONDO_HOME` or `XDG_DATA_HOME` to a directory that can be written, \
     or keep nothing of this run with `--ephemeral`";

/// Converts an error of a replay to one for the user.
pub(crate) fn unreadable(error: ReplayError) -> SetupError {
    let context = "failed to read the session's turns";
    SetupError::because(SetupErrorKind::Journal, context, error)
}

/// Converts an error of the store to one for the user, with a hint.
pub fn failed(error: StoreError) -> SetupError {
    let (kind, hint) = match &error {
        StoreError::Unknown { .. } => (
            SetupErrorKind::NoSession,
            Some("`rondo session list` shows the sessions that are there".to_owned()),
        ),
        StoreError::Ambiguous { .. } => (
            SetupErrorKind::NoSession,
            Some("give more of its id, or `latest`".to_owned()),
        ),
        StoreError::InUse { .. } => (
            SetupErrorKind::SessionInUse,
            Some("wait for it or stop it; other sessions are free".to_owned()),
        ),
        StoreError::Damaged { session, .. } => (
            SetupErrorKind::Journal,
            Some(format!(
                "`rondo session fsck {session} --repair` keeps the undamaged records; other sessions are not touched"
            )),
        ),
        StoreError::BadExport { .. } => (SetupErrorKind::Input, None),
        StoreError::BadId { .. } => (
            SetupErrorKind::Input,
            Some("`rondo session import --as NAME` gives it another".to_owned()),
        ),
        StoreError::Exists { .. } => (
            SetupErrorKind::Other,
            Some("use `--as NAME` to import it under another name".to_owned()),
        ),
        StoreError::HasForks { .. }
        | StoreError::NoSuchRecord { .. } => (SetupErrorKind::Other, None),
        StoreError::ReadOnly(_) => (
            SetupErrorKind::Journal,
            Some(format!(
                "its sessions can be listed, shown, exported and replayed; {ELSEWHERE}"
            )),
        ),
        StoreError::Malformed(_) => (
            SetupErrorKind::Journal,
            Some(
                "`rondo session fsck --repair` saves the readable part in a new file, and keeps the old one"
                    .to_owned(),
            ),
        ),
        StoreError::Io { .. } | StoreError::Full(_) | StoreError::Storage(_) => {
            (SetupErrorKind::Journal, None)
        }
    };
    let mut shown = SetupError::caused(kind, error);
    shown.hint = hint;
    shown
}

impl From<StoreError> for SetupError {
    fn from(error: StoreError) -> Self {
        failed(error)
    }
}

/// Finds a session by its id, a prefix of it, or `latest`.
///
/// # Errors
/// When none or several match.
pub fn find(store: &Store, text: &str) -> Result<SessionInfo> {
    let id = store.resolve(text)?;
    store.session(&id).map_err(failed)
}

/// Finds the session that was written last: in this directory, or else in any. Those of scripts are passed over, since
/// they hold no conversation with a user.
///
/// # Errors
/// When there is none.
pub fn latest(store: &Store, directory: &Path) -> Result<SessionInfo> {
    let here = directory_name(directory);
    let newest = store.latest_in(&here)?;
    if let Some(newest) = newest
        && script_of(store, &newest.id)?.is_none()
    {
        return Ok(newest);
    }
    let infos = store.sessions(LOOKED_AT_MAX)?;
    let is_empty = infos.is_empty();
    let own = infos.into_iter().filter(|it| !it.imported);
    let (here, elsewhere): (Vec<_>, Vec<_>) = own.partition(|it| it.directory == here);
    for info in here.into_iter().chain(elsewhere) {
        if script_of(store, &info.id)?.is_none() {
            return Ok(info);
        }
    }
    let none = SetupError::new(
        SetupErrorKind::NoSession,
        "nothing to continue: no session yet",
    );
    Err(none.hint(match is_empty {
        true => "`rondo ask \"...\"` begins one",
        false => "the existing sessions were imported, or belong to scripts: name one with `--session ID`; `rondo session list` shows them",
    }))
}

/// Finds a session to talk in, as [`find`] does.
///
/// # Errors
/// When none or several match, and when it is that of a script.
pub(crate) fn find_conversation(store: &Store, text: &str) -> Result<SessionInfo> {
    let info = find(store, text)?;
    let Some(script) = script_of(store, &info.id)? else {
        return Ok(info);
    };
    let id = &info.id;
    let message =
        format!("session `{id}` belongs to the script `{script}`, and takes no questions");
    Err(SetupError::new(SetupErrorKind::Usage, message).hint(format!(
        "`rondo run --resume={id} {script}` continues it; its conversations have sessions of their own, which `rondo session list` shows below it"
    )))
}

/// Returns the name of the script whose session this is; none if it is not a script's.
///
/// # Errors
/// When its first record cannot be read.
pub fn script_of(store: &Store, session: &SessionId) -> Result<Option<String>> {
    let first = store.read(session, Seq(1), 1)?;
    let record = first.into_iter().next().and_then(Entry::into_record);
    Ok(match record.map(|it| it.body) {
        Some(RecordBody::ScriptStarted(run)) => Some(run.name),
        _ => None,
    })
}

/// Puts behind each session those that its calls started, and behind these theirs.
///
/// # Errors
/// When the disk fails.
pub fn with_children(store: &Store, infos: Vec<SessionInfo>) -> Result<Vec<SessionInfo>> {
    let mut all = Vec::with_capacity(infos.len());
    for info in infos {
        let children = store.children(&info.id, usize::MAX).map_err(failed)?;
        all.push(info);
        all.extend(with_children(store, children)?);
    }
    Ok(all)
}

/// Returns a session's own directory, if it differs from `here`.
///
/// # Errors
/// When it no longer exists, since the session would then work in another directory.
pub fn own_directory(info: &SessionInfo, here: &Path) -> Result<Option<PathBuf>> {
    if info.directory.is_empty() || info.directory == directory_name(here) {
        return Ok(None);
    }
    let directory = named_directory(&info.directory);
    if directory.is_dir() {
        return Ok(Some(directory));
    }
    Err(SetupError::new(
        SetupErrorKind::Input,
        format_args!(
            "the directory of session `{}` is gone: `{}`",
            info.id, info.directory
        ),
    )
    .hint("name the directory to continue in with `-C DIR`: `-C .` is this one"))
}
