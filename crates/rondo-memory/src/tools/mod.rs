//! The tools `save_memory` and `search_memory`.

mod save;
mod search;

pub use save::{Outside, SaveMemory};
pub use search::SearchMemory;

use crate::error::MemoryError;
use rondo_types::{ToolErrorCode, ToolOutcome};

/// The name of the tool that saves.
pub const SAVE_MEMORY: &str = "save_memory";
/// The name of the tool that searches.
pub const SEARCH_MEMORY: &str = "search_memory";
/// The names of both tools.
pub const TOOL_NAMES: [&str; 2] = [SAVE_MEMORY, SEARCH_MEMORY];

fn failed(err: &MemoryError) -> ToolOutcome {
    let code = match err {
        MemoryError::Empty
        | MemoryError::TooLong { .. }
        | MemoryError::EmptyQuery
        | MemoryError::QueryTooLong { .. }
        | MemoryError::NoScope { .. } => ToolErrorCode::InvalidArgs,
        _ => ToolErrorCode::Failed,
    };
    ToolOutcome::error(code, err.line())
}
