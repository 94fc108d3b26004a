//! OpenAI Chat Completions and the servers that speak it.
//!
//! One dialect with quirks rather than a dialect for each server: they differ in single fields, and
//! most differences show in the reply itself, where tolerance costs nothing.
//!
//! Lowering: a message has one text, so what belongs to a single text is left out; reasoning goes
//! back only by the quirk `echo_reasoning` and only to its provider; fields of another model are left
//! out; a refusal is text; results are text without a mark of failure, and their media follow behind
//! the last of them as a message of the user; files by address, and media of the model, are left out.

mod calls;
mod chunk;
pub(crate) mod decode;
mod details;
pub(crate) mod encode;
mod lenient;
mod plain;

use crate::body::BodyDecoder;
use crate::{Bounds, Decoder, Dialect, Encoded, EncodedPrefix, Target};
use bytes::Bytes;
use rondo_types::ModelRequest;

/// The dialect's name.
pub(crate) const NAME: &str = "openai-chat";

/// The `openai-chat` dialect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenAiChat;

impl Dialect for OpenAiChat {
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
        let payloads = decode::ChatPayloads::new(target, bounds);
        Box::new(BodyDecoder::new(payloads, bounds))
    }
}
