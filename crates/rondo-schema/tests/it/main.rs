//! Tool arguments through the public interface.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking"
)]

mod args;
mod properties;
mod repair;
mod schemas;
