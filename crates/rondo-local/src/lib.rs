//! The embedded model: quantised weights from a GGUF file, answered in this process.
//!
//! A small model needs a narrow path. Every reply is one JSON step, which a grammar enforces token
//! by token: a call of one tool, or the answer, whose text is passed on while it grows. The model reads no
//! part of a conversation twice: each request computes only the part that is new behind the longest beginning it shares
//! with the last one.
//!
//! All of it is Rust, without a C++ compiler or cmake, and vector instructions are chosen at run time.
//! Products are computed from the blocks of weights as the file has them, which needs no copy of them.
//! llama.cpp was rejected for its build, and candle for its own: 102 seconds of the processor for what is a
//! thousand lines here. Grammars are [llguidance](https://docs.rs/llguidance)'s. Behind [`Engine`],
//! another engine fits.

mod blocks;
mod byte_level;
mod cache;
mod drafts;
mod embedder;
mod engine;
mod error;
mod fingerprint;
mod generation;
mod gguf;
mod grammar;
mod half;
mod kernels;
mod mapped;
mod model;
mod network;
mod pool;
mod prompt;
mod prompt_cache;
mod rotation;
mod sampler;
mod shape;
mod step;
mod template;
mod vocabulary;
mod worker;

pub use embedder::LocalEmbedder;
pub use engine::{CpuEngine, Engine};
pub use error::LocalError;
pub use generation::PREFILL_CHUNK_TOKENS;
pub use gguf::Gguf;
pub use kernels::Instructions;
pub use model::{CONTEXT_TOKENS_MAX, LocalModel, LocalOptions};
pub use vocabulary::Vocabulary;
pub use worker::REPLY_TOKENS_MAX;
