//! The webhook channel of the hub: programs send messages as signed requests, and get replies as signed requests.
//!
//! Both ways follow Standard Webhooks (<https://www.standardwebhooks.com>): an id, a time and a signature over both and
//! the body, in headers.
//!
//! # Layout
//! - [`Webhook`]: the channel; `config`: its table of the configuration.
//! - [`Signer`]: signatures. `inbound`: the content of a request. `listener`: taking requests. `outbound`: sending
//!   replies.
#![warn(missing_docs)]

mod channel;
mod clock;
mod config;
mod inbound;
mod listener;
mod outbound;
mod signer;

pub use channel::{Endpoint, NAME, Webhook};
pub use signer::{SignatureError, SignatureRejection, Signed, Signer};
