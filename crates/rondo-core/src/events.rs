//! The ordered event stream of a turn, which never blocks it: to a listener of its own, or to a host that has a queue for
//! its sessions ([`EventSink`]).
//!
//! A slow listener costs memory up to a bound: past [`COALESCE_AFTER`] waiting events, a delta is
//! joined to the one before it, and reports of progress and events of child sessions are dropped; past [`DELTA_BYTES_MAX`] waiting bytes, and past
//! [`WAITING_DELTAS_MAX`] waiting events if it cannot be joined, deltas are dropped and counted. All other events are always delivered, and their number is bounded by the limits of
//! the turn.

use crate::observe::{Moment, Observer, Observers};
use futures_util::Stream;
use rondo_types::{EventBody, SessionId, TimeMs, TurnEvent, TurnId};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Waiting events after which deltas are joined.
pub const COALESCE_AFTER: usize = 1024;
/// Waiting delta bytes after which deltas are dropped.
pub const DELTA_BYTES_MAX: usize = 16 << 20;
/// Waiting events after which deltas that cannot be joined are dropped: the pieces may be of a byte
/// each.
pub const WAITING_DELTAS_MAX: usize = 1 << 16;

/// Bytes of a child session's event as JSON; longer ones are dropped.
pub const CHILD_EVENT_BYTES_MAX: usize = 16 << 10;

#[derive(Default)]
struct Queue {
    waiting: VecDeque<TurnEvent>,
    delta_bytes: usize,
    dropped: u64,
    next_seq: u64,
    senders: usize,
    /// Set by the last event of a turn: what comes later, from work that was abandoned, is dropped.
    closed: bool,
    receiver_gone: bool,
    /// The listener, if it waits.
    listener: Option<Waker>,
}

struct Shared {
    queue: Mutex<Queue>,
    /// Takes the events in place of the queue.
    sink: Option<Arc<dyn EventSink>>,
    session: SessionId,
    turn: TurnId,
}

/// Takes the events of a turn as they happen, for a host that has a queue of its own for them.
pub trait EventSink: Send + Sync {
    /// Takes the next event: one after another, in order, on any thread. Must not block, and must send none itself.
    fn take(&self, event: TurnEvent);
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the two ends of a turn's event stream.
#[must_use]
pub fn channel(session: SessionId, turn: TurnId) -> (EventSender, EventReceiver) {
    let sender = EventSender::new(session, turn, None);
    let shared = Arc::clone(&sender.shared);
    (sender, EventReceiver { shared })
}

/// Makes the turn's end of a stream whose events a host takes itself. It bounds them, such as by [`join`].
#[must_use]
pub fn into_sink(session: SessionId, turn: TurnId, sink: Arc<dyn EventSink>) -> EventSender {
    EventSender::new(session, turn, Some(sink))
}

/// The turn's end of the stream. The stream ends when all its clones are gone.
pub struct EventSender {
    shared: Arc<Shared>,
    observers: Observers,
    /// Set if the listener shows no text before the turn is over.
    text_is_unseen: bool,
}

impl Clone for EventSender {
    fn clone(&self) -> Self {
        self.shared.queue().senders += 1;
        Self {
            shared: Arc::clone(&self.shared),
            observers: self.observers.clone(),
            text_is_unseen: self.text_is_unseen,
        }
    }
}

/// The listener's end of the stream.
pub struct EventReceiver {
    shared: Arc<Shared>,
}

impl EventSender {
    fn new(session: SessionId, turn: TurnId, sink: Option<Arc<dyn EventSink>>) -> Self {
        let queue = Queue {
            senders: 1,
            ..Queue::default()
        };
        let shared = Shared {
            queue: Mutex::new(queue),
            sink,
            session,
            turn,
        };
        Self {
            shared: Arc::new(shared),
            observers: Observers::default(),
            text_is_unseen: false,
        }
    }

    /// Attaches an observer. It receives every moment even when no listener is subscribed. To be called before the
    /// turn is started: clones that exist already do not report them.
    #[must_use]
    pub fn observed_by(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.add(observer);
        self
    }

