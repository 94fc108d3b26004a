//! Tests of the dialects on recorded and on synthetic bodies.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "the functions around the tests fail like the tests do"
)]

mod agentdojo;
mod anthropic_decode;
mod anthropic_encode;
mod any_body;
mod bounds;
mod chat_decode;
mod chat_encode;
mod corpora;
mod encoded_prefix;
mod errors;
mod gemini_decode;
mod gemini_encode;
mod media;
mod naming;
mod other_model;
mod pieces;
mod properties;
mod react_decode;
mod react_encode;
mod recorded;
mod responses_decode;
mod responses_encode;
mod responses_transfer;
mod sessions;
mod support;
mod tolerance;
mod transfer;
mod web_search;
