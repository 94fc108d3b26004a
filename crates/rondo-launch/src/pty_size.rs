//! How large a terminal is.

use serde::{Deserialize, Serialize};

/// The size of a terminal, in character cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PtySize {
    /// Lines.
    pub rows: u16,
    /// Columns.
    pub columns: u16,
}

impl Default for PtySize {
    fn default() -> Self {
        Self {
            rows: 24,
            columns: 120,
        }
    }
}
