//! Frames from a Python helper, however they are cut.
#![no_main]

#[path = "../../crates/rondo-python/src/frames/any_bytes.rs"]
mod any_bytes;
#[path = "../../crates/rondo-python/src/frames.rs"]
mod frames;

libfuzzer_sys::fuzz_target!(|input: &[u8]| any_bytes::check(input));
