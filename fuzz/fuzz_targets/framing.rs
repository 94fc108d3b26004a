//! Bodies cut into JSON payloads, before any dialect reads them.
#![no_main]

#[path = "../../crates/rondo-wire/src/framing/any_body.rs"]
mod any_body;
#[path = "../../crates/rondo-wire/src/framing/mod.rs"]
mod framing;
#[path = "../../crates/rondo-wire/src/scan.rs"]
mod scan;

use rondo_wire::Bounds;

libfuzzer_sys::fuzz_target!(|input: &[u8]| any_body::check(input));
