//! The dialects by their names: those of this crate, and those that a program adds.

use crate::Dialect;
use crate::anthropic::Anthropic;
use crate::gemini::Gemini;
use crate::openai_chat::OpenAiChat;
use crate::openai_responses::OpenAiResponses;
use crate::react::{self, React};
use std::sync::{LazyLock, PoisonError, RwLock};

/// The dialects of this crate, in the order in which messages list them. A new one is a folder and a
/// line here.
const BUILT_IN: [&dyn Dialect; 4] = [&OpenAiChat, &Gemini, &OpenAiResponses, &Anthropic];

/// The dialects of this process. None is ever removed.
static REGISTRY: LazyLock<RwLock<Vec<Entry>>> = LazyLock::new(|| {
    let entries = BUILT_IN.map(|dialect| Entry::new(dialect, React::over(dialect)));
    RwLock::new(entries.into())
});

/// A dialect, and `react` over it.
#[derive(Clone, Copy)]
struct Entry {
    dialect: &'static dyn Dialect,
    react: &'static React,
}

impl Entry {
    fn new(dialect: &'static dyn Dialect, react: React) -> Self {
        let react = Box::leak(Box::new(react));
        Self { dialect, react }
    }

    fn both(self) -> [&'static dyn Dialect; 2] {
        [self.dialect, self.react]
    }
}

/// Returns the dialect of that name.
#[must_use]
pub fn dialect(name: &str) -> Option<&'static dyn Dialect> {
    if name == react::NAME {
        return Some(&react::OVER_CHAT);
    }
    let all = entries().into_iter().flat_map(Entry::both);
    all.into_iter().find(|dialect| dialect.name() == name)
}

/// Returns the names of the dialects that providers speak; `react`, over any of them, is not one.
#[must_use]
pub fn dialect_names() -> Vec<&'static str> {
    let all = entries().into_iter();
    all.map(|entry| entry.dialect.name()).collect()
}

/// Returns the name of the `react` dialect over the dialect of that name, if a provider speaks it.
///
/// The tags are text, so every dialect of a provider can carry them.
#[must_use]
pub fn react_over(base: &str) -> Option<&'static str> {
    let entry = entries().into_iter();
    let mut entry = entry.filter(|entry| entry.dialect.name() == base);
    entry.next().map(|entry| entry.react.name())
}

/// Adds a dialect, and `react` over it, for as long as the process runs. Returns whether its name was
/// free: a dialect that is there already stays.
///
/// ```
/// # use rondo_wire::{Dialect, dialect, register};
/// # fn add(mine: &'static dyn Dialect) {
/// if register(mine) {
///     assert!(dialect(mine.name()).is_some());
/// }
/// # }
/// ```
#[must_use]
pub fn register(dialect: &'static dyn Dialect) -> bool {
    let react = React::over(dialect);
    let names = [dialect.name(), react.name()];
    let mut all = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
    let mut known = all.iter().copied().flat_map(Entry::both);
    let is_free = !names.contains(&react::NAME) && !known.any(|it| names.contains(&it.name()));
    if is_free {
        all.push(Entry::new(dialect, react));
    }
    is_free
}

fn entries() -> Vec<Entry> {
    let all = REGISTRY.read().unwrap_or_else(PoisonError::into_inner);
    all.clone()
}
