//! The HTTP transport behind the model port.
//!
//! An [`HttpModel`] sends what a dialect of `rondo-wire` encodes and decodes what comes back. It
//! does one exchange a request and decides nothing: timers belong to the driver, retries to the
//! machine.
//!
//! # Layout
//! - `endpoint`, `network`, `secret`: where, how, and with which key; plain values.
//! - `transport`: the shared connections; https is set up when it is first used.
//! - `client`, `connector`: one request, and how a connection for it comes about.
//! - `model`, `exchange`: the port, and one request under it.
//! - `limit`: how many requests may be under way at once.
//! - `conversations`, `pieces`: what is kept of a request for the next, and sent from there.
//! - `download`: large files, which can be continued. `destination`: messages, such as telemetry.
//! - `address`, `base_url`, `failure`: what messages say of where and why.
//! - [`probe`], `listing`: what a provider supports, found out by asking it.
#![warn(missing_docs)]

mod address;
mod base_url;
mod client;
mod connector;
mod conversations;
mod destination;
mod download;
mod endpoint;
mod error;
mod exchange;
mod failure;
mod limit;
mod listing;
mod model;
mod network;
mod pieces;
pub mod probe;
mod secret;
mod transport;
mod unix;

pub use destination::{Destination, PostError, Receipt};
pub use download::{Download, DownloadError, download};
pub use endpoint::{Auth, Endpoint, ModelCard};
pub use error::HttpError;
pub use limit::RequestLimit;
pub use listing::list_models;
pub use model::{HttpModel, without_credentials};
pub use network::{CONNECT_TIMEOUT, Network, Proxies};
pub use secret::Secret;
pub use transport::Transport;
