//! Protocol between the agent and the supervisor of a shell.
//!
//! Both ways frames of one byte kind, four bytes big-endian length, payload. The [`Spec`] is what the supervisor is
//! started with.

use rondo_launch::PtySize;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The longest line, in bytes.
pub(super) const LINE_BYTES_MAX: usize = 2 << 20;
/// The bound on a frame's payload, in bytes: the longest line, or a report with input beside it.
pub(super) const FRAME_BYTES_MAX: usize = 4 << 20;
const HEAD: usize = 5;

/// A shell to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Spec {
    #[serde(with = "rondo_sandbox::stored_path")]
    pub(super) program: PathBuf,
    pub(super) family: Family,
    #[serde(with = "rondo_sandbox::stored_path")]
    pub(super) directory: PathBuf,
    /// Directory of the shell's start files and pipes; must exist.
    #[serde(with = "rondo_sandbox::stored_path")]
    pub(super) state_dir: PathBuf,
    pub(super) size: PtySize,
}

/// Which hooks a shell takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Family {
    Bash,
    Zsh,
}

impl Family {
    /// Encodes what goes over the pipe of lines, each as the hook reads one.
    ///
    /// Bash reads up to a NUL. For zsh a line ends with a line feed, and `\\` and `\n` stand for a
    /// backslash and a line feed: with another end (`read -d`) it would change the terminal's modes.
    pub(super) fn lines(self, lines: &[&[u8]]) -> Vec<u8> {
        let mut encoded = Vec::new();
        for line in lines {
            match self {
                Self::Bash => {
                    encoded.extend_from_slice(line);
                    encoded.push(0);
                }
                Self::Zsh => {
                    encoded.extend(line.iter().flat_map(escaped));
                    encoded.push(b'\n');
                }
            }
        }
        encoded
    }
}

fn escaped(byte: &u8) -> &[u8] {
    match byte {
        b'\\' => br"\\",
        b'\n' => br"\n",
        _ => std::slice::from_ref(byte),
    }
}

/// Message from the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ToSupervisor {
    /// Run a line; at a prompt only.
    Run { seq: u64, line: Vec<u8> },
    /// Bytes typed for the program in the foreground.
    Input(Vec<u8>),
    /// The terminal has this size now.
    Resize(PtySize),
    /// Same as Ctrl-C.
    Interrupt,
    /// End the shell, as the end of the orders does.
    End,
}

/// Message from the supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FromSupervisor {
    /// Output of whatever writes to the terminal.
    Output(Vec<u8>),
    /// The shell is at its prompt.
    Prompt(Box<ShellAtPrompt>),
    /// The shell has ended; nothing follows.
    Exited(Exit),
    /// The shell was not started; nothing follows.
    Failed(String),
}

/// A shell at its prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShellAtPrompt {
    pub(super) seq: u64,
    pub(super) status: i32,
    /// Typed input that the command did not read.
    pub(super) unread: Vec<u8>,
    /// As [`super::report::parse`] reads it; empty if there was none.
    pub(super) report: Vec<u8>,
}

/// The end of a shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Exit {
    pub(super) code: i32,
    pub(super) signal: Option<String>,
}

impl ToSupervisor {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Run { seq, line } => frame(b'r', &[&seq.to_be_bytes(), line]),
            Self::Input(bytes) => frame(b'i', &[bytes]),
            Self::Resize(size) => frame(
                b'z',
                &[&size.rows.to_be_bytes(), &size.columns.to_be_bytes()],
            ),
            Self::Interrupt => frame(b'c', &[]),
            Self::End => frame(b'e', &[]),
        }
    }

    pub(super) fn decode(kind: u8, payload: &[u8]) -> Option<Self> {
        Some(match kind {
            b'r' => {
                let (seq, line) = payload.split_first_chunk()?;
                Self::Run {
                    seq: u64::from_be_bytes(*seq),
                    line: line.to_vec(),
                }
            }
            b'i' => Self::Input(payload.to_vec()),
            b'z' => {
                let (rows, columns) = payload.split_first_chunk()?;
                Self::Resize(PtySize {
                    rows: u16::from_be_bytes(*rows),
                    columns: u16::from_be_bytes(columns.try_into().ok()?),
                })
            }
            b'c' => Self::Interrupt,
            b'e' => Self::End,
            _ => return None,
        })
    }
}

