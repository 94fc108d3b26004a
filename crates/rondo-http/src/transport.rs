//! The connections that requests share.

use crate::{HttpError, Network, unix};
use reqwest::{Client, ClientBuilder, NoProxy, Proxy, Url, redirect, retry};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

/// How long an idle connection is kept for the next step.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// The bound on idle connections kept to one host: as many as conversations may be held at once
/// without a new connection for each of their steps.
const POOL_IDLE_PER_HOST_MAX: usize = 1024;
/// The time between probes that find out whether a silent peer still lives.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// The bound on certificate authorities read from a file.
const CA_CERTIFICATES_MAX: usize = 10_000;
/// The bound on that file, in bytes.
const CA_BYTES_MAX: u64 = 32 << 20;

/// The connections to all providers that share a [`Network`]. Clones share them too.
///
/// There are two clients: one for `http`, which trusts nobody and costs nothing, and one for
/// `https`, which reads the system's certificate authorities (milliseconds) when it is first used.
#[derive(Debug, Clone)]
pub struct Transport(Arc<Clients>);

#[derive(Debug)]
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
    /// When a proxy's address or the file of certificate authorities is no good.
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

    pub(crate) async fn client(&self, url: &Url) -> Result<&Client, HttpError> {
        if url.scheme() == "http" {
            return Ok(&self.0.plain);
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
    let pem = unix::read_regular(path, CA_BYTES_MAX).map_err(|error| fail(error.into()))?;
    let found = CertificateDer::pem_slice_iter(&pem)
        .take(CA_CERTIFICATES_MAX)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| fail(error.into()))?;
    if found.is_empty() {
        return Err(fail("no certificate in it".into()));
    }
    Ok(found)
}

/// Redirects are not followed: they would carry the key to wherever they point. Retries are the
/// turn's decision, so the library's own are off. What it still does by itself is to take another
/// connection where a kept one had ended before any byte of the request was written to it.
fn build(network: &Network, roots: RootCertStore) -> Result<Client, HttpError> {
    let builder = Client::builder()
        .tls_backend_preconfigured(tls(roots)?)
        .http1_only()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .connect_timeout(network.connect_timeout)
        .tcp_nodelay(true)
        .tcp_keepalive(KEEPALIVE)
        .pool_idle_timeout(POOL_IDLE_TIMEOUT)
        .pool_max_idle_per_host(POOL_IDLE_PER_HOST_MAX)
        .user_agent(concat!("rondo/", env!("CARGO_PKG_VERSION")));
    with_proxies(builder, network)?
        .build()
        .map_err(|error| HttpError::Client(error.without_url()))
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

fn with_proxies(mut builder: ClientBuilder, network: &Network) -> Result<ClientBuilder, HttpError> {
    let proxies = &network.proxies;
    let except = || proxies.except.as_deref().and_then(NoProxy::from_string);
    if let Some(address) = &proxies.http {
        let proxy =
            Proxy::http(address.expose()).map_err(|_| HttpError::Proxy { scheme: "http" })?;
        builder = builder.proxy(proxy.no_proxy(except()));
    }
    if let Some(address) = &proxies.https {
        let proxy =
            Proxy::https(address.expose()).map_err(|_| HttpError::Proxy { scheme: "https" })?;
        builder = builder.proxy(proxy.no_proxy(except()));
    }
    Ok(builder)
}
