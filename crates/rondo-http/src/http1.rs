//! Requests and replies of HTTP/1.1 as bytes. What they say and where they end is read by `ureq-proto`, which does no input or
//! output of its own.

use bytes::{Buf as _, Bytes};
use hyper::header::{CONTENT_LENGTH, EXPECT, HeaderValue, TRANSFER_ENCODING};
use hyper::http::{Uri, request};
use hyper::{Method, Request, Response, Version};
use ureq_proto::client::state::{RecvBody, RecvResponse};
use ureq_proto::client::{Call, RecvBodyResult, RecvResponseResult, SendRequestResult};
use ureq_proto::{BodyMode, Error};

/// The bound on a line between the chunks of a body.
const LINE_BYTES_MAX: usize = 4 * 1024;
/// What a header takes beside its name and its value.
const BESIDE_HEADER_BYTES: usize = ": \r\n".len();
/// The most that a head takes beside its method, its address twice (for the `Host`) and its headers.
const BESIDE_HEAD_BYTES: usize = 64;

/// A reply that has not begun.
pub(crate) struct Awaited(Box<Call<RecvResponse>>);

/// What follows the head of a reply.
pub(crate) enum After {
    Body(ReplyBody),
    /// No body; whether the connection may be used again.
    Nothing {
        keeps_connection: bool,
    },
}

/// A body that is read.
pub(crate) struct ReplyBody(Box<Call<RecvBody>>);

/// Writes the head of a request with a body of so many bytes; returns it with what reads the reply.
///
/// # Errors
/// When the headers are none that can be sent: two of `Host`, or a body for a method that has none.
pub(crate) fn begin(
    request: request::Parts,
    body_bytes: usize,
    is_forwarded: bool,
) -> Result<(Bytes, Awaited), Error> {
    let mut request = Request::from_parts(request, ());
    *request.version_mut() = Version::HTTP_11;
    set_length(&mut request, body_bytes);
    let mut head = vec![0; head_bytes_max(&request)];
    let mut call = Call::new(request)?;
    call.allow_non_standard_methods(true);
    if body_bytes > 0 {
        call.force_send_body();
    }
    let mut call = call.proceed();
    let written = call.write(&mut head)?;
    head.truncate(written);
    if is_forwarded {
        let at = call.method().as_str().len() + " ".len();
        head.splice(at..at, origin(call.uri()).into_bytes());
    }
    let call = match call.proceed()?.ok_or(Error::OutputOverflow)? {
        SendRequestResult::RecvResponse(call) => call,
        SendRequestResult::SendBody(mut call) => {
            // It is sent by whoever has it.
            call.consume_direct_write(body_bytes)?;
            call.proceed().ok_or(Error::BodyLargerThanContentLength)?
        }
        // Nobody asks whether to go on.
        SendRequestResult::Await100(_) => return Err(Error::HeadersWith100),
    };
    Ok((head.into(), Awaited(Box::new(call))))
}

fn set_length(request: &mut Request<()>, body_bytes: usize) {
    let has_body = [Method::POST, Method::PUT, Method::PATCH].contains(request.method());
    let headers = request.headers_mut();
    for said in [CONTENT_LENGTH, TRANSFER_ENCODING, EXPECT] {
        headers.remove(said);
    }
    if has_body || body_bytes > 0 {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(body_bytes));
    }
}

fn head_bytes_max(request: &Request<()>) -> usize {
    let headers = request.headers().iter();
    let headers =
        headers.map(|(name, value)| name.as_str().len() + value.len() + BESIDE_HEADER_BYTES);
    let uri = request.uri();
    let path = uri.path_and_query().map_or(0, |path| path.as_str().len());
    let host = uri.authority().map_or(0, |host| host.as_str().len());
    request.method().as_str().len() + path + host + headers.sum::<usize>() + BESIDE_HEAD_BYTES
}

/// Returns what stands before the path where an address is named in full.
fn origin(uri: &Uri) -> String {
    match (uri.scheme(), uri.authority()) {
        (Some(scheme), Some(authority)) => format!("{scheme}://{authority}"),
        _ => String::new(),
    }
}

impl Awaited {
    /// Takes the head of the reply from what was received, and those of interim replies; `None` where more is to come.
    ///
    /// # Errors
    /// When it is not HTTP.
    pub(crate) fn take(&mut self, received: &mut Bytes) -> Result<Option<Response<()>>, Error> {
        loop {
            let (taken, head) = self.0.try_response(received, false)?;
            received.advance(taken);
            if head.is_some() || taken == 0 {
                return Ok(head);
            }
        }
    }

