//! Pages and PDFs as text, read by a process of its own.
//!
//! The libraries that turn HTML and PDFs into text panic, recurse without a bound or allocate the sizes that a document
//! claims, and a thread cannot be ended. So the same program is started once more for each document, with little time,
//! memory and nothing else: no environment, no files. Whatever it does there, the caller gets a text or an error. What
//! it is not is a sandbox: the libraries have no unsafe code that is known to be wrong, and are not kept from system
//! calls.
//!
//! # Layout
//! - `parent`: starts the process, hands over the document and takes the text.
//! - `child`: the process; `html`, `pdf`: its work; `unix`: its limits.
//! - `protocol`: the messages on the pipes.

mod child;
mod html;
mod parent;
mod pdf;
mod protocol;
mod unix;

pub use child::run_if_requested;
pub use parent::{ReadError, Reader};
pub use protocol::{Document, ReadText};
