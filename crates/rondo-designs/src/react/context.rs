//! The state of the user's terminal, for the prompt.

pub use rondo_context::{TERMINAL_OUTPUT_BYTES_MAX as OUTPUT_BYTES_MAX, TerminalContext};
