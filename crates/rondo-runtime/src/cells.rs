//! A person's own cells: Python in a live session, commands in a shell that is kept. They are recorded, and the agent
//! reads of them, in the same way wherever they are run.

mod terminal;

pub use rondo_exec::shell::Keyboard;
pub use rondo_launch::PtySize;
pub use terminal::{TERMINAL_EVENTS_MAX, TerminalEvent};

use crate::assignments;
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::sanitize::plain;
use crate::secrets::KeyNames;
use crate::session::Session;
use crate::settings::Settings;
use crate::tools::private_dir;
use rondo_core::ports::{CellEnding, CodeChange, RecordBody, Seq};
use rondo_core::redact::Secrets;
use rondo_exec::SupervisorCommand;
use rondo_exec::shell::{CommandEnd, Shell, ShellProgram, ShellSettings};
use rondo_policy::{Variables, Workdir};
use rondo_python::{CellEnd, SessionError};
use rondo_types::text::{both_ends, first_bytes};
use rondo_types::{Message, Part, SessionId};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::Sender;

/// The bound on the commands that go along with one question.
pub const ATTACHED_MAX: usize = 64;
/// Bytes of a cell's code that are kept; a longer one cannot be run again.
pub const CODE_BYTES_MAX: usize = 1 << 20;
/// Bytes of each output stream of a cell that are kept, half of them its end.
const STREAM_BYTES_MAX: usize = 4 << 10;

/// Replacement of the output of a program that used the whole screen.
const WHOLE_SCREEN: &str = "[it used the full screen; its drawing is left out]";

/// Records of code that ran in the current interpreter.
#[derive(Debug, Default)]
pub struct InterpreterRecords {
    /// Which interpreter that is, from 1.
    interpreter: u64,
    /// First and last places of each session, in the order in which they were added. A range that follows
    /// the last one is joined to it.
    ranges: HashMap<SessionId, Vec<(Seq, Seq)>>,
    /// Cells that ran in an earlier interpreter, and again in this one.
    repeated: HashSet<(SessionId, Seq)>,
}

impl InterpreterRecords {
    /// Notes how many interpreters were started, and returns whether one was lost since the last time.
    pub fn sync(&mut self, started: u64) -> bool {
        if self.interpreter == started {
            return false;
        }
        let before = std::mem::replace(&mut self.interpreter, started);
        if before == 0 {
            return false;
        }
        self.forget();
        true
    }

    /// Marks the interpreter as empty or lost.
    pub fn forget(&mut self) {
        self.ranges.clear();
        self.repeated.clear();
    }

    /// Records that the code of these records ran in it again.
    pub fn repeat(&mut self, session: &SessionId, seqs: impl IntoIterator<Item = Seq>) {
        let named = seqs.into_iter().map(|seq| (session.clone(), seq));
        self.repeated.extend(named);
    }

    /// Records that the code of these records ran in it.
    pub fn add(&mut self, session: &SessionId, first: Seq, last: Seq) {
        let ranges = self.ranges.entry(session.clone()).or_default();
        match ranges.last_mut() {
            Some((_, end)) if end.0 + 1 == first.0 => *end = last,
            _ if first <= last => ranges.push((first, last)),
            _ => {}
        }
    }

    /// Returns whether it ran in it. Up to `lost_at`, the records are of one that was lost.
    pub fn holds(&self, session: &SessionId, seq: Seq, lost_at: Seq) -> bool {
        let ranges = self.ranges.get(session).map(Vec::as_slice);
        let within = |(first, last): &(Seq, Seq)| *first <= seq && seq <= *last;
        let is_first = ranges.unwrap_or_default().iter().any(within);
        (is_first && seq > lost_at) || self.repeated.contains(&(session.clone(), seq))
    }
}

/// A shell that is kept, and the files that it needs while it lives.
pub struct KeptShell {
    /// The shell.
    pub shell: Shell,
    /// Its directory and environment; `None` if the host started it by itself.
    workdir: Option<Workdir>,
    state_dir: Option<PathBuf>,
    /// Keys that were typed into it, or that it exports.
    secrets: Mutex<Secrets>,
    /// Listener to the output of its terminal.
    watcher: Mutex<Option<Sender<TerminalEvent>>>,
}