    /// Notes that the listener shows no text before the turn is over: a reply that is cut in its middle is asked for
    /// again. To be called before the turn is started.
    #[must_use]
    pub fn with_unseen_text(mut self) -> Self {
        self.text_is_unseen = true;
        self
    }

    /// Returns whether someone may see the text that is sent now. A listener that is gone sees none.
    pub(crate) fn shows_text(&self) -> bool {
        !self.text_is_unseen && !self.shared.queue().receiver_gone
    }

    /// Returns the session whose turn this is.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.shared.session
    }

    /// Returns the turn.
    #[must_use]
    pub fn turn(&self) -> &TurnId {
        &self.shared.turn
    }

    /// Tells those who measure the turn of a moment that is not an event.
    pub(crate) fn observe(&self, moment: &Moment<'_>) {
        self.observers.tell(moment);
    }

    /// Appends an event. Never blocks; does nothing once the listener is gone.
    pub fn send(&self, at: TimeMs, body: EventBody) {
        if self.observers.are_there() && !self.shared.queue().closed {
            self.observe(&Moment::Event(&body));
        }
        let mut queue = self.shared.queue();
        if queue.closed {
            return;
        }
        queue.closed = matches!(body, EventBody::Result(_) | EventBody::Parked { .. });
        if queue.receiver_gone {
            return;
        }
        let is_slow = queue.waiting.len() >= COALESCE_AFTER;
        if let EventBody::ChildEvent { event, .. } = &body
            && (is_slow || is_too_long(event))
        {
            return;
        }
        if let Some(sink) = &self.shared.sink {
            let event = self.event(&mut queue, at, body);
            return sink.take(event);
        }
        let bytes = delta_text(&body).map_or(0, str::len);
        let too_large = bytes > 0 && queue.delta_bytes + bytes > DELTA_BYTES_MAX;
        let is_progress = matches!(body, EventBody::ToolProgress { .. });
        let last = queue.waiting.back_mut().map(|it| &mut it.body);
        let joined =
            !too_large && (is_slow || is_progress) && last.is_some_and(|last| join(last, &body));
        if is_progress && is_slow && !joined {
            return;
        }
        let too_many = !joined && queue.waiting.len() >= WAITING_DELTAS_MAX;
        if too_large || (too_many && delta_text(&body).is_some()) {
            queue.dropped += 1;
            return;
        }
        queue.delta_bytes += bytes;
        if !joined {
            if queue.dropped > 0 && bytes == 0 {
                let count = std::mem::take(&mut queue.dropped);
                self.push(&mut queue, at, EventBody::DeltasDropped { count });
            }
            self.push(&mut queue, at, body);
        }
        wake(queue);
    }

    fn push(&self, queue: &mut Queue, at: TimeMs, body: EventBody) {
        let event = self.event(queue, at, body);
        queue.waiting.push_back(event);
    }

    fn event(&self, queue: &mut Queue, at: TimeMs, body: EventBody) -> TurnEvent {
        let seq = queue.next_seq;
        queue.next_seq += 1;
        TurnEvent {
            session: self.shared.session.clone(),
            turn: self.shared.turn.clone(),
            seq,
            at,
            body,
        }
    }
}

impl Drop for EventSender {
    fn drop(&mut self) {
        let mut queue = self.shared.queue();
        queue.senders -= 1;
        wake(queue);
    }
}

