//! Tests of the dialects on recorded and on synthetic bodies.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "the functions around the tests fail like the tests do"
)]

mod bounds;
mod chat_decode;
mod chat_encode;
mod errors;
mod gemini_decode;
mod gemini_encode;
mod properties;
mod recorded;
mod sessions;
mod support;
