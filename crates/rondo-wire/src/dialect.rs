//! The interface of a dialect: encoding requests, decoding replies, reading errors.

use crate::anthropic::Anthropic;
use crate::gemini::Gemini;
use crate::openai_chat::OpenAiChat;
use crate::openai_responses::OpenAiResponses;
use crate::{Bounds, Encoded, EncodedPrefix, Target};
use bytes::Bytes;
use rondo_types::{ModelError, ModelEvent, ModelRequest, TimeMs, Usage};

/// Looks up a response header by its lower-case name.
pub type Headers<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// A wire protocol.
pub trait Dialect: Send + Sync {
    /// Returns its name in profiles and origins, such as `openai-chat`.
    fn name(&self) -> &'static str;

    /// Encodes a request.
    ///
    /// Never fails: what the wire cannot carry is lowered and noted.
    fn encode(&self, request: &ModelRequest, target: &Target) -> Encoded {
        self.encode_onto(&mut EncodedPrefix::default(), request, target)
            .joined()
    }

    /// Encodes a request to the same bytes as [`Dialect::encode`], at the cost of what is new in
    /// it: takes what the conversation's latest request left in `prefix`, and leaves what the next
    /// one can use. What does not fit is not used, so `prefix` may be of any conversation.
    fn encode_onto(
        &self,
        prefix: &mut EncodedPrefix,
        request: &ModelRequest,
        target: &Target,
    ) -> Encoded<Vec<Bytes>>;

    /// Starts decoding the body of a 2xx response.
    ///
    /// The content decides whether it is an event stream, one JSON value or a JSON array of values.
    fn decoder(&self, target: &Target, bounds: Bounds) -> Box<dyn Decoder>;

    /// Reads a response whose status is not 2xx.
    ///
    /// `body` may be anything, HTML included, and may be cut. `now` is for `Retry-After` dates.
    fn error(&self, status: u16, headers: &Headers<'_>, body: &[u8], now: TimeMs) -> ModelError {
        crate::errors::of_response(status, headers, body, now)
    }
}

/// Decodes one body as its bytes arrive.
///
/// Where the bytes are cut makes no difference to the events. After an error every further call
/// returns the same error.
pub trait Decoder: Send {
    /// Decodes more bytes and appends the events.
    ///
    /// # Errors
    /// The provider reported a failure inside the body, the bytes are not the protocol
    /// ([`ErrorClass::Protocol`](rondo_types::ErrorClass::Protocol)), or a bound was passed
    /// ([`ErrorClass::TooLarge`](rondo_types::ErrorClass::TooLarge)). Events before it stand.
    fn push(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError>;

    /// Ends the body and appends the last events: only here do tool calls become whole.
    ///
    /// # Errors
    /// As [`Decoder::push`], and [`ErrorClass::Network`](rondo_types::ErrorClass::Network),
    /// retryable, when the body was cut, or when what it says of itself shows that events were lost
    /// inside of it. A missing `[DONE]` after a finish reason is no cut.
    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError>;

    /// Returns whether the protocol's own end was read, so that the rest need not be awaited.
    fn ended(&self) -> bool;

    /// Returns whether every candidate that began has its finish reason. The body should end soon; a
    /// server that keeps it open does not make the reply any less whole.
    fn is_whole(&self) -> bool;

    /// Ends a reply that [is whole](Decoder::is_whole) and whose body does not end: what stands
    /// behind its last event is not looked at. Any other reply ends as by [`Decoder::finish`].
    ///
    /// # Errors
    /// As [`Decoder::finish`].
    fn conclude(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError>;

    /// Returns the last token counts in the provider's own way of counting: Gemini's output without
    /// its thoughts, for one. [`ModelEvent::Usage`] has them in ours.
    fn reported_usage(&self) -> Option<Usage>;
}

impl Decoder for Box<dyn Decoder> {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        (**self).push(bytes, out)
    }

    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        (**self).finish(out)
    }

    fn ended(&self) -> bool {
        (**self).ended()
    }

    fn is_whole(&self) -> bool {
        (**self).is_whole()
    }

    fn conclude(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        (**self).conclude(out)
    }

    fn reported_usage(&self) -> Option<Usage> {
        (**self).reported_usage()
    }
}

/// All dialects.
const DIALECTS: [&dyn Dialect; 4] = [&OpenAiChat, &Gemini, &OpenAiResponses, &Anthropic];

/// Names of all dialects, in the order of [`DIALECTS`].
const NAMES: [&str; DIALECTS.len()] = [
    crate::openai_chat::NAME,
    crate::gemini::NAME,
    crate::openai_responses::NAME,
    crate::anthropic::NAME,
];

/// Returns the dialect of that name.
#[must_use]
pub fn dialect(name: &str) -> Option<&'static dyn Dialect> {
    let known = DIALECTS.into_iter().find(|dialect| dialect.name() == name);
    known.or_else(|| crate::react::find(name))
}

/// Returns the names of the dialects that providers speak; `react`, over any of them, is not one.
#[must_use]
pub fn dialect_names() -> &'static [&'static str] {
    &NAMES
}
