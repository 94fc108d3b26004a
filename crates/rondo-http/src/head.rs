//! The heads of requests and replies: what stands before their bodies (RFC 9112, 3 to 6).

use crate::body::Length;
use bytes::{Buf as _, Bytes};
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING,
};
use hyper::http::request;
use hyper::http::uri::Scheme;
use hyper::{Method, StatusCode, Uri, Version};
use std::io::Write as _;

/// The bound on the head of a reply, those of interim replies before it included.
pub(crate) const HEAD_BYTES_MAX: usize = 256 * 1024;
/// The bound on the headers of a reply.
const HEADERS_MAX: usize = 128;
/// What most heads of requests have room in.
const HEAD_BYTES: usize = 512;

/// The head of a reply.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    pub(crate) version: Version,
    pub(crate) headers: HeaderMap,
    pub(crate) length: Length,
    /// Whether another request may follow on the connection.
    pub(crate) keeps_alive: bool,
}

/// What comes from the server is not HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotHttp {
    /// It cannot be read.
    #[error("{0}")]
    Syntax(#[from] httparse::Error),
    /// The length of the body is not said, or twice.
    #[error("the length of its body cannot be told")]
    Length,
    /// Another protocol follows, which nobody asked for.
    #[error("it switched to another protocol")]
    Switched,
}

/// Writes the head of a request with a body of so many bytes.
pub(crate) fn write(request: &request::Parts, body_bytes: usize, is_forwarded: bool) -> Bytes {
    let uri = &request.uri;
    let mut head = Vec::with_capacity(HEAD_BYTES);
    head.extend_from_slice(request.method.as_str().as_bytes());
    head.push(b' ');
    // To a vector nothing fails.
    let _ = match (is_forwarded, uri.scheme(), uri.authority()) {
        (true, Some(scheme), Some(authority)) => write!(head, "{scheme}://{authority}"),
        _ => Ok(()),
    };
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let _ = write!(head, "{path} HTTP/1.1\r\n");
    if !request.headers.contains_key(HOST) {
        header(&mut head, &HOST, host(uri).as_bytes());
    }
    for (name, value) in &request.headers {
        // How long the body is, is known here.
        if name != CONTENT_LENGTH && name != TRANSFER_ENCODING {
            header(&mut head, name, value.as_bytes());
        }
    }
    if body_bytes > 0 || [Method::POST, Method::PUT, Method::PATCH].contains(&request.method) {
        header(
            &mut head,
            &CONTENT_LENGTH,
            body_bytes.to_string().as_bytes(),
        );
    }
    head.extend_from_slice(b"\r\n");
    head.into()
}

fn header(head: &mut Vec<u8>, name: &HeaderName, value: &[u8]) {
    head.extend_from_slice(name.as_str().as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value);
    head.extend_from_slice(b"\r\n");
}

