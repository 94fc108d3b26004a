//! The seven layers of a chat's context, from the files of its workspace.
//!
//! The text before the history is equal byte for byte from turn to turn, so that prompt caches live: it holds
//! neither a clock nor a sender, and how much of it is cut depends on the files, the budget and the estimate of tokens alone.

mod budget;

pub use budget::{FittedLayers, TokenBudget, TokenEstimate};

use crate::instructions::within;
use crate::memories::{self, MemoryFile, MemorySource};
use crate::skills::{self, ListedSkill};

/// The bound on one file of a workspace, in bytes.
pub const CONTEXT_FILE_BYTES_MAX: usize = 64 << 10;

/// The layers, in the order in which the model reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LayerKind {
    /// The system prompt: `SOUL.md`, then `AGENTS.md`. Never cut to fit.
    System,
    /// Constants of this chat, then `BOOTSTRAP.md` and, for the owner, `USER.md`. Never cut to fit.
    Bootstrap,
    /// Long-term memory, such as `MEMORY.md`: in private chats alone, that of the person who reads it.
    Memory,
    /// The names and descriptions of the skills.
    Skills,
    /// Notes about the tools: `TOOLS.md`.
    Tools,
    /// The messages of the session.
    History,
    /// The message that is answered. Never cut to fit.
    Message,
}

impl LayerKind {
    /// All layers, in order.
    pub const ALL: [Self; 7] = [
        Self::System,
        Self::Bootstrap,
        Self::Memory,
        Self::Skills,
        Self::Tools,
        Self::History,
        Self::Message,
    ];

    /// Returns its name as it is shown.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Bootstrap => "bootstrap",
            Self::Memory => "memory",
            Self::Skills => "skills",
            Self::Tools => "tools",
            Self::History => "history",
            Self::Message => "message",
        }
    }
}

/// One of the layers that precede the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Which one.
    pub kind: LayerKind,
    /// Its text, never blank.
    pub text: String,
}

/// Readers of the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// The owner alone, in a private chat.
    Owner,
    /// Another user alone, in a private chat. They get their own memories, and nothing of the owner's.
    Member,
    /// A group, or a guest. They get nothing that is private: neither memories nor `USER.md`.
    Others,
}

/// The texts of a workspace. Absent and blank ones have no layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextLayers {
    /// The text of `SOUL.md`: the assistant's character.
    pub soul: Option<String>,
    /// The text of `AGENTS.md`: how it works.
    pub agents: Option<String>,
    /// Constants of this chat, such as its channel; a paragraph.
    pub facts: Option<String>,
    /// The text of `BOOTSTRAP.md`: facts to know from the start.
    pub bootstrap: Option<String>,
    /// The text of `USER.md`: facts about the owner.
    pub user: Option<String>,
    /// The files of the reader's memories, those that they wrote themselves first.
    pub memories: Vec<MemoryFile>,
    /// The skills that may be used.
    pub skills: Vec<ListedSkill>,
    /// The tool that reads a skill.
    pub skill_tool: &'static str,
    /// The text of `TOOLS.md`.
    pub tools: Option<String>,
}

impl Default for ContextLayers {
    /// Returns a workspace without files.
    fn default() -> Self {
        Self {
            soul: None,
            agents: None,
            facts: None,
            bootstrap: None,
            user: None,
            memories: Vec::new(),
            skills: Vec::new(),
            skill_tool: "read_skill",
            tools: None,
        }
    }
}

impl ContextLayers {
    /// Adds the text of `MEMORY.md`, if there is one.
    #[must_use]
    pub fn with_memory(mut self, path: &str, text: Option<String>) -> Self {
        self.memories.extend(text.map(|text| MemoryFile {
            path: path.to_owned(),
            text,
            source: MemorySource::User,
        }));
        self
    }

    /// Returns the layers that precede the history, in order.
    #[must_use]
    pub fn layers(&self, audience: Audience) -> Vec<Layer> {
        let for_owner = audience == Audience::Owner;
        let user = self.user.as_ref().filter(|_| for_owner);
        let has_memory = audience != Audience::Others;
        let memory = has_memory.then(|| memories::render(&self.memories));
        let texts = [
            (LayerKind::System, joined([&self.soul, &self.agents])),
            (
                LayerKind::Bootstrap,
                joined([&self.facts, &self.bootstrap, &user.cloned()]),
            ),
            (LayerKind::Memory, memory.flatten()),
            (
                LayerKind::Skills,
                skills::render(&self.skills, self.skill_tool),
            ),
            (LayerKind::Tools, joined([&self.tools])),
        ];
        let present = texts
            .into_iter()
            .filter_map(|(kind, text)| Some(Layer { kind, text: text? }));
        present.collect()
    }
}

/// Joins texts that are not blank, each within its bound.
fn joined<const N: usize>(texts: [&Option<String>; N]) -> Option<String> {
    let texts = texts.into_iter().flatten().map(|text| text.trim());
    let texts = texts.filter(|text| !text.is_empty()).map(|text| {
        let (kept, note) = within(text, CONTEXT_FILE_BYTES_MAX);
        format!("{kept}{note}")
    });
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

#[cfg(test)]
mod tests;
