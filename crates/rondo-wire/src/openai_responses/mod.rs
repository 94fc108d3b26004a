//! OpenAI Responses, without state at the provider.
//!
//! The provider stores nothing, so every output item is sent back in order: reasoning with its encrypted
//! content, calls and messages with their ids, and items that this version does not know.
//!
//! Lowering: items of another provider or model become a text or a call without an item id, and their
//! reasoning is left out, as is reasoning that no item follows; a refusal becomes text; results are text,
//! or a list with their media, without an error flag; media of the model are left out.

pub(crate) mod decode;
mod delta_text;
mod encode;
mod event;

use crate::body::BodyDecoder;
use crate::{Bounds, Decoder, Dialect, Encoded, EncodedPrefix, Target};
use bytes::Bytes;
use rondo_types::ModelRequest;

/// The `openai-responses` dialect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenAiResponses;

impl Dialect for OpenAiResponses {
    fn name(&self) -> &str {
        "openai-responses"
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
        let payloads = decode::ResponsesPayloadDecoder::new(target, bounds);
        Box::new(BodyDecoder::new(payloads, bounds))
    }
}
