//! Servers as scripts over pipes and sockets: what clients of them see, whatever they do.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a helper that fails must fail its test"
)]

mod calls;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod conformance;
mod floods;
mod hostile;
mod http;
mod lifecycle;
mod offers;
mod scripted;
