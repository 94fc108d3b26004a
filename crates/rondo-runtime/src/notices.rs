//! What a person is told beside the answer.

use crate::project::UntrustedProject;

/// Takes notices for a person, and shows them as the host shows things.
///
/// Texts quote names and messages that come from outside: a host that writes them to a terminal takes out of
/// them whatever would steer it.
pub trait Notices: Send + Sync {
    /// Tells something once.
    fn note(&self, text: &str);

    /// Asks whether the user trusts a folder, whose settings are all honoured then. `None` where no user can be
    /// asked: then what is ignored is told in a note.
    fn may_trust(&self, project: &UntrustedProject) -> Option<bool> {
        let _ = project;
        None
    }

    /// Shows how far something is in the place of what was shown before; nothing once it is over.
    ///
    /// Called at most ten times a second. A host without a place for it shows nothing.
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
