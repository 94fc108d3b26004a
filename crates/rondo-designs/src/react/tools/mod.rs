//! The tools of the design.

pub mod memory;
pub mod shell;
