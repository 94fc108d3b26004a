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
/// What the editor tells its host when the wheel of modes is to turn.
const TURN_WHEEL: &str = "turn the wheel";

/// What one key enters: the agent is asked about what failed.
const EXPLAIN: &str = "/explain";

/// The user's keys, with a Tab that turns the wheel of modes where there is nothing to complete.
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
            // Only our Tab is such a list: a menu, and how to go on in it.
            ReedlineEvent::UntilFound(ref events) if is_tab(events) && self.shared.is_empty() => {
                turn_wheel()
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

fn turn_wheel() -> ReedlineEvent {
    ReedlineEvent::ExecuteHostCommand(TURN_WHEEL.to_owned())
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
    let back = ReedlineEvent::UntilFound(vec![ReedlineEvent::MenuPrevious, turn_wheel()]);
    // Terminals tell the same key in two ways.
    keys.add_binding(KeyModifiers::SHIFT, KeyCode::BackTab, back.clone());
    keys.add_binding(KeyModifiers::NONE, KeyCode::BackTab, back);
    keys
}
