//! The updates that a listener of a session receives.

use super::cells::CellEvent;
use super::cursor::Cursor;
use rondo_core::events::join;
use rondo_core::joined::is_left_out;
use rondo_core::session::SessionEvent;
use rondo_types::{EventBody, Message, TurnEvent, TurnId};
use serde::Serialize;
use std::io;
use std::sync::Arc;

/// One thing that happened in a session, and the cursor after it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Update {
    /// Cursor after this update.
    pub cursor: Cursor,
    /// Content of the update.
    #[serde(flatten)]
    pub body: UpdateBody,
}

/// Content of an update of a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "update", rename_all = "snake_case")]
pub enum UpdateBody {
    /// A turn begins with this message.
    Asked {
        /// The turn.
        turn: TurnId,
        /// The message, without secrets. It is the turn's own, which has it as long as it runs.
        message: Arc<Message>,
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
    /// Event of a person's own cell. It is in no record in this form: only listeners that are
    /// subscribed at the time receive it.
    Cell {
        /// The event.
        #[serde(flatten)]
        event: CellEvent,
    },
    /// The session could not be taken, or its turn not begun. Messages wait until the session is looked at again,
    /// such as with the next one.
    Failed {
        /// Description of the failure.
        message: String,
        /// Suggestion for the user.
        #[serde(skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
    /// The listener was too slow for live output, which no record holds. Everything else follows.
    Missed {
        /// How much it missed, in bytes; at least so much.
        bytes: u64,
    },
    /// Updates after this cursor were lost with the process that sent them, such as the
    /// half of a reply. Their replacements follow.
    Reset,
}

/// Counts the bytes of a value as JSON, without making that.
pub(super) fn json_bytes(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // An update that cannot be written as JSON is counted as far as it could.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

impl UpdateBody {
    /// Returns the bytes of its texts, roughly.
    pub(super) fn text_bytes(&self) -> usize {
        match self {
            Self::Turn { event } => match &event.body {
                EventBody::TextDelta { text }
                | EventBody::ReasoningDelta { text }
                | EventBody::ToolOutputDelta { text, .. }
                | EventBody::Steered { text, .. } => text.len(),
                // These hold values of any size.
                body => json_bytes(body),
            },
            // It may have files.
            Self::Asked { message, .. } => json_bytes(message),
            Self::Cell { event } => event.text_bytes(),
            Self::Failed { message, hint } => message.len() + hint.as_ref().map_or(0, String::len),
            Self::Session { event } => json_bytes(event),
            Self::Missed { .. } | Self::Reset => 0,
        }
    }

    /// Returns whether it reports how far a call of a turn is.
    pub(super) fn is_progress(&self) -> bool {
        matches!(self, Self::Turn { event } if matches!(event.body, EventBody::ToolProgress { .. }))
    }

    /// Joins an event of the same turn to this one, and returns whether that was possible.
    pub(super) fn join(&mut self, more: &Self) -> bool {
        match (self, more) {
            (Self::Turn { event }, Self::Turn { event: more }) if event.turn == more.turn => {
                join(&mut event.body, &more.body)
            }
            _ => false,
        }
    }

    /// Returns the bytes of live output that no record holds.
    pub(super) fn live_bytes(&self) -> u64 {
        match self {
            Self::Turn { event } => match &event.body {
                EventBody::ToolOutputDelta { text, .. } => text.len() as u64,
                _ => 0,
            },
            Self::Cell {
                event: CellEvent::Output { text },
            } => text.len() as u64,
            _ => 0,
        }
    }

    /// Returns whether it is an event of a turn that no record holds.
    pub(super) fn is_left_out(&self) -> bool {
        matches!(self, Self::Turn { event } if is_left_out(&event.body))
    }

    /// Returns it without the beginning of its text, if it is a delta; none of it if that is all.
    pub(super) fn after(mut self, bytes: u64) -> Option<Self> {
        if let Self::Turn { event } = &mut self
            && let EventBody::TextDelta { text } | EventBody::ReasoningDelta { text } =
                &mut event.body
        {
            let told = usize::try_from(bytes).ok();
            text.drain(..told.filter(|it| text.is_char_boundary(*it))?);
            return (!text.is_empty()).then_some(self);
        }
        Some(self)
    }
}
