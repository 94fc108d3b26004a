//! The live Python session in the pane: its cells, whoever typed them here, and the one that is typed.

use super::keys::{Action, key_of};
use super::pane_prompt::PanePrompt;
use super::{App, Effect};
use crate::pane::Emulator;
use crate::prompt::mode::Mode;
use crate::prompt::{edit, spelled};
use crate::text::clean;
use crossterm::event::KeyEvent;
use rondo_core::ports::CellEnding;
use rondo_runtime::service::{Cell, CellEnd, CellEvent};
use std::collections::VecDeque;

/// Cells that were typed here and did not begin.
const ASKED_MAX: usize = 64;

/// The session, as the pane shows it.
#[derive(Debug, Default)]
pub(super) struct PythonPane {
    pub(super) emulator: Emulator,
    pub(super) prompt: PanePrompt,
    /// Whether a cell runs.
    pub(super) runs: bool,
    /// Whether what was asked for, here or in the conversation, was typed here.
    typed_here: VecDeque<bool>,
    code: String,
    /// The last cell with what came of it, as the agent would read it.
    pub(super) last: Option<String>,
    pub(super) has_failed: bool,
}

impl PythonPane {
    /// Takes what happens with a cell. Returns whether it began now and was typed here, so that the conversation need not
    /// show it.
    pub(super) fn takes(&mut self, event: &CellEvent) -> bool {
        match event {
            CellEvent::Started {
                cell: Cell::Python(code),
                ..
            } => {
                self.runs = true;
                self.code.clone_from(code);
                let echo = clean::text(code).replace('\n', "\n... ");
                self.emulator
                    .feed_text(&format!("\x1b[1m>>> {echo}\x1b[0m\n"));
                return self.typed_here.pop_front().unwrap_or(false);
            }
            CellEvent::Output { text } if self.runs => self.emulator.feed_text(&clean::text(text)),
            CellEvent::Ended {
                end:
                    CellEnd::Python {
                        ending,
                        stdout,
                        stderr,
                        traceback,
                        ..
                    },
            } => self.ended(ending, traceback.as_deref(), &format!("{stdout}{stderr}")),
            _ => {}
        }
        false
    }

    fn ended(&mut self, ending: &CellEnding, traceback: Option<&str>, printed: &str) {
        self.runs = false;
        self.emulator.end_program();
        let (is_ok, result) = told(ending, traceback);
        if !result.is_empty() {
            self.emulator
                .feed_text(&format!("{}\n", clean::text(&result)));
        }
        self.has_failed = !is_ok;
        let code = self.code.replace('\n', "\n... ");
        let printed = printed.trim_end();
        let parts = [printed, &result].into_iter().filter(|it| !it.is_empty());
        let parts: Vec<&str> = parts.collect();
        self.last = Some(format!(
            "<python>\n>>> {code}\n{}\n</python>",
            parts.join("\n")
        ));
    }

    /// What was asked of it did not begin.
    pub(super) fn forget_asked(&mut self) {
        self.typed_here.clear();
    }

    /// Notes whether what is asked for was typed here.
    pub(super) fn asks(&mut self, is_typed_here: bool) {
        if self.typed_here.len() < ASKED_MAX {
            self.typed_here.push_back(is_typed_here);
        }
    }
}

/// Returns whether a cell ended well, and its value or the traceback of its exception.
fn told(ending: &CellEnding, traceback: Option<&str>) -> (bool, String) {
    if let (CellEnding::Raised { .. }, Some(traceback)) = (ending, traceback) {
        return (false, traceback.to_owned());
    }
    match ending {
        CellEnding::Returned { value_repr } => (true, value_repr.clone().unwrap_or_default()),
        CellEnding::Raised { exc_type, message } => (false, format!("{exc_type}: {message}")),
        CellEnding::Interrupted => (false, "KeyboardInterrupt".to_owned()),
        CellEnding::Lost { message } => (false, format!("the interpreter ended: {message}")),
        CellEnding::NotRun { message } => (false, format!("not run: {message}")),
    }
}

