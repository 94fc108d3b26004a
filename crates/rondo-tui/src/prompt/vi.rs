//! The keys of vi. The line prompt's editor parses them and works on the draft, without a terminal of its own, so that
//! both prompts have the same ones.

use super::editor::Editor;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use reedline::{
    EditCommand, EditMode, PromptEditMode, PromptViMode, Reedline, ReedlineEvent, ReedlineRawEvent,
    Vi as Grammar,
};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of earlier texts that the line editor keeps and that are not returned to: beyond them a new one takes its
/// place, and what was cut is forgotten.
const KEPT_BYTES_MAX: usize = 32 << 20;

/// Digits of the number of times that a command is done.
const COUNT_DIGITS_MAX: usize = 3;

/// Mode in which a key is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ViMode {
    /// Text.
    Insert,
    /// A command.
    Normal,
    /// A command on the selection, or one that moves its end.
    Visual,
}

impl ViMode {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Normal => "normal",
            Self::Visual => "visual",
        }
    }
}

/// Request of a key that is not a change of the draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ViRequest {
    /// The row above, or what was typed before.
    Up,
    /// The row below, or what was typed after.
    Down,
    /// To search what was typed before.
    Search,
}

/// The keys of vi, and the mode that they are in.
pub(crate) struct Vi {
    grammar: Grammar,
    engine: Reedline,
    told: SharedEditMode,
    kept: usize,
    /// Digits that were typed in a row.
    digits: usize,
}

/// The mode that the line editor is told: the grammar that knows it is here.
#[derive(Clone)]
struct SharedEditMode(Arc<Mutex<PromptEditMode>>);

impl Default for Vi {
    fn default() -> Self {
        let told = SharedEditMode(Arc::new(Mutex::new(PromptEditMode::Vi(
            PromptViMode::Insert,
        ))));
        Self {
            grammar: Grammar::default(),
            engine: engine(&told),
            told,
            kept: 0,
            digits: 0,
        }
    }
}

fn engine(told: &SharedEditMode) -> Reedline {
    Reedline::create().with_edit_mode(Box::new(told.clone()))
}

impl Vi {
    pub(crate) fn mode(&self) -> ViMode {
        match self.grammar.edit_mode() {
            PromptEditMode::Vi(PromptViMode::Normal) => ViMode::Normal,
            PromptEditMode::Vi(PromptViMode::Visual) => ViMode::Visual,
            _ => ViMode::Insert,
        }
    }

    /// Returns whether a key is one of vi's in the current mode. In insert mode all but Esc are the input's own.
    pub(crate) fn takes(&self, key: &KeyEvent) -> bool {
        let has_others = key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match (self.mode(), key.code) {
            (ViMode::Insert | ViMode::Visual, KeyCode::Esc) => !has_others,
            (ViMode::Insert, _) => false,
            (ViMode::Visual, KeyCode::Up | KeyCode::Down) => !has_others,
            (
                _,
                KeyCode::Char(_)
                | KeyCode::Backspace
                | KeyCode::Delete
                | KeyCode::Left
                | KeyCode::Right
                | KeyCode::Home
                | KeyCode::End,
            ) => !has_others,
            _ => false,
        }
    }

    /// Begins again, as for every draft.
    pub(crate) fn insert(&mut self) {
        let insert = PromptEditMode::Vi(PromptViMode::Insert);
        // Only another editor's mode is not taken.
        let _ = self
            .grammar
            .handle_mode_specific_event(ReedlineEvent::SwitchMode(insert));
    }

    /// Takes a key.
    pub(crate) fn key(&mut self, key: &KeyEvent, editor: &mut Editor) -> Vec<ViRequest> {
        let mut wishes = Vec::new();
        if self.is_digit_too_many(key) {
            return wishes;
        }
        if let Ok(event) = ReedlineRawEvent::try_from(Event::Key(*key)) {
            // In the mode before: another one would have the caret elsewhere.
            self.take_text(editor);
            let event = self.grammar.parse_event(event);
            self.told.set(self.grammar.edit_mode());
            self.follow(event, editor, &mut wishes);
        }
        self.settle(editor);
        wishes
    }

    fn is_digit_too_many(&mut self, key: &KeyEvent) -> bool {
        let is_digit = matches!(key.code, KeyCode::Char('0'..='9'));
        self.digits = if is_digit { self.digits + 1 } else { 0 };
        self.digits > COUNT_DIGITS_MAX
    }

