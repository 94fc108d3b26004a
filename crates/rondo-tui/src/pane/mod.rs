//! A terminal within the screen: what a program writes goes in, cells and replies come out.
//!
//! # Layout
//! - `emulator`: the terminal; `strings`: takes out what a program says to a terminal's surroundings.
//! - `cells`: its cells as cells of the screen; `keyboard`: keys as the bytes that a program reads.

mod cells;
mod emulator;
mod keyboard;
mod strings;

pub(crate) use emulator::Emulator;
