//! Anthropic Messages.
//!
//! Blocks go back as they came: thinking with its signature, citations of a text, and every block
//! that this version does not know. Usage counts cached tokens beside the input, so the input is
//! converted; a count that a later event repeats replaces the earlier one.
//!
//! A paused reply is sent back as the last message. If another message has to follow it, its unanswered
//! call of a server tool is left out, since the provider refuses such a call without its result.
//!
//! Lowering: thinking is sent back only with its signature and to the model that produced it; a refusal
//! becomes text; blank texts are left out; media are part of their result, or follow it if the call
//! failed; files other than PDF, and media of the model, are left out; tools that only the history names
//! are declared; user messages are added so that the conversation begins and ends with the user; an
//! output bound is added; a response schema is left out if the model would refuse it.

mod blocks;
mod cache;
pub(crate) mod decode;
mod encode;
mod event;
mod messages;
mod server;
mod structured;
mod thinking;

use crate::body::BodyDecoder;
use crate::{Bounds, Decoder, Dialect, Encoded, EncodedPrefix, Target};
use bytes::Bytes;
use rondo_types::ModelRequest;

/// The `anthropic` dialect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Anthropic;

impl Dialect for Anthropic {
    fn name(&self) -> &str {
        "anthropic"
    }

    fn key_header(&self) -> Option<&'static str> {
        Some("x-api-key")
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn models_path(&self) -> &'static str {
        "/v1/models?limit=1000"
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
        let payloads = decode::AnthropicPayloadDecoder::new(target, bounds);
        Box::new(BodyDecoder::new(payloads, bounds))
    }
}
