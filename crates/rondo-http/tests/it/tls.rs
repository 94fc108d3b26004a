use crate::support::{Timers, ask, drive, model, openai};
use rondo_http::{Endpoint, HttpModel, ModelCard, Network, Transport};
use rondo_testkit::{ReplyScript, Server, openai as wire};
use rondo_types::ErrorClass;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

// Made with openssl for these tests only: an authority, and a certificate of it for localhost.
const SERVER_CERTIFICATE: &[u8] = include_bytes!("certs/server.pem");
const SERVER_KEY: &[u8] = include_bytes!("certs/server.key");

pub(crate) fn authority_file() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/it/certs/authority.pem"]
        .iter()
        .collect()
}

fn acceptor() -> TlsAcceptor {
    let certificate = CertificateDer::from_pem_slice(SERVER_CERTIFICATE).unwrap();
    let key = PrivateKeyDer::from_pem_slice(SERVER_KEY).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// Puts TLS before a plain server; lives as long as the returned set.
pub(crate) async fn tls_before(plain: SocketAddr) -> (SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = acceptor();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let Ok(mut secure) = acceptor.accept(socket).await else {
                continue;
            };
            let mut inner = TcpStream::connect(plain).await.unwrap();
            let _ = copy_bidirectional(&mut secure, &mut inner).await;
        }
    });
    (address, tasks)
}

pub(crate) fn secure_endpoint(address: SocketAddr, ca_file: Option<PathBuf>) -> Endpoint {
    let base_url = format!("https://localhost:{}/v1", address.port());
    let mut endpoint = Endpoint::new("p", "openai-chat", base_url);
    endpoint.network.ca_file = ca_file;
    endpoint
}

#[tokio::test]
async fn https_works_with_an_authority_of_ones_own() {
    let server = Server::start(wire::streamed(&ReplyScript::text(["safe"]))).await;
    let (address, _tasks) = tls_before(server.address()).await;
    let endpoint = secure_endpoint(address, Some(authority_file()));
    let outcome = drive(ask(&model(&endpoint)), Timers::default()).await;
    assert_eq!((outcome.text().as_str(), outcome.end), ("safe", Ok(())));
}

#[tokio::test]
async fn a_server_that_nobody_vouches_for_is_refused_for_good() {
    let server = Server::start(Vec::new()).await;
    let (address, _tasks) = tls_before(server.address()).await;
    let outcome = drive(
        ask(&model(&secure_endpoint(address, None))),
        Timers::default(),
    )
    .await;
    let error = outcome.error();
    assert_eq!((error.class, error.retryable), (ErrorClass::Network, false));
    assert_eq!(server.requests(), []);
}

#[tokio::test]
async fn a_handshake_that_stalls_is_ended_by_the_connect_timeout() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut endpoint = secure_endpoint(address, Some(authority_file()));
    endpoint.network.connect_timeout = Duration::from_millis(20);
    let outcome = drive(ask(&model(&endpoint)), Timers::default()).await;
    let error = outcome.error();
    assert_eq!((error.class, error.retryable), (ErrorClass::Network, true));
    assert!(error.message.contains("timed out after 20ms"), "{error}");
}

#[tokio::test]
async fn the_https_client_is_not_built_for_http() {
    let server = Server::start(wire::streamed(&ReplyScript::text(["a"]))).await;
    let endpoint = openai(&server);
    let network = Network {
        ca_file: Some(authority_file()),
        ..Network::default()
    };
    let transport = Transport::new(network).unwrap();
    let model = HttpModel::with_transport(transport.clone(), &endpoint, ModelCard::new("m"));
    drive(ask(&model.unwrap()), Timers::default())
        .await
        .end
        .unwrap();
    assert!(!transport.is_secure_built());

    let (address, _tasks) = tls_before(server.address()).await;
    let secure = secure_endpoint(address, None);
    let model = HttpModel::with_transport(transport.clone(), &secure, ModelCard::new("m"));
    drive(ask(&model.unwrap()), Timers::default()).await;
    assert!(transport.is_secure_built());
}
