//! The keys that edit a text, by the habits of Emacs: the help follows from the same table.

use super::keys::spelled;
use crate::prompt::editor::Editor;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A row of the table.
pub(super) struct EditBinding {
    /// As [`spelled`] spells them.
    pub(super) keys: &'static [&'static str],
    edit: fn(&mut Editor),
    /// What it does, for the help.
    pub(super) does: &'static str,
}

const fn bind(
    keys: &'static [&'static str],
    edit: fn(&mut Editor),
    does: &'static str,
) -> EditBinding {
    EditBinding { keys, edit, does }
}

/// All keys that edit a text.
pub(super) const EDIT_BINDINGS: &[EditBinding] = &[
    bind(&["Left", "Ctrl-B"], Editor::left, "a letter left"),
    bind(&["Right"], Editor::right, "a letter right"),
    bind(
        &["Alt-B", "Ctrl-Left", "Alt-Left"],
        Editor::go_to_word_left,
        "a word left",
    ),
    bind(
        &["Alt-F", "Ctrl-Right", "Alt-Right"],
        Editor::go_to_word_right,
        "a word right",
    ),
    bind(
        &["Home", "Ctrl-A"],
        Editor::go_to_line_start,
        "the beginning of the line",
    ),
    bind(
        &["End", "Ctrl-E"],
        Editor::go_to_line_end,
        "the end of the line",
    ),
    bind(
        &["Backspace", "Ctrl-H", "Shift-Backspace"],
        Editor::backspace,
        "delete the letter before",
    ),
    bind(&["Delete"], Editor::delete, "delete the letter"),
    bind(
        &["Ctrl-W", "Alt-Backspace", "Ctrl-Backspace"],
        Editor::cut_word_left,
        "cut the word before",
    ),
    bind(
        &["Alt-D", "Ctrl-Delete"],
        Editor::cut_word_right,
        "cut the word behind",
    ),
    bind(
        &["Ctrl-U"],
        Editor::cut_to_start,
        "cut to the beginning of the line",
    ),
    bind(
        &["Ctrl-K"],
        Editor::cut_to_end,
        "cut to the end of the line",
    ),
    bind(&["Ctrl-Y"], Editor::put, "put in what was cut last"),
    bind(
        &["Alt-T"],
        Editor::transpose_words,
        "swap the words around the caret",
    ),
    bind(
        &["Alt-U"],
        |it| it.respell_word(str::to_uppercase),
        "the word in capital letters",
    ),
    bind(
        &["Alt-L"],
        |it| it.respell_word(str::to_lowercase),
        "the word in small letters",
    ),
    bind(
        &["Ctrl-_", "Ctrl-/", "Ctrl-7"],
        Editor::undo,
        "take the last change back",
    ),
];

/// Types a key into a text, or edits it by what the key is bound to.
pub(super) fn edit(editor: &mut Editor, key: &KeyEvent) {
    let has_others = key
        .modifiers
        .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
    if let (KeyCode::Char(c), false) = (key.code, has_others) {
        return editor.insert(c.encode_utf8(&mut [0; 4]));
    }
    let spelled = spelled(key).unwrap_or_default();
    let mut bound = EDIT_BINDINGS.iter();
    if let Some(bound) = bound.find(|it| it.keys.contains(&spelled.as_str())) {
        (bound.edit)(editor);
    }
}
