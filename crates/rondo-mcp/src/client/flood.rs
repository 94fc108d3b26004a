//! Bounds on what a server sends without being asked: requests, notifications, bytes that are not messages, and streams
//! that break off. A server that passes one of them is ended. rmcp itself keeps each reply until the server has read it,
//! so that requests without end fill the memory.

use rmcp::model::{
    ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage, ServerNotification,
};
use rmcp::service::RoleClient;
use rmcp::transport::Transport;
use std::collections::HashMap;
use std::io::{self, Write};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The period in which a server's messages are counted.
const PERIOD: Duration = Duration::from_secs(10);
/// The bound on requests of a server within a period.
const REQUESTS_MAX: u64 = 200;
/// The bound on requests of a server whose replies it has not read yet.
const REQUESTS_OPEN_MAX: usize = 100;
/// The bound on one request of a server, in bytes of JSON.
const REQUEST_BYTES_MAX: usize = 1 << 20;
/// The bound on notifications of a server within a period.
const NOTIFICATIONS_MAX: u64 = 20_000;
/// The bound on lines that a program writes within a period. Each line is a message, or no message at all.
const LINES_MAX: u64 = 50_000;
/// The bound on bytes that a server sends within a period, its replies included.
const BYTES_MAX: u64 = 256 << 20;
/// The bound on values of one message, such as the entries of its lists. rmcp takes up to 230 bytes of memory for each.
const VALUES_MAX: usize = 250_000;
/// The bound on streams that are opened within a period since the ones before ended.
const STREAMS_MAX: u64 = 50;

/// Kinds of messages that are counted in each period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum FloodKind {
    /// Requests of the server.
    Requests,
    /// Notifications of the server.
    Notifications,
    /// Lines of a program.
    Lines,
    /// Bytes of a program's output, or of streams of events.
    Bytes,
    /// Streams of events that the client opened to receive requests and notifications.
    Streams,
}

impl FloodKind {
    /// Returns the bound, and the words for it.
    const fn bound(self) -> (u64, &'static str) {
        match self {
            Self::Requests => (REQUESTS_MAX, "requests"),
            Self::Notifications => (NOTIFICATIONS_MAX, "notifications"),
            Self::Lines => (LINES_MAX, "lines"),
            Self::Bytes => (BYTES_MAX, "bytes"),
            Self::Streams => (STREAMS_MAX, "streams that ended"),
        }
    }
}

/// Counts what the server of one connection sends, and ends the connection past a bound.
#[derive(Default)]
pub(crate) struct Flood {
    state: Mutex<State>,
    cut: CancellationToken,
}

/// Counts so far.
struct State {
    since: Instant,
    counts: HashMap<FloodKind, u64>,
    /// Requests of the server that are not replied to, and what withdraws each.
    open: HashMap<RequestId, CancellationToken>,
    /// The bound that was passed.
    exceeded: Option<String>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            counts: HashMap::new(),
            open: HashMap::new(),
            exceeded: None,
        }
    }
}

/// Treatment of a message of the server.
enum FloodDecision {
    Passed,
    /// It was dealt with here.
    Taken,
    /// A bound is passed.
    Refused,
}

impl Flood {
    /// Returns the bound that the server passed, as a clause such as `it sent more than 200 requests within 10 s`.
    pub(crate) fn exceeded(&self) -> Option<String> {
        self.state().exceeded.clone()
    }

    /// Adds to what was counted. Returns false once a bound is passed.
    pub(super) fn count(&self, what: FloodKind, amount: u64) -> bool {
        let mut state = self.state();
        if state.since.elapsed() >= PERIOD {
            state.since = Instant::now();
            state.counts.clear();
        }
        let count = state.counts.entry(what).or_default();
        *count = count.saturating_add(amount);
        let (most, words) = what.bound();
        if *count > most {
            let seconds = PERIOD.as_secs();
            self.end(
                &mut state,
                format!("it sent more than {most} {words} within {seconds} s"),
            );
        }
        state.exceeded.is_none()
    }

    /// Ends the connection since a message has too many values.
    pub(super) fn has_too_many_values(&self) {
        let why = format!("it sent a message of more than {VALUES_MAX} values");
        self.end(&mut self.state(), why);
    }

