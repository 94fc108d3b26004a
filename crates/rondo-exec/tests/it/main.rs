//! Tests of real commands under a real supervisor, and of the judgement before them.

mod analysis;
mod fixture;
mod gate;
mod output;
mod tool;
mod tree;
