//! Gemini `generateContent` and `streamGenerateContent` (v1beta).
//!
//! Parts that carry a signature go back as they came: text and reasoning parts keep every field
//! beside their text, and a call keeps its whole part. Tools are sent as `parametersJsonSchema`
//! rather than `parameters`, whose OpenAPI subset would need a lossy translation.
//!
//! Lowering: reasoning and signatures of elsewhere, and of another model, are left out; a refusal is text; ids of
//! elsewhere are not sent, since order tells calls apart; a result that is no object is wrapped as
//! `output` or `error`; media of results follow in a content of the user; a response schema is left
//! out beside tools.

mod chunk;
pub(crate) mod decode;
mod encode;
mod errors;
mod partial;

use crate::body::BodyDecoder;
use crate::{Bounds, Decoder, Dialect, Encoded, EncodedPrefix, Headers, Target};
use bytes::Bytes;
use rondo_types::{ModelError, ModelRequest, TimeMs};

/// The dialect's name.
pub(crate) const NAME: &str = "gemini";

/// The `gemini` dialect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gemini;

impl Dialect for Gemini {
    fn name(&self) -> &'static str {
        NAME
    }

    fn encode_onto(
        &self,
        prefix: &mut EncodedPrefix,
        request: &ModelRequest,
        target: &Target,
    ) -> Encoded<Vec<Bytes>> {
        encode::encode(prefix, request, target)
    }

    fn decoder(&self, target: &Target, bounds: Bounds) -> Box<dyn Decoder> {
        let payloads = decode::GeminiPayloads::new(target, bounds);
        Box::new(BodyDecoder::new(payloads, bounds))
    }

    fn error(&self, status: u16, headers: &Headers<'_>, body: &[u8], now: TimeMs) -> ModelError {
        errors::of_response(status, headers, body, now)
    }
}
