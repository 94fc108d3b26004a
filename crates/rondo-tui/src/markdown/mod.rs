//! Markdown as rows of the screen.
//!
//! # Layout
//! - `stream`: a text that is still being written: what is finished is laid out once.
//! - `blocks`: lays out what pulldown-cmark reads; `table`: tables; `code`: highlighted code.

mod blocks;
mod code;
mod stream;
mod table;

pub(crate) use stream::Stream;