    /// Returns what follows a head that was taken.
    pub(crate) fn after(self) -> After {
        let keeps_connection = match self.0.proceed() {
            Some(RecvResponseResult::RecvBody(call)) => {
                return After::Body(ReplyBody(Box::new(call)));
            }
            Some(RecvResponseResult::Redirect(call)) => !call.must_close_connection(),
            Some(RecvResponseResult::Cleanup(call)) => !call.must_close_connection(),
            None => false,
        };
        After::Nothing { keeps_connection }
    }
}

impl ReplyBody {
    /// Takes what is content from what was received. What lies behind the end is left, and so is a line that is not whole.
    ///
    /// # Errors
    /// When the chunks are none.
    pub(crate) fn take(&mut self, received: &mut Bytes) -> Result<Bytes, Error> {
        let mut content = vec![0; received.len()];
        let (taken, length) = self.0.read(received, &mut content)?;
        received.advance(taken);
        if received.len() > LINE_BYTES_MAX && taken == 0 && !self.has_ended() {
            return Err(Error::ChunkExpectedCrLf);
        }
        content.truncate(length);
        // Without room to spare, which would be held as long as the content.
        Ok(content.into_boxed_slice().into())
    }

    /// Returns whether the body was read to its end.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.can_proceed() && !self.may_close()
    }

    /// Returns whether the body is whole where its connection ends.
    pub(crate) fn may_close(&self) -> bool {
        self.0.body_mode() == BodyMode::CloseDelimited
    }

    /// Returns whether the connection of a body that has ended may be used again.
    pub(crate) fn keeps_connection(self) -> bool {
        match self.0.proceed() {
            Some(RecvBodyResult::Redirect(call)) => !call.must_close_connection(),
            Some(RecvBodyResult::Cleanup(call)) => !call.must_close_connection(),
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(request: request::Builder, body_bytes: usize, is_forwarded: bool) -> String {
        let (head, ()) = request.body(()).unwrap().into_parts();
        let (head, _) = begin(head, body_bytes, is_forwarded).unwrap();
        String::from_utf8(head.to_vec()).unwrap()
    }

    #[test]
    fn a_request_names_its_host_and_the_length_of_its_body() {
        let post = || Request::post("http://h:8080/v1?a=b").header("x-a", "b");
        let length = post()
            .header("content-length", "9")
            .header("transfer-encoding", "chunked");
        assert_eq!(
            written(length, 5, false),
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
        assert_eq!(
            written(
                Request::builder().method("QUERY").uri("http://h/"),
                1,
                false
            ),
            "QUERY / HTTP/1.1\r\nhost: h\r\ncontent-length: 1\r\n\r\n"
        );
    }

    #[test]
    fn there_is_room_for_a_head_of_any_length() {
        let (long, method) = ("x".repeat(300), "M".repeat(90));
        let address = format!(
            "http://{}.{}.example:65535/{}",
            &long[..60],
            &long[..60],
            long.repeat(9)
        );
        let request = Request::builder()
            .method(method.as_str())
            .uri(address)
            .header(long.as_str(), long.repeat(20));
        let head = written(request, usize::MAX >> 1, true);
        assert!(head.ends_with("\r\n\r\n"), "{head}");
    }

    /// Reads the reply to a request; returns its status, its body, what is left of the bytes, and whether its
    /// connection may be used again.
    fn read<'a>(
        method: Method,
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Option<(u16, String, usize, bool)>, Error> {
        let request = Request::builder()
            .method(method)
            .uri("http://h/")
            .body(())
            .unwrap();
        let (_, mut reply) = begin(request.into_parts().0, 0, false)?;
        let mut pieces = pieces.into_iter();
        let (mut received, mut status) = (Bytes::new(), None);
        while status.is_none()
            && let Some(piece) = pieces.next()
        {
            received = [&received, piece].concat().into();
            status = reply
                .take(&mut received)?
                .map(|head| head.status().as_u16());
        }
        let Some(status) = status else {
            return Ok(None);
        };
        let mut body = match reply.after() {
            After::Body(body) => body,
            After::Nothing { keeps_connection } => {
                return Ok(Some((
                    status,
                    String::new(),
                    received.len(),
                    keeps_connection,
                )));
            }
        };
        let mut content = body.take(&mut received)?.to_vec();
        for piece in pieces {
            received = [&received, piece].concat().into();
            content.extend_from_slice(&body.take(&mut received)?);
        }
        let content = String::from_utf8(content).unwrap();
        let is_whole = body.has_ended() || body.may_close();
        Ok(is_whole.then(|| (status, content, received.len(), body.keeps_connection())))
    }

    const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
        5\r\nhello\r\n6 ;a=\"b;c\"\r\n, hell\r\n1 \r\no\r\n0\r\nx: y\r\nz: \r\n\r\nHTTP";

    #[test]
    fn a_reply_is_the_same_wherever_it_is_cut() {
        let expected = Ok(Some((200, "hello, hello".to_owned(), 4, true)));
        for cut in 0..=CHUNKED.len() {
            let (first, second) = CHUNKED.as_bytes().split_at(cut);
            assert_eq!(read(Method::POST, [first, second]), expected, "{cut}");
        }
        assert_eq!(read(Method::POST, CHUNKED.as_bytes().chunks(1)), expected);
    }

    #[test]
    fn a_body_ends_as_its_head_says_and_its_connection_is_kept_unless_the_server_ends_it() {
        let whole = |body: &str, left, keeps| Ok(Some((200, body.to_owned(), left, keeps)));
        for (head, expected) in [
            (
                "1 200 x\r\ncontent-length: 2\r\n\r\nok!",
                whole("ok", 1, true),
            ),
            (
                "1 200 x\r\ncontent-length: 2, 2\r\ncontent-length: 2\r\n\r\nok",
                whole("ok", 0, true),
            ),
            ("1 200 x\r\ncontent-length: 0\r\n\r\n", whole("", 0, true)),
            (
                "1 200 x\r\ncontent-length: 2\r\nconnection: a, Close\r\n\r\nok",
                whole("ok", 0, false),
            ),
            (
                "0 200 x\r\ncontent-length: 2\r\n\r\nok",
                whole("ok", 0, false),
            ),
            (
                "0 200 x\r\ncontent-length: 2\r\nconnection: keep-alive\r\n\r\nok",
                whole("ok", 0, true),
            ),
            ("1 200 x\r\n\r\nok", whole("ok", 0, false)),
            ("1 200 x\r\ncontent-length: 3\r\n\r\nok", Ok(None)),
            ("1 204 x\r\n\r\n", Ok(Some((204, String::new(), 0, true)))),
            (
                "1 304 x\r\ncontent-length: 5\r\n\r\n",
                Ok(Some((304, String::new(), 0, true))),
            ),
            (
                "1 302 x\r\ncontent-length: 2\r\n\r\nok",
                Ok(Some((302, "ok".to_owned(), 0, true))),
            ),
            (
                "1 101 x\r\n\r\nok",
                Ok(Some((101, String::new(), 2, false))),
            ),
            (
                "1 103 x\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
                whole("ok", 0, true),
            ),
        ] {
            let text = format!("HTTP/1.{head}");
            assert_eq!(read(Method::POST, [text.as_bytes()]), expected, "{text}");
        }
        let to_head = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n";
        assert_eq!(read(Method::HEAD, [to_head.as_bytes()]), whole("", 0, true));
    }

    #[test]
    fn what_is_not_http_is_refused() {
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(129));
        let endless = format!(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{}",
            "1".repeat(LINE_BYTES_MAX + 1)
        );
        let chunked =
            |chunks: &str| format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunks}");
        let length = |length: &str| format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
        for text in [
            "SSH-2.0-OpenSSH_9.9\r\n".to_owned(),
            "HTTP/2.0 200 OK\r\n\r\n".to_owned(),
            "HTTP/1.1 2x".to_owned(),
            "HTTP/1.1 099 x\r\n\r\n".to_owned(),
            many,
            endless,
            length("5\r\ncontent-length: 6"),
            length("+5"),
            length(""),
            length("18446744073709551616"),
            chunked("\r\n"),
            chunked("g\r\n"),
            chunked("-1\r\n"),
            chunked("1\r\nxx\r\n"),
            chunked("1 2\r\n"),
            chunked("10000000000000000\r\n"),
        ] {
            let refused = read(Method::POST, [text.as_bytes()]);
            assert!(refused.is_err(), "{text}: {refused:?}");
        }
    }
}
