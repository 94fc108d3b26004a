//! Tests of the dialects on recorded and on synthetic bodies.

mod chat_decode;

mod errors;
mod gemini_decode;

mod recorded;
mod sessions;
mod support;
