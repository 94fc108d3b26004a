//! Test doubles that speak the real wire.
//!
//! # Layout
//! - [`Server`]: a scripted HTTP/1.1 server on loopback, over raw TCP so that it can also break the
//!   protocol: stall, vanish, reset, drip. A ready-made mock server could not.
//! - [`Script`], [`Response`], [`Step`], [`Gate`]: its answers. Tests wait for gates and for
//!   recorded requests, not for time.
//! - [`openai`], [`gemini`]: replies in the providers' words, built from a [`ReplyScript`].
//! - [`faults`]: faults on the way.
//! - [`telegram`]: a Bot API server, and what a person sees in its chats.
//! - `power` (with the feature of that name): a disk that forgets what was not synced.
//! - [`Dice`]: random choices that a seed repeats.
//! - [`assert_paired`]: every call in a request has its result.
#![warn(missing_docs)]

pub mod faults;
pub mod gemini;
pub mod openai;
#[cfg(feature = "power")]
pub mod power;
pub mod telegram;

mod connection;
mod dice;
mod gate;
mod pairing;
mod recorded;
mod reply;
mod script;
mod server;

pub use dice::Dice;
pub use gate::Gate;
pub use pairing::{assert_paired, check_paired};
pub use recorded::Recorded;
pub use reply::{CallScript, ReplyScript};
pub use script::{Framing, Response, Script, Step};
pub use server::{RECORDED_MAX, Server, refused_url};
