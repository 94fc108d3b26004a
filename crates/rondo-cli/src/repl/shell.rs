//! Shell mode: the user's own shell, started when it is first needed and kept.

use super::jobs::LateOutput;
use super::{After, Repl, failed};
use crate::commands::report::gone;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::output::Output;
use crate::screen::Screen;
use rondo_exec::shell::{CommandEnd, RelayError, Shell, ShellError, Terminal, relay};
use rondo_runtime::cells::{ATTACHED_MAX, KeptShell, shell_output, shell_part, shell_text};
use rondo_tui::prompt::reply::FailedCell;
use rondo_types::Part;
use rondo_types::text::last_lines;
use std::convert::Infallible;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;
use tokio::time::sleep;

/// Of a command of shell mode, what goes along with a question.
const LAST_LINES_MAX: usize = 40;
const LAST_BYTES_MAX: usize = 4_096;
/// How long start files may take before the user is told.
const TELL_AFTER: Duration = Duration::from_secs(1);
/// Sets back what programs set and leave so when they are killed: the other screen, keys and keypad of
/// applications, the mouse, focus, insertion, a hidden cursor, characters of lines, colours. Nothing of
/// it moves the cursor of a terminal that is as it should be, as leaving the other screen by 1049 would.
/// xterm's control sequences: <https://invisible-island.net/xterm/ctlseqs/ctlseqs.html>.
pub(super) const AS_BEFORE: &str = concat!(
    "\x1b[?47l\x1b[?1l\x1b>",
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l",
    "\x1b[4l\x1b[?7h\x1b[?25h\x1b(B\x0f\x1b[0m",
);

/// The shell, and what its jobs print.
pub(super) struct RunningShell {
    kept: Arc<KeptShell>,
    late: LateOutput,
    color: bool,
}

impl RunningShell {
    pub(super) fn of(kept: Arc<KeptShell>, output: &Output) -> Self {
        Self {
            kept,
            late: LateOutput::default(),
            color: output.stdout_color,
        }
    }

    /// Returns the shell, for another place to go on in it.
    pub(super) fn kept(self) -> Arc<KeptShell> {
        self.kept
    }

    /// Shows what jobs print above the line that is edited, until there is no shell.
    pub(super) async fn tell_of_jobs(&mut self, above: &SyncSender<String>) {
        let next = async || self.kept.shell.between_commands().await;
        self.late.tell(next, self.color, above).await;
    }
}

impl Repl {
    /// Starts the shell in the background, unless it runs.
    ///
    /// # Errors
    /// When there is no shell that could be kept.
    pub(super) fn shell(&mut self) -> Result<&Shell> {
        let kept = match self.shell.take() {
            Some(kept) => kept,
            None => self.start_shell()?,
        };
        Ok(&self.shell.insert(kept).kept.shell)
    }

    fn start_shell(&self) -> Result<RunningShell> {
        let kept = KeptShell::start(&self.talk.settings, self.talk.workdir.clone())?;
        Ok(RunningShell::of(Arc::new(kept), &self.talk.output))
    }

    /// Runs a command, with the terminal lent to it. `sharing` says whether the agent reads what it
    /// printed.
    ///
    /// # Errors
    /// When the shell or the terminal is lost.
    pub(super) async fn run_command(&mut self, command: &str, sharing: Sharing) -> Result<After> {
        if !self.is_shell_there().await? {
            self.talk
                .output
                .note("the line was dropped before the shell was ready");
            return Ok(After::Prompt);
        }
        if self.went_elsewhere() {
            return Ok(After::Prompt);
        }
        let (input, output) = (io::stdin(), io::stdout());
        let terminal = Terminal {
            input: input.as_fd(),
            output: output.as_fd(),
        };
        let note = self.talk.output;
        let restarted = move || {
            note.note("the shell had exited; aliases and variables are gone. This is a new one.");
            // The terminal is the command's by now, which leaves the column to what writes.
            note.stderr("\r");
        };
        self.show_late()?;
        // What is exported before the command is not the command's.
        self.learn_keys();
        let told = self.talk.mask(command);
        let secrets = self.talk.all_secrets();
        self.shell()?.set_secrets(secrets);
        let ended = relay(self.shell()?, command, terminal, restarted).await;
        let mut end = ended.map_err(|err| match err {
            RelayError::Terminal(err) => failed(err, "the terminal cannot be used"),
            RelayError::Shell(err) => lost(err),
        })?;
        self.learn_keys();
        // The command may have printed what it exported.
        end.captured = self.talk.all_secrets().text(end.captured);
        self.ended(&told, &end, sharing);
        Ok(After::Prompt)
    }

    /// Goes where a new shell is that found its directory gone, and returns whether it did: what was to run
    /// in the one must not run in the other.
    fn went_elsewhere(&mut self) -> bool {
        let (wanted, there) = (&self.talk.settings.directory, self.talk.workdir.directory());
        if *wanted == there || wanted.is_dir() {
            return false;
        }
        let lost = gone(wanted);
        let note = format!(
            "{lost}; the shell started in `{}`, and the line was dropped",
            there.display()
        );
        self.talk.output.note(&note);
        self.set_directory(there);
        true
    }

    /// Shows what a job printed when a line was entered.
    fn show_late(&mut self) -> Result<()> {
        let late = self.shell.as_mut().map(|kept| kept.late.take());
        let late = String::from_utf8_lossy(&late.unwrap_or_default()).into_owned();
        self.print(&late)
    }

