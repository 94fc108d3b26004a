//! The system prompt: its blocks, their order and their sizes. Files are found by `rondo-tools` and collected
//! by `rondo-runtime`, module `system_prompt`; their order is [`Parts::blocks`].
//!
//! Pure, and free of clocks and counters, so that the beginning of every request of a
//! session is equal byte for byte and the providers' prompt caches hit. That is why it has a date but no
//! time; a model that needs the time runs `date`.
//!
//! # Layout
//! - `environment`: operating system, date, directories.
//! - `instructions`: the texts of `AGENTS.md` and other instruction files.
//! - `layers`: the seven layers of a chat's context, within a budget of tokens.
//! - `memories`: memories of earlier sessions.
//! - `skills`: the names and descriptions of skills.
//! - `terminal`: the state of the user's terminal.
//! - `one_line`: text of others, on one line of a block.
#![warn(missing_docs)]

mod environment;
mod instructions;
mod layers;
mod memories;
mod one_line;
mod skills;
mod terminal;

pub use environment::Environment;
pub use instructions::{INSTRUCTION_BYTES_MAX, InstructionFile, InstructionSource};
pub use layers::{
    Audience, CONTEXT_FILE_BYTES_MAX, ContextLayers, FittedLayers, Layer, LayerKind, TokenBudget,
    TokenEstimate,
};
pub use memories::{MemoryFile, MemorySource};
pub use skills::{ListedSkill, SKILLS_BYTES_MAX};
pub use terminal::{TERMINAL_OUTPUT_BYTES_MAX, TerminalContext};

/// One block of the system prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Source of the part: `profile`, `environment`, `skills`, `instructions`, `memories` or `appended`.
    pub name: &'static str,
    /// Its text, never blank.
    pub text: String,
}

/// The parts of the system prompt. Absent parts have no block.
#[derive(Debug, Clone, Default)]
pub struct Parts {
    /// The profile's own prompt, sent as it is.
    pub profile: Option<String>,
    /// The environment that the model works in.
    pub environment: Option<Environment>,
    /// The skills that the model may use.
    pub skills: Vec<ListedSkill>,
    /// Instruction files, the farthest first and the nearest last.
    pub instructions: Vec<InstructionFile>,
    /// Files of memories, those of the user first.
    pub memories: Vec<MemoryFile>,
    /// The text that the settings append.
    pub appended: Option<String>,
}

impl Parts {
    /// Returns the blocks in the order they are sent: what changes least comes first.
    #[must_use]
    pub fn blocks(self) -> Vec<Block> {
        let environment = self.environment.map(|it| it.to_string());
        let instructions = instructions::render(&self.instructions);
        let memories = memories::render(&self.memories);
        let blocks = [
            ("profile", self.profile),
            ("environment", environment),
            ("skills", skills::render(&self.skills, "skill")),
            ("instructions", instructions),
            ("memories", memories),
            ("appended", self.appended),
        ];
        let present = blocks.into_iter().filter_map(|(name, text)| {
            let text = text.filter(|text| !text.trim().is_empty())?;
            Some(Block { name, text })
        });
        present.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_stand_in_their_order_and_blank_ones_are_left_out() {
        let parts = Parts {
            profile: Some("You help.".to_owned()),
            environment: Some(Environment {
                system: "Linux (x86_64)".to_owned(),
                date: "2026-03-01".to_owned(),
                directory: "/src/app".to_owned(),
                repository: Some("/src".to_owned()),
            }),
            skills: vec![ListedSkill {
                name: "pdf".to_owned(),
                description: "Fill in forms.".to_owned(),
                is_foreign: false,
            }],
            instructions: vec![InstructionFile {
                path: "AGENTS.md".to_owned(),
                text: "Use tabs.".to_owned(),
                source: InstructionSource::Repository,
            }],
            memories: vec![MemoryFile {
                path: "MEMORY.md".to_owned(),
                text: "- Short answers.".to_owned(),
                source: MemorySource::User,
            }],
            appended: Some("  \n".to_owned()),
        };
        let names: Vec<_> = parts.clone().blocks().iter().map(|it| it.name).collect();
        let expected = [
            "profile",
            "environment",
            "skills",
            "instructions",
            "memories",
        ];
        assert_eq!(names, expected);
        assert_eq!(parts.blocks()[0].text, "You help.");
        assert_eq!(Parts::default().blocks(), []);
    }
}
