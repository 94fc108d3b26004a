use rondo_testkit::{Framing, Gate, Response, Script, Server, Step, faults, refused_url};
use serde_json::json;
use std::io::ErrorKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const GET: &[u8] = b"GET /x?y=1 HTTP/1.1\r\nHost: h\r\nX-Key: v\r\n\r\n";

async fn connect(server: &Server) -> TcpStream {
    let mut socket = TcpStream::connect(server.address()).await.unwrap();
    socket.write_all(GET).await.unwrap();
    socket
}

/// Reads until `end` is the last that came.
async fn read_until(socket: &mut TcpStream, end: &str) -> String {
    let mut text = String::new();
    let mut byte = [0_u8];
    while !text.ends_with(end) {
        socket.read_exact(&mut byte).await.unwrap();
        text.push(char::from(byte[0]));
    }
    text
}

#[tokio::test]
async fn each_piece_is_a_chunk_and_requests_are_kept_whole() {
    let server = Server::start(Response::sse(["ab", "c"])).await;
    let mut socket = connect(&server).await;
    let reply = read_until(&mut socket, "0\r\n\r\n").await;
    assert_eq!(
        reply,
        "HTTP/1.1 200 Scripted\r\ncontent-type: text/event-stream\r\n\
         transfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
    );
    let request = server.request(0).await;
    assert_eq!(
        (request.method.as_str(), request.path.as_str()),
        ("GET", "/x?y=1")
    );
    assert_eq!(request.header("x-key"), Some("v"));
    assert_eq!(server.requests(), [request]);
}

#[tokio::test]
async fn one_connection_serves_many_requests_with_bodies() {
    let server = Server::start(Script::repeat(Response::json(200, &json!({"ok": true})))).await;
    let mut socket = TcpStream::connect(server.address()).await.unwrap();
    for number in 0..3 {
        let body = json!({"number": number}).to_string();
        let length = body.len();
        let text = format!("POST /p HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{body}");
        socket.write_all(text.as_bytes()).await.unwrap();
        let reply = read_until(&mut socket, r#"{"ok":true}"#).await;
        assert!(reply.contains("content-length: 11"));
        assert_eq!(
            server.request(number).await.json(),
            json!({"number": number})
        );
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn past_its_end_a_script_answers_500() {
    let server = Server::start(Script::default()).await;
    let reply = read_until(&mut connect(&server).await, "left").await;
    assert!(reply.starts_with("HTTP/1.1 500"), "{reply}");
}

#[tokio::test]
async fn a_gate_holds_the_rest_until_opened() {
    let gate = Gate::new();
    let response = Response::sse(["a"])
        .step(Step::Gate(gate.clone()))
        .send("b");
    let server = Server::start(response).await;
    let mut socket = connect(&server).await;
    gate.reached().await;
    read_until(&mut socket, "1\r\na\r\n").await;
    let nothing = socket.try_read(&mut [0; 8]).unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
    gate.open();
    assert_eq!(
        read_until(&mut socket, "0\r\n\r\n").await,
        "1\r\nb\r\n0\r\n\r\n"
    );
}

#[tokio::test]
async fn a_close_delimited_body_ends_with_its_connection() {
    let response = Response::text(200, "abc").framing(Framing::UntilClose);
    let server = Server::start(response).await;
    let mut reply = String::new();
    connect(&server)
        .await
        .read_to_string(&mut reply)
        .await
        .unwrap();
    assert!(reply.ends_with("connection: close\r\n\r\nabc"), "{reply}");
}

#[tokio::test]
async fn a_reset_is_seen_as_a_reset() {
    let gate = Gate::new();
    let server = Server::start(faults::reset_mid_event(Vec::new(), &gate)).await;
    let mut socket = connect(&server).await;
    read_until(&mut socket, "{\"cho\r\n").await;
    gate.open();
    let error = socket.read(&mut [0; 8]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_client_that_leaves_a_stalled_response_is_noticed() {
    let server = Server::start(faults::zero_byte_stall()).await;
    let socket = connect(&server).await;
    server.request(0).await;
    drop(socket);
    server.disconnected(0).await;
}

#[tokio::test]
async fn bytes_can_be_sent_one_by_one() {
    let response = Response::sse(["ab"]).byte_by_byte();
    assert_eq!(response.body_bytes(), b"ab");
    let server = Server::start(response).await;
    let reply = read_until(&mut connect(&server).await, "0\r\n\r\n").await;
    assert!(reply.ends_with("1\r\na\r\n1\r\nb\r\n0\r\n\r\n"), "{reply}");
}

#[tokio::test]
async fn nothing_listens_at_a_refused_url() {
    let url = refused_url().await;
    let address = url.strip_prefix("http://").unwrap();
    let error = TcpStream::connect(address).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}
