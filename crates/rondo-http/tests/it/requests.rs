use crate::support::{Timers, ask, drive, gemini, model, openai, request, run, tool};
use rondo_core::Model;
use rondo_http::{Auth, Secret};
use rondo_testkit::{CallScript, ReplyScript, Response, Server};
use rondo_types::{ModelEvent, ModelRequest, Usage};
use serde_json::{Value, json};
use std::sync::Arc;

#[tokio::test]
async fn an_openai_request_goes_out_whole() {
    let reply = ReplyScript::text(["hel", "lo"]).usage(5, 2);
    let server = Server::start(rondo_testkit::openai::streamed(&reply)).await;
    let mut endpoint = openai(&server);
    endpoint.auth = Auth::Bearer(Secret::new("sk-secret-key"));
    endpoint.headers = vec![("x-title".to_owned(), Secret::new("rondo"))];
    endpoint.extra_body.insert("top_k".to_owned(), json!(3));
    let outcome = drive(ask(&model(&endpoint)), Timers::default()).await;
    assert_eq!((outcome.text().as_str(), outcome.end), ("hello", Ok(())));

    let sent = server.request(0).await;
    assert_eq!(sent.method, "POST");
    assert_eq!(sent.path, "/v1/chat/completions");
    assert_eq!(sent.header("authorization"), Some("Bearer sk-secret-key"));
    assert_eq!(sent.header("content-type"), Some("application/json"));
    assert_eq!(sent.header("x-title"), Some("rondo"));
    assert_eq!(sent.header("accept-encoding"), None);
    assert!(sent.header("user-agent").unwrap().starts_with("rondo/"));
    assert_eq!(
        sent.json(),
        json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "hi"},
            ],
            "stream": true,
            "stream_options": {"include_usage": true},
            "top_k": 3,
        })
    );
}

#[tokio::test]
async fn a_gemini_request_goes_out_whole() {
    let reply = ReplyScript::text(["hello"]).usage(5, 2);
    let server = Server::start(rondo_testkit::gemini::streamed(&reply)).await;
    let mut endpoint = gemini(&server);
    endpoint.auth = Auth::Header {
        name: "x-goog-api-key".to_owned(),
        secret: Secret::new("gemini-secret"),
    };
    let outcome = drive(ask(&model(&endpoint)), Timers::default()).await;
    assert_eq!((outcome.text().as_str(), outcome.end), ("hello", Ok(())));

    let sent = server.request(0).await;
    assert_eq!(sent.path, "/v1beta/models/m:streamGenerateContent?alt=sse");
    assert_eq!(sent.header("x-goog-api-key"), Some("gemini-secret"));
    assert_eq!(sent.header("authorization"), None);
    let body = sent.json();
    assert_eq!(
        body["contents"],
        json!([{"role": "user", "parts": [{"text": "hi"}]}])
    );
    assert_eq!(
        body["systemInstruction"]["parts"],
        json!([{"text": "be brief"}])
    );
}

#[tokio::test]
async fn headers_that_a_dialect_states_go_out_and_a_configured_one_wins() {
    let body = json!({"type": "message", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "hello"}]});
    let answer = || Response::json(200, &body);
    let server = Server::start([answer(), answer()]).await;
    let mut endpoint = gemini(&server);
    endpoint.dialect = "anthropic".to_owned();
    endpoint.auth = Auth::Header {
        name: "x-api-key".to_owned(),
        secret: Secret::new("anthropic-secret"),
    };
    for configured in [None, Some("2099-01-01")] {
        endpoint.headers = configured
            .map(|version| ("anthropic-version".to_owned(), Secret::new(version)))
            .into_iter()
            .collect();
        let outcome = drive(ask(&model(&endpoint)), Timers::default()).await;
        assert_eq!((outcome.text().as_str(), outcome.end), ("hello", Ok(())));
    }
    let sent = server.request(0).await;
    assert_eq!(sent.path, "/v1/messages");
    assert_eq!(sent.header("x-api-key"), Some("anthropic-secret"));
    assert_eq!(sent.header("anthropic-version"), Some("2023-06-01"));
    let sent = server.request(1).await;
    assert_eq!(sent.header("anthropic-version"), Some("2099-01-01"));
}

#[tokio::test]
async fn replies_that_are_not_streamed_are_asked_for_and_read() {
    let reply = ReplyScript::text(["whole"]).usage(5, 2);
    let server = Server::start([
        rondo_testkit::openai::whole(&reply),
        rondo_testkit::gemini::whole(&reply),
    ])
    .await;
    for mut endpoint in [openai(&server), gemini(&server)] {
        endpoint.streaming = false;
        let model = model(&endpoint);
        assert!(!model.info().streaming);
        let outcome = drive(ask(&model), Timers::default()).await;
        assert_eq!((outcome.text().as_str(), outcome.end), ("whole", Ok(())));
    }
    assert_ne!(server.request(0).await.json()["stream"], Value::Bool(true));
    let path = server.request(1).await.path;
    assert_eq!(path, "/v1beta/models/m:generateContent");
}

#[tokio::test]
async fn calls_and_usage_come_through_both_dialects() {
    let calls = [
        CallScript::new("c1", "add", &json!({"a": 1})),
        CallScript::new("c2", "add", &json!({"a": 2})),
    ];
    let reply = ReplyScript::calls(calls).usage(9, 4);
    let server = Server::start([
        rondo_testkit::openai::streamed(&reply),
        rondo_testkit::gemini::streamed(&reply),
    ])
    .await;
    let request = Arc::new(ModelRequest {
        tools: Arc::new(vec![tool()]),
        ..request()
    });
    for endpoint in [openai(&server), gemini(&server)] {
        let stream = model(&endpoint).stream(Arc::clone(&request));
        let outcome = drive(stream, Timers::default()).await;
        assert_eq!((outcome.finished_calls(), &outcome.end), (2, &Ok(())));
        let counts = outcome.events.iter().rev().find_map(|event| match event {
            ModelEvent::Usage(usage) => Some(*usage),
            _ => None,
        });
        let expected = Usage {
            input: 9,
            output: 4,
            ..Usage::default()
        };
        assert_eq!(counts, Some(expected));
    }
    assert_eq!(
        server.request(0).await.json()["tools"][0]["function"]["name"],
        "add"
    );
}

#[tokio::test]
async fn bytes_that_come_one_by_one_make_the_same_reply() {
    let reply = ReplyScript::text(["grüße", " 🌍"]).usage(5, 2);
    let whole = rondo_testkit::openai::streamed(&reply);
    let server = Server::start([whole.clone(), whole.byte_by_byte()]).await;
    let (first, second) = (run(&server).await, run(&server).await);
    assert_eq!(first.text(), "grüße 🌍");
    assert_eq!((first.events, first.end), (second.events, second.end));
}

#[tokio::test]
async fn nothing_is_sent_before_the_stream_is_polled() {
    let server = Server::start(rondo_testkit::openai::streamed(&ReplyScript::text(["a"]))).await;
    let model = model(&openai(&server));
    drop(ask(&model));
    let outcome = drive(ask(&model), Timers::default()).await;
    assert_eq!(outcome.text(), "a");
    assert_eq!((server.connections(), server.requests().len()), (1, 1));
}