impl FromSupervisor {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Output(bytes) => frame(b'o', &[bytes]),
            Self::Prompt(at) => {
                let unread = u32::try_from(at.unread.len()).unwrap_or(u32::MAX);
                let numbers = [
                    &at.seq.to_be_bytes()[..],
                    &at.status.to_be_bytes(),
                    &unread.to_be_bytes(),
                ];
                frame(b'p', &[&numbers.concat(), &at.unread, &at.report])
            }
            Self::Exited(exit) => frame(b'x', &[&serde_json::to_vec(exit).unwrap_or_default()]),
            Self::Failed(reason) => frame(b'f', &[reason.as_bytes()]),
        }
    }

    pub(super) fn decode(kind: u8, payload: &[u8]) -> Option<Self> {
        Some(match kind {
            b'o' => Self::Output(payload.to_vec()),
            b'p' => Self::Prompt(Box::new(ShellAtPrompt::decode(payload)?)),
            b'x' => Self::Exited(serde_json::from_slice(payload).ok()?),
            b'f' => Self::Failed(String::from_utf8_lossy(payload).into_owned()),
            _ => return None,
        })
    }
}

impl ShellAtPrompt {
    fn decode(payload: &[u8]) -> Option<Self> {
        let (seq, rest) = payload.split_first_chunk()?;
        let (status, rest) = rest.split_first_chunk()?;
        let (unread, rest) = rest.split_first_chunk()?;
        let unread = usize::try_from(u32::from_be_bytes(*unread)).ok()?;
        let (unread, report) = rest.split_at_checked(unread)?;
        Some(Self {
            seq: u64::from_be_bytes(*seq),
            status: i32::from_be_bytes(*status),
            unread: unread.to_vec(),
            report: report.to_vec(),
        })
    }
}

fn frame(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    let mut frame = vec![kind];
    frame.extend_from_slice(&length.to_be_bytes());
    for part in parts {
        frame.extend_from_slice(part);
    }
    frame
}

/// A frame that cannot be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MalformedFrame;

/// Joins what was read into frames.
#[derive(Debug, Default)]
pub(super) struct Frames {
    bytes: Vec<u8>,
}

impl Frames {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the next whole frame: its kind and payload.
    pub(super) fn next(&mut self) -> Result<Option<(u8, Vec<u8>)>, MalformedFrame> {
        let Some((head, rest)) = self.bytes.split_first_chunk::<HEAD>() else {
            return Ok(None);
        };
        let [kind, length @ ..] = *head;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > FRAME_BYTES_MAX {
            return Err(MalformedFrame);
        }
        let Some(payload) = rest.get(..length) else {
            return Ok(None);
        };
        let payload = payload.to_vec();
        self.bytes.drain(..HEAD + length);
        Ok(Some((kind, payload)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_as_they_went_in_wherever_they_are_cut() {
        let orders = [
            ToSupervisor::Run {
                seq: 7,
                line: b"ls".to_vec(),
            },
            ToSupervisor::Input(vec![0, 255]),
            ToSupervisor::Resize(PtySize {
                rows: 3,
                columns: 300,
            }),
            ToSupervisor::Interrupt,
            ToSupervisor::End,
        ];
        let news = [
            FromSupervisor::Output(b"out".to_vec()),
            FromSupervisor::Prompt(Box::new(ShellAtPrompt {
                seq: 7,
                status: -1,
                unread: b"typed".to_vec(),
                report: b"s:".to_vec(),
            })),
            FromSupervisor::Exited(Exit {
                code: 137,
                signal: Some("SIGKILL".to_owned()),
            }),
            FromSupervisor::Failed("no".to_owned()),
        ];
        let bytes: Vec<u8> = orders.iter().flat_map(ToSupervisor::encode).collect();
        for cut in 0..=bytes.len() {
            let frames = decoded(&bytes, cut);
            let read: Vec<_> = frames
                .iter()
                .map(|(k, p)| ToSupervisor::decode(*k, p))
                .collect();
            assert_eq!(read, orders.clone().map(Some), "cut at {cut}");
        }
        let bytes: Vec<u8> = news.iter().flat_map(FromSupervisor::encode).collect();
        for cut in 0..=bytes.len() {
            let frames = decoded(&bytes, cut);
            let read: Vec<_> = frames
                .iter()
                .map(|(k, p)| FromSupervisor::decode(*k, p))
                .collect();
            assert_eq!(read, news.clone().map(Some), "cut at {cut}");
        }
    }

    fn decoded(bytes: &[u8], cut: usize) -> Vec<(u8, Vec<u8>)> {
        let mut frames = Frames::default();
        let mut found = Vec::new();
        for part in [&bytes[..cut], &bytes[cut..]] {
            frames.push(part);
            while let Some(frame) = frames.next().unwrap() {
                found.push(frame);
            }
        }
        found
    }

    #[test]
    fn a_frame_past_its_bound_is_refused() {
        let mut frames = Frames::default();
        frames.push(&[b'o', 0xff, 0, 0, 0]);
        assert_eq!(frames.next(), Err(MalformedFrame));
    }
}
