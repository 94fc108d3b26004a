//! Serves one connection: reads requests and plays scripted responses.

use crate::recorded::{Recorded, parse_head};
use crate::script::{Framing, Response, Step};
use crate::server::Shared;
use bytes::{Bytes, BytesMut};
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// The bound on a request's head.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// The bound on a request's body.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How a played response left its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionEnd {
    KeepAlive,
    Close,
    Reset,
    /// Nothing more is sent until the client goes away.
    Stall,
    Vanish,
    PeerGone,
}

/// Serves requests on one connection until either side ends it.
pub(crate) async fn serve(socket: TcpStream, index: usize, shared: Arc<Shared>) {
    let _ = socket.set_nodelay(true);
    let (reader, mut writer) = socket.into_split();
    let mut reader = Reader {
        half: reader,
        buffer: BytesMut::new(),
    };
    while let Some(request) = reader.request(index).await {
        let (number, response) = shared.record(request);
        match exchange(&mut reader, &mut writer, &response).await {
            ConnectionEnd::KeepAlive => {}
            ConnectionEnd::Close | ConnectionEnd::Stall => return,
            ConnectionEnd::PeerGone => return shared.mark_disconnected(number),
            ConnectionEnd::Vanish => return std::future::pending().await,
            ConnectionEnd::Reset => return reset(reader.half, writer),
        }
    }
}

/// Plays the response while watching whether the client goes away.
async fn exchange(
    reader: &mut Reader,
    writer: &mut OwnedWriteHalf,
    response: &Response,
) -> ConnectionEnd {
    let ending = tokio::select! {
        biased;
        ending = play(writer, response) => ending.unwrap_or(ConnectionEnd::PeerGone),
        () = reader.gone() => ConnectionEnd::PeerGone,
    };
    if ending == ConnectionEnd::Stall {
        reader.gone().await;
        return ConnectionEnd::PeerGone;
    }
    ending
}

fn reset(reader: OwnedReadHalf, writer: OwnedWriteHalf) {
    if let Ok(socket) = reader.reunite(writer) {
        let _ = socket.set_zero_linger();
    }
}

async fn play(writer: &mut OwnedWriteHalf, response: &Response) -> io::Result<ConnectionEnd> {
    if let Some(ending) = play_steps(writer, &response.before, Framing::UntilClose).await? {
        return Ok(ending);
    }
    writer.write_all(head(response).as_bytes()).await?;
    if let Some(ending) = play_steps(writer, &response.body, response.framing).await? {
        return Ok(ending);
    }
    match response.framing {
        Framing::Chunked => {
            writer.write_all(b"0\r\n\r\n").await?;
            Ok(ConnectionEnd::KeepAlive)
        }
        Framing::Length => Ok(ConnectionEnd::KeepAlive),
        Framing::UntilClose => Ok(ConnectionEnd::Close),
    }
}

fn head(response: &Response) -> String {
    let mut head = format!("HTTP/1.1 {} Scripted\r\n", response.status);
    for (name, value) in &response.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    match response.framing {
        Framing::Chunked => head.push_str("transfer-encoding: chunked\r\n"),
        Framing::Length => {
            let length = response.body_bytes().len();
            head.push_str(&format!("content-length: {length}\r\n"));
        }
        Framing::UntilClose => head.push_str("connection: close\r\n"),
    }
    head.push_str("\r\n");
    head
}

/// Returns the ending when a step was one.
async fn play_steps(
    writer: &mut OwnedWriteHalf,
    steps: &[Step],
    framing: Framing,
) -> io::Result<Option<ConnectionEnd>> {
    for step in steps {
        match step {
            Step::Send(bytes) => send(writer, bytes, framing).await?,
            Step::Gate(gate) => gate.pass().await,
            Step::Delay(duration) => tokio::time::sleep(*duration).await,
            Step::Forever { bytes, every } => loop {
                send(writer, bytes, framing).await?;
                tokio::time::sleep(*every).await;
            },
            Step::Stall => return Ok(Some(ConnectionEnd::Stall)),
            Step::Vanish => return Ok(Some(ConnectionEnd::Vanish)),
            Step::Close => return Ok(Some(ConnectionEnd::Close)),
            Step::Reset => return Ok(Some(ConnectionEnd::Reset)),
        }
    }
    Ok(None)
}

async fn send(writer: &mut OwnedWriteHalf, bytes: &Bytes, framing: Framing) -> io::Result<()> {
    if framing != Framing::Chunked {
        return writer.write_all(bytes).await;
    }
    if bytes.is_empty() {
        // An empty chunk would end the body.
        return Ok(());
    }
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    writer.write_all(&chunk).await
}

struct Reader {
    half: OwnedReadHalf,
    buffer: BytesMut,
}

impl Reader {
    /// Reads one request; `None` when the connection ended or what came is not a request.
    async fn request(&mut self, connection: usize) -> Option<Recorded> {
        let head_bytes = self.head().await?;
        let head = self.buffer.split_to(head_bytes);
        let mut request = parse_head(connection, std::str::from_utf8(&head).ok()?)?;
        let length = content_length(&request)?;
        while self.buffer.len() < length {
            self.fill().await?;
        }
        request.body = self.buffer.split_to(length).freeze();
        Some(request)
    }

    /// Waits for a whole head and returns its length, the empty line included.
    async fn head(&mut self) -> Option<usize> {
        const END: &[u8] = b"\r\n\r\n";
        loop {
            let found = self.buffer.windows(END.len()).position(|at| at == END);
            if let Some(at) = found {
                return Some(at + END.len());
            }
            if self.buffer.len() > HEAD_BYTES_MAX {
                return None;
            }
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> Option<()> {
        match self.half.read_buf(&mut self.buffer).await {
            Ok(count) if count > 0 => Some(()),
            _ => None,
        }
    }

    /// Waits until the client closes its side.
    async fn gone(&mut self) {
        while self.buffer.len() < HEAD_BYTES_MAX + BODY_BYTES_MAX {
            if self.fill().await.is_none() {
                return;
            }
        }
    }
}

/// Returns the length of the body; only `Content-Length` is understood.
fn content_length(request: &Recorded) -> Option<usize> {
    if request.header("transfer-encoding").is_some() {
        return None;
    }
    let length = match request.header("content-length") {
        None => 0,
        Some(text) => text.parse::<usize>().ok()?,
    };
    (length <= BODY_BYTES_MAX).then_some(length)
}
