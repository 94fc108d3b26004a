//! The few lines of HTTP that the tasks speak themselves, over plain sockets.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// Bodies past this are refused.
pub const BODY_BYTES_MAX: usize = 64 << 20;
/// Headers past this are refused.
const HEADERS_MAX: usize = 100;
/// A header line past this is refused.
const HEADER_BYTES_MAX: u64 = 16 << 10;
/// How long a peer may be silent.
const SILENCE: Duration = Duration::from_secs(60);

/// One message, request or response, read from a socket.
pub struct Message {
    pub body: Vec<u8>,
    /// When its first byte was there.
    pub arrived: Instant,
}

/// Gets a JSON document from below a base URL.
///
/// # Errors
/// When the URL is not plain `http`, or the server does not answer with JSON.
pub fn get_json(base_url: &str, path: &str) -> Result<Value> {
    exchange(base_url, path, "GET", "", SILENCE)
}

/// Posts a JSON document to below a base URL, and waits up to `silence` for the answer.
///
/// # Errors
/// As [`get_json`].
pub fn post_json(base_url: &str, path: &str, body: &Value, silence: Duration) -> Result<Value> {
    exchange(base_url, path, "POST", &body.to_string(), silence)
}

fn exchange(
    base_url: &str,
    path: &str,
    method: &str,
    body: &str,
    silence: Duration,
) -> Result<Value> {
    let Some((authority, prefix)) = split_url(base_url) else {
        bail!("`{base_url}` is not a plain http URL");
    };
    let mut stream = connect(authority)?;
    stream.set_read_timeout(Some(silence))?;
    write!(
        stream,
        "{method} {prefix}{path} HTTP/1.0\r\nhost: {authority}\r\naccept: application/json\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut reply = Vec::new();
    let limit = u64::try_from(BODY_BYTES_MAX)?;
    stream.take(limit).read_to_end(&mut reply)?;
    let reply = String::from_utf8_lossy(&reply);
    let (_, body) = reply
        .split_once("\r\n\r\n")
        .context("the server sent no HTTP response")?;
    serde_json::from_str(body).with_context(|| format!("`{prefix}{path}` gave no JSON"))
}

/// Opens a connection with a bound on silence.
pub fn connect(authority: &str) -> Result<TcpStream> {
    let address = authority
        .to_socket_addrs()
        .with_context(|| format!("`{authority}` has no address"))?
        .next()
        .with_context(|| format!("`{authority}` has no address"))?;
    let stream = TcpStream::connect_timeout(&address, SILENCE)
        .with_context(|| format!("failed to connect to `{authority}`"))?;
    prepare(&stream)?;
    Ok(stream)
}

/// Sets what every socket of the tasks has: no delay, and a bound on silence.
pub fn prepare(stream: &TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENCE))?;
    stream.set_write_timeout(Some(SILENCE))?;
    Ok(())
}

/// Reads one message with a `content-length`; `None` when the peer is gone.
pub fn read_message(from: &mut BufReader<TcpStream>) -> Result<Option<Message>> {
    if from.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let arrived = Instant::now();
    let mut length = 0;
    for _ in 0..HEADERS_MAX {
        let mut line = String::new();
        from.by_ref().take(HEADER_BYTES_MAX).read_line(&mut line)?;
        let line = line.trim_end();
        if line.is_empty() {
            let mut body = vec![0; length];
            from.read_exact(&mut body)?;
            return Ok(Some(Message { body, arrived }));
        }
        if let Some(value) = content_length(line) {
            length = value?;
        }
    }
    bail!("a message has more than {HEADERS_MAX} headers")
}

/// Returns authority and path of a plain `http` URL, the path without a slash at its end.
pub fn split_url(url: &str) -> Option<(&str, &str)> {
    let rest = url.strip_prefix("http://")?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    (!authority.is_empty()).then_some((authority, path.trim_end_matches('/')))
}

fn content_length(line: &str) -> Option<Result<usize>> {
    let (name, value) = line.split_once(':')?;
    name.eq_ignore_ascii_case("content-length").then(|| {
        let length: usize = value.trim().parse()?;
        if length > BODY_BYTES_MAX {
            bail!("a body has {length} bytes, more than {BODY_BYTES_MAX}");
        }
        Ok(length)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_split() {
        assert_eq!(
            split_url("http://127.0.0.1:8137/v1/"),
            Some(("127.0.0.1:8137", "/v1"))
        );
        assert_eq!(split_url("http://host"), Some(("host", "")));
        assert_eq!(split_url("https://host/v1"), None);
        assert_eq!(split_url("http:///v1"), None);
    }

    #[test]
    fn a_length_past_the_bound_is_refused() {
        assert_eq!(content_length("Content-Length: 12").unwrap().unwrap(), 12);
        assert!(
            content_length("content-length: 99999999999")
                .unwrap()
                .is_err()
        );
        assert!(content_length("host: x").is_none());
    }
}
