//! The HTTP transport behind the model port.
//!
//! An [`HttpModel`] sends the requests that a dialect of `rondo-wire` encodes, and decodes the replies. Each
//! request is one exchange, without decisions: timers belong to the driver, and retries, with their waits, to
//! the machine in `rondo-core` (`machine::failure`).
//!
//! # Layout
//! - `endpoint`, `network`, `secret`: a provider's address, connections and key, as plain values.
//! - `transport`: the shared connections; https is set up when it is first used.
//! - `client`: one request. `connection`: HTTP/1.1, by hyper; `pool`: connections that are kept; `connector`: opening one.
//! - `model`, `exchange`: the port, and one request under it.
//! - `limit`: the bound on concurrent requests.
//! - `conversations`, `pieces`: the encoded beginnings of conversations, which the next request reuses.
//! - `compressed`: bodies that a server compresses without being asked.
//! - `download`: resumable downloads of large files. `destination`: posting data, such as telemetry.
//!   `raw`: requests of protocols that are not a model's.
//! - `address`, `base_url`, `failure`: addresses, and errors that name them without secrets.
//! - `reach`: public IP addresses.
//! - `embeddings`: the port to models that make vectors of texts.
//! - [`probe`], `listing`: finds out what a provider supports, and its models.
#![warn(missing_docs)]

mod address;
mod base_url;
mod client;
mod compressed;
mod connection;
mod connector;
mod conversations;
mod destination;
mod download;
mod embeddings;
mod endpoint;
mod error;
mod exchange;
mod failure;
mod limit;
mod listing;
mod model;
mod network;
mod pieces;
mod pool;
pub mod probe;
mod raw;
mod reach;
mod secret;
mod transport;
mod unix;

pub use connector::Stream;
pub use destination::{Destination, PostError, Receipt};
pub use download::{Download, DownloadError, download};
pub use embeddings::HttpEmbedder;
pub use endpoint::{Auth, Endpoint, ModelCard};
pub use error::HttpError;
pub use limit::RequestLimit;
pub use listing::list_models;
pub use model::{HttpModel, without_credentials};
pub use network::{CONNECT_TIMEOUT, Network, Proxies};
pub use raw::{RawRequest, RawResponse};
pub use reach::not_public;
pub use secret::Secret;
pub use transport::{ByProxy, Transport};
