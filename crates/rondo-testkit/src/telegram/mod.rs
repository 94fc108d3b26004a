//! A Telegram Bot API server, as far as bots of the hub use it.
//!
//! It refuses each request that the published description of the API does not allow, delivers updates by long polling
//! as Telegram does (an update is confirmed by asking for a later one), and keeps what a person would see in each
//! chat: that, and not the requests, is what tests should look at.
//!
//! # Layout
//! - `server`: [`BotServer`]. `state`, `methods`: its state, and the methods' use of it.
//! - `updates`: updates that people and Telegram send to the bot. `seen`: the messages that a person sees.
//! - `faults`: faults. `form`, `spec`: reading requests, and checking them.

#![expect(
    clippy::indexing_slicing,
    reason = "JSON values are looked up by name, and a test fails where an index is out of range"
)]

mod faults;
mod form;
mod methods;
mod seen;
mod server;
mod spec;
mod state;
mod updates;

pub use faults::Fault;
pub use form::SentFile;
pub use seen::{Draft, SeenMessage};
pub use server::BotServer;
pub use updates::{BOT_ID, BOT_NAME, Place, person};
