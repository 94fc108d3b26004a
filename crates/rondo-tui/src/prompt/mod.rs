//! What a person types: shared by the screen and the line prompt.
//!
//! # Layout
//! - `editor`: the text that is typed, and its caret.
//! - [`mode`]: what a line means; [`slash`]: the table of slash commands; [`history`]: what was typed before.

pub(crate) mod editor;
pub mod history;
pub mod mode;
pub mod slash;
