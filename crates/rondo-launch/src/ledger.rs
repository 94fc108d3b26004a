//! The entry of a command in the ledger of protected files, if its sandbox has one.

use super::protocol::CallSpec;
use super::status::CallStatus;
use rondo_sandbox::{Entry, Ledger, PROTECTED, SandboxMode, UndoneChange};
use std::io;
use std::path::PathBuf;

/// Why something is perhaps not as it was, though it is as the command found it.
const ANOTHER: &str = "another command may have changed it before this one began";

/// Writes down what the protected files are before the command starts; nothing for a command that may change none.
///
/// # Errors
/// When the entry cannot be written. The command must not start then.
pub(super) fn begin(spec: &CallSpec, status: &CallStatus) -> io::Result<Option<Entry>> {
    let Some(sandbox) = spec.sandbox.as_ref() else {
        return Ok(None);
    };
    let ledger = sandbox.ledger.as_ref();
    let may_write = sandbox.mode == SandboxMode::WorkspaceWrite;
    let Some(directory) = ledger.filter(|_| may_write) else {
        return Ok(None);
    };
    let supervisor = (status.pid, status.start_time);
    let roots: Vec<PathBuf> = sandbox
        .writable
        .iter()
        .map(|it| it.path().to_owned())
        .collect();
    let begun = Ledger::at(directory.clone()).begin(&spec.key, supervisor, &roots, &PROTECTED);
    begun.map(Some).map_err(|err| {
        let place = directory.display();
        let what = format!("failed to note the protected files in `{place}`: {err}");
        io::Error::new(err.kind(), what)
    })
}

/// Compares the protected files when the command has ended. What differs stays in the ledger, and so does an entry that
/// cannot be written: a person has to look at the folder then. What was made again as another command had left it is not
/// put back.
pub(super) fn end(entry: Option<Entry>, undone: &mut [UndoneChange]) {
    let Some(entry) = entry else {
        return;
    };
    for it in undone.iter_mut().filter(|it| it.is_restored) {
        if entry.is_doubtful(&it.path) {
            it.is_restored = false;
            it.reason = Some(ANOTHER.to_owned());
        }
    }
    let not_restored = undone.iter().filter(|it| !it.is_restored);
    let not_restored: Vec<PathBuf> = not_restored.map(|it| it.path.clone()).collect();
    let _ = entry.end(&not_restored);
}
