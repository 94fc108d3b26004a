//! The webhook channel over real sockets.

mod replies;
mod requests;
mod support;