impl EventReceiver {
    /// Waits for the next event; `None` when the turn is over and all were taken.
    ///
    /// # Cancel safety
    /// Cancel safe: no event is lost.
    pub async fn next(&mut self) -> Option<TurnEvent> {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    /// Drops the events that wait and all that come.
    pub fn close(&mut self) {
        let mut queue = self.shared.queue();
        queue.receiver_gone = true;
        queue.waiting = VecDeque::new();
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<TurnEvent>> {
        let mut queue = self.shared.queue();
        if let Some(event) = queue.waiting.pop_front() {
            queue.delta_bytes -= delta_text(&event.body).map_or(0, str::len);
            return Poll::Ready(Some(event));
        }
        if queue.senders == 0 || queue.closed || queue.receiver_gone {
            return Poll::Ready(None);
        }
        // Most of a turn its listener waits: the room for what came together is not held meanwhile.
        queue.waiting = VecDeque::new();
        queue.listener = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Stream for EventReceiver {
    type Item = TurnEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<TurnEvent>> {
        self.poll(context)
    }
}

impl Drop for EventReceiver {
    fn drop(&mut self) {
        self.close();
    }
}

/// Wakes the listener, without the lock: it may be polled at once.
fn wake(mut queue: MutexGuard<'_, Queue>) {
    let listener = queue.listener.take();
    drop(queue);
    if let Some(listener) = listener {
        listener.wake();
    }
}

fn is_too_long(event: &TurnEvent) -> bool {
    serde_json::to_string(event).is_ok_and(|json| json.len() > CHILD_EVENT_BYTES_MAX)
}

fn delta_text(body: &EventBody) -> Option<&str> {
    match body {
        EventBody::TextDelta { text }
        | EventBody::ReasoningDelta { text }
        | EventBody::ToolOutputDelta { text, .. } => Some(text),
        _ => None,
    }
}

/// Joins an event to the latest one that nobody has read, and returns whether that was possible: deltas of the same kind
/// become one, and the newer of two reports of a call's progress replaces the other.
pub fn join(last: &mut EventBody, more: &EventBody) -> bool {
    match (&mut *last, more) {
        (EventBody::TextDelta { text }, EventBody::TextDelta { text: more })
        | (EventBody::ReasoningDelta { text }, EventBody::ReasoningDelta { text: more }) => {
            text.push_str(more);
            true
        }
        (
            EventBody::ToolOutputDelta { id, text },
            EventBody::ToolOutputDelta {
                id: other,
                text: more,
            },
        ) if id == other => {
            text.push_str(more);
            true
        }
        (EventBody::ToolProgress { id, .. }, EventBody::ToolProgress { id: other, .. })
            if id == other =>
        {
            *last = more.clone();
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_types::CallId;

    fn ends() -> (EventSender, EventReceiver) {
        channel(SessionId::new("s"), TurnId::new("t"))
    }

    #[tokio::test]
    async fn a_listener_that_never_reads_costs_bounded_memory_and_loses_only_deltas() {
        let (tx, mut rx) = ends();
        let piece = "x".repeat(1 << 16);
        for _ in 0..1000 {
            tx.send(
                TimeMs(0),
                EventBody::TextDelta {
                    text: piece.clone(),
                },
            );
        }
        tx.send(
            TimeMs(1),
            EventBody::ReplyRejected {
                reason: "end".into(),
            },
        );
        drop(tx);
        let (mut bytes, mut bodies) = (0, Vec::new());
        while let Some(event) = rx.next().await {
            match event.body {
                EventBody::TextDelta { text } => bytes += text.len(),
                body => bodies.push(body),
            }
        }
        assert_eq!(bytes, DELTA_BYTES_MAX);
        assert_eq!(
            bodies,
            [
                EventBody::DeltasDropped {
                    count: 1000 - (DELTA_BYTES_MAX >> 16) as u64
                },
                EventBody::ReplyRejected {
                    reason: "end".into()
                }
            ]
        );
    }

    #[tokio::test]
    async fn many_small_deltas_are_joined_without_loss() {
        let (tx, mut rx) = ends();
        for _ in 0..COALESCE_AFTER * 3 {
            tx.send(TimeMs(0), EventBody::TextDelta { text: "ab".into() });
        }
        drop(tx);
        let (mut events, mut text) = (0, String::new());
        while let Some(event) = rx.next().await {
            assert_eq!(event.seq, events);
            events += 1;
            let EventBody::TextDelta { text: more } = event.body else {
                panic!("only text")
            };
            text.push_str(&more);
        }
        assert_eq!(events as usize, COALESCE_AFTER);
        assert_eq!(text, "ab".repeat(COALESCE_AFTER * 3));
    }

    #[tokio::test]
    async fn deltas_that_cannot_be_joined_are_bounded_in_number() {
        let (tx, mut rx) = ends();
        for n in 0..WAITING_DELTAS_MAX * 2 {
            let id = rondo_types::CallId::new(["a", "b"][n % 2]);
            let text = "x".to_owned();
            tx.send(TimeMs(0), EventBody::ToolOutputDelta { id, text });
        }
        drop(tx);
        let mut events = 0;
        while rx.next().await.is_some() {
            events += 1;
        }
        assert_eq!(events, WAITING_DELTAS_MAX);
    }

    #[test]
    fn sending_to_a_gone_listener_does_nothing() {
        let (tx, rx) = ends();
        drop(rx);
        tx.send(TimeMs(0), EventBody::TextDelta { text: "x".into() });
        assert!(tx.shared.queue().waiting.is_empty());
    }

    #[tokio::test]
    async fn events_of_children_are_bounded_in_size_and_in_number() {
        let (tx, mut rx) = ends();
        let of_child = |text: String| EventBody::ChildEvent {
            id: CallId::new("c"),
            event: Box::new(TurnEvent {
                session: SessionId::new("s.c"),
                turn: TurnId::new("t"),
                seq: 0,
                at: TimeMs(0),
                body: EventBody::ReplyRejected { reason: text },
            }),
        };
        let empty = EventBody::ReplyRejected {
            reason: String::new(),
        };
        let EventBody::ChildEvent { event, .. } = of_child(String::new()) else {
            panic!("{empty:?}")
        };
        let room = CHILD_EVENT_BYTES_MAX - serde_json::to_string(&event).unwrap().len();
        for (bytes, is_sent) in [(room - 1, true), (room, true), (room + 1, false)] {
            tx.send(TimeMs(0), of_child("x".repeat(bytes)));
            assert_eq!(!tx.shared.queue().waiting.is_empty(), is_sent, "{bytes}");
            if is_sent {
                rx.next().await;
            }
        }
        for _ in 0..COALESCE_AFTER + 1 {
            tx.send(TimeMs(0), of_child(String::new()));
        }
        assert_eq!(tx.shared.queue().waiting.len(), COALESCE_AFTER);
        tx.send(TimeMs(0), EventBody::RequestQueued);
        assert_eq!(tx.shared.queue().waiting.len(), COALESCE_AFTER + 1);
    }

    #[tokio::test]
    async fn a_slow_listener_reads_the_latest_progress_and_no_more_than_the_bound() {
        let (tx, mut rx) = channel(SessionId::new("s"), TurnId::new("t"));
        let report = |call: &str, done: f64| EventBody::ToolProgress {
            id: CallId::new(call),
            progress: rondo_types::ToolProgress {
                done: Some(done),
                ..Default::default()
            },
        };
        for done in 0..10 {
            tx.send(TimeMs(0), report("a", f64::from(done)));
        }
        tx.send(TimeMs(0), report("b", 1.0));
        for event in [report("a", 9.0), report("b", 1.0)] {
            assert_eq!(rx.next().await.unwrap().body, event);
        }
        // Two calls that report in turns cannot be joined.
        for done in 0..2 * u32::try_from(COALESCE_AFTER).unwrap() {
            let call = if done % 2 == 0 { "a" } else { "b" };
            tx.send(TimeMs(0), report(call, f64::from(done)));
        }
        tx.send(TimeMs(0), EventBody::RequestQueued);
        drop(tx);
        let mut waited = Vec::new();
        while let Some(event) = rx.next().await {
            waited.push(event);
        }
        assert_eq!(waited.len(), COALESCE_AFTER + 1);
        let seqs: Vec<u64> = waited.iter().map(|it| it.seq).collect();
        assert!(seqs.windows(2).all(|it| it[0] + 1 == it[1]), "no gaps");
        assert_eq!(waited.last().unwrap().body, EventBody::RequestQueued);
    }
}
