//! The Telegram channel of the hub.
//!
//! # Layout
//! - [`Telegram`], [`TelegramSettings`]: the channel. `receive`: long polling. `send`: messages of the hub.
//!   `progress`: the progress that is shown while a turn runs.
//! - `config`: the channel's table of the configuration. [`check()`]: why a bot is silent.
//! - [`BotToken`]: the bot's token. [`Api`], `form`: requests to the Bot API, and files in them.
//! - [`render`]: Markdown as Telegram shows it, in messages that are short enough.
//! - [`pace`]: how fast Telegram may be written to.
#![warn(missing_docs)]

mod api;
mod channel;
mod checks;
mod clock;
mod config;
mod form;
pub mod pace;
mod progress;
mod receive;
pub mod render;
mod send;
mod settings;
mod token;

pub use api::{Api, ApiError, TELEGRAM_URL};
pub use channel::{NAME, Telegram};
pub use checks::{Finding, UNKNOWN_TOKEN, check};
pub use form::Form;
pub use settings::{Streaming, TelegramSettings};
pub use token::{BotToken, TokenError};
