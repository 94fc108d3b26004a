//! The terminal: its modes, and frames on their way to it.
//!
//! # Layout
//! - `modes`: the terminal's modes that are switched on and off, and how they are put back however the process ends.
//! - `painter`: the difference between two frames; `encode`: cells as bytes; `writer`: the thread that writes them.
//! - `keyboard`: the thread that reads what it sends; `decoder`: its bytes as keys and pastes, shared with the line prompt.
//! - `input`, `csi`: bytes taken apart; `burst`: pastes that are not marked.
//! - `ground`: whether it is light or dark.
//! - `unix`: stopping the process.

mod burst;
mod csi;
mod decoder;
mod encode;
pub(crate) mod ground;
mod input;
pub(crate) mod keyboard;
pub(crate) mod modes;
pub(crate) mod painter;
pub(crate) mod unix;
pub(crate) mod writer;

pub use decoder::Decoder;
pub use input::Input;
