//! The records of a session, as they are written, and what they lead to.
#![no_main]

#[path = "../../crates/rondo-journal/tests/it/any_record.rs"]
mod any_record;

libfuzzer_sys::fuzz_target!(|input: &[u8]| any_record::check(input));
