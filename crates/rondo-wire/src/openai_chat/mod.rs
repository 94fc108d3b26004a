//! OpenAI Chat Completions and the servers that speak it.
//!
//! One dialect with quirks rather than a dialect for each server: they differ in single fields, and
//! most differences show in the reply itself, where tolerance costs nothing.
//!
//! Lowering: the texts of a message are joined, so provider data of a single text part is left out;
//! reasoning is sent back only with the quirk `echo_reasoning`, and only to its provider; fields of
//! another model are left out; a refusal becomes text; results are text without an error flag, and their
//! media follow the last of them as a user message; files by URL, and media of the model, are left out.

mod calls;
mod chunk;
pub(crate) mod decode;
mod details;
mod encode;
mod lenient;

use crate::body::BodyDecoder;
use crate::{Bounds, Decoder, Dialect, Encoded, EncodedPrefix, Target};
use bytes::Bytes;
use rondo_types::ModelRequest;

/// The `openai-chat` dialect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenAiChat;

impl Dialect for OpenAiChat {
    fn name(&self) -> &str {
        "openai-chat"
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
        let payloads = decode::ChatPayloadDecoder::new(target, bounds);
        Box::new(BodyDecoder::new(payloads, bounds))
    }
}
