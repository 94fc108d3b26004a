//! The Telegram channel against a scripted Bot API server.

mod requests;
mod support;
