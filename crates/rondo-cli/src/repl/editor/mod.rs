//! The line editor.
//!
//! # Layout
//! - `plain`: lines of a terminal that can only print.
//! - `keys`: key bindings; `prompt`: the texts around the line; `menu`: the menu of completions.
//! - `complete`, `paths`, `programs`: completion.
//! - `highlight`, `check`: the colours of a line, and whether it is complete.
//! - `history`: earlier lines; `shared`: the state that these share with the prompt's loop.

mod check;
mod complete;
mod highlight;
mod history;
mod keys;
mod menu;
mod paths;
mod plain;
mod programs;
mod prompt;
mod shared;

pub(super) use complete::Names;
pub(super) use prompt::Face;
pub(super) use shared::Shared;

use crate::exit::Stop;
use crate::output::Output;
use check::Whole;
use complete::Words;
use highlight::Paint;
use history::Lines;
use keys::{Keys, MENU, NEXT_RUN_MODE};
use menu::Choices;
use plain::PlainLines;
use reedline::{
    Color, ColumnarMenu, DefaultHinter, EditCommand, ExternalPrinter, History as _, HistoryItem,
    MenuBuilder as _, Reedline, ReedlineMenu, Signal,
};
use rondo_runtime::secrets::KeyNames;
use rondo_runtime::values::EditKeys;
use rondo_script::InitKey;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// Pieces of text that wait to be shown above the line; few, so that keys are not kept waiting by them.
const ABOVE_MAX: usize = 4;

/// How often the editor looks for such text without being woken.
const NEVER_BY_ITSELF: Duration = Duration::from_hours(24);

/// What the editor is built from.
pub(super) struct EditorSettings {
    /// Whose keys edit the line.
    pub(super) keys: EditKeys,
    /// Where what was typed is kept; nowhere if there is none.
    pub(super) history: Option<PathBuf>,
    /// The variables whose values are not to be kept.
    pub(super) key_names: KeyNames,
    /// Where lines are read and shown.
    pub(super) output: Output,
    /// Names that could be typed.
    pub(super) names: Names,
    /// Keys of `init.lua`.
    pub(super) own_keys: Vec<InitKey>,
}

/// Reads lines from the person at the terminal.
pub(super) struct Editor {
    lines: Reader,
    shared: Shared,
    above: Option<SyncSender<String>>,
}

/// The part that reads.
enum Reader {
    /// Edits the line with keys.
    Keys(Box<Reedline>),
    /// Reads from a terminal that can only print.
    Plain(PlainLines, Box<Lines>),
}

/// What a person did at the prompt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PromptInput {
    /// Entered a line.
    Line(String),
    /// Wants the next mode.
    TurnWheel,
    /// Wants what runs without asking changed.
    NextRunMode,
    /// Wants none of what stood there.
    Dropped,
    /// Wants to leave.
    End,
    /// Was told to from outside.
    Told(Stop),
}

impl Editor {
    /// Builds the editor.
    pub(super) fn new(settings: EditorSettings, shared: Shared) -> Self {
        let lines = Lines::read(settings.history, shared.clone(), settings.key_names);
        let (output, color) = (settings.output, settings.output.stdout_color);
        if !output.stderr_erases {
            let plain = PlainLines::new(output, Whole::new(shared.clone()));
            return Self {
                lines: Reader::Plain(plain, Box::new(lines)),
                shared,
                above: None,
            };
        }
        let menu = Choices::new(ColumnarMenu::default().with_name(MENU));
        let hint = DefaultHinter::default().with_style(Color::DarkGray.normal());
        let inner = Reedline::create()
            .use_bracketed_paste(true)
            .with_ansi_colors(color)
            .with_history(Box::new(lines))
            // As shells have it: what begins with a blank is not remembered.
            .with_history_exclusion_prefix(Some(" ".to_owned()))
            .with_hinter(Box::new(hint))
            .with_completer(Box::new(Words::new(shared.clone(), settings.names)))
            .with_partial_completions(true)
            .with_quick_completions(true)
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
            .with_highlighter(Box::new(Paint::new(shared.clone(), color)))
            .with_validator(Box::new(Whole::new(shared.clone())))
            .with_edit_mode(Box::new(Keys::new(
                settings.keys,
                &settings.own_keys,
                shared.clone(),
            )));
        Self {
            lines: Reader::Keys(Box::new(inner)),
            shared,
            above: None,
        }
    }

    /// Returns where text goes that is to stand above the line while that is edited. The editor looks for
    /// it when it is woken ([`super::unix::wake_editor`]): to look every so often costs what a machine
    /// saves by sleeping.
    pub(super) fn above(&mut self) -> SyncSender<String> {
        if let Some(above) = &self.above {
            return above.clone();
        }
        let above = match &mut self.lines {
            Reader::Plain(lines, _) => lines.above(),
            Reader::Keys(inner) => {
                let printer = ExternalPrinter::new(ABOVE_MAX);
                let above = printer.sender();
                let own = std::mem::replace(&mut **inner, Reedline::create());
                **inner = own
                    .with_external_printer(printer)
                    .with_poll_interval(NEVER_BY_ITSELF);
                above
            }
        };
        self.above.insert(above).clone()
    }

    /// Reads a line. What was dropped with Ctrl-C is one step up in the history.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub(super) fn read(&mut self, face: &Face) -> io::Result<PromptInput> {
        let inner = match &mut self.lines {
            Reader::Keys(inner) => inner,
            Reader::Plain(lines, _) => {
                let typed = lines.read(face)?;
                if let PromptInput::Line(line) = &typed {
                    self.remember(line);
                }
                return Ok(typed);
            }
        };
        let signal = inner.read_line(face).map_err(io::Error::other)?;
        Ok(match signal {
            Signal::Success(line) => PromptInput::Line(line),
            Signal::HostCommand(name) if name == NEXT_RUN_MODE => PromptInput::NextRunMode,
            Signal::HostCommand(_) => PromptInput::TurnWheel,
            Signal::CtrlD => PromptInput::End,
            _ => {
                self.remember(&self.shared.take_line());
                PromptInput::Dropped
            }
        })
    }

    /// Puts a line where the key for the line before finds it.
    pub(super) fn remember(&mut self, line: &str) {
        if line.trim().is_empty() || line.starts_with(' ') {
            return;
        }
        let item = HistoryItem::from_command_line(line);
        // It is in reach or it is not; the prompt goes on.
        let _ = match &mut self.lines {
            Reader::Keys(inner) => inner.history_mut().save(item),
            Reader::Plain(_, lines) => lines.save(item),
        };
    }

    /// Begins the next line with a text.
    pub(super) fn begin_with(&mut self, text: &str) {
        match &mut self.lines {
            Reader::Keys(inner) => {
                inner.run_edit_commands(&[EditCommand::InsertString(text.to_owned())]);
            }
            Reader::Plain(lines, _) => lines.begin_with(text),
        }
    }
}
