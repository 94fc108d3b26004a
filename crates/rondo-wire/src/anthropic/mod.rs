//! Anthropic Messages.
//!
//! Blocks go back as they came: thinking with its signature, citations of a text, and every block
//! that this version does not know. Usage counts cached tokens beside the input, so the input is
//! converted; a count that a later event repeats replaces the earlier one.
//!
//! A reply that was paused is sent back as the last message, with nothing behind it. Where
//! something had to be said behind it, the call that the provider's own tool did not answer is left
//! out, since it is refused without its result.
//!
//! Lowering: thinking goes back only with its own signature, and to the model that
//! thought it; a refusal is text; texts without
//! anything to see are left out; media stand in their result, and behind it where it failed, but
//! files other than PDF and media of the model are left out; tools that only the history names are
//! declared; the user is made to speak first and last; an output bound is added; a response schema
//! is left out where the model would refuse it.

mod blocks;
mod cache;
pub(crate) mod decode;
mod encode;
mod event;
mod messages;
mod plain;
mod server;
mod structured;
mod thinking;

use crate::body::BodyDecoder;
use crate::{Bounds, Decoder, Dialect, Encoded, EncodedPrefix, Target};
use bytes::Bytes;
use rondo_types::ModelRequest;

/// The dialect's name.
pub(crate) const NAME: &str = "anthropic";

/// The `anthropic` dialect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Anthropic;

impl Dialect for Anthropic {
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
        let payloads = decode::AnthropicPayloads::new(target, bounds);
        Box::new(BodyDecoder::new(payloads, bounds))
    }
}