    /// Returns the bytes of the selection.
    pub(crate) fn selection(&self) -> Option<(usize, usize)> {
        let is_visual = self.mode() == ViMode::Visual;
        self.engine.current_selection().filter(|_| is_visual)
    }

    /// Puts the caret on a letter, as in the other modes than insert, and lets a selection hold one at least.
    pub(crate) fn settle(&mut self, editor: &mut Editor) {
        self.take_text(editor);
        let has_begun = self.selection().is_some();
        if self.mode() == ViMode::Insert || has_begun {
            return;
        }
        let stay = EditCommand::MoveToPosition {
            position: editor.caret(),
            select: false,
        };
        self.run(&stay, editor);
    }

    fn follow(&mut self, event: ReedlineEvent, editor: &mut Editor, wishes: &mut Vec<ViRequest>) {
        match event {
            ReedlineEvent::Multiple(events) => {
                for event in events {
                    self.follow(event, editor, wishes);
                }
            }
            ReedlineEvent::Edit(commands) => self.edit(&commands, editor),
            ReedlineEvent::UntilFound(events) => {
                // Menus and hints, which come first in such a list, are not the line editor's here.
                let own = events.into_iter().find(|it| {
                    matches!(
                        it,
                        ReedlineEvent::Edit(_)
                            | ReedlineEvent::Up
                            | ReedlineEvent::Down
                            | ReedlineEvent::Left
                            | ReedlineEvent::Right
                    )
                });
                if let Some(event) = own {
                    self.follow(event, editor, wishes);
                }
            }
            ReedlineEvent::SwitchMode(_) => {
                let _ = self.grammar.handle_mode_specific_event(event);
                self.told.set(self.grammar.edit_mode());
            }
            ReedlineEvent::Up => wishes.push(ViRequest::Up),
            ReedlineEvent::Down => wishes.push(ViRequest::Down),
            ReedlineEvent::Left => self.run(&EditCommand::MoveLeft { select: false }, editor),
            ReedlineEvent::Right => self.run(&EditCommand::MoveRight { select: false }, editor),
            ReedlineEvent::SearchHistory => wishes.push(ViRequest::Search),
            _ => {}
        }
    }

    fn edit(&mut self, commands: &[EditCommand], editor: &mut Editor) {
        for command in commands {
            match command {
                EditCommand::Undo => {
                    editor.undo();
                    self.take_text(editor);
                }
                EditCommand::InsertNewlineAbove if !editor.before().contains('\n') => {
                    self.run(command, editor);
                    // Above the first line, the caret is left behind the new one.
                    self.run(&EditCommand::MoveToStart { select: false }, editor);
                }
                command => self.run(command, editor),
            }
        }
    }

    fn run(&mut self, command: &EditCommand, editor: &mut Editor) {
        self.engine.run_edit_commands(std::slice::from_ref(command));
        let text = self.engine.current_buffer_contents();
        self.kept = self.kept.saturating_add(text.len());
        if !editor.become_text(text, self.engine.current_insertion_point()) {
            self.take_text(editor);
        }
        if self.kept > KEPT_BYTES_MAX {
            self.engine = engine(&self.told);
            self.kept = 0;
            self.take_text(editor);
        }
    }

    /// Gives the line editor the draft, which others have changed or moved in meanwhile.
    fn take_text(&mut self, editor: &Editor) {
        let mut commands = Vec::new();
        if self.engine.current_buffer_contents() != editor.text() {
            commands.push(EditCommand::Clear);
            commands.push(EditCommand::InsertString(editor.text().to_owned()));
        }
        if !commands.is_empty() || self.engine.current_insertion_point() != editor.caret() {
            commands.push(EditCommand::MoveToPosition {
                position: editor.caret(),
                select: false,
            });
        }
        self.engine.run_edit_commands(&commands);
    }
}

impl SharedEditMode {
    fn set(&self, mode: PromptEditMode) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = mode;
    }
}

impl EditMode for SharedEditMode {
    fn parse_event(&mut self, _: ReedlineRawEvent) -> ReedlineEvent {
        ReedlineEvent::None
    }

