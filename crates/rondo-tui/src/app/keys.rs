//! The table of the screen's keys: bindings, the help panel and the hints of the footer follow from it.

use crate::prompt::spelled;
use crossterm::event::KeyEvent;

/// What a key does while the input has the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Send,
    Newline,
    Queue,
    Escape,
    Interrupt,
    EndOrDelete,
    NextMode,
    NextLanguage,
    Review,
    PageUp,
    PageDown,
    RowUp,
    RowDown,
    Top,
    Bottom,
    Find,
    Pager,
    ExternalEditor,
    SearchHistory,
    Redraw,
    Suspend,
    Help,
    Previous,
    Next,
    SelectUp,
    SelectDown,
    Open,
    CopyEntry,
    RunAgain,
    Plan,
    Model,
    Sessions,
    Unfold,
    PasteImage,
    Explain,
    Pane,
    ZoomPane,
    ClosePane,
    HandOver,
}

/// A row of the table.
pub(crate) struct Binding {
    /// As [`spelled`] spells them.
    pub(crate) keys: &'static [&'static str],
    pub(crate) action: Action,
    /// What it does, for the help.
    pub(crate) does: &'static str,
}

const fn bind(keys: &'static [&'static str], action: Action, does: &'static str) -> Binding {
    Binding { keys, action, does }
}

/// The screen's keys of the input, but for those that edit the text, vi's, and `?`.
pub(crate) const BINDINGS: &[Binding] = &[
    bind(
        &["Enter"],
        Action::Send,
        "send; while a turn runs, steer it",
    ),
    bind(
        &["Alt-Enter", "Shift-Enter", "Ctrl-Enter", "Ctrl-J"],
        Action::Newline,
        "another line (also `\\` and Enter)",
    ),
    bind(
        &["Tab"],
        Action::Queue,
        "complete; while a turn runs, queue for the next one",
    ),
    bind(
        &["Esc"],
        Action::Escape,
        "one back; stop what runs; twice when empty: go back a turn",
    ),
    bind(
        &["Ctrl-C"],
        Action::Interrupt,
        "copy the selection; drop the draft; stop what runs; twice when idle: quit",
    ),
    bind(
        &["Ctrl-D"],
        Action::EndOrDelete,
        "quit when empty; else delete a letter",
    ),
    bind(
        &["Shift-Tab"],
        Action::NextMode,
        "what runs without asking: ask, auto, plan",
    ),
    bind(
        &["F2"],
        Action::NextLanguage,
        "what you type: agent, shell, python",
    ),
    bind(
        &["Alt-Y"],
        Action::Review,
        "review what waits for approval; after Ctrl-Y, what was cut before",
    ),
    bind(&["PageUp"], Action::PageUp, "scroll a page up"),
    bind(&["PageDown"], Action::PageDown, "scroll a page down"),
    bind(&["Shift-Up", "Ctrl-Up"], Action::RowUp, "scroll a row up"),
    bind(
        &["Shift-Down", "Ctrl-Down"],
        Action::RowDown,
        "scroll a row down",
    ),
    bind(&["Ctrl-Home", "Alt-<"], Action::Top, "the beginning"),
    bind(
        &["Ctrl-End", "Alt->"],
        Action::Bottom,
        "the end, which is followed",
    ),
    bind(&["Ctrl-F"], Action::Find, "find in the whole session"),
    bind(&["Alt-Up"], Action::SelectUp, "select the entry before"),
    bind(&["Alt-Down"], Action::SelectDown, "select the entry after"),
    bind(
        &["Alt-E"],
        Action::Open,
        "show the selected entry in full, or no more",
    ),
    bind(
        &["Alt-C"],
        Action::CopyEntry,
        "copy the selected entry, or the last answer",
    ),
    bind(
        &["Alt-R"],
        Action::RunAgain,
        "type the selected command again",
    ),
    bind(&["Ctrl-O"], Action::Pager, "the whole session in `$PAGER`"),
    bind(
        &["Ctrl-G", "Ctrl-X Ctrl-E"],
        Action::ExternalEditor,
        "edit the draft in `$EDITOR`",
    ),
    bind(
        &["Ctrl-R"],
        Action::SearchHistory,
        "search what was typed before",
    ),
    bind(&["Ctrl-T"], Action::Plan, "the agent's to-do list"),
    bind(&["Alt-P"], Action::Model, "choose the model"),
    bind(&["Alt-S"], Action::Sessions, "sessions"),
    bind(
        &["Alt-V"],
        Action::Unfold,
        "put a paste's text in place of its chip",
    ),
    bind(
        &["Ctrl-V"],
        Action::PasteImage,
        "attach the image on the clipboard (also: paste the path of one)",
    ),
    bind(
        &["Alt-A"],
        Action::Explain,
        "ask the agent about the last failure",
    ),
    bind(
        // A terminal without kitty's keys sends one byte for both.
        &["Ctrl-]", "Ctrl-5"],
        Action::Pane,
        "the shell beside the conversation: enter and leave it",
    ),
    bind(
        &["Alt-Z"],
        Action::ZoomPane,
        "the shell on the whole screen, or beside again",
    ),
    bind(&["Alt-W"], Action::ClosePane, "close the shell's pane"),
    bind(
        &["Alt-G"],
        Action::HandOver,
        "give the shell's last command and output to the agent, after a preview",
    ),
    bind(
        &["Up", "Ctrl-P"],
        Action::Previous,
        "row up; what was typed before",
    ),
    bind(
        &["Down", "Ctrl-N"],
        Action::Next,
        "row down; what was typed after",
    ),
    bind(&["Ctrl-L"], Action::Redraw, "draw the screen anew"),
    bind(&["Ctrl-Z"], Action::Suspend, "stop, until `fg`"),
    bind(&["F1"], Action::Help, "this help (also `?` when empty)"),
];

