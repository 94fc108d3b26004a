use crate::accumulator::{Accumulator, ReplyBounds};
use crate::clock::Clock;
use crate::events::EventSender;
use crate::machine::{Input, ModelCall};
use crate::ports::ModelStream;
use futures_util::StreamExt as _;
use rondo_types::{ErrorClass, EventBody, ModelError, ModelEvent};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Stands in for "no bound" where the runtime wants an instant.
const FAR_FUTURE: Duration = Duration::from_secs(365 * 24 * 3600);

/// One model request under way.
pub(super) struct ModelWork {
    stream: ModelStream,
    reply: Accumulator,
    /// When the next event must be there, and what it is called when it is not.
    next_by: Instant,
    waiting_for: ErrorClass,
    first_byte_timeout: Option<Duration>,
    idle_timeout: Option<Duration>,
    end: Instant,
    end_class: ErrorClass,
    /// Whether replies are shown as they come; only the first candidate is.
    streaming: bool,
    committed: bool,
    received: bool,
}

impl ModelWork {
    pub(super) fn new(
        stream: ModelStream,
        call: &ModelCall,
        clock: &Clock,
        streaming: bool,
    ) -> Self {
        let now = clock.instant(clock.now());
        let far = now + FAR_FUTURE;
        let end_class = match call.end {
            Some(end) if end.is_deadline => ErrorClass::Deadline,
            _ => ErrorClass::StepTimeout,
        };
        Self {
            stream,
            reply: Accumulator::new(ReplyBounds::default()),
            next_by: call
                .first_byte_timeout
                .map_or(far, |timeout| later(now, timeout)),
            waiting_for: ErrorClass::FirstByteTimeout,
            first_byte_timeout: call.first_byte_timeout,
            idle_timeout: call.idle_timeout,
            end: call.end.map_or(far, |end| clock.instant(end.at)),
            end_class,
            streaming,
            committed: false,
            received: false,
        }
    }

    /// Ends the request before its time.
    pub(super) fn cancelled(self) -> Input {
        self.failed(ModelError::new(
            ErrorClass::Cancelled,
            "the request was cancelled",
        ))
    }

    fn failed(&self, error: ModelError) -> Input {
        let partial = self.reply.text_so_far();
        Input::ReplyFailed {
            error,
            partial,
            committed: self.committed,
            received: self.received,
        }
    }

    fn timed_out(&self, class: ErrorClass) -> Input {
        let shown = |timeout: Option<Duration>| timeout.unwrap_or_default().as_secs_f64();
        let message = match class {
            ErrorClass::FirstByteTimeout => {
                format!(
                    "the provider sent nothing for {} s",
                    shown(self.first_byte_timeout)
                )
            }
            ErrorClass::IdleTimeout => format!(
                "the provider sent nothing for {} s in the middle of its reply",
                shown(self.idle_timeout)
            ),
            ErrorClass::Deadline => "the turn's time was over before the reply was whole".into(),
            _ => "the reply was not whole in time".into(),
        };
        self.failed(ModelError::new(class, message))
    }

    fn take(&mut self, event: ModelEvent, events: &EventSender, clock: &Clock) -> Option<Input> {
        self.received = true;
        self.show(&event, events, clock);
        if let Some(idle) = self.idle_timeout {
            self.next_by = later(clock.instant(clock.now()), idle);
            self.waiting_for = ErrorClass::IdleTimeout;
        }
        self.reply.push(event).err().map(|error| self.failed(error))
    }

    fn show(&mut self, event: &ModelEvent, events: &EventSender, clock: &Clock) {
        let body = match event {
            ModelEvent::TextDelta { candidate: 0, text } => {
                EventBody::TextDelta { text: text.clone() }
            }
            ModelEvent::ReasoningDelta { candidate: 0, text } => {
                EventBody::ReasoningDelta { text: text.clone() }
            }
            _ => return,
        };
        if self.streaming {
            self.committed = true;
            events.send(clock.now(), body);
        }
    }
}

/// Adds a timeout of any length; one that the clock cannot hold is as good as none.
fn later(now: Instant, timeout: Duration) -> Instant {
    now + timeout.min(FAR_FUTURE)
}

/// Waits for the end of the request; for ever when there is none.
///
/// # Cancel safety
/// Cancel safe: what arrived is kept in the work.
pub(super) async fn next(
    work: Option<&mut ModelWork>,
    events: &EventSender,
    clock: &Clock,
) -> Input {
    let Some(work) = work else {
        return std::future::pending().await;
    };
    loop {
        let (limit, class) = if work.next_by < work.end {
            (work.next_by, work.waiting_for)
        } else {
            (work.end, work.end_class)
        };
        match timeout_at(limit, super::guarded(work.stream.next())).await {
            Err(_) => return work.timed_out(class),
            Ok(Err(panic)) => {
                let message = format!("the model's port failed: {panic}");
                return work.failed(ModelError::new(ErrorClass::Internal, message));
            }
            Ok(Ok(None)) => {
                let reply = std::mem::take(&mut work.reply).finish();
                return Input::Reply { reply };
            }
            Ok(Ok(Some(Err(error)))) => return work.failed(error),
            Ok(Ok(Some(Ok(event)))) => {
                if let Some(input) = work.take(event, events, clock) {
                    return input;
                }
            }
        }
        // A stream that always has more must not keep a cancel from being seen, nor outlive its
        // bound, which `timeout_at` looks at only when the stream has nothing.
        tokio::task::consume_budget().await;
        if clock.instant(clock.now()) >= work.end {
            return work.timed_out(work.end_class);
        }
    }
}
