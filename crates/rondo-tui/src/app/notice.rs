//! What a person is told who looks at another window.

use super::App;
use crate::text::clean;
use rondo_types::EventBody;

/// Why a person is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notice {
    /// A turn has ended.
    Ended,
    /// A question waits.
    Asks,
}

impl Notice {
    /// Returns what is said of it.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Ended => "the turn has ended",
            Self::Asks => "a question waits",
        }
    }
}

impl App {
    /// Notes that a person is wanted, if the terminal is not looked at.
    pub(super) fn notice(&mut self, notice: Notice) {
        if !self.has_focus {
            self.notice = Some(notice);
        }
    }

    /// Notes what an event of the turn wants a person for.
    pub(super) fn notice_event(&mut self, body: &EventBody) {
        if matches!(body, EventBody::Result(_)) {
            self.notice(Notice::Ended);
        }
    }

    /// Returns why a person is wanted, once.
    pub(crate) fn take_notice(&mut self) -> Option<Notice> {
        self.notice.take()
    }

    /// Returns whether the terminal is looked at.
    pub(crate) fn has_focus(&self) -> bool {
        self.has_focus
    }

    /// Shows where the session works: a directory, and the branch that is checked out there.
    pub(crate) fn set_place(&mut self, directory: &str, branch: Option<&str>) {
        let directory = clean::line(directory);
        self.place = match branch {
            Some(branch) => format!("{directory} ({})", clean::line(branch)),
            None => directory,
        };
    }
}
