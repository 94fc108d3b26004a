//! What holds for any body of a dialect.

#[path = "../../crates/rondo-wire/tests/it/any_body.rs"]
pub(crate) mod any_body;
#[path = "../../crates/rondo-wire/tests/memory/peak.rs"]
mod peak;

pub(crate) fn check(name: &str, input: &[u8]) {
    any_body::check(name, input);
    peak::check(name, input);
}
