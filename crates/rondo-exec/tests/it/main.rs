//! Tests of real commands under a real supervisor.

mod fixture;
mod output;
mod tool;
mod tree;
