//! Why an endpoint cannot be used at all.

use std::path::PathBuf;

/// Why an endpoint cannot be used at all; found before any request is sent.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// No such dialect.
    #[error("unknown dialect `{name}`; there are {}, and `react`", known())]
    UnknownDialect {
        /// Requested dialect.
        name: String,
    },
    /// The base URL is not an `http` or `https` address with a host.
    #[error("the base url of provider `{provider}` is not an http or https address")]
    BaseUrl {
        /// The provider.
        provider: String,
    },
    /// A header's name or value cannot be sent. The value is not shown: it may be a key.
    #[error("header `{name}` of provider `{provider}` has characters that cannot be sent")]
    Header {
        /// The provider.
        provider: String,
        /// The header.
        name: String,
    },
    /// A proxy's address makes no sense. It is not shown: it may hold a password.
    #[error("the {scheme} proxy is not an address")]
    Proxy {
        /// `http` or `https`: the scheme that it is the proxy of.
        scheme: &'static str,
    },
    /// The file of certificate authorities cannot be read.
    #[error("failed to read the certificate authorities in `{path}`", path = path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// Cause of the failure.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No certificate authority is known, so no server can be trusted.
    #[error("found no certificate authorities on this system")]
    NoRoots,
    /// The TLS library refused its settings.
    #[error("failed to set up tls")]
    Tls(#[source] rustls::Error),
}

fn known() -> String {
    let names = rondo_wire::dialect_names().into_iter();
    let quoted: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}
