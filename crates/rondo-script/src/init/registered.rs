//! Registrations of `init.lua`.

use super::InitKey;
use mlua::Function;
use rondo_types::ToolSpec;
use std::collections::BTreeMap;

/// Handlers, commands, keys and tools, of each.
pub(super) const EACH_MAX: usize = 256;

/// Event of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    TurnStart,
    StepStart,
    BeforeTool,
    AfterTool,
    TurnEnd,
}

impl Event {
    pub(super) const ALL: [(&str, Self); 5] = [
        ("turn_start", Self::TurnStart),
        ("step_start", Self::StepStart),
        ("before_tool", Self::BeforeTool),
        ("after_tool", Self::AfterTool),
        ("turn_end", Self::TurnEnd),
    ];

    /// Returns its name.
    pub(super) fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, it)| *it == self);
        found.map_or("", |(name, _)| name)
    }
}

/// A handler of turns.
#[derive(Clone)]
pub(super) struct Handler {
    pub(super) event: Event,
    pub(super) run: Function,
    /// Place of the registration, as `file:line`.
    pub(super) from: String,
}

/// A slash command or a prompt.
pub(super) struct Command {
    pub(super) description: String,
    pub(super) run: Run,
}

/// Action of a command.
pub(super) enum Run {
    Function(Function),
    Prompt(String),
}

/// A tool.
#[derive(Clone)]
pub(super) struct RegisteredTool {
    pub(super) spec: ToolSpec,
    pub(super) run: Function,
}

/// All of it.
#[derive(Default)]
pub(super) struct Registrations {
    pub(super) handlers: Vec<Handler>,
    pub(super) commands: BTreeMap<String, Command>,
    pub(super) keys: Vec<InitKey>,
    pub(super) tools: Vec<RegisteredTool>,
}
