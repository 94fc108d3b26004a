//! Downloads of large files over HTTP, from any byte on.

use crate::address::{self, Address};
use crate::client::{NetworkError, Response};
use crate::pieces::Pieces;
use crate::{Secret, Transport};
use bytes::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_RANGE, LOCATION, RANGE};
use hyper::http::Uri;
use hyper::{Request, StatusCode};
use std::error::Error;
use std::time::Duration;

/// The bound on redirects that are followed for one file.
const REDIRECTS_MAX: usize = 10;
/// How long a server may take for its first bytes, and between any two pieces.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Why a download failed. The part that is on disk can be continued.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// The address cannot be read, or a redirect's cannot.
    #[error("`{0}` is not an address")]
    Address(String),
    /// There is no client for the address.
    #[error(transparent)]
    Setup(#[from] crate::HttpError),
    /// The connection failed.
    #[error("the connection to `{host}` failed")]
    Connection {
        /// The host.
        host: String,
        /// Why, without the address, which may hold a signature.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// Nothing came for too long.
    #[error("nothing came from `{host}` for {} s", IDLE_TIMEOUT.as_secs())]
    Idle {
        /// Host that was silent.
        host: String,
    },
    /// The server refused.
    #[error("`{host}` answered with status {status}")]
    Status {
        /// Host that refused.
        host: String,
        /// The HTTP status.
        status: u16,
    },
    /// The server sends in circles.
    #[error("`{host}` redirects more than {REDIRECTS_MAX} times")]
    Redirects {
        /// Host of the last redirect.
        host: String,
    },
}

/// A running download.
#[derive(Debug)]
pub struct Download {
    response: Response,
    host: String,
    /// The offset of the first byte: the requested one, or 0 from servers that do not support ranges.
    pub offset: u64,
}

impl Download {
    /// Returns the next piece; `None` at the end of the file.
    ///
    /// # Errors
    /// When the connection breaks or falls silent.
    ///
    /// # Cancel safety
    /// Not cancel safe: dropping the future may lose a piece, after which the download is unusable.
    pub async fn next(&mut self) -> Result<Option<Bytes>, DownloadError> {
        let piece = tokio::time::timeout(IDLE_TIMEOUT, self.response.chunk()).await;
        match piece {
            Ok(piece) => piece.map_err(|source| connection(&self.host, source)),
            Err(_) => Err(DownloadError::Idle {
                host: self.host.clone(),
            }),
        }
    }
}

/// Starts to download a file, from byte `offset` on.
///
/// Redirects are followed, but `bearer` is sent only to the first host, since files are often stored at
/// another one, with signed addresses.
///
/// # Errors
/// When there is no such file, or the server cannot be reached.
///
/// # Cancel safety
/// Dropping it ends the request.
pub async fn download(
    transport: &Transport,
    url: &str,
    bearer: Option<&Secret>,
    offset: u64,
) -> Result<Download, DownloadError> {
    let first = Address::parse(url).ok_or_else(|| DownloadError::Address(url.to_owned()))?;
    let first = first.uri;
    let mut at = first.clone();
    for _ in 0..=REDIRECTS_MAX {
        let key = bearer.filter(|_| address::origin(&at) == address::origin(&first));
        let response = request(transport, &at, key, offset).await?;
        if response.status().is_redirection() {
            at = redirected(&at, &response)?;
            continue;
        }
        return accept(&at, response, offset);
    }
    Err(DownloadError::Redirects { host: host(&at) })
}

async fn request(
    transport: &Transport,
    at: &Uri,
    bearer: Option<&Secret>,
    offset: u64,
) -> Result<Response, DownloadError> {
    let client = transport.client(at).await?;
    let mut request = Request::get(at);
    if offset > 0 {
        request = request.header(RANGE, format!("bytes={offset}-"));
    }
    if let Some(bearer) = bearer {
        request = request.header(AUTHORIZATION, format!("Bearer {}", bearer.expose()));
    }
    let request = request
        .body(Pieces::default())
        .map_err(|error| connection(&host(at), error.into()))?;
    match tokio::time::timeout(IDLE_TIMEOUT, client.send(request)).await {
        Ok(sent) => sent.map_err(|source| connection(&host(at), source)),
        Err(_) => Err(DownloadError::Idle { host: host(at) }),
    }
}

fn redirected(at: &Uri, response: &Response) -> Result<Uri, DownloadError> {
    let location = response.headers().get(LOCATION);
    let target = location.and_then(|value| address::resolve(at, value.to_str().ok()?));
    target.ok_or_else(|| DownloadError::Address(format!("a redirect of {}", host(at))))
}

fn accept(at: &Uri, response: Response, offset: u64) -> Result<Download, DownloadError> {
    let begins = match response.status() {
        StatusCode::OK => 0,
        StatusCode::PARTIAL_CONTENT if begins_at(&response, offset) => offset,
        status => {
            return Err(DownloadError::Status {
                host: host(at),
                status: status.as_u16(),
            });
        }
    };
    Ok(Download {
        response,
        host: host(at),
        offset: begins,
    })
}

/// `Content-Range: bytes 5-9/10` (RFC 9110, 14.4).
fn begins_at(response: &Response, offset: u64) -> bool {
    let range = response.headers().get(CONTENT_RANGE);
    let text = range.and_then(|value| value.to_str().ok());
    text.is_some_and(|text| text.starts_with(&format!("bytes {offset}-")))
}

fn connection(host: &str, source: NetworkError) -> DownloadError {
    DownloadError::Connection {
        host: host.to_owned(),
        source,
    }
}

fn host(uri: &Uri) -> String {
    uri.host().unwrap_or_default().to_owned()
}
