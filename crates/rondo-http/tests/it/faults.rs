use crate::support::{Run, Timers, ask, drive, drive_after, model, openai};
use bytes::Bytes;
use futures_util::StreamExt;
use rondo_http::Endpoint;
use rondo_testkit::{
    Gate, ReplyScript, Response, Script, Server, Step, faults, openai as wire, refused_url,
};
use rondo_types::ErrorClass;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// The beginning of an answer: the role and one piece of text.
fn opening() -> Vec<Bytes> {
    let mut frames = wire::frames(&ReplyScript::text(["par", "tial"]));
    frames.truncate(2);
    frames
}

fn text_event() -> Bytes {
    opening().remove(1)
}

/// Runs a request whose end only a timer brings: once the request has arrived, time jumps.
async fn run_until_late(server: &Server, endpoint: &Endpoint) -> Run {
    let stream = ask(&model(endpoint));
    let run = tokio::spawn(drive(stream, Timers::default()));
    server.request(0).await;
    tokio::time::pause();
    let outcome = run.await.unwrap();
    tokio::time::resume();
    outcome
}

async fn run_fault(response: Response) -> (Server, Run) {
    let server = Server::start(response).await;
    let outcome = drive(ask(&model(&openai(&server))), Timers::default()).await;
    (server, outcome)
}

fn assert_broken(outcome: &Run, class: ErrorClass, retryable: bool, text: &str) {
    let error = outcome.error();
    assert_eq!(
        (error.class, error.retryable),
        (class, retryable),
        "{error}"
    );
    assert_eq!(outcome.text(), text);
    assert_eq!(outcome.finished_calls(), 0);
}

#[tokio::test]
async fn a_request_that_is_never_answered_is_ended_by_the_first_byte_timer() {
    let server = Server::start(faults::zero_byte_stall()).await;
    let outcome = run_until_late(&server, &openai(&server)).await;
    assert_broken(&outcome, ErrorClass::FirstByteTimeout, true, "");
    server.disconnected(0).await;
}

#[tokio::test]
async fn headers_alone_do_not_hold_off_the_first_byte_timer() {
    let server = Server::start(faults::stall_after_headers()).await;
    let outcome = run_until_late(&server, &openai(&server)).await;
    assert_broken(&outcome, ErrorClass::FirstByteTimeout, true, "");
    server.disconnected(0).await;
}

#[tokio::test]
async fn pings_are_no_events() {
    let server = Server::start(faults::pings_only(Duration::from_secs(15))).await;
    let outcome = run_until_late(&server, &openai(&server)).await;
    assert_broken(&outcome, ErrorClass::FirstByteTimeout, true, "");
    assert_eq!(outcome.events, []);
    server.disconnected(0).await;
}

#[tokio::test]
async fn a_peer_that_vanishes_is_noticed_by_the_idle_timer() {
    let server = Server::start(faults::half_open_after(opening())).await;
    let mut stream = ask(&model(&openai(&server)));
    let seen = vec![stream.next().await.unwrap().unwrap()];
    tokio::time::pause();
    let outcome = drive_after(seen, stream, Timers::default()).await;
    assert_broken(&outcome, ErrorClass::IdleTimeout, true, "par");
}

#[tokio::test]
async fn a_slow_drip_is_ended_by_the_step_timer() {
    let drip = faults::slow_drip(text_event(), Duration::from_secs(1));
    let server = Server::start(drip).await;
    let outcome = run_until_late(&server, &openai(&server)).await;
    assert_eq!(outcome.error().class, ErrorClass::StepTimeout);
    assert!(outcome.text().starts_with("parpar"));
    server.disconnected(0).await;
}

#[tokio::test]
async fn a_reset_in_the_middle_of_an_event_is_a_network_error() {
    let gate = Gate::new();
    let server = Server::start(faults::reset_mid_event(opening(), &gate)).await;
    let mut stream = ask(&model(&openai(&server)));
    let seen = vec![stream.next().await.unwrap().unwrap()];
    gate.open();
    let outcome = drive_after(seen, stream, Timers::default()).await;
    assert_broken(&outcome, ErrorClass::Network, true, "par");
    let message = &outcome.error().message;
    assert!(message.contains("reset the connection"), "{message}");
}

#[tokio::test]
async fn a_body_cut_without_its_end_is_a_network_error() {
    let (_server, outcome) = run_fault(faults::cut_after(opening())).await;
    assert_broken(&outcome, ErrorClass::Network, true, "par");
}

