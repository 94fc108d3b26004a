//! Sessions whose interpreters have no supervisor, as where there is none.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed expectation of a test is a panic"
)]

#[path = "it/fixture.rs"]
mod fixture;
#[path = "it/hostile.rs"]
mod hostile;
#[path = "it/lost.rs"]
mod lost;
#[path = "it/terminal.rs"]
mod terminal;
