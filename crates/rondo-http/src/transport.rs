//! The connections that all models of a [`Network`] share.

use crate::client::Client;
use crate::connector::{Connector, Stream};
use crate::{HttpError, Network};
use hyper::header::HeaderValue;
use hyper::http::Uri;
use hyper::http::uri::Scheme;
use hyper_util::client::proxy::matcher::Intercept;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::error::Error;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::OnceCell;
use tower_service::Service as _;

/// An address with TLS; only its scheme counts.
const ANY_SECURE: &str = "https://h/";

type BoxError = Box<dyn Error + Send + Sync>;

/// The bound on certificate authorities read from a file.
const CA_CERTIFICATES_MAX: usize = 10_000;
/// The bound on that file, in bytes.
const CA_BYTES_MAX: u64 = 32 << 20;

/// The connections to all providers that share a [`Network`]. Clones share them too.
///
/// There are two clients: one for `http`, which loads no certificates and costs nothing, and one for
/// `https`, which reads the system's certificate authorities (milliseconds) when it is first used.
#[derive(Clone)]
pub struct Transport(Arc<Clients>);

/// A connection through a proxy.
pub struct ByProxy {
    /// The connection, with TLS to the server if the address asks for it.
    pub stream: Stream,
    /// Set if the proxy passes on requests, which then name their addresses in full.
    pub is_forwarded: bool,
    /// `Proxy-Authorization` of each request.
    pub authorization: Option<HeaderValue>,
}

struct Clients {
    network: Network,
    authorities: Vec<CertificateDer<'static>>,
    plain: Client,
    secure: OnceCell<Client>,
}

impl Transport {
    /// Builds the client for `http`; the one for `https` follows on first use.
    ///
    /// # Errors
    /// When a proxy's address or the file of certificate authorities is invalid.
    pub fn new(network: Network) -> Result<Self, HttpError> {
        let authorities = match &network.ca_file {
            Some(path) => read_authorities(path)?,
            None => Vec::new(),
        };
        let plain = build(&network, RootCertStore::empty())?;
        Ok(Self(Arc::new(Clients {
            network,
            authorities,
            plain,
            secure: OnceCell::new(),
        })))
    }

    /// Returns how it makes connections.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.0.network
    }

    /// Returns whether the client for `https` has been built.
    #[must_use]
    pub fn is_secure_built(&self) -> bool {
        self.0.secure.initialized()
    }

    /// Returns the TLS configuration, for clients that open their connections themselves.
    ///
    /// # Errors
    /// When no certificate authority is trusted.
    pub async fn tls(&self) -> Result<Arc<ClientConfig>, HttpError> {
        Ok(self
            .client(&Uri::from_static(ANY_SECURE))
            .await?
            .connector()
            .tls())
    }

    /// Opens a connection to an address through the proxy that the network has for it; `None` if it has none.
    ///
    /// # Errors
    /// When the proxy cannot be reached or refuses, or the connection takes too long.
    pub async fn by_proxy(&self, uri: &Uri) -> Option<Result<ByProxy, BoxError>> {
        let proxy = self.0.plain.connector().proxy(uri)?;
        Some(self.connected(uri, &proxy).await)
    }

    async fn connected(&self, uri: &Uri, proxy: &Intercept) -> Result<ByProxy, BoxError> {
        let mut connector = self.client(uri).await?.connector().clone();
        let is_forwarded = uri.scheme() == Some(&Scheme::HTTP);
        Ok(ByProxy {
            stream: connector.call(uri.clone()).await?,
            is_forwarded,
            // A tunnel's was said when it was opened.
            authorization: proxy.basic_auth().filter(|_| is_forwarded).cloned(),
        })
    }

    /// Returns the client for an address, if it is there.
    pub(crate) fn built(&self, uri: &Uri) -> Option<&Client> {
        if uri.scheme() == Some(&Scheme::HTTP) {
            Some(&self.0.plain)
        } else {
            self.0.secure.get()
        }
    }

    /// Returns the client for an address, which may have to be built.
    pub(crate) async fn client(&self, uri: &Uri) -> Result<&Client, HttpError> {
        if let Some(client) = self.built(uri) {
            return Ok(client);
        }
        let clients = &self.0;
        clients
            .secure
            .get_or_try_init(|| async {
                let roots = roots(clients.authorities.clone()).await?;
                build(&clients.network, roots)
            })
            .await
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport")
            .field("network", &self.0.network)
            .field("secure", &self.is_secure_built())
            .finish_non_exhaustive()
    }
}

/// Reads the system's certificate authorities off the async threads, and adds our own.
async fn roots(authorities: Vec<CertificateDer<'static>>) -> Result<RootCertStore, HttpError> {
    let system = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs)
        .await
        .map(|found| found.certs)
        .unwrap_or_default();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(system);
    roots.add_parsable_certificates(authorities);
    if roots.is_empty() {
        return Err(HttpError::NoRoots);
    }
    Ok(roots)
}

fn read_authorities(path: &Path) -> Result<Vec<CertificateDer<'static>>, HttpError> {
    let fail = |source: Box<dyn std::error::Error + Send + Sync>| HttpError::CaFile {
        path: path.to_owned(),
        source,
    };
    let pem = read_regular(path).map_err(|error| fail(error.into()))?;
    let found = CertificateDer::pem_slice_iter(&pem)
        .take(CA_CERTIFICATES_MAX)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| fail(error.into()))?;
    if found.is_empty() {
        return Err(fail("no certificate in it".into()));
    }
    Ok(found)
}

fn build(network: &Network, roots: RootCertStore) -> Result<Client, HttpError> {
    Ok(Client::new(Connector::new(network, tls(roots)?)?))
}

fn tls(roots: RootCertStore) -> Result<ClientConfig, HttpError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(HttpError::Tls)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

/// Reads a regular file of no more than [`CA_BYTES_MAX`] bytes; a pipe or a terminal in its place is
/// not waited for.
fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?
        .take(CA_BYTES_MAX.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > CA_BYTES_MAX {
        let message = format!("it is larger than {CA_BYTES_MAX} bytes");
        return Err(io::Error::other(message));
    }
    Ok(bytes)
}
