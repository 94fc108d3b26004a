//! Protocol between the agent and the supervisor.
//!
//! Down, on the supervisor's stdin: one JSON line, then single bytes. Up, on its stdout: frames of
//! one byte kind, four bytes big-endian length, payload.

use super::pty_size::PtySize;
use super::unix;
use rondo_core::redact::Secrets;
use rondo_sandbox::SandboxSpec;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The bound on one frame's payload, in bytes: output twice escaped and the rest of a status.
pub(super) const FRAME_BYTES_MAX: usize = 64 << 20;
/// The bound on the output kept for the model that a caller may ask for, in bytes.
pub(super) const OUTPUT_BYTES_CEILING: usize = 4 << 20;
/// The length of a frame's head, in bytes.
pub(super) const FRAME_HEAD: usize = 5;

/// The part of the machine's memory that a command may take unless its specification says otherwise: one in so many.
const MEMORY_PART: u64 = 2;
/// The least of that bound, in bytes.
const MEMORY_BYTES_MIN: u64 = 2 << 30;

/// Starts the command.
pub(super) const GO: u8 = b'g';
/// Ends the whole tree.
pub(super) const END: u8 = b'e';
/// Kills the whole tree.
pub(super) const KILL: u8 = b'k';
/// Interrupts the process group, as a terminal does on Ctrl-C.
pub(super) const INTERRUPT: u8 = b'i';
/// Interrupts the leader's system call, and nothing else.
pub(super) const WAKE: u8 = b'w';

/// A program to run under a supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessSpec {
    /// The program, by absolute path.
    #[serde(with = "rondo_sandbox::stored_path")]
    pub program: PathBuf,
    /// Its arguments, without its name.
    pub arguments: Vec<OsString>,
    /// Where it runs; absolute.
    #[serde(with = "rondo_sandbox::stored_path")]
    pub directory: PathBuf,
    /// What it may reach; everything where there is nothing.
    pub sandbox: Option<SandboxSpec>,
    /// Whether what it starts in a process group of its own goes on when it ends. Otherwise all of it ends.
    pub leaves_detached: bool,
}

impl ProcessSpec {
    /// What processes are known by, besides their supervisor.
    pub(super) const KEY: &str = "process";
}

/// One command to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSpec {
    /// Names the files of the call in `state_dir`: `[A-Za-z0-9._-]{1,200}`, not starting with a dot.
    pub key: String,
    /// Directory of the status file and the whole output; must exist.
    #[serde(with = "rondo_sandbox::stored_path")]
    pub state_dir: PathBuf,
    /// The command, for `bash -c`; only shown if there is [`Self::argv`].
    pub command: String,
    /// A program and its arguments, which are executed without a shell in place of [`Self::command`]; not empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argv: Option<Vec<String>>,
    /// The command's working directory, absolute.
    #[serde(with = "rondo_sandbox::stored_path")]
    pub directory: PathBuf,
    /// How long the command may run, in milliseconds.
    pub timeout_ms: u64,
    /// How long the command may continue once its agent is gone, in milliseconds; another agent can
    /// take the first one's place meanwhile. Zero ends the command with its agent.
    #[serde(default)]
    pub outlive_ms: u64,
    /// The bound on the output that is kept for the model, in bytes; at most 4 MiB are.
    pub output_bytes_max: usize,
    /// The bound on the file that holds the whole output, in bytes.
    pub spill_bytes_max: u64,
    /// The terminal the command sees.
    pub pty: PtySize,
    /// Writes a status file and a whole output. If not set, nothing of the
    /// call is on the disk, and no other agent can find it.
    #[serde(default = "yes")]
    pub is_kept: bool,
    /// The bound on the memory of all its processes, in bytes; the machine's default if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes_max: Option<u64>,
    /// Limits of the command's access; `None` for no limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxSpec>,
    /// Secrets to remove from the output and from the files of the call.
    #[serde(default, with = "told", skip_serializing_if = "Secrets::is_empty")]
    pub secrets: Secrets,
}

