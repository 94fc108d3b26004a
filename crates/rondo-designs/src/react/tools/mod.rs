//! The tools of the design.

pub mod shell;
