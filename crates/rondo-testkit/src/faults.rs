//! The faults of networks and providers in a reply.

use crate::{Gate, Response, Step};
use bytes::Bytes;
use std::time::Duration;

/// Bytes of one piece of an endless line.
const ENDLESS_PIECE_BYTES: usize = 64 * 1024;

/// Accepts the request and never answers.
#[must_use]
pub fn zero_byte_stall() -> Response {
    Response::sse(Vec::<Bytes>::new()).before(Step::Stall)
}

/// Sends the status line and the headers, then nothing.
#[must_use]
pub fn stall_after_headers() -> Response {
    Response::sse(Vec::<Bytes>::new()).step(Step::Stall)
}

/// Sends the pieces, then nothing.
#[must_use]
pub fn stall_after(pieces: Vec<Bytes>) -> Response {
    Response::sse(pieces).step(Step::Stall)
}

/// Sends comments forever and never an event.
#[must_use]
pub fn pings_only(every: Duration) -> Response {
    Response::sse(Vec::<Bytes>::new()).step(Step::Forever {
        bytes: Bytes::from_static(b": ping\n\n"),
        every,
    })
}

/// Sends the pieces, then is gone without a word: the connection stays, dead.
#[must_use]
pub fn half_open_after(pieces: Vec<Bytes>) -> Response {
    Response::sse(pieces).step(Step::Vanish)
}

/// Sends the pieces and half of one event, then resets the connection once the gate is open.
///
/// The gate lets the client read what was sent, which a reset may otherwise destroy.
#[must_use]
pub fn reset_mid_event(pieces: Vec<Bytes>, gate: &Gate) -> Response {
    Response::sse(pieces)
        .send(Bytes::from_static(b"data: {\"cho"))
        .step(Step::Gate(gate.clone()))
        .step(Step::Reset)
}

/// Sends the pieces and closes the connection without the end of the body.
#[must_use]
pub fn cut_after(pieces: Vec<Bytes>) -> Response {
    Response::sse(pieces).step(Step::Close)
}

/// Sends the pieces and ends the body as if they were all.
#[must_use]
pub fn truncated(pieces: Vec<Bytes>) -> Response {
    Response::sse(pieces)
}

/// Sends one line that never ends, as fast as the client reads.
#[must_use]
pub fn endless_line() -> Response {
    let bytes = Bytes::from(vec![b'a'; ENDLESS_PIECE_BYTES]);
    Response::sse([Bytes::from_static(b"data: {\"x\":\"")]).step(Step::Forever {
        bytes,
        every: Duration::ZERO,
    })
}

/// Sends the same event forever, with a pause between.
#[must_use]
pub fn slow_drip(event: Bytes, every: Duration) -> Response {
    Response::sse(Vec::<Bytes>::new()).step(Step::Forever {
        bytes: event,
        every,
    })
}

/// Refuses for now (429), with `Retry-After` in seconds where given.
#[must_use]
pub fn rate_limited(retry_after: Option<u64>) -> Response {
    let response = crate::openai::error(429, "rate_limit_error", "too many requests");
    match retry_after {
        Some(seconds) => response.header("retry-after", &seconds.to_string()),
        None => response,
    }
}

/// Fails as a gateway does: a page of HTML.
#[must_use]
pub fn html_error(status: u16) -> Response {
    let page = format!(
        "<html>\r\n<head><title>{status} Bad Gateway</title></head>\r\n\
         <body><center><h1>{status} Bad Gateway</h1></center></body>\r\n</html>\r\n"
    );
    Response::html(status, page)
}