#[tokio::test]
async fn a_stream_that_ends_before_its_protocol_does_is_a_network_error() {
    let (_server, outcome) = run_fault(faults::truncated(opening())).await;
    assert_broken(&outcome, ErrorClass::Network, true, "par");
}

#[tokio::test]
async fn an_endless_line_ends_at_its_bound() {
    let server = Server::start(faults::endless_line()).await;
    let mut endpoint = openai(&server);
    endpoint.bounds.line_bytes_max = 256 * 1024;
    let outcome = drive(ask(&model(&endpoint)), Timers::default()).await;
    assert_broken(&outcome, ErrorClass::TooLarge, false, "");
    server.disconnected(0).await;
}

#[tokio::test]
async fn an_endless_reply_ends_at_its_bound() {
    let server = Server::start(faults::slow_drip(text_event(), Duration::ZERO)).await;
    let mut endpoint = openai(&server);
    endpoint.bounds.response_bytes_max = 16 * 1024;
    let outcome = drive(ask(&model(&endpoint)), Timers::default()).await;
    assert_eq!(outcome.error().class, ErrorClass::TooLarge);
    assert!(outcome.text().len() < 16 * 1024);
    server.disconnected(0).await;
}

#[tokio::test]
async fn a_refused_connection_to_this_machine_says_so_and_is_not_tried_again() {
    let url = refused_url().await;
    let endpoint = Endpoint::new("local", "openai-chat", format!("{url}/v1?key=abc"));
    let outcome = drive(ask(&model(&endpoint)), Timers::default()).await;
    assert_broken(&outcome, ErrorClass::Network, false, "");
    let place = url.strip_prefix("http://").unwrap();
    let expected = format!("connection to `{place}` refused: nothing listens there");
    assert_eq!(outcome.error().message, expected);
}

#[tokio::test]
async fn a_connection_closed_before_the_answer_is_a_network_error() {
    let response = Response::new(200).before(Step::Close);
    let (server, outcome) = run_fault(response).await;
    assert_broken(&outcome, ErrorClass::Network, true, "");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_peer_that_does_not_speak_http_is_a_protocol_error() {
    let banner = Step::Send(Bytes::from_static(b"SSH-2.0-OpenSSH_9.9\r\n\r\n"));
    let response = Response::new(200).before(banner).before(Step::Close);
    let (_server, outcome) = run_fault(response).await;
    assert_broken(&outcome, ErrorClass::Protocol, false, "");
}

#[tokio::test]
async fn a_server_that_speaks_before_it_is_asked_is_a_protocol_error() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"SSH-2.0-OpenSSH_9.9\r\n").await.unwrap();
        stream
    };
    let stream = ask(&model(&Endpoint::new("local", "openai-chat", url)));
    let (_stream, outcome) = tokio::join!(server, drive(stream, Timers::default()));
    assert_broken(&outcome, ErrorClass::Protocol, false, "");
}

#[tokio::test]
async fn a_server_that_switches_to_another_protocol_is_a_protocol_error() {
    let (_server, outcome) = run_fault(Response::new(101)).await;
    assert_broken(&outcome, ErrorClass::Protocol, false, "");
}

#[tokio::test]
async fn a_name_that_cannot_be_resolved_says_so() {
    // A label of 64 bytes is refused by the resolver itself, so no packet leaves the machine.
    let host = "a".repeat(64);
    let endpoint = Endpoint::new("local", "openai-chat", format!("http://{host}.test/v1"));
    let outcome = drive(ask(&model(&endpoint)), Timers::default()).await;
    assert_broken(&outcome, ErrorClass::Network, true, "");
    let expected = format!("failed to resolve `{host}.test`");
    assert!(
        outcome.error().message.starts_with(&expected),
        "{:?}",
        outcome.end
    );
}

#[tokio::test]
async fn a_request_is_never_sent_twice_for_a_kept_connection_that_ended() {
    let answer = wire::streamed(&ReplyScript::text(["fine"]));
    let given_up = Response::new(200).before(Step::Close);
    let script = Script::from([answer.clone(), given_up.clone(), answer]).then_repeat(given_up);
    let server = Server::start(script).await;
    let model = model(&openai(&server));
    for (sent, text) in [(1, "fine"), (2, ""), (3, "fine"), (4, ""), (5, "")] {
        let outcome = drive(ask(&model), Timers::default()).await;
        assert_eq!(
            (server.requests().len(), outcome.text().as_str()),
            (sent, text)
        );
        if text.is_empty() {
            // The turn decides on the repetition, and records it.
            assert_broken(&outcome, ErrorClass::Network, true, "");
        }
    }
}

