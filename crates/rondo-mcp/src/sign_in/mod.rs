//! Signing in to servers at addresses (OAuth 2.1 as the protocol has it): rmcp's state machine over our own connections,
//! a listener for the browser's way back, and a file of the user's for what was granted.
//!
//! # Layout
//! - `tokens`: granted tokens, in a file for each address.
//! - `exchange`: requests to authorization servers, over the connections that all requests of Rondo share.
//! - `redirect`: waits for the browser on a port of this machine.
//! - `flow`: from a server's challenge to a token.

mod exchange;
mod flow;
mod redirect;
mod tokens;

pub use flow::SignIn;
pub(crate) use flow::authorised;
pub use tokens::TokenStore;
pub(crate) use tokens::Tokens;
