//! The Telegram channel against a scripted Bot API server.

mod checks;
mod receiving;
mod requests;
mod sending;
mod support;
