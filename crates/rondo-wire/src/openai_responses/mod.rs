//! OpenAI Responses, without state at the provider.
//!
//! Nothing is stored there, so every output item goes back in its order: reasoning with its sealed
//! content, calls and messages with their ids, and items that this version does not know.
//!
//! Lowering: items of elsewhere, and of another model, become a text or a call without an id of its own, and their
//! reasoning is left out, as is reasoning with nothing behind it; a refusal is text; results are
//! text, or a list with their media, without a mark of failure; media of the model are left out.

pub(crate) mod decode;
mod encode;
mod event;
mod said;

use crate::body::BodyDecoder;
use crate::{Bounds, Decoder, Dialect, Encoded, EncodedPrefix, Target};
use bytes::Bytes;
use rondo_types::ModelRequest;

/// The dialect's name.
pub(crate) const NAME: &str = "openai-responses";

/// The `openai-responses` dialect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenAiResponses;

impl Dialect for OpenAiResponses {
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
        let payloads = decode::ResponsesPayloads::new(target, bounds);
        Box::new(BodyDecoder::new(payloads, bounds))
    }
}
