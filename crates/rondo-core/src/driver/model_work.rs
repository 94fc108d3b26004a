//! One model request as a task: its timers, its queue, and its reply gathered event by event.

use super::alarm::Alarm;
use super::record_batch::RequestEvents;
use crate::accumulator::{Accumulator, ReplyBounds};
use crate::clock::Clock;
use crate::events::EventSender;
use crate::machine::{Input, ModelCall};
use crate::observe::Moment;
use crate::ports::ModelStream;
use futures_util::StreamExt as _;
use rondo_types::units::seconds;
use rondo_types::{ErrorClass, EventBody, ModelError, ModelEvent, ModelInfo, TimeMs};
use std::time::Duration;
use tokio::time::Instant;
use tracing::{Instrument as _, Span};

/// Stands in for "no bound" if the runtime wants an instant.
const FAR_FUTURE: Duration = Duration::from_secs(365 * 24 * 3600);

/// One model request under way.
pub(super) struct ModelWork {
    stream: ModelStream,
    reply: Accumulator,
    span: Span,
    started: Instant,
    /// When the next event must be there, and what it is called when it is not.
    next_by: Instant,
    waiting_for: ErrorClass,
    first_byte_timeout: Option<Duration>,
    idle_timeout: Option<Duration>,
    end: Instant,
    end_class: ErrorClass,
    /// When the turn's work must be over: all that bounds a request that was not sent yet.
    deadline: Instant,
    /// Since when the request waits to be sent.
    queued_at: Option<Instant>,
    /// Set if replies are shown as they come; only the first candidate is.
    streaming: bool,
    /// Set if text of the answer was shown, so that no other reply can take its place.
    committed: bool,
    received: bool,
    /// When the waiting of the request was reported.
    queued: Vec<TimeMs>,
}

/// The bound on waits of one request that are reported.
const QUEUED_TOLD_MAX: usize = 16;

impl ModelWork {
    pub(super) fn new(
        stream: ModelStream,
        call: &ModelCall,
        deadline: Option<TimeMs>,
        clock: &Clock,
        model: &ModelInfo,
    ) -> Self {
        let now = clock.instant(clock.now());
        let span = super::spans::request(call, model);
        span.in_scope(|| super::spans::note_request(call));
        let far = now + FAR_FUTURE;
        let end_class = match call.end {
            Some(end) if end.is_deadline => ErrorClass::Deadline,
            _ => ErrorClass::StepTimeout,
        };
        Self {
            stream,
            reply: Accumulator::new(ReplyBounds::default()),
            span,
            started: now,
            next_by: call
                .first_byte_timeout
                .map_or(far, |timeout| later(now, timeout)),
            waiting_for: ErrorClass::FirstByteTimeout,
            first_byte_timeout: call.first_byte_timeout,
            idle_timeout: call.idle_timeout,
            end: call.end.map_or(far, |end| clock.instant(end.at)),
            end_class,
            deadline: deadline.map_or(far, |at| clock.instant(at)),
            queued_at: None,
            // A summary is for the model alone.
            streaming: model.streaming && call.purpose.is_step(),
            committed: false,
            received: false,
            queued: Vec::new(),
        }
    }

    /// Returns the events for the listener, besides the text of the reply.
    pub(super) fn told(&self) -> RequestEvents {
        let shown = match self.streaming {
            true => crate::joined::shown(self.reply.parts_so_far()),
            false => Vec::new(),
        };
        let is_partial = |it: &EventBody| matches!(it, EventBody::TextDelta { .. });
        RequestEvents {
            queued: self.queued.clone(),
            shown: if self.committed && shown.iter().all(is_partial) {
                Vec::new()
            } else {
                shown
            },
        }
    }

    /// Ends the request before its time.
    pub(super) fn cancelled(self) -> Input {
        let error = ModelError::new(ErrorClass::Cancelled, "the request was cancelled");
        let input = self.failed(error);
        let elapsed_ms = super::millis(self.started.elapsed());
        self.span
            .in_scope(|| super::spans::note_end(&input, elapsed_ms));
        input
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
        let shown = |timeout: Option<Duration>| seconds(timeout.unwrap_or_default());
        let message = match class {
            ErrorClass::FirstByteTimeout => {
                format!(
                    "the provider sent nothing for {}",
                    shown(self.first_byte_timeout)
                )
            }
            ErrorClass::IdleTimeout => format!(
                "the provider sent nothing for {} in the middle of its reply",
                shown(self.idle_timeout)
            ),
            ErrorClass::Deadline => {
                "the turn's deadline passed before the reply was complete".into()
            }
            _ => "the reply was not complete in time".into(),
        };
        self.failed(ModelError::new(class, message))
    }

    /// Returns when the next event must be there, and what it is called when it is not.
    fn limit(&self) -> (Instant, ErrorClass) {
        if self.queued_at.is_some() {
            (self.deadline, ErrorClass::Deadline)
        } else if self.next_by < self.end {
            (self.next_by, self.waiting_for)
        } else {
            (self.end, self.end_class)
        }
    }

