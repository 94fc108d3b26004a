//! Renders a call for the user who decides whether it may run.
//!
//! The arguments come from the model, so they must not mislead: the most telling argument comes first,
//! whatever its order; a long text loses its middle but never its end, and a command nothing of it; and characters
//! that a terminal would hide or move are escaped.

mod call;
mod hidden;

pub use call::{call, command_in_full, command_left_out, summary};
pub use hidden::{is_hidden, is_ordinary, line, readable, readable_line, visible};

/// The beginning of each line of a text that is shown as a block; no other line begins with it.
pub const BAR: &str = "│ ";
