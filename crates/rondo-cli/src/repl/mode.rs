//! The modes of the prompt, which it shares with the full screen.

use crate::cli::ModeName;
pub(super) use rondo_tui::prompt::mode::{Line, Mode};

impl From<ModeName> for Mode {
    fn from(name: ModeName) -> Self {
        match name {
            ModeName::Agent => Self::Agent,
            ModeName::Shell => Self::Shell,
            ModeName::Python => Self::Python,
        }
    }
}
