//! Record of a call on the disk.

use super::protocol::{CallSpec, Watcher};
use super::unix;
use rondo_sandbox::{SandboxMode, UndoneChange};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The bound on a status file, in bytes.
const STATUS_BYTES_MAX: u64 = 64 << 20;
/// The bound on files that are named because they are gone after a command.
pub const LOST_MAX: usize = 100;

/// State of a call after its agent, or without it.
///
/// Kept in `<state_dir>/<key>.json`, readable by its owner only: one line of JSON for each state the
/// call came to, of which the last whole one counts. (To replace a file costs milliseconds on ext4,
/// to append to it microseconds.) It survives the agent, not the machine: it is not forced to the
/// platter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallStatus {
    /// The version of this form; 1.
    pub version: u32,
    /// How far the call is.
    pub state: CommandState,
    /// The supervisor's process id.
    pub pid: u32,
    /// When the supervisor started, in the kernel's ticks since boot; 0 if that is not known.
    pub start_time: u64,
    /// The command, without the secrets that its specification names.
    pub command: String,
    /// The exit code; 128 and the signal's number if a signal ended the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended the command, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// Set if the command was ended at its time limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    /// The bound that ended the command, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exceeded: Option<Exceeded>,
    /// Set if the command was stopped on request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    /// The output: text without terminal sequences, its middle left out if it is too long.
    #[serde(default)]
    pub stdout: String,
    /// How many bytes of the output were left out.
    #[serde(default)]
    pub omitted_bytes: u64,
    /// The file that holds the whole output, if some was left out.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "rondo_sandbox::stored_path"
    )]
    pub full_output: Option<PathBuf>,
    /// Set if some processes could not be ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub survivors: bool,
    /// How many processes the command left running, which were ended with it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_running: u32,
    /// How far the command was confined; `None` if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxMode>,
    /// Protected entries that the command changed and that were restored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone: Vec<UndoneChange>,
    /// Files that the command wrote into its private directories, which are gone, for display: the first
    /// [`LOST_MAX`] that a user would miss.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// Requests of programs for a person, whom commands lack: the first few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<Prompt>,
}

/// A program that waited for a user to type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// The name of the program.
    pub program: String,
    /// The last line that the command had printed by then.
    pub text: String,
    /// Set if the program was ended, since it reads keys; others were given the end of input.
    pub is_ended: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A bound on a command's use of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exceeded {
    /// All its processes together had more memory than this, in bytes.
    Memory(u64),
    /// It had more processes than this.
    Processes(u32),
}

/// How far a command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandState {
    /// The supervisor waits; the command was not started.
    Ready,
    /// The command was started and its end is not recorded.
    Running,
    /// The command has ended and so has everything it started.
    Ended,
    /// The command could not be started.
    Failed,
}

