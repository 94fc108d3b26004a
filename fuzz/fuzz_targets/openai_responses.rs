//! The decoder of `openai-responses`.
#![no_main]

mod dialect;
use dialect::any_body;

libfuzzer_sys::fuzz_target!(|input: &[u8]| dialect::check("openai-responses", input));