/// Returns the host with its port, unless that goes with the scheme.
fn host(uri: &Uri) -> String {
    let host = uri.host().unwrap_or_default();
    let usual = match uri.scheme() == Some(&Scheme::HTTPS) {
        true => 443,
        false => 80,
    };
    match uri.port_u16().filter(|port| *port != usual) {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Takes the head of the reply to a request of a method from what was received, and those of interim replies; `None` where
/// more is to come.
///
/// # Errors
/// When it is not HTTP.
pub(crate) fn take(received: &mut Bytes, method: &Method) -> Result<Option<Head>, NotHttp> {
    loop {
        let Some((head, length)) = read(received, method)? else {
            return Ok(None);
        };
        received.advance(length);
        match head.status {
            StatusCode::SWITCHING_PROTOCOLS => return Err(NotHttp::Switched),
            // Another one follows it.
            status if status.is_informational() => {}
            _ => return Ok(Some(head)),
        }
    }
}

fn read(bytes: &Bytes, method: &Method) -> Result<Option<(Head, usize)>, NotHttp> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(length) = parsed.parse(bytes)? else {
        return Ok(None);
    };
    let status = StatusCode::from_u16(parsed.code.unwrap_or_default());
    let status = status.map_err(|_| httparse::Error::Status)?;
    let version = match parsed.version {
        Some(0) => Version::HTTP_10,
        _ => Version::HTTP_11,
    };
    let headers = kept(bytes, parsed.headers)?;
    let head = Head {
        length: body_length(&headers, version, status, method)?,
        keeps_alive: keeps_alive(&headers, version),
        status,
        version,
        headers,
    };
    Ok(Some((head, length)))
}

/// Returns headers whose values are parts of what was read.
fn kept(bytes: &Bytes, parsed: &[httparse::Header<'_>]) -> Result<HeaderMap, NotHttp> {
    let mut headers = HeaderMap::with_capacity(parsed.len());
    for header in parsed {
        let name = HeaderName::from_bytes(header.name.as_bytes());
        let name = name.map_err(|_| httparse::Error::HeaderName)?;
        let value = HeaderValue::from_maybe_shared(bytes.slice_ref(header.value));
        headers.append(name, value.map_err(|_| httparse::Error::HeaderValue)?);
    }
    Ok(headers)
}

fn body_length(
    headers: &HeaderMap,
    version: Version,
    status: StatusCode,
    method: &Method,
) -> Result<Length, NotHttp> {
    let has_none = status.is_informational()
        || [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&status)
        || *method == Method::HEAD;
    if has_none {
        return Ok(Length::Known(0));
    }
    if let Some(last) = headers.get_all(TRANSFER_ENCODING).iter().next_back() {
        let is_chunked = tokens(last).last().is_some_and(|it| is(it, "chunked"));
        return match (version, is_chunked) {
            (Version::HTTP_10, _) => Err(NotHttp::Length),
            (_, true) => Ok(Length::Chunked),
            (_, false) => Ok(Length::UntilClose),
        };
    }
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter().flat_map(tokens);
    let Some(first) = lengths.next() else {
        return Ok(match headers.contains_key(CONTENT_LENGTH) {
            true => return Err(NotHttp::Length),
            false => Length::UntilClose,
        });
    };
    let is_number = !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_digit());
    match first.parse() {
        // Said twice, it is the same one.
        Ok(length) if is_number && lengths.all(|other| other == first) => Ok(Length::Known(length)),
        _ => Err(NotHttp::Length),
    }
}

pub(crate) fn keeps_alive(headers: &HeaderMap, version: Version) -> bool {
    // Two lengths: who is to believe which is how replies are smuggled into those of others.
    if headers.contains_key(TRANSFER_ENCODING)
        && (headers.contains_key(CONTENT_LENGTH) || version == Version::HTTP_10)
    {
        return false;
    }
    let says = |word| {
        let mut all = headers.get_all(CONNECTION).iter().flat_map(tokens);
        all.any(|it| is(it, word))
    };
    match version {
        Version::HTTP_10 => says("keep-alive") && !says("close"),
        _ => !says("close") && !says(NO_TEXT),
    }
}

/// Stands for a value that is not text.
const NO_TEXT: &str = "?";

/// Returns the elements of a list; one that is not text has a single one that means nothing.
fn tokens(value: &HeaderValue) -> impl Iterator<Item = &str> {
    value.to_str().unwrap_or(NO_TEXT).split(',').map(str::trim)
}

fn is(token: &str, word: &str) -> bool {
    token.eq_ignore_ascii_case(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    fn written(request: request::Builder, body_bytes: usize, is_forwarded: bool) -> String {
        let (head, ()) = request.body(()).unwrap().into_parts();
        String::from_utf8(write(&head, body_bytes, is_forwarded).to_vec()).unwrap()
    }

    #[test]
    fn a_request_names_its_host_and_the_length_of_its_body() {
        let post = || Request::post("http://h:8080/v1?a=b").header("x-a", "b");
        assert_eq!(
            written(post().header("content-length", "9"), 5, false),
            "POST /v1?a=b HTTP/1.1\r\nhost: h:8080\r\nx-a: b\r\ncontent-length: 5\r\n\r\n"
        );
        assert_eq!(
            written(post(), 0, true),
            "POST http://h:8080/v1?a=b HTTP/1.1\r\nhost: h:8080\r\nx-a: b\r\ncontent-length: 0\r\n\r\n"
        );
        assert_eq!(
            written(Request::get("https://h:443"), 0, false),
            "GET / HTTP/1.1\r\nhost: h\r\n\r\n"
        );
        assert_eq!(
            written(
                Request::get("http://[::1]:1/").header("host", "o"),
                0,
                false
            ),
            "GET / HTTP/1.1\r\nhost: o\r\n\r\n"
        );
    }

    fn head(text: &str) -> Result<Option<Head>, NotHttp> {
        take(&mut Bytes::copy_from_slice(text.as_bytes()), &Method::POST)
    }

    fn whole(text: &str) -> Head {
        head(text).unwrap().unwrap()
    }

    #[test]
    fn a_head_is_read_once_all_of_it_is_there() {
        let text = "HTTP/1.1 201 Made it\r\nA: b\r\nset-cookie: c\r\nSet-Cookie: d\r\n\r\n";
        for end in 0..text.len() {
            assert!(head(&text[..end]).unwrap().is_none(), "{end}");
        }
        let read = whole(text);
        assert_eq!(read.status, StatusCode::CREATED);
        assert_eq!(read.headers["a"], "b");
        assert_eq!(read.headers.get_all("set-cookie").iter().count(), 2);
    }

    #[test]
    fn interim_replies_are_passed_over() {
        let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
        assert_eq!(whole(text).status, StatusCode::OK);
        let switched = head("HTTP/1.1 101 Switching Protocols\r\n\r\n");
        assert_eq!(switched.unwrap_err(), NotHttp::Switched);
    }

    #[test]
    fn what_is_not_http_is_refused() {
        for text in [
            "SSH-2.0-OpenSSH_9.9\r\n",
            "HTTP/2.0 200 OK\r\n\r\n",
            "HTTP/1.1 2x",
        ] {
            assert!(matches!(head(text), Err(NotHttp::Syntax(_))), "{text:?}");
        }
        let many = |headers| format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(headers));
        assert_eq!(whole(&many(HEADERS_MAX)).headers.len(), HEADERS_MAX);
        let refused = head(&many(HEADERS_MAX + 1)).unwrap_err();
        assert_eq!(refused, NotHttp::Syntax(httparse::Error::TooManyHeaders));
    }

    #[test]
    fn the_end_of_a_body_is_told_as_its_head_says() {
        let length = |status: &str, headers: &str| {
            head(&format!("HTTP/1.{status} x\r\n{headers}\r\n"))
                .map(|read| read.map(|head| head.length))
        };
        let known = |bytes| Ok(Some(Length::Known(bytes)));
        let chunked = "transfer-encoding: chunked\r\n";
        for (status, headers, expected) in [
            ("1 200", "content-length: 5\r\n", known(5)),
            (
                "1 200",
                "content-length: 5, 5\r\ncontent-length: 5\r\n",
                known(5),
            ),
            (
                "1 200",
                "content-length: 5\r\ncontent-length: 6\r\n",
                Err(NotHttp::Length),
            ),
            ("1 200", "content-length: +5\r\n", Err(NotHttp::Length)),
            ("1 200", "content-length: \r\n", Err(NotHttp::Length)),
            (
                "1 200",
                "content-length: 18446744073709551616\r\n",
                Err(NotHttp::Length),
            ),
            ("1 200", chunked, Ok(Some(Length::Chunked))),
            (
                "1 200",
                "transfer-encoding: gzip, Chunked\r\n",
                Ok(Some(Length::Chunked)),
            ),
            (
                "1 200",
                "transfer-encoding: chunked, gzip\r\n",
                Ok(Some(Length::UntilClose)),
            ),
            ("0 200", chunked, Err(NotHttp::Length)),
            ("1 200", "", Ok(Some(Length::UntilClose))),
            ("1 204", chunked, known(0)),
            ("1 304", "content-length: 5\r\n", known(0)),
        ] {
            assert_eq!(length(status, headers), expected, "{status} {headers}");
        }
        let mut reply = Bytes::from_static(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n");
        let to_head = take(&mut reply, &Method::HEAD);
        assert_eq!(to_head.unwrap().unwrap().length, Length::Known(0));
    }

    #[test]
    fn a_connection_is_kept_unless_the_server_ends_it() {
        for (text, expected) in [
            ("1 200 x\r\n", true),
            ("1 200 x\r\nconnection: Close\r\n", false),
            ("1 200 x\r\nconnection: a, close\r\n", false),
            ("1 200 x\r\nconnection: a\r\nconnection: close\r\n", false),
            ("1 200 x\r\nconnection: close, \u{e9}\r\n", false),
            ("0 200 x\r\n", false),
            ("0 200 x\r\nconnection: keep-alive\r\n", true),
            (
                "1 200 x\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n",
                false,
            ),
        ] {
            let head = whole(&format!("HTTP/1.{text}\r\n"));
            assert_eq!(head.keeps_alive, expected, "{text}");
        }
    }
}
