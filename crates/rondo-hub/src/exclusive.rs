//! The right to serve local data, which one process has at a time: two would answer people twice.

use rondo_runtime::error::{Result, SetupError, SetupErrorKind};
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;

/// The file that is locked, in the directory of the sessions.
const FILE: &str = "serve.lock";
/// Bytes of it that are read.
const PID_BYTES_MAX: u64 = 32;

/// The right, until it is dropped.
#[derive(Debug)]
pub(crate) struct ServeLock {
    _held: File,
}

impl ServeLock {
    /// Takes the right to serve the sessions of a directory.
    ///
    /// # Errors
    /// When another process has it, or the file cannot be written.
    pub(crate) fn take(sessions: &Path) -> Result<Self> {
        let path = sessions.join(FILE);
        let failed = |error: io::Error| {
            let context = format!("failed to lock `{}`", path.display());
            SetupError::because(SetupErrorKind::Journal, context, error)
        };
        fs::create_dir_all(sessions).map_err(failed)?;
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {
                // On a full disk the file has no process id.
                let _ = note_holder(&mut file);
                Ok(Self { _held: file })
            }
            Err(TryLockError::WouldBlock) => Err(held(&mut file, sessions)),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}

/// Returns whether a process serves the sessions of a directory.
#[must_use]
pub fn is_served(sessions: &Path) -> bool {
    let file = File::open(sessions.join(FILE));
    file.is_ok_and(|it| matches!(it.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

fn note_holder(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    write!(file, "{}", std::process::id())
}

fn held(file: &mut File, sessions: &Path) -> SetupError {
    let mut pid = String::new();
    let read = file.take(PID_BYTES_MAX).read_to_string(&mut pid);
    let holder = match read.ok().and_then(|_| pid.trim().parse::<u32>().ok()) {
        Some(pid) => format!("process {pid}"),
        None => "another process".to_owned(),
    };
    let message = format!(
        "{holder} is already serving the sessions in `{}`",
        sessions.display()
    );
    let hint = "stop that gateway first, or set `RONDO_HOME` to another directory for this one";
    SetupError::new(SetupErrorKind::SessionInUse, message).hint(hint)
}
