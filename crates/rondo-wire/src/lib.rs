//! Pure codecs between provider wire formats and Rondo's types.
//!
//! A [`Dialect`] encodes a request, decodes the body of a reply as its bytes arrive, and reads
//! error bodies. Nothing here awaits, reads a clock or touches the network, so everything can be
//! tested on recorded bytes cut anywhere.
//!
//! # Layout
//! - `dialect`, `target`, `bounds`, `lowering`: the public vocabulary.
//! - `registry`: the dialects by their names. A new one is a folder, and a line there.
//! - `framing`, `sse`, `scan`: split bodies into JSON payloads. The form of a body (stream, document,
//!   array) is recognized by its content and not by headers, since gateways send wrong headers.
//! - `latch`: a decoder that failed or was finished stays so.
//! - `body`: the decoder that all dialects share; each dialect adds a `PayloadDecoder` in its `decode`.
//! - `json`: borrowed, tolerant JSON in both directions.
//! - `encoder`: the encoder that all dialects share; each dialect adds the shapes of its protocol in its `encode`.
//! - `encoded_prefix`: the encoded beginning of a conversation, from one request to the next.
//! - `naming`: the response id and model name that a provider reports.
//! - `names`, `ids`: rewrite tool names and call ids that a provider would refuse.
//! - `failure`, `errors`: classes of errors that all dialects share, and their usual shape.
//! - `openai_chat`, `openai_responses`, `anthropic`, `gemini`: one folder a dialect.
//! - `react`: calls as text, over any of them.
#![warn(missing_docs)]

mod anthropic;
mod body;
mod bounds;
mod dialect;
mod encoded_prefix;
mod encoder;
mod errors;
mod failure;
mod framing;
mod gemini;
mod halves;
mod ids;
mod json;
mod latch;
mod lowering;
mod names;
mod naming;
mod openai_chat;
mod openai_responses;
mod react;
mod registry;
mod scan;
mod strict;
mod target;

pub use bounds::Bounds;
pub use dialect::{Decoder, Dialect, Headers};
pub use encoded_prefix::EncodedPrefix;
pub use lowering::{Lowering, LoweringCause, LoweringNote};
pub use react::output_text;
pub use registry::{dialect, dialect_names, react_over, register};
pub use target::{Encoded, MaxTokensField, Quirks, Target};
