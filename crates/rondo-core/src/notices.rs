//! Notes for the user, apart from the answer.

/// Shows notes to the user, in the host's own way.
///
/// Texts quote names and messages from outside. A host that writes them to a terminal must remove control
/// sequences.
pub trait Notices: Send + Sync {
    /// Shows a note.
    fn note(&self, text: &str);

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
