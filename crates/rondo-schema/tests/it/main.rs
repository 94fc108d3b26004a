//! Tool arguments through the public interface.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "shared test code fails by panicking"
)]

mod args;
mod properties;
mod repair;
mod schemas;
