//! Whole turns through the library, with the real dialects over real sockets.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "what fails here must fail its test"
)]

mod chaos;
mod faults;
mod hub;
mod limits;
mod log;
mod python;
mod react;
mod sessions;
mod shell;
mod stream;
mod support;
