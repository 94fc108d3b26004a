//! Notes and questions for the user, apart from the answer.

use crate::mcp::ProjectServers;
use crate::project::UntrustedProject;
use crate::review::Difference;

/// Shows notes to the user, in the host's own way.
///
/// Texts quote names and messages from outside. A host that writes them to a terminal must remove control
/// sequences.
pub trait Notices: Send + Sync {
    /// Shows a note.
    fn note(&self, text: &str);

    /// Asks the user whether to trust a folder, so that all its settings apply. `None` if there is no user to
    /// ask; a note then lists the settings that are ignored.
    fn may_trust(&self, project: &UntrustedProject) -> Option<bool> {
        let _ = project;
        None
    }

    /// Asks the user whether to accept what a sandboxed command left changed in protected files of a folder. `None` if
    /// there is no user to ask.
    fn may_accept(&self, differences: &[Difference]) -> Option<bool> {
        let _ = differences;
        None
    }

    /// Asks the user whether servers that a trusted project brings may be started. `None` if there is no user to ask.
    fn may_start(&self, servers: &ProjectServers) -> Option<bool> {
        let _ = servers;
        None
    }

    /// Returns whether there is a user who can be asked while a turn runs.
    fn can_ask(&self) -> bool {
        false
    }

    /// Shows progress in place of the last progress text; `None` ends it.
    ///
    /// Called at most ten times a second. By default nothing is shown.
    fn progress(&self, text: Option<&str>) {
        let _ = text;
    }
}

/// Discards every notice.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoNotices;

impl Notices for NoNotices {
    fn note(&self, _text: &str) {}
}
