//! Reads lines at a terminal that can only print: `TERM=dumb`, as in Emacs or under some screen readers. The terminal's own
//! line discipline edits the line, and no escape sequence is written.

use super::PromptInput;
use super::check::Whole;
use super::prompt::Face;
use crate::output::Output;
use reedline::{Prompt as _, PromptEditMode, ValidationResult, Validator as _};
use rustix::io::retry_on_intr;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

/// Bytes of one line, as terminals bound it.
const LINE_BYTES: usize = 4096;
/// Ctrl-C, which ends a line here: it drops what was typed.
const CTRL_C: u8 = 0x03;
/// Texts that wait to be printed.
const TEXTS_MAX: usize = 4;

/// Reads lines, and prints texts that arrive meanwhile.
pub(super) struct PlainLines {
    output: Output,
    /// Whether a line is complete.
    whole: Whole,
    /// The beginning of the next line.
    begun: String,
    above: Option<SyncSender<String>>,
}

impl PlainLines {
    pub(super) fn new(output: Output, whole: Whole) -> Self {
        Self {
            output,
            whole,
            begun: String::new(),
            above: None,
        }
    }

    /// Returns the place to send texts to that are printed while a line is read.
    pub(super) fn above(&mut self) -> SyncSender<String> {
        let output = self.output;
        let make = || {
            let (sender, texts) = sync_channel::<String>(TEXTS_MAX);
            thread::spawn(move || {
                for text in texts {
                    // Without a reader the next line cannot be read either.
                    let _ = output.styled(&format!("{text}\n"));
                }
            });
            sender
        };
        self.above.get_or_insert_with(make).clone()
    }

    /// Begins the next line with a text.
    pub(super) fn begin_with(&mut self, text: &str) {
        self.begun.push_str(text);
    }

    /// Reads a line, or several while it is not complete.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub(super) fn read(&mut self, face: &Face) -> io::Result<PromptInput> {
        let _modes = CookedModes::set()?;
        let mut text = std::mem::take(&mut self.begun);
        let mark = face.render_prompt_indicator(PromptEditMode::Default);
        let mut prompt = format!("{}{mark}{text}", face.render_prompt_left());
        loop {
            self.output.stdout(&prompt)?;
            let mut line = [0; LINE_BYTES];
            let count = retry_on_intr(|| rustix::io::read(io::stdin(), &mut line))?;
            let read = line.get(..count).unwrap_or_default();
            match read.split_last() {
                None if text.is_empty() => {
                    self.output.stdout("\n")?;
                    return Ok(PromptInput::End);
                }
                // Ctrl-D within a line ends it without a line feed.
                None => return Ok(PromptInput::Line(text)),
                Some((&CTRL_C, _)) => {
                    self.output.stdout("\n")?;
                    return Ok(PromptInput::Dropped);
                }
                Some(_) => text.push_str(&String::from_utf8_lossy(read)),
            }
            let Some(whole) = text.strip_suffix('\n') else {
                prompt.clear();
                continue;
            };
            if matches!(self.whole.validate(whole), ValidationResult::Complete) {
                return Ok(PromptInput::Line(whole.to_owned()));
            }
            prompt = face.render_prompt_multiline_indicator().into_owned();
        }
    }
}

/// The terminal's own editing of lines, until the value is dropped.
struct CookedModes {
    found: Termios,
}

impl CookedModes {
    fn set() -> io::Result<Self> {
        let found = tcgetattr(io::stdin())?;
        let mut modes = found.clone();
        modes.local_modes.insert(LocalModes::ICANON);
        // Ctrl-C drops the line, and does not end the program.
        modes.local_modes.remove(LocalModes::ISIG);
        modes.special_codes[SpecialCodeIndex::VEOL2] = CTRL_C;
        tcsetattr(io::stdin(), OptionalActions::Drain, &modes)?;
        Ok(Self { found })
    }
}

impl Drop for CookedModes {
    fn drop(&mut self) {
        // A terminal that is gone needs no settings.
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &self.found);
    }
}
