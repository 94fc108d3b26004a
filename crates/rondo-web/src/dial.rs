//! Opens a connection to a target, at an address that was checked.

use crate::WebError;
use crate::net::Net;
use crate::target::Target;
use hyper::header::HeaderValue;
use hyper::http::Uri;
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use rondo_http::Transport;
use rustls::pki_types::ServerName;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio_rustls::TlsConnector;

/// How long one address may take to answer, so that there is time for the next one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(8);

/// Operations of a connection.
pub(crate) trait Io: Read + Write + Send + Unpin {}
impl<I: Read + Write + Send + Unpin> Io for I {}

/// A connection to a target.
pub(crate) struct DialedConnection {
    pub(crate) io: Box<dyn Io>,
    /// Set if a proxy passes the request on, which then names the address in full.
    pub(crate) is_forwarded: bool,
    /// `Proxy-Authorization` of the request.
    pub(crate) authorization: Option<HeaderValue>,
}

/// Opens a connection. Behind a proxy the host's name is all that was checked: the proxy finds the address.
///
/// # Errors
/// When an address of the host is not public, there is none, or no connection comes about.
///
/// # Cancel safety
/// Dropping it ends the attempt.
pub(crate) async fn dial(
    target: &Target,
    uri: &Uri,
    net: &dyn Net,
    transport: &Transport,
) -> Result<DialedConnection, WebError> {
    let failed = |source| WebError::Connection {
        host: target.host.clone(),
        source,
    };
    if let Some(connected) = transport.by_proxy(uri).await {
        let connected = connected.map_err(failed)?;
        return Ok(DialedConnection {
            io: Box::new(connected.stream),
            is_forwarded: connected.is_forwarded,
            authorization: connected.authorization,
        });
    }
    let addresses = addresses(target, net).await?;
    let stream = connect(target, &addresses, net).await?;
    let io: Box<dyn Io> = if target.url.scheme() == "https" {
        let name = server_name(target).map_err(|err| failed(err.into()))?;
        let tls = TlsConnector::from(transport.tls().await?);
        let secured = tls.connect(name, stream).await;
        Box::new(TokioIo::new(secured.map_err(|err| failed(err.into()))?))
    } else {
        Box::new(TokioIo::new(stream))
    };
    Ok(DialedConnection {
        io,
        is_forwarded: false,
        authorization: None,
    })
}

/// Returns the addresses of a target. One that is not public refuses them all: a name that has both is made to get
/// past a check.
pub(crate) async fn addresses(target: &Target, net: &dyn Net) -> Result<Vec<SocketAddr>, WebError> {
    let found = match target.literal {
        Some(address) => vec![SocketAddr::new(address, target.port)],
        None => net
            .resolve(&target.host, target.port)
            .await
            .unwrap_or_default(),
    };
    for address in &found {
        target.may_connect(address.ip())?;
    }
    match found.is_empty() {
        true => Err(WebError::Unresolved {
            host: target.host.clone(),
        }),
        false => Ok(found),
    }
}

pub(crate) async fn connect(
    target: &Target,
    addresses: &[SocketAddr],
    net: &dyn Net,
) -> Result<tokio::net::TcpStream, WebError> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in addresses {
        match tokio::time::timeout(CONNECT_TIMEOUT, net.connect(*address)).await {
            Ok(Ok((stream, peer))) => {
                target.may_connect(peer.ip())?;
                return Ok(stream);
            }
            Ok(Err(error)) => last = error,
            Err(_) => last = io::Error::from(io::ErrorKind::TimedOut),
        }
    }
    Err(WebError::Connection {
        host: target.host.clone(),
        source: last.into(),
    })
}

fn server_name(target: &Target) -> io::Result<ServerName<'static>> {
    match target.literal {
        Some(address) => Ok(ServerName::from(address)),
        None => ServerName::try_from(target.host.clone()).map_err(io::Error::other),
    }
}