    /// Returns the token that is cancelled when the server withdraws a request of its own.
    pub(super) fn withdrawal(&self, request: &RequestId) -> CancellationToken {
        self.state().open.get(request).cloned().unwrap_or_default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, state: &mut State, why: String) {
        state.exceeded.get_or_insert(why);
        self.cut.cancel();
    }

    fn admit(&self, message: &ServerJsonRpcMessage) -> FloodDecision {
        let is_within = match message {
            JsonRpcMessage::Request(request) => {
                let bytes = bytes_of(&request.request);
                self.count(FloodKind::Requests, 1) && self.open(&request.id, bytes)
            }
            JsonRpcMessage::Notification(notification) => {
                if let ServerNotification::CancelledNotification(it) = &notification.notification
                    && let Some(id) = &it.params.request_id
                    && let Some(withdrawal) = self.state().open.get(id)
                {
                    // rmcp would drop its reply unseen, so that nothing told when the request is over.
                    withdrawal.cancel();
                    return FloodDecision::Taken;
                }
                self.count(FloodKind::Notifications, 1)
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => true,
        };
        match is_within {
            true => FloodDecision::Passed,
            false => FloodDecision::Refused,
        }
    }

    fn open(&self, id: &RequestId, bytes: usize) -> bool {
        let mut state = self.state();
        let why = if bytes > REQUEST_BYTES_MAX {
            format!("it sent a request of more than {REQUEST_BYTES_MAX} bytes")
        } else if state.open.len() >= REQUESTS_OPEN_MAX {
            format!("it sent more than {REQUESTS_OPEN_MAX} requests without reading the replies")
        } else if state.open.contains_key(id) {
            "it sent two requests with the same id at once".to_owned()
        } else {
            state.open.insert(id.clone(), CancellationToken::new());
            return true;
        };
        self.end(&mut state, why);
        false
    }

    fn replied(&self, id: &RequestId) {
        self.state().open.remove(id);
    }
}

/// Returns how long a value is as JSON.
fn bytes_of(value: &impl serde::Serialize) -> usize {
    let mut counter = Counter(0);
    // Text that cannot be written came from no JSON.
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        Err(_) => usize::MAX,
    }
}

/// Counts bytes and keeps none.
struct Counter(usize);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Counts the values of a message before it is parsed, for which their memory would be needed.
#[derive(Debug, Default)]
pub(super) struct Values {
    count: usize,
    is_string: bool,
    is_escaped: bool,
}

impl Values {
    /// Counts one more byte of the message. Returns false past the bound.
    pub(super) fn takes(&mut self, byte: u8) -> bool {
        match byte {
            // Strings of JSON have no line breaks, so that what opens one elsewhere hides nothing of the next line.
            b'\n' | b'\r' => (self.is_string, self.is_escaped) = (false, false),
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' => self.is_escaped = self.is_string,
            b'"' => self.is_string = !self.is_string,
            b',' | b'[' | b'{' if !self.is_string => self.count += 1,
            _ => {}
        }
        self.count <= VALUES_MAX
    }

    /// Returns whether a whole message is within the bound.
    pub(super) fn are_within(message: &[u8]) -> bool {
        let mut values = Self::default();
        message.iter().all(|byte| values.takes(*byte))
    }
}

/// A transport whose messages of the server are counted.
pub(super) struct Bounded<T> {
    /// Nothing once it is closed.
    inner: Option<T>,
    flood: Arc<Flood>,
}