    /// Waits for the shell's start files, which may take their time; false once the user does not want
    /// to.
    async fn is_shell_there(&mut self) -> Result<bool> {
        if self.shell()?.is_ready() {
            return Ok(true);
        }
        let mut keyboard = self.talk.keyboard(Screen::new())?;
        let output = self.talk.output;
        let telling = async {
            sleep(TELL_AFTER).await;
            output.note("the shell's start files still run; Ctrl-C drops the line");
            std::future::pending::<Infallible>().await
        };
        let is_there = tokio::select! {
            biased;
            () = self.shell()?.settled() => true,
            () = keyboard.stopped() => false,
            never = telling => match never {},
        };
        let typed = keyboard.take_typed();
        drop(keyboard);
        self.typed_ahead(&typed);
        Ok(is_there)
    }

    /// Has the last command of shell mode go along with a question, and says so.
    pub(super) fn attach_last_command(&mut self) {
        if let Some(last) = self.last_command.take()
            && self.talk.attached.len() < ATTACHED_MAX
        {
            self.talk.output.note(&last.shown);
            self.talk.attached.push(last.part);
            self.talk.terminal_seen.output = None;
        }
    }

    fn ended(&mut self, command: &str, end: &CommandEnd, sharing: Sharing) {
        self.set_directory(end.directory.clone());
        self.exit_code = end.exit_code;
        match sharing {
            Sharing::WithNext if self.talk.attached.len() < ATTACHED_MAX => {
                self.talk.attached.push(shell_part(command, end));
                self.talk.saw_command(command, None);
            }
            Sharing::WhenAsked => {
                self.failed_cell = None;
                let (code, printed) = (end.exit_code, shell_output(end));
                let output = shell_text(command, &end.directory, code, &printed, end.omitted_bytes);
                self.talk.saw_command(command, Some(output));
                self.last_command = Some(LastCommand::new(command, end));
            }
            Sharing::WithNext | Sharing::Never => {}
        }
        if let Some(shell) = &end.shell_end {
            let how = match &shell.signal {
                Some(signal) => format!(" ({signal})"),
                None => String::new(),
            };
            self.talk.output.note(&format!(
                "shell exited{how}; aliases and variables are gone. The next command starts a new one."
            ));
        }
        let unread = String::from_utf8_lossy(&end.unread_input).into_owned();
        self.typed_ahead(&unread);
    }
}

/// Whether the agent reads what a command printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    /// It goes along with the next question, whole.
    WithNext,
    /// Its end goes along with a question from shell mode, where no other command ran in between.
    WhenAsked,
    /// It does not.
    Never,
}

/// The last command of shell mode.
pub(super) struct LastCommand {
    /// Its first line.
    line: String,
    exit_code: i32,
    /// What the agent would read.
    part: Part,
    /// What the user reads when it is sent.
    shown: String,
}

impl LastCommand {
    fn new(command: &str, end: &CommandEnd) -> Self {
        let code = end.exit_code;
        let printed = shell_output(end);
        let output = last_lines(printed.trim_end(), LAST_LINES_MAX, LAST_BYTES_MAX);
        let part = shell_part(
            command,
            &CommandEnd {
                captured: output.to_owned(),
                omitted_bytes: end.omitted_bytes + (printed.trim_end().len() - output.len()) as u64,
                // A line of the output says so.
                used_whole_screen: false,
                ..end.clone()
            },
        );
        let first = command.trim().lines().next().unwrap_or_default();
        let printed = match output.lines().count() {
            0 => "it printed nothing".to_owned(),
            1 => "with the last line of its output".to_owned(),
            lines => format!("with the last {lines} lines of its output"),
        };
        Self {
            line: first.to_owned(),
            exit_code: code,
            part,
            shown: format!("the agent reads `{first}` (exit code {code}), {printed}"),
        }
    }

    /// Returns the command if it failed; its output is attached when it is asked about.
    pub(super) fn failed(&self) -> Option<FailedCell> {
        (self.exit_code != 0).then(|| FailedCell {
            line: self.line.clone(),
            details: None,
        })
    }
}

fn lost(err: ShellError) -> CliError {
    let said = match &err {
        ShellError::EndedEarly(said) | ShellError::NotReady(said) => said.trim().to_owned(),
        _ => String::new(),
    };
    let error = CliError::caused(Exit::Error, anyhow::Error::new(err));
    match said.is_empty() {
        true => error,
        false => error.hint(format!("its start files said: {said}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_bounded_in_lines_and_in_bytes() {
        let lines = |count: usize| {
            (0..count)
                .map(|it| it.to_string())
                .collect::<Vec<_>>()
                .join("\n")
        };
        let last_lines = |text: &str| last_lines(text, LAST_LINES_MAX, LAST_BYTES_MAX).to_owned();
        assert_eq!(last_lines(""), "");
        assert_eq!(last_lines(&lines(40)), lines(40));
        assert_eq!(
            last_lines(&lines(41)),
            lines(41).strip_prefix("0\n").unwrap()
        );
        let wide = format!("{}é", "x".repeat(LAST_BYTES_MAX - 1));
        assert_eq!(last_lines(&wide).len(), LAST_BYTES_MAX);
        let wider = format!("é{}", "x".repeat(LAST_BYTES_MAX - 1));
        assert_eq!(last_lines(&wider).len(), LAST_BYTES_MAX - 1);
    }
}
