//! The transport over real sockets: what goes out, what comes back, and what goes wrong between.
#![expect(clippy::unwrap_used, reason = "a helper that fails must fail its test")]

mod connections;
mod conversations;
mod embeddings;
mod errors;
mod exchanges;
mod faults;
mod limit;
mod probes;
mod proxies;
mod requests;
mod secrets;
mod support;
mod tls;
