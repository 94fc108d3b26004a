//! Observation hooks for telemetry: the moments of a turn.
//!
//! The event stream is meant for display: deltas may be joined, and internal details are missing. An
//! [`Observer`] gets each [`Moment`] when it happens, by reference, so it can measure times and copy what
//! it needs; the engine copies nothing for it.

use crate::TurnSetup;
use crate::machine::{Input, ModelCall, PlannedCall};
use rondo_types::{EventBody, Message, ModelEvent, ModelInfo, Outcome, Question, ServerAddress};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// An observer of turns, such as telemetry; see [`EventSender::observed_by`](crate::EventSender::observed_by).
pub trait Observer: Send + Sync {
    /// Takes notice of a moment. Called from wherever it happens, often, and the turn continues only
    /// when it returns: it must not block. A panic is caught and forgotten.
    fn observe(&self, moment: &Moment<'_>);
}

/// A moment of a turn, in the order they happen.
#[non_exhaustive]
pub enum Moment<'a> {
    /// The turn begins; the first moment.
    Begun {
        /// Setup of the turn.
        setup: &'a TurnSetup,
        /// The user's message.
        message: &'a Message,
    },
    /// An event for the listener, before it is joined to others or dropped.
    Event(&'a EventBody),
    /// An input that the machine takes next: a reply, a failure, a verdict, a result.
    Input(&'a Input),
    /// A request is sent; it ends with the [`Input::Reply`] or [`Input::ReplyFailed`] that follows.
    Requested {
        /// The model.
        model: &'a ModelInfo,
        /// Address of its server, if it has one.
        server: Option<&'a ServerAddress>,
        /// The request and its bounds.
        call: &'a ModelCall,
    },
    /// Something of the reply arrived; or the request's wait to be sent began or is over.
    Received(&'a ModelEvent),
    /// A call begins to run; it ends with its [`Input::ToolFinished`].
    ToolStarted(&'a PlannedCall),
    /// The turn waits for answers; the last moment until it is resumed.
    Parked {
        /// Open questions.
        questions: &'a [Question],
    },
    /// The turn is over; the last moment. A turn whose future is dropped does not get here. What
    /// work that was abandoned writes later is not told.
    Ended(&'a Outcome),
}

/// The observers; usually none.
#[derive(Clone, Default)]
pub(crate) struct Observers(Vec<Arc<dyn Observer>>);

impl Observers {
    pub(crate) fn add(&mut self, observer: Arc<dyn Observer>) {
        self.0.push(observer);
    }

    pub(crate) fn are_there(&self) -> bool {
        !self.0.is_empty()
    }

    pub(crate) fn tell(&self, moment: &Moment<'_>) {
        for observer in &self.0 {
            // An observer must not be able to end the turn.
            let _ = catch_unwind(AssertUnwindSafe(|| observer.observe(moment)));
        }
    }
}

#[cfg(test)]
mod tests;
