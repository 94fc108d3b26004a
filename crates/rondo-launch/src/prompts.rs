//! Answers programs that wait for a user to type: there is none, so a program that asks would wait until the command's
//! time is up.
//!
//! A program that reads lines is given the end of input, as from an empty file; one that reads keys, as pagers and editors
//! do, gets SIGHUP, as if its terminal were closed. Their questions are kept for the result.

use super::status::Prompt;
use super::unix::{self, InputWait, TerminalReader};
use rustix::process::Signal;
use rustix::termios::{LocalModes, SpecialCodeIndex};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How long a command has to print nothing before one that reads lines is given the end of input.
const LINE_QUIET: Duration = Duration::from_millis(300);
/// The same if it is not known whether it reads.
const UNKNOWN_QUIET: Duration = Duration::from_secs(1);
/// The same before one is ended that reads keys and has the whole screen, as pagers and editors have.
const SCREEN_QUIET: Duration = Duration::from_secs(1);
/// The same if it waits for several files at once, of which the terminal may be one.
const SCREEN_POLL_QUIET: Duration = Duration::from_secs(5);
/// The same without the whole screen, if its last line is not ended, as that of a menu is not.
const MENU_QUIET: Duration = Duration::from_secs(10);
/// The same otherwise: a program may read keys for one elsewhere that is just busy, as `ssh -t` does.
const RELAY_QUIET: Duration = Duration::from_mins(1);
const ESCAPE: u8 = 0x1b;
/// Sequences that enter and leave the screen of full-screen programs.
const SCREEN_ON: &[u8] = b"\x1b[?1049h";
const SCREEN_OFF: &[u8] = b"\x1b[?1049l";
/// How often the end of input is given before the one who reads is ended: some ask again and again.
const ENDS_MAX: u32 = 32;
/// The bound on prompts that are kept.
const PROMPTS_MAX: usize = 4;
/// The bound on the text of a prompt, in characters.
const TEXT_MAX: usize = 200;

/// Requests of programs for a person.
#[derive(Debug)]
pub(super) struct Prompts {
    /// When the command last printed something.
    quiet_since: Instant,
    /// Set if a program has switched to the whole screen.
    has_screen: bool,
    /// How often the end of input was given.
    ends: u32,
    /// The process that was last told to end.
    told_to_end: Option<u32>,
    found: Vec<Prompt>,
}

impl Prompts {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            quiet_since: now,
            has_screen: false,
            ends: 0,
            told_to_end: None,
            found: Vec::new(),
        }
    }

    /// Takes the output of the command.
    pub(super) fn note_output(&mut self, now: Instant, output: &[u8]) {
        self.quiet_since = now;
        if !output.contains(&ESCAPE) {
            return;
        }
        let mut latest = output.windows(SCREEN_ON.len()).rev();
        if let Some(switch) = latest.find(|it| [SCREEN_ON, SCREEN_OFF].contains(it)) {
            self.has_screen = switch == SCREEN_ON;
        }
    }

    pub(super) fn take(&mut self) -> Vec<Prompt> {
        std::mem::take(&mut self.found)
    }

    /// Looks for a program that waits for input and answers it; `output` returns what the command has printed.
    pub(super) fn look(
        &mut self,
        now: Instant,
        master: &OwnedFd,
        slave: &OwnedFd,
        output: impl FnOnce() -> Vec<u8>,
    ) {
        let quiet = now.saturating_duration_since(self.quiet_since);
        if quiet < LINE_QUIET {
            return;
        }
        let Ok(modes) = rustix::termios::tcgetattr(slave) else {
            return;
        };
        let reads_lines = modes.local_modes.contains(LocalModes::ICANON) && self.ends < ENDS_MAX;
        let Some(reader) = unix::terminal_reader(slave) else {
            return;
        };
        let output = output();
        let is_within_line = output.last().is_some_and(|it| *it != b'\n');
        let needed = match (reader.waiting, reads_lines) {
            (InputWait::Reads, true) => Some(LINE_QUIET),
            // Of one whose wait cannot be seen, only a line that is not ended says that it asks.
            (InputWait::Unknown, true) => is_within_line.then_some(UNKNOWN_QUIET),
            // A server or a build waits like this too.
            (InputWait::Polls, true) | (InputWait::Unknown, false) => None,
            (InputWait::Reads, false) if self.has_screen => Some(SCREEN_QUIET),
            (InputWait::Polls, false) if self.has_screen => Some(SCREEN_POLL_QUIET),
            (_, false) if is_within_line => Some(MENU_QUIET),
            (_, false) => Some(RELAY_QUIET),
        };
        if needed.is_none_or(|it| quiet < it) {
            return;
        }
        if reads_lines {
            self.ends += 1;
            // The terminal's buffer is full only if it is not read.
            let _ = rustix::io::write(master, &[modes.special_codes[SpecialCodeIndex::VEOF]]);
        } else {
            self.end(reader.pid);
        }
        self.keep(reader, !reads_lines, &output);
    }

    /// Ends a process as the end of its terminal would, and if that does not help, by force.
    fn end(&mut self, pid: u32) {
        let signal = match self.told_to_end.replace(pid) == Some(pid) {
            true => Signal::KILL,
            false => Signal::HUP,
        };
        if let Some(pid) = unix::pid(pid) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    fn keep(&mut self, reader: TerminalReader, is_ended: bool, output: &[u8]) {
        let text = last_line(output);
        let prompt = Prompt {
            program: reader.program,
            text,
            is_ended,
        };
        if self.found.len() < PROMPTS_MAX && !self.found.contains(&prompt) {
            self.found.push(prompt);
        }
    }
}

/// Returns the last line with text in it, shortened.
fn last_line(output: &[u8]) -> String {
    let output = String::from_utf8_lossy(output);
    let mut lines = output.lines().rev().map(str::trim);
    let line = lines.find(|it| !it.is_empty()).unwrap_or_default();
    line.chars().take(TEXT_MAX).collect()
}
