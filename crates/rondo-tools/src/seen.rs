//! Files as the model of a session last saw them, so that it does not overwrite later changes by others.
//!
//! They are kept for the process and not for a workspace, since tools are built again for each turn and a person changes files
//! between turns.

use crate::blocking::Call;
use crate::edit;
use crate::failure::Failure;
use crate::recovery::FileState;
use crate::workspace::WorkspacePath;
use rondo_types::SessionId;
use std::collections::VecDeque;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The bound on files of all sessions; the ones that were seen longest ago are forgotten.
const FILES_MAX: usize = 256;
/// The bound on a text that is kept to show what changed, in bytes.
const TEXT_BYTES_MAX: usize = 64 << 10;

static SEEN: Mutex<VecDeque<SeenFile>> = Mutex::new(VecDeque::new());

/// A file as it was last read or written.
struct SeenFile {
    session: SessionId,
    path: PathBuf,
    state: FileState,
    /// Its text, unless it is too long.
    text: Option<String>,
}

/// Records that a call has read a file, which is there still.
pub(crate) fn note_read(call: &Call, place: &WorkspacePath<'_>, bytes: u64) {
    let Ok((file, metadata)) = place.open_file() else {
        return;
    };
    let bound = u64::try_from(edit::FILE_BYTES_MAX).unwrap_or(u64::MAX);
    if metadata.len() != bytes || bytes > bound {
        return;
    }
    let mut content = Vec::new();
    if file.take(bound).read_to_end(&mut content).is_ok() {
        note(call, place, &content);
    }
}

/// Records the content of a file, as a call has written or shown it.
pub(crate) fn note(call: &Call, place: &WorkspacePath<'_>, content: &[u8]) {
    let text = std::str::from_utf8(content).ok();
    let seen = SeenFile {
        session: call.session.clone(),
        path: place.full(),
        state: FileState::with(content),
        text: text
            .filter(|it| it.len() <= TEXT_BYTES_MAX)
            .map(str::to_owned),
    };
    let mut all = all();
    all.retain(|it| !it.is(&seen.session, &seen.path));
    if all.len() >= FILES_MAX {
        all.pop_front();
    }
    all.push_back(seen);
}

/// Refuses to change a file that was changed by others since the session saw it, and shows the change. From then on the
/// session has seen it.
///
/// # Errors
/// When it was changed.
pub(crate) fn check(call: &Call, place: &WorkspacePath<'_>, text: &str) -> Result<(), Failure> {
    let path = place.full();
    let before = {
        let all = all();
        let Some(seen) = all.iter().find(|it| it.is(&call.session, &path)) else {
            return Ok(());
        };
        if seen.state == FileState::with(text.as_bytes()) {
            return Ok(());
        }
        seen.text.clone()
    };
    note(call, place, text.as_bytes());
    let shown = place.shown();
    let diff = before.and_then(|before| edit::diff(&before, text, 1, &shown));
    let change = match diff {
        Some(diff) => format!("This is the change:\n{diff}"),
        None => "Read it again".to_owned(),
    };
    Err(Failure::Failed(format!(
        "`{shown}` was changed since it was last read or written by a file tool, so nothing was written; repeat the call to write it. {change}"
    )))
}

impl SeenFile {
    fn is(&self, session: &SessionId, path: &PathBuf) -> bool {
        (&self.session, &self.path) == (session, path)
    }
}

fn all() -> MutexGuard<'static, VecDeque<SeenFile>> {
    SEEN.lock().unwrap_or_else(PoisonError::into_inner)
}
