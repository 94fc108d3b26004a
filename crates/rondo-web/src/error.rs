//! Why a page was not read.

use std::error::Error;

/// Why a request to the web failed. No text of a server is in it.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The text is not an address of the web.
    #[error("`{text}` is not an address: {reason}")]
    Url {
        /// The text, shortened.
        text: String,
        /// Problem with the address.
        reason: String,
    },
    /// The host may not be reached.
    #[error("`{host}` is not reached: {reason}")]
    Forbidden {
        /// The host.
        host: String,
        /// Reason of the refusal.
        reason: String,
    },
    /// The name has no address.
    #[error("`{host}` has no address")]
    Unresolved {
        /// The host.
        host: String,
    },
    /// There is no connection, or it broke.
    #[error("the connection to `{host}` failed")]
    Connection {
        /// The host.
        host: String,
        /// Cause of the failure.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The response took too long.
    #[error("`{host}` did not answer in full within {seconds} s")]
    Timeout {
        /// The host that was asked first.
        host: String,
        /// The bound.
        seconds: u64,
    },
    /// There were too many redirects.
    #[error("`{host}` redirects more than {max} times")]
    Redirects {
        /// The host.
        host: String,
        /// The bound.
        max: usize,
    },
    /// The body is compressed in a way that was not asked for, or is damaged.
    #[error("the body from `{host}` cannot be decompressed")]
    Encoding {
        /// The host.
        host: String,
    },
    /// The server answered with an error.
    #[error("`{host}` answered {status}")]
    Status {
        /// The host.
        host: String,
        /// The HTTP status with its usual name.
        status: String,
    },
    /// The connections cannot be set up.
    #[error(transparent)]
    Setup(#[from] rondo_http::HttpError),
}

impl WebError {
    /// Returns the error with its causes, on one line.
    #[must_use]
    pub fn line(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        text
    }
}
