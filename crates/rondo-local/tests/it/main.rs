//! The engine on a real, very small model, SmolLM2-135M.
//!
//! Its weights are 98 MB. They are looked for in `RONDO_MODEL_PATH` and where `rondo models pull
//! smollm2-135m` puts them; `cargo xtask test` fetches them first.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a helper that fails must fail its test"
)]

mod constrained;
mod drafts;
mod embedding;
mod model;
mod reference;
mod reuse;
mod support;
mod tiny;
