//! The judgment of commands.
#![no_main]

#[path = "../../crates/rondo-policy/tests/it/any_command.rs"]
mod any_command;

libfuzzer_sys::fuzz_target!(|input: &[u8]| any_command::check(input));
