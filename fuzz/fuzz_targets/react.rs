//! The decoder of `react`.
#![no_main]

mod dialect;
use dialect::any_body;

libfuzzer_sys::fuzz_target!(|input: &[u8]| dialect::check("react", input));