/// Runs a request that is answered with these frames in chunks, all at once with what is not a chunk.
async fn run_garbled(frames: Vec<Bytes>) -> Run {
    let mut reply = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for frame in frames {
        reply.extend_from_slice(format!("{:x}\r\n", frame.len()).as_bytes());
        reply.extend_from_slice(&frame);
        reply.extend_from_slice(b"\r\n");
    }
    reply.extend_from_slice(b"HTTP/1.1 502 Bad Gateway\r\n\r\n");
    run_raw(reply).await
}

#[tokio::test]
async fn a_body_that_goes_on_with_something_else_is_tried_again_and_what_came_is_told() {
    let outcome = run_garbled(opening()).await;
    assert_broken(&outcome, ErrorClass::Network, true, "par");
    let whole = wire::frames(&ReplyScript::text(["par", "tial"]));
    let outcome = run_garbled(whole).await;
    assert_eq!(
        (outcome.end.clone(), outcome.text()),
        (Ok(()), "partial".to_owned())
    );
}

/// Runs a request that is answered with these bytes, behind which the connection is closed.
async fn run_raw(reply: Vec<u8>) -> Run {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        while stream.read_u8().await.unwrap() != b'\n' {}
        stream.write_all(&reply).await.unwrap();
        stream
    };
    let stream = ask(&model(&Endpoint::new("local", "openai-chat", url)));
    tokio::join!(drive(stream, Timers::default()), server).0
}

fn chunked(frames: Vec<Bytes>, trailers: &str) -> Vec<u8> {
    let mut reply = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for frame in frames {
        reply.extend_from_slice(format!("{:x}\r\n", frame.len()).as_bytes());
        reply.extend_from_slice(&frame);
        reply.extend_from_slice(b"\r\n");
    }
    reply.extend_from_slice(trailers.as_bytes());
    reply
}

#[tokio::test]
async fn trailers_that_are_none_end_no_reply_that_is_not_whole() {
    for trailers in [
        "0\r\nno trailer\r\n\r\n",
        "0\r\n: x\r\n\r\n",
        "0\r\na b: c\r\n\r\n",
    ] {
        let outcome = run_raw(chunked(opening(), trailers)).await;
        assert_broken(&outcome, ErrorClass::Network, true, "par");
        let whole = wire::frames(&ReplyScript::text(["par", "tial"]));
        let outcome = run_raw(chunked(whole, trailers)).await;
        assert_eq!((outcome.text(), &outcome.end), ("partial".into(), &Ok(())));
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn a_reply_that_is_compressed_unasked_is_read_all_the_same() {
    let whole = wire::streamed(&ReplyScript::text(["par", "tial"])).body_bytes();
    let response = Response::new(200)
        .header("content-encoding", "gzip")
        .send(gzip(&whole))
        .byte_by_byte();
    let (_server, outcome) = run_fault(response).await;
    assert_eq!((outcome.text(), &outcome.end), ("partial".into(), &Ok(())));

    let refusal = br#"{"error":{"message":"no such model","code":"model_not_found"}}"#;
    let response = Response::new(404)
        .header("content-encoding", "gzip")
        .send(gzip(refusal));
    let (_server, outcome) = run_fault(response).await;
    assert!(
        outcome.error().message.contains("no such model"),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_compression_that_cannot_be_read_is_named() {
    let response = Response::new(200)
        .header("content-encoding", "br")
        .send("anything");
    let (_server, outcome) = run_fault(response).await;
    assert_broken(&outcome, ErrorClass::Protocol, false, "");
    assert!(
        outcome
            .error()
            .message
            .contains("compressed its reply as `br`"),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_reply_that_grows_without_end_when_decompressed_ends_at_its_bound() {
    let response = Response::new(200)
        .header("content-encoding", "gzip")
        .send(gzip(&vec![b' '; 80 << 20]));
    let (_server, outcome) = run_fault(response).await;
    assert_broken(&outcome, ErrorClass::TooLarge, false, "");
}
