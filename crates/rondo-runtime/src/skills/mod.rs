//! Skills: instructions for particular tasks, in directories with a `SKILL.md`, as agentskills.io defines them.
//!
//! The model reads the names and descriptions with the system prompt, and the text of a skill when it calls the tool
//! `skill`. The text of a skill permits nothing: its commands are judged like all others. `allowed-tools` is ignored.
//!
//! # Layout
//! - `places`: the directories that are looked into, and whose they are.
//! - `found`: the skills in them, and why others cannot be used.
//! - `text`: a skill's text, bounded.
//! - `tool`: the tool `skill`.
//! - `programs`: keeps the programs of untrusted folders from running.

mod found;
mod places;
mod programs;
mod text;
mod tool;

pub use found::{RefusedSkill, Skill, Skills};
pub use places::SkillSource;
pub(crate) use places::{SkillPlace, places};
pub(crate) use programs::forbid;
pub(crate) use tool::{SKILL_TOOL, SkillTool};