/// Returns whether code goes on in another line: a block was begun, and no empty line ends it.
pub(super) fn goes_on(code: &str) -> bool {
    let last = code.lines().next_back().unwrap_or_default();
    let begins_block = last.trim_end().ends_with([':', '\\', '(', '[', '{', ',']);
    let is_in_block = last.starts_with([' ', '\t']) && !last.trim().is_empty();
    begins_block || (is_in_block && !code.ends_with('\n'))
}

impl App {
    /// Shows the live Python session in the pane, or the shell again.
    pub(super) fn switch_pane(&mut self) -> Vec<Effect> {
        self.pane.shows_python = !self.pane.shows_python;
        match self.pane.shows_python {
            true => vec![Effect::OpenPython],
            false => Vec::new(),
        }
    }

    pub(super) fn python_prompt_key(&mut self, key: &KeyEvent) -> Vec<Effect> {
        self.python.emulator.scroll_to_bottom();
        let prompt = &mut self.python.prompt;
        match spelled(key).as_deref() {
            Some("Enter") if goes_on(prompt.editor.text()) => prompt.editor.insert("\n"),
            Some("Enter") => return self.run_python_line(),
            Some("Alt-Enter" | "Shift-Enter" | "Ctrl-J") => prompt.editor.insert("\n"),
            Some("Tab") => prompt.editor.insert("    "),
            Some("Up" | "Ctrl-P") => prompt.recall(true),
            Some("Down" | "Ctrl-N") => prompt.recall(false),
            Some("Ctrl-C") => drop(prompt.editor.take()),
            Some("Ctrl-L") => drop(self.python.emulator.feed(b"\x1b[2J\x1b[H")),
            Some("Ctrl-Z") => return vec![Effect::Suspend],
            Some("Esc" | "Ctrl-D") if prompt.editor.is_empty() => self.pane.leave(),
            _ => {
                edit(&mut prompt.editor, key);
                prompt.is_edited();
            }
        }
        Vec::new()
    }

    fn run_python_line(&mut self) -> Vec<Effect> {
        let Some(code) = self.python.prompt.take() else {
            return Vec::new();
        };
        let code = code.trim_end().to_owned();
        self.history.push(&code, Mode::Python, &self.secrets);
        vec![self.python_cell(code, true)]
    }

    /// Returns what runs a person's code. `is_typed_here` says whether it was typed in the pane.
    pub(super) fn python_cell(&mut self, code: String, is_typed_here: bool) -> Effect {
        self.python.asks(is_typed_here);
        Effect::Own {
            cell: Cell::Python(code),
            is_shared: true,
        }
    }

    /// Says what keeps the live session from being handed over; none where its last cell can be.
    pub(super) fn no_python_to_hand_over(&self) -> Option<&'static str> {
        match &self.python.last {
            _ if self.python.runs => Some("a cell runs: it is handed over once it is over"),
            None => Some("no cell ran in the live session yet"),
            Some(_) => None,
        }
    }

    pub(super) fn python_title(&self) -> &'static str {
        match self.python.has_failed {
            true => "python · raised",
            false => "python",
        }
    }

    pub(super) fn switch_hint(&self) -> String {
        let to = if self.pane.shows_python {
            "shell"
        } else {
            "python"
        };
        format!("{} {to}", key_of(Action::NextLanguage))
    }
}

#[cfg(test)]
mod tests {
    use super::goes_on;

    #[test]
    fn a_block_goes_on_until_an_empty_line() {
        for code in ["def f(x):", "def f(x):\n    return x", "f(1,", "a = \\"] {
            assert!(goes_on(code), "{code}");
        }
        for code in ["1 + 1", "def f(x):\n    return x\n", "print('a:')", ""] {
            assert!(!goes_on(code), "{code}");
        }
    }
}
