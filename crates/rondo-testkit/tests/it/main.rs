//! The test doubles do what they say, seen from a raw socket.

#![expect(clippy::unwrap_used, reason = "a helper that fails must fail its test")]

mod pairing;
mod replies;
mod server;
