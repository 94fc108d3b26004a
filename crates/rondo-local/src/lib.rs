//! The embedded model: quantised weights from a GGUF file, answered in this process.
//!
//! A small model needs a narrow path. Every reply is one JSON step, which a grammar enforces token
//! by token: a call of one tool, or the answer, whose text is passed on while it grows. What the
//! model has read of a conversation it does not read again: each request computes only what is new
//! behind the longest beginning it shares with the last one.
//!
//! Inference is [candle](https://docs.rs/candle-core)'s, with the grammar of
//! [llguidance](https://docs.rs/llguidance): pure Rust, no cmake, vector instructions chosen at run
//! time. llama.cpp was rejected for its build, and candle's own model files for their cache. On
//! processors with AVX-512 VNNI the products of a `Q4_K_M` file and attention are computed here, from
//! the blocks as the file has them, which needs no copy of the weights. Behind [`Engine`], another
//! engine fits.

mod attention;
mod byte_level;
mod cache;
mod engine;
mod error;
mod generation;
mod gguf;
mod grammar;
mod kernels;
mod mapped;
mod matrix;
mod model;
mod network;
mod prompt;
mod sampler;
mod shape;
mod step;
mod tensors;
mod vocabulary;
mod worker;

pub use engine::{CpuEngine, Engine};
pub use error::LocalError;
pub use generation::PREFILL_CHUNK_TOKENS;
pub use gguf::Gguf;
pub use model::{CONTEXT_TOKENS_MAX, LocalModel, LocalOptions};
pub use vocabulary::Vocabulary;
pub use worker::REPLY_TOKENS_MAX;
