//! Memories over real files: saving by several processes, damage, hostile projects, the tools, and what is recalled.
#![expect(clippy::unwrap_used, reason = "a helper that fails must fail its test")]

mod editing;
mod embedding;
mod hostile;
mod recall;
mod saving;
mod support;
mod tools;
