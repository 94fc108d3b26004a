//! The machine alone, driven by scripts.

mod budget;
mod calls;
mod compaction;
mod doubt;
mod failures;
mod fallback;
mod held;
mod properties;
mod refused;
mod replies;
pub(crate) mod sim;