/// Returns what a key does.
pub(crate) fn action(key: &KeyEvent) -> Option<Action> {
    let spelled = spelled(key)?;
    let bound = BINDINGS
        .iter()
        .find(|it| it.keys.contains(&spelled.as_str()));
    bound.map(|it| it.action)
}

/// Begins a key of two.
pub(crate) const PREFIX: &str = "Ctrl-X";

/// Returns what a key does after [`PREFIX`].
pub(crate) fn prefixed_action(key: &KeyEvent) -> Option<Action> {
    let spelled = format!("{PREFIX} {}", spelled(key)?);
    let bound = BINDINGS
        .iter()
        .find(|it| it.keys.contains(&spelled.as_str()));
    bound.map(|it| it.action)
}

/// Returns the first key of an action.
pub(crate) fn key_of(action: Action) -> &'static str {
    let bound = BINDINGS.iter().find(|it| it.action == action);
    bound.and_then(|it| it.keys.first()).copied().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::EDIT_BINDINGS;
    use crossterm::event::{KeyCode, KeyModifiers};
    use std::collections::HashSet;

    #[test]
    fn no_key_is_bound_twice() {
        let mut seen = HashSet::new();
        let of_screen = BINDINGS.iter().flat_map(|it| it.keys);
        let of_text = EDIT_BINDINGS.iter().flat_map(|it| it.keys);
        for key in of_screen.chain(of_text) {
            assert!(seen.insert(key), "{key}");
        }
    }

    #[test]
    fn keys_are_spelled_as_the_help_shows_them() {
        let key = |code, modifiers| spelled(&KeyEvent::new(code, modifiers)).unwrap();
        let (ctrl, alt) = (KeyModifiers::CONTROL, KeyModifiers::ALT);
        assert_eq!(key(KeyCode::Char('f'), ctrl), "Ctrl-F");
        assert_eq!(key(KeyCode::Char('Y'), alt | KeyModifiers::SHIFT), "Alt-Y");
        assert_eq!(key(KeyCode::Char('Y'), KeyModifiers::SHIFT), "Y");
        assert_eq!(key(KeyCode::BackTab, KeyModifiers::NONE), "Shift-Tab");
        assert_eq!(key(KeyCode::Enter, alt), "Alt-Enter");
    }
}
