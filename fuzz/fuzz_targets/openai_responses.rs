//! The decoder of `openai-responses`.
#![no_main]

#[path = "../../crates/rondo-wire/tests/it/any_body.rs"]
mod any_body;
#[path = "../../crates/rondo-wire/tests/memory/peak.rs"]
mod peak;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    any_body::check("openai-responses", input);
    peak::check("openai-responses", input);
});
