//! Accepted and refused requests of programs.

use crate::support::{now, running, signer};
use rondo_hub::channel::InboundBody;
use rondo_hub::inbox::{InboxError, InboxResult};
use rondo_webhook::Signed;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const BODY: &[u8] = br#"{"text": "the build is red", "topic": "main"}"#;

#[tokio::test]
async fn a_signed_message_is_taken_once_however_often_it_is_sent() {
    let running = running().await;
    let signed = signer().sign("msg_1", now(), BODY);
    let (status, said) = running.post("/hooks/ci", &signed, BODY).await;
    assert!(status == 200 && said.contains("accepted"), "{said}");
    let again = signer().sign("msg_1", now() + 5, BODY);
    let (status, said) = running.post("/hooks/ci", &again, BODY).await;
    assert!(status == 200 && said.contains("known"), "{said}");
    let events = running.hub.events.lock().unwrap().clone();
    assert_eq!(events.len(), 1);
    assert_eq!(
        (
            events[0].chat.chat_id.as_str(),
            events[0].chat.topic.as_deref()
        ),
        ("ci", Some("main"))
    );
    assert_eq!(
        (events[0].sender.id.as_str(), events[0].event_id.as_str()),
        ("ci", "ci/msg_1")
    );
    let InboundBody::Message { text, .. } = &events[0].body else {
        panic!("{events:?}");
    };
    assert_eq!(text, "the build is red");
    running.stopped().await;
}

#[tokio::test]
async fn what_is_not_signed_now_by_the_endpoint_changes_nothing() {
    let running = running().await;
    let good = signer().sign("msg_1", now(), BODY);
    let late = signer().sign("msg_1", now() - 400, BODY);
    let unsigned = Signed {
        signature: String::new(),
        ..good.clone()
    };
    let empty = Signed {
        signature: "v1,".to_owned(),
        ..good.clone()
    };
    for (signed, body) in [
        (&late, BODY),
        (&unsigned, BODY),
        (&empty, BODY),
        (&good, b"{}".as_slice()),
    ] {
        let (status, said) = running.post("/hooks/ci", signed, body).await;
        assert_eq!(status, 401, "{said}");
    }
    let (status, _) = running.post("/hooks/ci", &Signed::default(), BODY).await;
    assert_eq!(status, 401);
    for path in [
        "/hooks/other",
        "/hooks/",
        "/",
        "/hooks/ci/",
        "/hooks/../hooks/ci",
    ] {
        assert_eq!(running.post(path, &good, BODY).await.0, 404, "{path}");
    }
    let (status, _) = running
        .raw(b"GET /hooks/ci HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n")
        .await;
    assert_eq!(status, 405);
    assert_eq!(running.raw(b"\x16\x03\x01 nonsense\r\n\r\n").await.0, 400);
    assert_eq!(running.hub.events.lock().unwrap().len(), 0);
    running.stopped().await;
}

#[tokio::test]
async fn a_body_that_is_too_long_is_not_read_to_its_end() {
    let running = running().await;
    let head =
        "POST /hooks/ci HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: 300000\r\n\r\n";
    let request = [head.as_bytes(), &vec![b'x'; 300_000]].concat();
    assert_eq!(running.raw(&request).await.0, 413);
    running.stopped().await;
}

#[tokio::test]
async fn the_answer_says_what_became_of_a_message() {
    let running = running().await;
    let later = || InboxError::Later {
        reason: "disk full: /secret/path".to_owned(),
    };
    for (number, (outcome, status)) in [
        (Ok(InboxResult::Dropped), 403),
        (Err(InboxError::Full), 429),
        (Err(later()), 503),
        (
            Err(InboxError::Malformed {
                reason: "x".to_owned(),
            }),
            400,
        ),
    ]
    .into_iter()
    .enumerate()
    {
        running.hub.refusals.lock().unwrap().push(outcome);
        let signed = signer().sign(&format!("msg_{number}"), now(), BODY);
        let (was, said) = running.post("/hooks/ci", &signed, BODY).await;
        assert_eq!(was, status, "{said}");
        assert!(!said.contains("/secret"), "{said}");
        let waits = matches!(status, 429 | 503);
        assert_eq!(said.contains("retry-after"), waits, "{said}");
    }
    running.stopped().await;
}

#[tokio::test]
async fn a_flood_is_refused_before_it_is_looked_at() {
    let running = running().await;
    let mut refused = 0;
    for _ in 0..200 {
        let (status, _) = running.post("/hooks/ci", &Signed::default(), BODY).await;
        refused += u32::from(status == 429);
    }
    assert!(
        refused > 0,
        "none of 200 requests was refused for their number"
    );
    running.stopped().await;
}

#[tokio::test]
async fn connections_of_one_address_keep_nobody_out() {
    let running = running().await;
    let mut idle = Vec::new();
    for _ in 0..200 {
        let mut stream = TcpStream::connect(running.address).await.unwrap();
        stream
            .write_all(b"POST /hooks/ci HTTP/1.1\r\n")
            .await
            .unwrap();
        idle.push(stream);
    }
    let signed = signer().sign("msg_1", now(), BODY);
    let (status, said) = running.post("/hooks/ci", &signed, BODY).await;
    assert_eq!(status, 200, "{said}");
    let signed = signer().sign("msg_2", now(), BODY);
    let (status, said) = running.post_from(2, "/hooks/ci", &signed, BODY).await;
    assert_eq!(status, 200, "{said}");
    drop(idle);
    running.stopped().await;
}

#[tokio::test]
async fn a_request_that_loses_its_place_is_told_when_to_come_again() {
    let running = running().await;
    let head = "POST /hooks/ci HTTP/1.1\r\nhost: h\r\ncontent-length: 100\r\n\r\nx";
    let mut first = TcpStream::connect(running.address).await.unwrap();
    first.write_all(head.as_bytes()).await.unwrap();
    let mut idle = Vec::new();
    for _ in 0..64 {
        idle.push(TcpStream::connect(running.address).await.unwrap());
    }
    let mut answer = String::new();
    first.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("retry-after: 5"), "{answer}");
    drop(idle);
    running.stopped().await;
}

#[tokio::test]
async fn bodies_of_one_address_are_held_up_to_a_bound() {
    let running = running().await;
    let head =
        "POST /hooks/ci HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: 250001\r\n\r\n";
    let unfinished = [head.as_bytes(), &vec![b'x'; 250_000]].concat();
    let mut streams = Vec::new();
    for _ in 0..30 {
        let mut stream = TcpStream::connect(running.address).await.unwrap();
        // It may be refused before all of it is read.
        let _ = stream.write_all(&unfinished).await;
        streams.push(stream);
    }
    // 6 MiB hold 25 of them; the others are refused while they are being sent.
    let mut refused = streams.pop().unwrap();
    let mut answer = String::new();
    refused.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("retry-after: 5"), "{answer}");
    let signed = signer().sign("msg_1", now(), BODY);
    let (status, said) = running.post_from(2, "/hooks/ci", &signed, BODY).await;
    assert_eq!(status, 200, "{said}");
    drop(streams);
    running.stopped().await;
}

#[tokio::test]
async fn a_flood_of_one_address_leaves_room_for_others() {
    let running = running().await;
    for number in 0..10 {
        for _ in 0..60 {
            running.post("/hooks/ci", &Signed::default(), BODY).await;
        }
        let signed = signer().sign(&format!("msg_{number}"), now(), BODY);
        let (status, said) = running.post_from(2, "/hooks/ci", &signed, BODY).await;
        assert_eq!(status, 200, "{said}");
    }
    running.stopped().await;
}