    fn edit_mode(&self) -> PromptEditMode {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types keys, of which `␛` is Esc, in a draft that the input edits in insert mode.
    fn typed(vi: &mut Vi, editor: &mut Editor, keys: &str) -> Vec<ViRequest> {
        let mut wishes = Vec::new();
        for letter in keys.chars() {
            let (code, modifiers) = match letter {
                '␛' => (KeyCode::Esc, KeyModifiers::NONE),
                letter if letter.is_uppercase() => (KeyCode::Char(letter), KeyModifiers::SHIFT),
                letter => (KeyCode::Char(letter), KeyModifiers::NONE),
            };
            let key = KeyEvent::new(code, modifiers);
            match vi.takes(&key) {
                true => wishes.extend(vi.key(&key, editor)),
                false => editor.insert(&letter.to_string()),
            }
        }
        wishes
    }

    #[track_caller]
    fn check(keys: &str, text: &str) {
        let (mut vi, mut editor) = (Vi::default(), Editor::default());
        typed(&mut vi, &mut editor, keys);
        assert_eq!(editor.text(), text, "{keys}");
    }

    #[test]
    fn operators_motions_counts_and_text_objects_work() {
        check("one two three␛02dw", "three");
        check("one two␛bcwnew", "one new");
        check("one two␛dd", "");
        check("one\ntwo␛ddP", "two\none");
        check("f(a, b)␛di(ix", "f(x)");
        check("say \"hi\"␛bci\"x", "say \"x\"");
        check("one two␛0xp", "noe two");
        check("abc␛0f", "abc");
        check("a.b.c␛0f.;D", "a.b");
        check("one␛ro~", "onO");
        check("one␛Otwo", "two\none");
        check("one two␛bywA ␛p", "one two two");
        check("one two␛0dw.", "");
    }

    #[test]
    fn the_caret_stands_on_a_letter_and_between_two_while_text_is_inserted() {
        for (keys, before) in [
            ("one two", "one two"),
            ("one two␛", "one tw"),
            ("one two␛0w", "one "),
            ("one two␛0$", "one tw"),
            ("one two␛x", "one t"),
            ("one two␛i", "one tw"),
            ("one two␛a", "one two"),
        ] {
            let (mut vi, mut editor) = (Vi::default(), Editor::default());
            typed(&mut vi, &mut editor, keys);
            assert_eq!(editor.before(), before, "{keys}");
        }
    }

    #[test]
    fn undo_takes_back_a_command() {
        check("one two␛0dwu", "one two");
        check("one two␛ddu", "one two");
    }

    #[test]
    fn a_selection_is_shown_extended_and_cut() {
        let (mut vi, mut editor) = (Vi::default(), Editor::default());
        typed(&mut vi, &mut editor, "one two␛0v");
        assert_eq!((vi.mode(), vi.selection()), (ViMode::Visual, Some((0, 1))));
        typed(&mut vi, &mut editor, "e");
        assert_eq!(vi.selection(), Some((0, 3)));
        typed(&mut vi, &mut editor, "d");
        assert_eq!((editor.text(), vi.selection()), (" two", None));
        assert_eq!(vi.mode(), ViMode::Normal);
        typed(&mut vi, &mut editor, "v␛");
        assert_eq!((vi.mode(), vi.selection()), (ViMode::Normal, None));
    }

    #[test]
    fn what_others_do_to_the_draft_is_worked_on() {
        let (mut vi, mut editor) = (Vi::default(), Editor::default());
        typed(&mut vi, &mut editor, "one␛");
        editor.set("another draft");
        vi.settle(&mut editor);
        assert_eq!(editor.before(), "another draf");
        typed(&mut vi, &mut editor, "bD");
        assert_eq!(editor.text(), "another ");
    }

    #[test]
    fn rows_and_the_history_are_the_inputs_own() {
        let (mut vi, mut editor) = (Vi::default(), Editor::default());
        let wishes = typed(&mut vi, &mut editor, "one␛kj?");
        assert_eq!(wishes, [ViRequest::Up, ViRequest::Down, ViRequest::Search]);
    }

    #[test]
    fn no_command_makes_more_of_a_draft_than_it_may_hold() {
        let (mut vi, mut editor) = (Vi::default(), Editor::default());
        editor.insert(&"x".repeat(1 << 20));
        typed(&mut vi, &mut editor, "␛0D9p");
        assert_eq!(editor.text().len(), 4 << 20);
    }

    #[test]
    fn a_new_line_editor_takes_the_place_of_one_that_keeps_too_much() {
        let (mut vi, mut editor) = (Vi::default(), Editor::default());
        editor.insert(&"word ".repeat(200_000));
        typed(&mut vi, &mut editor, "␛0");
        for _ in 0..40 {
            typed(&mut vi, &mut editor, "x");
            assert!(vi.kept <= KEPT_BYTES_MAX);
        }
        assert_eq!(editor.text().len(), 1_000_000 - 40);
    }
}