/// Secrets go down the supervisor's stdin, where no other process sees them.
mod told {
    use super::Secrets;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(super) fn serialize<S: Serializer>(secrets: &Secrets, to: S) -> Result<S::Ok, S::Error> {
        secrets.reveal().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Secrets, D::Error> {
        Vec::deserialize(from).map(Secrets::new)
    }
}

fn yes() -> bool {
    true
}

/// Guard of the command, as the supervisor reports when it is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Watcher {
    /// Its process id.
    pub(super) pid: u32,
    /// When it started, in ticks since boot; 0 if that is not known.
    pub(super) start_time: u64,
}

impl CallSpec {
    /// The bound on [`CallSpec::key`], in bytes.
    pub const KEY_BYTES_MAX: usize = 200;

    /// Returns whether a key is safe as a file name.
    #[must_use]
    pub fn is_key(key: &str) -> bool {
        (1..=Self::KEY_BYTES_MAX).contains(&key.len())
            && !key.starts_with('.')
            && key
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
    }

    /// Returns how long the command may run.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    /// Returns the bound on the memory of all its processes, in bytes.
    pub(super) fn memory_max(&self) -> u64 {
        self.memory_bytes_max.unwrap_or_else(|| {
            let total = unix::memory_total();
            total.map_or(u64::MAX, |it| (it / MEMORY_PART).max(MEMORY_BYTES_MIN))
        })
    }

    pub(super) fn spill_path(&self) -> PathBuf {
        spill_path(&self.state_dir, &self.key)
    }
}

pub(super) fn spill_path(state_dir: &Path, key: &str) -> PathBuf {
    state_dir.join(format!("{key}.out"))
}

impl Watcher {
    /// Returns this process.
    pub(super) fn own() -> Self {
        let pid = std::process::id();
        Self {
            pid,
            start_time: unix::start_time(pid).unwrap_or_default(),
        }
    }

    /// Returns the mark in the environment of every process that the command of that key starts.
    pub(super) fn mark(&self, key: &str) -> String {
        format!("{key}:{}:{}", self.pid, self.start_time)
    }
}

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
    /// The supervisor is there, of a command with its status file on disk, and waits for [`GO`]; the [`Watcher`], as
    /// JSON.
    Ready,
    /// The process runs; only for processes without output here.
    Started,
    /// Output as the command wrote it.
    Output,
    /// The final status, as JSON.
    Done,
    /// As [`Self::Done`], from a supervisor that waits for the next call.
    DoneAndWaits,
    /// The command could not be started; the reason.
    Failed,
}

impl FrameKind {
    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        [
            Self::Ready,
            Self::Started,
            Self::Output,
            Self::Done,
            Self::DoneAndWaits,
            Self::Failed,
        ]
        .into_iter()
        .find(|kind| kind.byte() == byte)
    }

    fn byte(self) -> u8 {
        match self {
            Self::Ready => b'r',
            Self::Started => b's',
            Self::Output => b'o',
            Self::Done => b'd',
            Self::DoneAndWaits => b'w',
            Self::Failed => b'f',
        }
    }
}

/// Appends a frame to `to`.
pub(super) fn encode_frame(kind: FrameKind, payload: &[u8], to: &mut Vec<u8>) {
    to.push(kind.byte());
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    to.extend_from_slice(&length.to_be_bytes());
    to.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_file_names_and_nothing_else() {
        for key in ["a", "call_1.2-x", &"k".repeat(CallSpec::KEY_BYTES_MAX)] {
            assert!(CallSpec::is_key(key), "{key}");
        }
        for key in [
            "",
            ".",
            "..",
            ".hidden",
            "a/b",
            "a\0",
            "ä",
            &"k".repeat(CallSpec::KEY_BYTES_MAX + 1),
        ] {
            assert!(!CallSpec::is_key(key), "{key}");
        }
    }

    #[test]
    fn frame_kinds_are_told_apart() {
        for kind in [
            FrameKind::Ready,
            FrameKind::Started,
            FrameKind::Output,
            FrameKind::Done,
            FrameKind::DoneAndWaits,
            FrameKind::Failed,
        ] {
            let mut frame = Vec::new();
            encode_frame(kind, b"abc", &mut frame);
            assert_eq!(FrameKind::from_byte(frame[0]), Some(kind));
            assert_eq!(frame[1..], *b"\0\0\0\x03abc");
        }
        assert_eq!(FrameKind::from_byte(b'x'), None);
    }
}
