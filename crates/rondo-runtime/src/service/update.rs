//! The updates that a listener of a session receives.

use super::cursor::Cursor;
use rondo_core::session::SessionEvent;
use rondo_types::{EventBody, Message, TurnEvent, TurnId};
use serde::Serialize;

/// One thing that happened in a session, and the cursor after it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Update {
    /// Where a listener goes on that has seen this.
    pub cursor: Cursor,
    /// What happened.
    #[serde(flatten)]
    pub body: UpdateBody,
}

/// What happened in a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "update", rename_all = "snake_case")]
pub enum UpdateBody {
    /// A turn begins with this message.
    Asked {
        /// The turn.
        turn: TurnId,
        /// What is said, without secrets.
        message: Message,
    },
    /// An event of a turn. Its `seq` counts the deltas as this listener received them.
    Turn {
        /// The event.
        event: Box<TurnEvent>,
    },
    /// An event of the session's queue. It is in no record: only listeners that are subscribed at the time receive it.
    Session {
        /// The event.
        event: SessionEvent,
    },
    /// The session could not be taken, or its turn not begun. Messages wait until the session is looked at again,
    /// such as with the next one.
    Failed {
        /// What failed.
        message: String,
        /// What to do about it.
        #[serde(skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
    /// The listener was too slow for live output, which no record holds. Everything else follows.
    Missed {
        /// How much it missed, in bytes; at least so much.
        bytes: u64,
    },
    /// What the listener was told after this update's cursor was lost with the process that told it, such as the
    /// half of a reply. What came in its place follows.
    Reset,
}

impl UpdateBody {
    /// Returns the bytes of its texts, roughly.
    pub(super) fn text_bytes(&self) -> usize {
        match self {
            Self::Asked { message, .. } => message.text().len(),
            Self::Turn { event } => match &event.body {
                EventBody::TextDelta { text }
                | EventBody::ReasoningDelta { text }
                | EventBody::ToolOutputDelta { text, .. }
                | EventBody::Steered { text, .. } => text.len(),
                // These hold values of any size.
                body => serde_json::to_vec(body).map_or(0, |it| it.len()),
            },
            Self::Failed { message, .. } => message.len(),
            Self::Session { .. } | Self::Missed { .. } | Self::Reset => 0,
        }
    }

    /// Returns the bytes of live output that no record holds.
    pub(super) fn live_bytes(&self) -> u64 {
        match self {
            Self::Turn { event } => match &event.body {
                EventBody::ToolOutputDelta { text, .. } => text.len() as u64,
                _ => 0,
            },
            _ => 0,
        }
    }

    /// Returns it without the beginning of its text, where it is a delta; none of it where that is all.
    pub(super) fn after(&self, bytes: u64) -> Option<Self> {
        let mut body = self.clone();
        if let Self::Turn { event } = &mut body
            && let EventBody::TextDelta { text } | EventBody::ReasoningDelta { text } =
                &mut event.body
        {
            let rest = usize::try_from(bytes).ok().and_then(|at| text.get(at..));
            *text = rest?.to_owned();
            return (!text.is_empty()).then_some(body);
        }
        Some(body)
    }
}
