//! The port to programs that are spoken to over their standard input and output.

use async_trait::async_trait;
use rondo_http::Secret;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// A program to start.
#[derive(Debug, Clone)]
pub struct ProgramSpec {
    /// The server's name, for notes.
    pub server: String,
    /// The program: a path, or a name that is looked for in `PATH`.
    pub command: String,
    /// Arguments of the program.
    pub arguments: Vec<String>,
    /// Variables that it gets beside the usual ones.
    pub variables: Vec<(String, Secret)>,
    /// Working directory; `None` for the current one.
    pub directory: Option<PathBuf>,
    /// Set if a project defines it, so that it runs confined if the system can do that.
    pub is_confined: bool,
}

/// Starts programs.
#[async_trait]
pub trait StartPrograms: Send + Sync {
    /// Starts a program whose standard streams are pipes.
    ///
    /// # Errors
    /// Says why it cannot be started, in a sentence without secrets.
    ///
    /// # Cancel safety
    /// Cancel safe: what was started is ended.
    async fn start(&self, spec: &ProgramSpec) -> Result<Box<dyn Program>, String>;
}

/// The standard input and output of a program.
pub type Streams = (
    Box<dyn AsyncWrite + Send + Unpin>,
    Box<dyn AsyncRead + Send + Unpin>,
);

/// A program that was started. Dropping it ends it, and everything that it started.
#[async_trait]
pub trait Program: Send + Sync {
    /// Takes its standard input and output. Nothing the second time.
    fn take_streams(&mut self) -> Option<Streams>;

    /// Returns its standard error so far, as far as that is kept.
    fn stderr(&self) -> String;

    /// Ends it: its standard input is closed already, so it is waited for, and then killed.
    async fn end(self: Box<Self>, grace: Duration);
}
