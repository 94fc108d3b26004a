//! The hub: a gateway through which people and programs reach sessions, by any number of channels.
//!
//! # Layout
//! - [`channel`]: what a channel is, what it receives and what it sends. A channel is one type that implements
//!   [`Channel`](channel::Channel).
//! - [`inbox`]: where channels hand in what they receive.
//! - [`chats`]: which session a chat talks to.

pub mod channel;
pub mod chats;
pub mod inbox;
