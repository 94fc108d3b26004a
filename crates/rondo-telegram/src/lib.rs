//! The Telegram channel of the hub.
//!
//! # Layout
//! - [`BotToken`]: the bot's token. [`Api`], `form`: requests to the Bot API, and files in them.
//! - [`render`]: Markdown as Telegram shows it, in messages that are short enough.
//! - [`pace`]: how fast Telegram may be written to.
#![warn(missing_docs)]

mod api;
mod form;
pub mod pace;
pub mod render;
mod token;

pub use api::{Api, ApiError, TELEGRAM_URL};
pub use form::Form;
pub use token::{BotToken, TokenError};