    /// Records that the request waits, or that it waited: the time does not count against the provider.
    fn note_wait(&mut self, event: &ModelEvent, events: &EventSender, clock: &Clock) -> bool {
        match event {
            ModelEvent::Queued => {
                let at = clock.now();
                self.queued_at.get_or_insert(clock.instant(at));
                // Once a reply comes, its request no longer waits.
                if !self.received && self.queued.len() < QUEUED_TOLD_MAX {
                    self.queued.push(at);
                    events.send(at, EventBody::RequestQueued);
                }
            }
            ModelEvent::Sent => self.begin_timers(clock),
            _ => {
                self.begin_timers(clock);
                return false;
            }
        }
        true
    }

    fn begin_timers(&mut self, clock: &Clock) {
        let Some(queued_at) = self.queued_at.take() else {
            return;
        };
        let now = clock.instant(clock.now());
        self.next_by = later(now, self.first_byte_timeout.unwrap_or(FAR_FUTURE));
        self.end = later(self.end, now.duration_since(queued_at));
        if self.deadline <= self.end {
            self.end = self.deadline;
            self.end_class = ErrorClass::Deadline;
        }
    }

    fn take(&mut self, event: ModelEvent, events: &EventSender, clock: &Clock) -> Option<Input> {
        events.observe(&Moment::Received(&event));
        if self.note_wait(&event, events, clock) {
            return None;
        }
        match event {
            ModelEvent::KeptAlive if !self.received => {}
            ModelEvent::ResponseNamed(_) => {}
            ModelEvent::KeptAlive => self.note_life(clock),
            _ => {
                self.received = true;
                self.note_life(clock);
            }
        }
        let shown = self.shown(&event);
        if let Err(error) = self.reply.push(event) {
            return Some(self.failed(error));
        }
        if let Some(body) = shown {
            // Reasoning is not part of the answer: another reply may follow it.
            let is_text = matches!(body, EventBody::TextDelta { .. });
            self.committed |= is_text && events.shows_text();
            events.send(clock.now(), body);
        }
        None
    }

    /// Begins the wait for more of the reply again. A provider names its response, and keeps its connection open, before
    /// the model has begun: that is not part of it.
    fn note_life(&mut self, clock: &Clock) {
        if let Some(idle) = self.idle_timeout {
            self.next_by = later(clock.instant(clock.now()), idle);
            self.waiting_for = ErrorClass::IdleTimeout;
        }
    }

    /// Returns the event that the listener is shown for one of the model. An event that is not kept is not shown
    /// either.
    fn shown(&self, event: &ModelEvent) -> Option<EventBody> {
        let text = |text: &String| text.clone();
        match event {
            _ if !self.streaming => None,
            ModelEvent::TextDelta {
                candidate: 0,
                text: it,
            } => Some(EventBody::TextDelta { text: text(it) }),
            ModelEvent::ReasoningDelta {
                candidate: 0,
                text: it,
            } => Some(EventBody::ReasoningDelta { text: text(it) }),
            _ => None,
        }
    }
}

/// Adds a timeout of any length; one that the clock cannot hold is no bound.
fn later(now: Instant, timeout: Duration) -> Instant {
    now + timeout.min(FAR_FUTURE)
}

/// Waits for the end of the request; forever when there is none.
///
/// # Cancel safety
/// Cancel safe: what arrived is kept in the work.
pub(super) async fn next(
    work: Option<&mut ModelWork>,
    alarm: &mut Alarm,
    events: &EventSender,
    clock: &Clock,
) -> Input {
    let Some(work) = work else {
        return std::future::pending().await;
    };
    // Around all of the wait, so that no piece of the reply pays for it.
    let span = work.span.clone();
    ended(work, alarm, events, clock).instrument(span).await
}

async fn ended(
    work: &mut ModelWork,
    alarm: &mut Alarm,
    events: &EventSender,
    clock: &Clock,
) -> Input {
    let input = whole(work, alarm, events, clock).await;
    super::spans::note_end(&input, super::millis(work.started.elapsed()));
    input
}

async fn whole(
    work: &mut ModelWork,
    alarm: &mut Alarm,
    events: &EventSender,
    clock: &Clock,
) -> Input {
    loop {
        let (limit, class) = work.limit();
        let next = tokio::select! {
            biased;
            next = super::guarded(work.stream.next()) => next,
            () = alarm.at(limit) => return work.timed_out(class),
        };
        match next {
            Err(panic) => {
                let message = format!("the model failed: {panic}");
                return work.failed(ModelError::new(ErrorClass::Internal, message));
            }
            Ok(None) => {
                let reply = std::mem::take(&mut work.reply).finish();
                return Input::Reply { reply };
            }
            Ok(Some(Err(error))) => return work.failed(error),
            Ok(Some(Ok(event))) => {
                if let Some(input) = work.take(event, events, clock) {
                    return input;
                }
            }
        }
        // A stream that always has more must not keep a cancel from being seen, nor outlive its
        // bound, which is looked at above only when the stream has nothing.
        tokio::task::consume_budget().await;
        let over = work.queued_at.is_none() && clock.instant(clock.now()) >= work.end;
        if over {
            return work.timed_out(work.end_class);
        }
    }
}
