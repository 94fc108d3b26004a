//! The decoder of `anthropic`.
#![no_main]

#[path = "../../crates/rondo-wire/tests/it/any_body.rs"]
mod any_body;
#[path = "../../crates/rondo-wire/tests/memory/peak.rs"]
mod peak;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    any_body::check("anthropic", input);
    peak::check("anthropic", input);
});
