//! The `rondo` binary.
fn main() {}
