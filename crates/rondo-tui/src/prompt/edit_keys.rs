//! The keys that edit a text, by the habits of Emacs: the help follows from the same table.

use super::editor::Editor;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A row of the table.
pub(crate) struct EditBinding {
    /// As [`spelled`] spells them.
    pub(crate) keys: &'static [&'static str],
    edit: fn(&mut Editor),
    /// What it does, for the help.
    pub(crate) does: &'static str,
}

const fn bind(
    keys: &'static [&'static str],
    edit: fn(&mut Editor),
    does: &'static str,
) -> EditBinding {
    EditBinding { keys, edit, does }
}

/// All keys that edit a text.
pub(crate) const EDIT_BINDINGS: &[EditBinding] = &[
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
pub fn edit(editor: &mut Editor, key: &KeyEvent) {
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

/// Spells a key as the help does.
pub fn spelled(key: &KeyEvent) -> Option<String> {
    let mut modifiers = key.modifiers;
    let name = match key.code {
        KeyCode::Char(' ') => "Space".to_owned(),
        KeyCode::Char(c) => {
            // A capital letter is its own sign; with others held, both are the same key.
            let has_others = modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
            modifiers.remove(KeyModifiers::SHIFT);
            match has_others {
                true => c.to_uppercase().collect(),
                false => c.to_string(),
            }
        }
        KeyCode::Enter => "Enter".to_owned(),
        KeyCode::Tab => "Tab".to_owned(),
        KeyCode::BackTab => {
            modifiers.insert(KeyModifiers::SHIFT);
            "Tab".to_owned()
        }
        KeyCode::Esc => "Esc".to_owned(),
        KeyCode::Backspace => "Backspace".to_owned(),
        KeyCode::Delete => "Delete".to_owned(),
        KeyCode::Up => "Up".to_owned(),
        KeyCode::Down => "Down".to_owned(),
        KeyCode::Left => "Left".to_owned(),
        KeyCode::Right => "Right".to_owned(),
        KeyCode::Home => "Home".to_owned(),
        KeyCode::End => "End".to_owned(),
        KeyCode::PageUp => "PageUp".to_owned(),
        KeyCode::PageDown => "PageDown".to_owned(),
        KeyCode::F(number) => format!("F{number}"),
        _ => return None,
    };
    let mut spelled = String::new();
    for (modifier, prefix) in [
        (KeyModifiers::CONTROL, "Ctrl-"),
        (KeyModifiers::ALT, "Alt-"),
        (KeyModifiers::SHIFT, "Shift-"),
    ] {
        if modifiers.contains(modifier) {
            spelled.push_str(prefix);
        }
    }
    Some(spelled + &name)
}
