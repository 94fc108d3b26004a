//! The Telegram channel against a scripted Bot API server.

mod checks;
mod hub;
mod receiving;
mod requests;
mod sending;
mod support;
