//! The tool `web_search`, over a search engine that the user configured.
//!
//! # Layout
//! - `engine`: the engines, and how they are asked.
//! - `results`: their answers.
//! - `tool`: the tool.

mod engine;
mod results;
mod tool;

pub use engine::{BRAVE_URL, SearchEngine};
pub use tool::{SEARCH_TOOL, WebSearch};