/// Why a status cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// The key is not a file name.
    #[error("the call's key is not usable as a file name")]
    BadKey,
    /// The file cannot be read.
    #[error("failed to read the status of a command")]
    Io(#[source] io::Error),
    /// The file is not a status.
    #[error("failed to decode the status of a command")]
    Decode(#[source] serde_json::Error),
}

impl CallStatus {
    /// Notes of a call that it has not come to its supervisor: its status file is empty.
    ///
    /// # Errors
    /// When the key is not a file name, the call has a status file already, or it cannot be made.
    pub(super) fn reserve(state_dir: &Path, key: &str) -> Result<(), StatusError> {
        if !CallSpec::is_key(key) {
            return Err(StatusError::BadKey);
        }
        let mut options = OpenOptions::new();
        let options = options.write(true).create_new(true).mode(0o600);
        let made = options.open(path(state_dir, key));
        made.map(drop).map_err(StatusError::Io)
    }

    /// Returns whether the status file of a call says that it has not come to its supervisor.
    pub(super) fn is_reserved(state_dir: &Path, key: &str) -> bool {
        fs::metadata(path(state_dir, key)).is_ok_and(|it| it.len() == 0)
    }

    /// Reads the status of a call; `None` when the call never came to its supervisor, or no line of its file is whole.
    ///
    /// # Errors
    /// When the file exists and cannot be read as a status.
    pub fn read(state_dir: &Path, key: &str) -> Result<Option<Self>, StatusError> {
        if !CallSpec::is_key(key) {
            return Err(StatusError::BadKey);
        }
        let file = match fs::File::open(path(state_dir, key)) {
            Ok(file) => file,
            Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(err) => return Err(StatusError::Io(err)),
        };
        let mut bytes = Vec::new();
        file.take(STATUS_BYTES_MAX)
            .read_to_end(&mut bytes)
            .map_err(StatusError::Io)?;
        let line = last_line(&bytes);
        let status = (!line.is_empty()).then(|| serde_json::from_slice(line));
        status.transpose().map_err(StatusError::Decode)
    }

    /// Returns for how long the call has been in its state; `None` if that is unknown.
    pub fn age(state_dir: &Path, key: &str) -> Duration {
        let written = fs::metadata(path(state_dir, key)).and_then(|it| it.modified());
        let age = written.ok().and_then(|it| it.elapsed().ok());
        age.unwrap_or_default()
    }

    /// Returns whether the call's supervisor is still there.
    #[must_use]
    pub fn supervisor_is_alive(&self) -> bool {
        unix::is_alive(self.pid, self.start_time)
    }

    pub(super) fn watcher(&self) -> Watcher {
        Watcher {
            pid: self.pid,
            start_time: self.start_time,
        }
    }

    pub(super) fn new(spec: &CallSpec) -> Self {
        let pid = std::process::id();
        Self {
            version: 1,
            state: CommandState::Ready,
            pid,
            start_time: unix::own_start_time().unwrap_or(0),
            command: spec.secrets.text(spec.command.clone()),
            exit_code: None,
            signal: None,
            timed_out: false,
            exceeded: None,
            cancelled: false,
            stdout: String::new(),
            omitted_bytes: 0,
            full_output: None,
            survivors: false,
            left_running: 0,
            sandbox: spec.sandbox.as_ref().map(|it| it.mode),
            undone: Vec::new(),
            lost: Vec::new(),
            prompts: Vec::new(),
        }
    }

    /// Writes the first line of the status file. Until that line is whole, the call is read as one that never came here.
    ///
    /// Nothing is written of a call that is not kept.
    pub(super) fn create(&self, spec: &CallSpec) -> io::Result<()> {
        if !spec.is_kept {
            return Ok(());
        }
        let mut file = open_empty(&path(&spec.state_dir, &spec.key))?;
        file.write_all(&self.line()?)
    }

    /// Appends a line, which from then on is what counts.
    pub(super) fn append(&self, spec: &CallSpec) -> io::Result<()> {
        if !spec.is_kept {
            return Ok(());
        }
        let place = path(&spec.state_dir, &spec.key);
        let mut file = OpenOptions::new().append(true).open(place)?;
        file.write_all(&self.line()?)
    }

    fn line(&self) -> io::Result<Vec<u8>> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }
}

/// Returns the last whole line; what follows it was cut off by a crash.
fn last_line(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    let lines = bytes.get(..end).unwrap_or_default();
    lines
        .rsplit(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default()
}

/// Opens a status file for its first line. The file of an earlier try is empty from here on, which means that the call
/// has not begun.
fn open_empty(place: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // A file that is cut when it is opened is written to the disk when it is closed, by ext4, for which the command would
    // wait.
    let options = options.write(true).create(true).truncate(false);
    let file = options.mode(0o600).open(place)?;
    if file.metadata()?.len() > 0 {
        file.set_len(0)?;
    }
    Ok(file)
}

fn path(state_dir: &Path, key: &str) -> PathBuf {
    state_dir.join(format!("{key}.json"))
}

#[cfg(test)]
mod tests {
    use super::{CallStatus, last_line, open_empty};
    use std::io::Write as _;

    #[test]
    fn the_last_whole_line_counts() {
        for (bytes, last) in [
            (&b""[..], &b""[..]),
            (b"a", b""),
            (b"a\n", b"a"),
            (b"a\nb", b"a"),
            (b"a\nb\n", b"b"),
            (b"a\nb\nc", b"b"),
        ] {
            assert_eq!(last_line(bytes), last);
        }
    }

    #[test]
    fn the_first_line_takes_the_place_of_what_an_earlier_try_left() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("key.json");
        for _ in 0..2 {
            open_empty(&place).unwrap().write_all(b"first\n").unwrap();
            assert_eq!(std::fs::read(&place).unwrap(), b"first\n");
            std::fs::write(&place, "first\nand a longer one").unwrap();
        }
    }

    #[test]
    fn a_file_without_a_whole_line_is_of_a_call_that_did_not_begin() {
        let dir = tempfile::tempdir().unwrap();
        for (bytes, begun) in [("", Some(false)), ("{\"vers", Some(false)), ("{}\n", None)] {
            std::fs::write(dir.path().join("key.json"), bytes).unwrap();
            let read = CallStatus::read(dir.path(), "key");
            assert_eq!(read.ok().map(|status| status.is_some()), begun, "{bytes}");
        }
    }
}
