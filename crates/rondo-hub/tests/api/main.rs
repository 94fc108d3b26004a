//! The hub's API over a socket, as programs and attackers use it.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "what fails here must fail its test"
)]

mod attacks;
mod chats;
mod description;
mod files;
mod http;
mod routes;
mod shortage;
mod states;
mod world;
