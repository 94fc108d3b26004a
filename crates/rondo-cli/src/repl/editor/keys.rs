//! The editor's key bindings, in addition to those of Emacs or vi.

use super::shared::Shared;
use reedline::{
    EditCommand, EditMode, Emacs, KeyCode, KeyModifiers, Keybindings, PromptEditMode,
    ReedlineEvent, ReedlineRawEvent, Vi, default_emacs_keybindings, default_vi_insert_keybindings,
    default_vi_normal_keybindings, default_vi_visual_keybindings,
};
use rondo_runtime::values::EditKeys;
use rondo_script::InitKey;

/// The menu of completions.
pub(super) const MENU: &str = "completions";
/// The host command that switches the prompt to its next mode.
const NEXT_MODE: &str = "next mode";
/// The host command that changes what runs without asking.
pub(super) const NEXT_RUN_MODE: &str = "next run mode";

/// The slash command that Alt-A enters: the agent explains the last failure.
const EXPLAIN: &str = "/explain";

/// The key bindings of the user's choice, with a Tab that switches the mode if the line is empty, and completes if it
/// is not.
pub(super) struct Keys {
    inner: Box<dyn EditMode>,
    shared: Shared,
}

impl Keys {
    pub(super) fn new(keys: EditKeys, own: &[InitKey], shared: Shared) -> Self {
        let inner: Box<dyn EditMode> = match keys {
            EditKeys::Emacs => Box::new(Emacs::new(with_ours(default_emacs_keybindings(), own))),
            EditKeys::Vi => Box::new(Vi::new(
                with_ours(default_vi_insert_keybindings(), own),
                with_ours(default_vi_normal_keybindings(), own),
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
                host_command(NEXT_MODE)
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

fn host_command(name: &str) -> ReedlineEvent {
    ReedlineEvent::ExecuteHostCommand(name.to_owned())
}

fn with_ours(mut keys: Keybindings, own: &[InitKey]) -> Keybindings {
    for (modifiers, code, line) in own.iter().filter_map(bound) {
        keys.add_binding(modifiers, code, entering(line));
    }
    keys.add_binding(
        KeyModifiers::NONE,
        KeyCode::Tab,
        ReedlineEvent::UntilFound(vec![
            ReedlineEvent::Menu(MENU.to_owned()),
            ReedlineEvent::MenuNext,
        ]),
    );
    keys.add_binding(KeyModifiers::ALT, KeyCode::Char('a'), entering(EXPLAIN));
    let back = ReedlineEvent::UntilFound(vec![
        ReedlineEvent::MenuPrevious,
        host_command(NEXT_RUN_MODE),
    ]);
    // Terminals report Shift-Tab with or without the modifier.
    keys.add_binding(KeyModifiers::SHIFT, KeyCode::BackTab, back.clone());
    keys.add_binding(KeyModifiers::NONE, KeyCode::BackTab, back);
    keys.add_binding(KeyModifiers::NONE, KeyCode::F(2), host_command(NEXT_MODE));
    keys
}

/// Enters a line in place of what was typed.
fn entering(line: &str) -> ReedlineEvent {
    ReedlineEvent::Multiple(vec![
        ReedlineEvent::Edit(vec![
            EditCommand::Clear,
            EditCommand::InsertString(line.to_owned()),
        ]),
        ReedlineEvent::Submit,
    ])
}

/// Reads a key of `init.lua`, such as `ctrl-g`, `alt-x` or `f5`, and the line that it enters. Other keys are left alone.
fn bound(own: &InitKey) -> Option<(KeyModifiers, KeyCode, &str)> {
    let key = own.key.to_ascii_lowercase();
    let (modifiers, name) = match key.split_once('-') {
        Some(("ctrl", name)) => (KeyModifiers::CONTROL, name),
        Some(("alt", name)) => (KeyModifiers::ALT, name),
        _ => (KeyModifiers::NONE, key.as_str()),
    };
    let mut letters = name.chars();
    let code = match (letters.next()?, letters.next()) {
        (letter, None) if modifiers != KeyModifiers::NONE => KeyCode::Char(letter),
        ('f', Some(_)) => KeyCode::F(
            name.get(1..)?
                .parse()
                .ok()
                .filter(|it| (1..=12).contains(it))?,
        ),
        _ => return None,
    };
    Some((modifiers, code, &own.line))
}
