//! The HTTP client of the collector: TLS with ring, certificate authorities read for https alone.

use crate::ExporterError;
use crate::settings::Settings;
use reqwest::{Client, Url, redirect, retry};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;

/// The bound on certificate authorities read from a file.
const CA_CERTIFICATES_MAX: usize = 10_000;

/// Builds a client for an address. Redirects would carry headers to wherever they point, and the
/// library's own retries know no bound of ours.
pub(crate) fn build(url: &Url, settings: &Settings) -> Result<Client, ExporterError> {
    let roots = if url.scheme() == "https" {
        roots(settings.certificate.as_deref())?
    } else {
        RootCertStore::empty()
    };
    Client::builder()
        .tls_backend_preconfigured(tls(roots)?)
        .http1_only()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .user_agent(concat!("rondo/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| ExporterError::Client(error.without_url()))
}

fn tls(roots: RootCertStore) -> Result<ClientConfig, ExporterError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(ExporterError::Tls)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

fn roots(file: Option<&Path>) -> Result<RootCertStore, ExporterError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = file {
        let own = CertificateDer::pem_file_iter(path).and_then(|certificates| {
            certificates
                .take(CA_CERTIFICATES_MAX)
                .collect::<Result<Vec<_>, _>>()
        });
        let own = own.map_err(|source| ExporterError::Certificate {
            path: path.to_owned(),
            source: source.into(),
        })?;
        roots.add_parsable_certificates(own);
    }
    Ok(roots)
}
