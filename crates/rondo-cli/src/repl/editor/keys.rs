//! The editor's key bindings, in addition to those of Emacs or vi.

use super::shared::Shared;
use reedline::{
    EditCommand, EditMode, Emacs, KeyCode, KeyModifiers, Keybindings, PromptEditMode,
    ReedlineEvent, ReedlineRawEvent, Vi, default_emacs_keybindings, default_vi_insert_keybindings,
    default_vi_normal_keybindings, default_vi_visual_keybindings,
};
use rondo_runtime::values::EditKeys;

/// The menu of completions.
pub(super) const MENU: &str = "completions";
/// The host command that switches the prompt to its next mode.
const NEXT_MODE: &str = "next mode";

/// The slash command that Alt-A enters: the agent explains the last failure.
const EXPLAIN: &str = "/explain";

/// The key bindings of the user's choice, with a Tab that switches the mode if the line is empty, and completes if it
/// is not.
pub(super) struct Keys {
    inner: Box<dyn EditMode>,
    shared: Shared,
}

impl Keys {
    pub(super) fn new(keys: EditKeys, shared: Shared) -> Self {
        let inner: Box<dyn EditMode> = match keys {
            EditKeys::Emacs => Box::new(Emacs::new(with_ours(default_emacs_keybindings()))),
            EditKeys::Vi => Box::new(Vi::new(
                with_ours(default_vi_insert_keybindings()),
                with_ours(default_vi_normal_keybindings()),
                default_vi_visual_keybindings(),
            )),
        };
        Self { inner, shared }
    }
}

impl EditMode for Keys {
    fn parse_event(&mut self, event: ReedlineRawEvent) -> ReedlineEvent {
        let parsed = self.inner.parse_event(event);
        match parsed {
            // Only our Tab is such a list: open the menu, or select its next entry.
            ReedlineEvent::UntilFound(ref events) if is_tab(events) && self.shared.is_empty() => {
                next_mode()
            }
            ReedlineEvent::None | ReedlineEvent::Resize(..) => parsed,
            _ => {
                self.shared.key_came();
                parsed
            }
        }
    }

    fn edit_mode(&self) -> PromptEditMode {
        self.inner.edit_mode()
    }
}

fn is_tab(events: &[ReedlineEvent]) -> bool {
    matches!(events.first(), Some(ReedlineEvent::Menu(name)) if name == MENU)
}

fn next_mode() -> ReedlineEvent {
    ReedlineEvent::ExecuteHostCommand(NEXT_MODE.to_owned())
}

fn with_ours(mut keys: Keybindings) -> Keybindings {
    keys.add_binding(
        KeyModifiers::NONE,
        KeyCode::Tab,
        ReedlineEvent::UntilFound(vec![
            ReedlineEvent::Menu(MENU.to_owned()),
            ReedlineEvent::MenuNext,
        ]),
    );
    keys.add_binding(
        KeyModifiers::ALT,
        KeyCode::Char('a'),
        ReedlineEvent::Multiple(vec![
            ReedlineEvent::Edit(vec![
                EditCommand::Clear,
                EditCommand::InsertString(EXPLAIN.to_owned()),
            ]),
            ReedlineEvent::Submit,
        ]),
    );
    let back = ReedlineEvent::UntilFound(vec![ReedlineEvent::MenuPrevious, next_mode()]);
    // Terminals report Shift-Tab with or without the modifier.
    keys.add_binding(KeyModifiers::SHIFT, KeyCode::BackTab, back.clone());
    keys.add_binding(KeyModifiers::NONE, KeyCode::BackTab, back);
    keys
}