impl KeptShell {
    /// Starts the user's shell in the background, on the current Tokio runtime.
    ///
    /// # Errors
    /// When there is no shell that could be kept, or its directory cannot be made.
    pub fn start(settings: &Settings, workdir: Workdir) -> Result<Self> {
        static STARTED: AtomicU64 = AtomicU64::new(0);
        let program = ShellProgram::from_env().map_err(|err| {
            let error = SetupError::caused(SetupErrorKind::Other, err);
            error.hint("set `SHELL` to the path of a bash or zsh")
        })?;
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("shell-{}-{number}", std::process::id());
        let state_dir = settings.paths.state.join(name);
        private_dir(&state_dir)?;
        let supervisor = SupervisorCommand::CurrentExe;
        let place = workdir.clone();
        let settings = ShellSettings::new(supervisor, program, workdir, state_dir.clone());
        Ok(Self {
            shell: Shell::start(settings),
            workdir: Some(place),
            state_dir: Some(state_dir),
            secrets: Mutex::default(),
            watcher: Mutex::default(),
        })
    }

    /// Takes a shell that the host started by itself.
    #[must_use]
    pub fn new(shell: Shell) -> Self {
        Self {
            shell,
            workdir: None,
            state_dir: None,
            secrets: Mutex::default(),
            watcher: Mutex::default(),
        }
    }

    /// Returns the keys that were typed into it or that it exports, as far as they are known.
    #[must_use]
    pub fn secrets(&self) -> Secrets {
        self.hidden().clone()
    }

    /// Returns the directory that it is in, and its environment, for those that it is shared with.
    #[must_use]
    pub fn workdir(&self) -> Option<&Workdir> {
        self.workdir.as_ref()
    }

    /// Keeps the keys in a command out of everything from now on, and returns the command without them.
    pub(crate) fn mask(&self, command: &str, names: &KeyNames) -> String {
        let masked = assignments::mask(command, names);
        self.hide(masked.keys);
        masked.line
    }

    /// Does the same with the keys that it exports by now.
    pub(crate) fn learn_keys(&self, names: &KeyNames) {
        let environment = self.shell.environment();
        let all = environment.iter().flat_map(Variables::iter);
        let all = all.filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
        let keys = all.filter(|(name, value)| names.has(name, value));
        self.hide(keys.map(|(_, value)| value.to_owned()));
    }

    /// Keeps keys out of everything from now on.
    pub fn hide(&self, keys: impl IntoIterator<Item = String>) {
        let mut hidden = self.hidden();
        *hidden = hidden.with(keys);
    }

    fn hidden(&self) -> MutexGuard<'_, Secrets> {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for KeptShell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeptShell")
    }
}

impl Drop for KeptShell {
    fn drop(&mut self) {
        if let Some(dir) = &self.state_dir {
            // A directory left behind does not concern the user.
            let _ = std::fs::remove_dir_all(dir);
        }
    }
}

/// Returns the part for the agent about a command, which goes along with the next question.
#[must_use]
pub fn shell_part(command: &str, end: &CommandEnd) -> Part {
    let (code, output) = (end.exit_code, shell_output(end));
    let text = shell_text(command, &end.directory, code, &output, end.omitted_bytes);
    Part::text(format!("\n\n{text}"))
}

/// Returns the output of a command. Drawings of an editor or a pager on the whole screen are left out, and a line says
/// so.
#[must_use]
pub fn shell_output(end: &CommandEnd) -> String {
    let mut output = end.captured.clone();
    if end.used_whole_screen {
        if !output.is_empty() && !output.ends_with('\n') {
            output.push('\n');
        }
        output.push_str(WHOLE_SCREEN);
    }
    output
}

