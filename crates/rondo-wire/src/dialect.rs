//! The interface of a dialect: all that Rondo knows about a wire protocol.

use crate::{Bounds, Encoded, EncodedPrefix, Target};
use bytes::Bytes;
use rondo_types::{ModelError, ModelEvent, ModelRequest, TimeMs, Usage};
use serde_json::{Value, json};

/// Looks up a response header by its lower-case name.
pub type Headers<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// A wire protocol.
///
/// The default methods behave as OpenAI's API, which most servers follow.
pub trait Dialect: Send + Sync {
    /// Returns its name in settings, profiles and origins, such as `openai-chat`.
    fn name(&self) -> &str;

    /// Returns the header that carries the key by itself, by its lower-case name; without one, the key
    /// is sent as `authorization: Bearer KEY`.
    fn key_header(&self) -> Option<&'static str> {
        None
    }

    /// Returns the headers that each request carries, by lower-case name. A configured header of the
    /// same name replaces one of these.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Returns the path of the list of models, behind the base URL.
    fn models_path(&self) -> &'static str {
        "/models"
    }

    /// Returns the name of a request in the semantic conventions of OpenTelemetry
    /// (`gen_ai.operation.name`).
    fn operation(&self) -> &'static str {
        "chat"
    }

    /// Encodes a request for the vectors of texts, as the path behind the base URL and the body:
    /// <https://platform.openai.com/docs/api-reference/embeddings>.
    ///
    /// `is_query` tells texts that are searched for from texts that are searched.
    fn embedding_request(&self, model: &str, texts: &[String], is_query: bool) -> (String, Value) {
        let _ = is_query;
        let body = json!({"model": model, "input": texts, "encoding_format": "float"});
        ("/embeddings".to_owned(), body)
    }

    /// Encodes a request.
    ///
    /// Never fails: what the wire cannot carry is lowered and noted.
    fn encode(&self, request: &ModelRequest, target: &Target) -> Encoded {
        self.encode_onto(&mut EncodedPrefix::default(), request, target)
            .joined()
    }

    /// Encodes a request to the same bytes as [`Dialect::encode`], at the cost of what is new in
    /// it: takes what the conversation's latest request left in `prefix`, and leaves what the next
    /// one can use. Parts that do not fit are not used, so `prefix` may be of any conversation.
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
/// The events do not depend on where the bytes are cut. After an error every further call
/// returns the same error.
pub trait Decoder: Send {
    /// Decodes more bytes and appends the events.
    ///
    /// # Errors
    /// The provider reported a failure inside the body, the bytes are not the protocol
    /// ([`ErrorClass::Protocol`](rondo_types::ErrorClass::Protocol)), or a bound was passed
    /// ([`ErrorClass::TooLarge`](rondo_types::ErrorClass::TooLarge)). Events before it stay valid.
    fn push(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError>;

    /// Ends the body and appends the last events: only here do tool calls become whole.
    ///
    /// # Errors
    /// As [`Decoder::push`], and [`ErrorClass::Network`](rondo_types::ErrorClass::Network),
    /// retryable, when the body was cut, or when what it says of itself shows that events were lost
    /// inside of it. A missing `[DONE]` after a finish reason is not a cut.
    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError>;

    /// Returns whether the protocol's own end was read, so that the rest need not be awaited.
    fn ended(&self) -> bool;

    /// Returns whether every candidate that began has its finish reason. The body should end soon; a
    /// server that keeps it open does not make the reply any less whole.
    fn is_whole(&self) -> bool;

    /// Ends a reply that [is whole](Decoder::is_whole) and whose body does not end: what is
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
