//! What a person is shown of a call before they decide about it.
//!
//! Arguments are written by the model that wants them to run. What says most stands first, whatever order it came
//! in; a long text loses its middle and never its end; and what a terminal would not show, or would show
//! elsewhere, is spelt out.

mod call;
mod hidden;

pub use call::call;
pub use hidden::{is_hidden, line, visible};

/// What stands before each line of a text that is shown as a block: nothing else begins so.
pub const BAR: &str = "│ ";