/// Returns the text for the agent about a command: the directory after it, its exit code, the command, and its
/// output, of which that many bytes are left out.
#[must_use]
pub fn shell_text(
    command: &str,
    directory: &Path,
    exit_code: i32,
    output: &str,
    omitted_bytes: u64,
) -> String {
    let directory = directory.display();
    let output = output.trim_end();
    let omitted = match omitted_bytes {
        0 => String::new(),
        bytes => format!("\n[{bytes} bytes of the output are left out]"),
    };
    format!(
        "<shell directory=\"{directory}\" exit_code=\"{exit_code}\">\n$ {command}\n{output}{omitted}\n</shell>"
    )
}

/// Returns the words of a message, without the commands, cells and files that go along with them. A message that has no
/// words of its own is returned whole.
pub(crate) fn words(message: &Message) -> String {
    let begins = [
        "<shell directory=\"",
        "<python>\n",
        "<file path=\"",
        "<resource ",
    ];
    let texts = message.parts.iter().filter_map(|it| match it {
        Part::Text(part) => Some(part.text.as_str()),
        _ => None,
    });
    let own = texts.filter(|text| !begins.iter().any(|it| text.trim_start().starts_with(it)));
    let own: String = own.collect();
    match own.trim().is_empty() {
        true => message.text(),
        false => own,
    }
}

impl Session {
    /// Records that a Python cell is about to run, and returns the record's place when it is durable. The first one
    /// begins the session. None if nothing is kept.
    ///
    /// # Errors
    /// When it cannot be recorded; then the cell must not run.
    pub async fn cell_starts(&mut self, code: &str, secrets: &Secrets) -> Result<Option<Seq>> {
        if self.is_ephemeral() {
            return Ok(None);
        }
        let (code, changed) = kept_code(code, secrets);
        let title = format!(">>> {}", code.trim());
        let conversation = self.begin(title)?;
        let body = RecordBody::CellStarted { code, changed };
        Ok(Some(conversation.record(body).await?))
    }
}

/// Returns how a cell ended, as it is recorded. `is_new` says whether its interpreter took the place of a lost one.
#[must_use]
pub fn cell_finished(
    ended: &std::result::Result<CellEnd, SessionError>,
    is_new: bool,
    took: Duration,
    secrets: &Secrets,
) -> RecordBody {
    let seen = |text: &str| secrets.text(text.to_owned());
    // A cell that draws on its terminal may do so in the middle of a key.
    let written = |text: &str| both_ends(&seen(&plain(text)), STREAM_BYTES_MAX);
    let (stdout, stderr) = match ended {
        Ok(end) => (end.stdout.as_str(), end.stderr.as_str()),
        Err(SessionError::Lost(loss)) => (loss.stdout.as_str(), loss.stderr.as_str()),
        Err(_) => ("", ""),
    };
    let ending = match ended {
        Ok(end) => match &end.exception {
            Some(it) if it.is_interrupt() => CellEnding::Interrupted,
            Some(it) => CellEnding::Raised {
                exc_type: it.exc_type.clone(),
                message: seen(&it.message),
            },
            None => CellEnding::Returned {
                value_repr: end.value_repr.as_deref().map(seen),
            },
        },
        Err(SessionError::Lost(loss)) if !loss.is_earlier => CellEnding::Lost {
            message: loss.how.clone(),
        },
        Err(error) => CellEnding::NotRun {
            message: error.to_string(),
        },
    };
    RecordBody::CellFinished {
        ending,
        stdout: written(stdout),
        stderr: written(stderr),
        duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        has_read_input: ended.as_ref().is_ok_and(|end| end.has_read_input),
        is_restarted: is_new || ended.as_ref().is_ok_and(|end| end.is_restarted),
    }
}

/// Returns the code as it is kept, and why that is not the code if it is not.
fn kept_code(code: &str, secrets: &Secrets) -> (String, Option<CodeChange>) {
    let redacted = secrets.text(code.to_owned());
    match (redacted.len() > CODE_BYTES_MAX, redacted == code) {
        (true, _) => {
            let kept = first_bytes(&redacted, CODE_BYTES_MAX).to_owned();
            (kept, Some(CodeChange::Cut))
        }
        (false, true) => (redacted, None),
        (false, false) => (redacted, Some(CodeChange::Redacted)),
    }
}

#[cfg(test)]
mod tests;
