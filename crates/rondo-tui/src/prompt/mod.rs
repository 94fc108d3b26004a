//! Input of a person: shared by the screen and the line prompt.
//!
//! # Layout
//! - `editor`: the text that is typed, and its caret; `edit_keys`: the keys that edit it; `vi`: the keys of vi.
//! - [`mode`]: what a line means; [`slash`]: the table of slash commands, [`reply`]: the reply to one.
//! - [`history`]: what was typed before.
//! - [`run_mode`]: what runs without asking.

mod edit_keys;
mod editor;
pub mod history;
pub mod mode;
pub mod reply;
pub mod run_mode;
pub mod slash;
pub(crate) mod vi;

pub(crate) use edit_keys::EDIT_BINDINGS;
pub use edit_keys::{edit, spelled};
pub use editor::Editor;
