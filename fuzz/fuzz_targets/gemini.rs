//! The decoder of `gemini`.
#![no_main]

mod dialect;
use dialect::any_body;

libfuzzer_sys::fuzz_target!(|input: &[u8]| dialect::check("gemini", input));
