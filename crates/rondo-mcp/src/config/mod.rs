//! Servers as they are configured: by the user, or by files of a project in the forms of other programs.
//!
//! # Layout
//! - `server`: one server, ready to be started; the fingerprint that consent is for.
//! - `written`: one server as a file has it, and the filling of its placeholders.
//! - `dialect`: the files of other programs.
//! - `placeholder`: `${VAR}` and its relatives.

mod dialect;
mod placeholder;
mod server;
mod written;

pub use dialect::{Dialect, FILE_BYTES_MAX, PROJECT_FILES, ProjectFile, ReadError, read};
pub use placeholder::{Placeholders, Variables};
pub use server::{Connection, OAuthClient, Origin, Server, Timeouts};
pub use written::{UnusableServer, WrittenOAuth, WrittenServer, is_name};
