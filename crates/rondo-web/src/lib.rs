//! Reading the web.
//!
//! Models name addresses, and pages that they read tell them which. So there is one client for them, [`Egress`], which
//! reaches public hosts only, and what comes back is marked as from outside. The client is hyper itself, as in
//! `rondo-http`: the address that was checked is the one that is connected to, which clients that resolve names by
//! themselves do not promise.
//!
//! # Layout
//! - `target`: addresses that may be read; `net`, `dial`: connecting to them; [`Egress`]: one request with
//!   its redirects; `body`, `charset`, `content`: its response; `calls`: one call of a tool.
//! - [`reader`]: pages and PDFs as text, in a process of their own.
//! - [`proxy`]: hosts that commands in a sandbox reach by name; `unix`: a listener that another process passes on.
//! - [`WebFetch`]: the tool `web_fetch`. [`search`]: the tool `web_search`.
#![warn(missing_docs)]

mod body;
mod calls;
mod charset;
mod content;
mod dial;
mod egress;
mod error;
mod fetch;
mod net;
#[cfg(target_os = "linux")]
pub mod proxy;
pub mod reader;
pub mod search;
mod target;
#[cfg(target_os = "linux")]
mod unix;

pub use egress::{Ask, Egress, FetchResult, Page, REDIRECTS_MAX, TIME_MAX};
pub use error::WebError;
pub use fetch::{FETCH_TOOL, RESULT_BYTES_MAX, WebFetch};
pub use net::{Net, SystemNet};
pub use target::AllowedHost;
