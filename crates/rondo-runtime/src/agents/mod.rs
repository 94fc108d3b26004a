//! Agent files: a prompt and a choice of tools under a name, for `--agent` and for subagents.
//!
//! They are Markdown files with front matter, in `.rondo/agents` and, as they are, in `.claude/agents`. An agent file
//! narrows what is allowed and never widens it: its tools are those of the profile that it names, and only a file of
//! the user or of a trusted folder chooses a model.
//!
//! # Layout
//! - `found`: the files, and why some cannot be used; `file`: the content of one.

mod file;
mod found;

pub use file::Agent;
pub use found::{Agents, RefusedAgent};