impl<T> Bounded<T> {
    pub(super) fn new(inner: T, flood: &Arc<Flood>) -> Self {
        Self {
            inner: Some(inner),
            flood: Arc::clone(flood),
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Bounded<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let reply_to = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let sending = self.inner.as_mut().map(|it| it.send(message));
        let flood = Arc::clone(&self.flood);
        async move {
            let Some(sending) = sending else {
                return Ok(());
            };
            let sent = tokio::select! {
                biased;
                // The connection is ending: rmcp need not wait for what the server does not read.
                () = flood.cut.cancelled() => Ok(()),
                sent = sending => sent,
            };
            if let Some(id) = reply_to {
                flood.replied(&id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let message = tokio::select! {
                biased;
                () = self.flood.cut.cancelled() => return None,
                message = self.inner.as_mut()?.receive() => message?,
            };
            match self.flood.admit(&message) {
                FloodDecision::Passed => return Some(message),
                FloodDecision::Taken => {}
                FloodDecision::Refused => return None,
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        match self.inner.take() {
            // rmcp's worker of an address waits here until its messages are taken, which never happens now; without its
            // transport it ends.
            None => Ok(()),
            Some(_) if self.flood.cut.is_cancelled() => Ok(()),
            Some(mut inner) => inner.close().await,
        }
    }
}

/// The output of a program, whose lines and bytes are counted.
pub(super) struct BoundedOutput<R> {
    inner: R,
    flood: Arc<Flood>,
    values: Values,
}

impl<R> BoundedOutput<R> {
    pub(super) fn new(inner: R, flood: &Arc<Flood>) -> Self {
        Self {
            inner,
            flood: Arc::clone(flood),
            values: Values::default(),
        }
    }

    /// Counts what was read. Returns false past a bound.
    fn takes(&mut self, read: &[u8]) -> bool {
        let mut lines = 0;
        for byte in read {
            if *byte == b'\n' {
                lines += 1;
                self.values = Values::default();
            } else if !self.values.takes(*byte) {
                self.flood.has_too_many_values();
                return false;
            }
        }
        self.flood.count(FloodKind::Bytes, read.len() as u64)
            && self.flood.count(FloodKind::Lines, lines)
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedOutput<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let polled = Pin::new(&mut this.inner).poll_read(context, buffer);
        let new = buffer.filled().get(before..).unwrap_or_default();
        match this.takes(new) {
            true => polled,
            false => Poll::Ready(Err(io::Error::other("the server sends without end"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(values: usize) -> Vec<u8> {
        format!("[{}0]", "0,".repeat(values - 1)).into_bytes()
    }

    #[test]
    fn the_values_of_a_message_are_bounded_and_what_strings_hold_is_none() {
        for (values, expected) in [
            (VALUES_MAX - 1, true),
            (VALUES_MAX, true),
            (VALUES_MAX + 1, false),
        ] {
            assert_eq!(Values::are_within(&list(values)), expected, "{values}");
        }
        let text = r#"[{,\" "#.repeat(VALUES_MAX);
        assert!(Values::are_within(
            format!("{{\"a\":\"{text}\"}}").as_bytes()
        ));
        let hidden = [b": \"\rdata: ".as_slice(), &list(VALUES_MAX + 1)].concat();
        assert!(!Values::are_within(&hidden));
    }

    #[tokio::test(start_paused = true)]
    async fn each_bound_holds_within_its_period() {
        for what in [
            FloodKind::Requests,
            FloodKind::Notifications,
            FloodKind::Lines,
            FloodKind::Bytes,
            FloodKind::Streams,
        ] {
            let most = what.bound().0;
            let flood = Flood::default();
            assert!(flood.count(what, most - 1), "{what:?}");
            assert!(flood.count(what, 1), "{what:?}");
            tokio::time::advance(PERIOD).await;
            assert!(flood.count(what, most), "{what:?}");
            assert!(!flood.count(what, 1), "{what:?}");
            tokio::time::advance(PERIOD).await;
            assert!(!flood.count(what, 1), "{what:?}");
        }
    }

    #[test]
    fn requests_without_replies_are_bounded() {
        let flood = Flood::default();
        let id = |number: usize| RequestId::String(number.to_string().into());
        for number in 0..REQUESTS_OPEN_MAX {
            assert!(flood.open(&id(number), REQUEST_BYTES_MAX));
        }
        flood.replied(&id(0));
        assert!(flood.open(&id(REQUESTS_OPEN_MAX), 1));
        assert!(!flood.open(&id(0), 1));
        let most = REQUESTS_OPEN_MAX;
        assert_eq!(
            flood.exceeded(),
            Some(format!(
                "it sent more than {most} requests without reading the replies"
            ))
        );
    }
}
