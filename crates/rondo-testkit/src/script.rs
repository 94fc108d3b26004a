//! The responses of a scripted server and their steps.

use crate::{Gate, Recorded};
use bytes::Bytes;
use serde_json::Value;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The responses of a server, one a request, in the order the requests arrive.
#[derive(Debug, Clone, Default)]
pub struct Script {
    pub(crate) responses: VecDeque<Response>,
    pub(crate) forever: Option<Response>,
    pub(crate) answer: Option<Answer>,
}

/// Chooses the response by the request.
#[derive(Clone)]
pub(crate) struct Answer(Arc<dyn Fn(&Recorded) -> Response + Send + Sync>);

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answer")
    }
}

impl Script {
    /// Builds a script that chooses each response by its request, for clients that may ask the same
    /// again.
    pub fn answering(answer: impl Fn(&Recorded) -> Response + Send + Sync + 'static) -> Self {
        Self {
            answer: Some(Answer(Arc::new(answer))),
            ..Self::default()
        }
    }

    /// Builds a script that answers every request with the same response.
    #[must_use]
    pub fn repeat(response: Response) -> Self {
        Self {
            forever: Some(response),
            ..Self::default()
        }
    }

    /// Returns the script with a response for every request past its end.
    #[must_use]
    pub fn then_repeat(mut self, response: Response) -> Self {
        self.forever = Some(response);
        self
    }

    /// Takes the next response; past the end of the script it is a 500 that says so.
    pub(crate) fn next(&mut self, request: &Recorded) -> Response {
        if let Some(Answer(answer)) = &self.answer {
            return answer(request);
        }
        self.responses
            .pop_front()
            .or_else(|| self.forever.clone())
            .unwrap_or_else(|| Response::text(500, "the test's script has no response left"))
    }
}

impl From<Vec<Response>> for Script {
    fn from(responses: Vec<Response>) -> Self {
        Self {
            responses: responses.into(),
            ..Self::default()
        }
    }
}

impl<const N: usize> From<[Response; N]> for Script {
    fn from(responses: [Response; N]) -> Self {
        Vec::from(responses).into()
    }
}

impl From<Response> for Script {
    fn from(response: Response) -> Self {
        vec![response].into()
    }
}

/// One step of a response.
#[derive(Debug, Clone)]
pub enum Step {
    /// Sends the bytes, as one chunk if the body is chunked.
    Send(Bytes),
    /// Waits until the test opens the gate.
    Gate(Gate),
    /// Waits by the runtime's clock, which may be paused.
    Delay(Duration),
    /// Sends the bytes again and again, with a pause between, until the client goes away.
    Forever {
        /// Bytes to send.
        bytes: Bytes,
        /// The pause.
        every: Duration,
    },
    /// Sends nothing more but keeps the connection until the client goes away.
    Stall,
    /// Neither reads nor writes again, and never closes: a peer whose cable was cut.
    Vanish,
    /// Closes the connection in the middle of the body.
    Close,
    /// Resets the connection.
    Reset,
}

/// How the end of a body is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// `Transfer-Encoding: chunked`; each sent piece is a chunk.
    Chunked,
    /// `Content-Length`, counted over the sent pieces.
    Length,
    /// The body ends where the connection does.
    UntilClose,
}

/// One scripted response.
#[derive(Debug, Clone)]
pub struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) framing: Framing,
    pub(crate) before: Vec<Step>,
    pub(crate) body: Vec<Step>,
}

impl Response {
    /// Builds an empty chunked response.
    #[must_use]
    pub fn new(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            framing: Framing::Chunked,
            before: Vec::new(),
            body: Vec::new(),
        }
    }

    /// Builds a 200 event stream, each piece sent as one chunk.
    pub fn sse<B: Into<Bytes>>(pieces: impl IntoIterator<Item = B>) -> Self {
        let mut response = Self::new(200).header("content-type", "text/event-stream");
        response
            .body
            .extend(pieces.into_iter().map(|piece| Step::Send(piece.into())));
        response
    }

    /// Builds a JSON response with a length.
    #[must_use]
    pub fn json(status: u16, body: &Value) -> Self {
        Self::new(status)
            .header("content-type", "application/json")
            .framing(Framing::Length)
            .send(body.to_string())
    }

    /// Builds a plain text response with a length.
    pub fn text(status: u16, body: impl Into<Bytes>) -> Self {
        Self::new(status)
            .header("content-type", "text/plain")
            .framing(Framing::Length)
            .send(body)
    }

    /// Builds an HTML response with a length, as gateways send.
    pub fn html(status: u16, body: impl Into<Bytes>) -> Self {
        Self::new(status)
            .header("content-type", "text/html")
            .framing(Framing::Length)
            .send(body)
    }

    /// Returns the response with one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Returns the response with another end marking.
    #[must_use]
    pub fn framing(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// Returns the response with one more step of its body.
    #[must_use]
    pub fn step(mut self, step: Step) -> Self {
        self.body.push(step);
        self
    }

    /// Returns the response with one more piece of its body.
    #[must_use]
    pub fn send(self, bytes: impl Into<Bytes>) -> Self {
        self.step(Step::Send(bytes.into()))
    }

    /// Returns the response with a step to take before its status line is sent.
    #[must_use]
    pub fn before(mut self, step: Step) -> Self {
        self.before.push(step);
        self
    }

    /// Returns the response with the whole body cut into single bytes, a chunk each.
    #[must_use]
    pub fn byte_by_byte(mut self) -> Self {
        self.body = self.body.into_iter().flat_map(single_bytes).collect();
        self
    }

    /// Returns the bytes of all pieces together, as a client that waits for the end reads them.
    #[must_use]
    pub fn body_bytes(&self) -> Vec<u8> {
        self.body
            .iter()
            .filter_map(|step| match step {
                Step::Send(bytes) => Some(bytes.as_ref()),
                _ => None,
            })
            .flatten()
            .copied()
            .collect()
    }
}

fn single_bytes(step: Step) -> Vec<Step> {
    match step {
        Step::Send(bytes) => (0..bytes.len())
            .map(|at| Step::Send(bytes.slice(at..=at)))
            .collect(),
        other => vec![other],
    }
}
