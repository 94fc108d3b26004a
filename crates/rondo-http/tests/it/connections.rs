use crate::support::{Timers, ask, drive, drive_after, model, openai, run};
use bytes::Bytes;
use futures_util::StreamExt;
use rondo_http::{Endpoint, HttpModel, ModelCard, Proxies, Secret, Transport};
use rondo_testkit::{Framing, ReplyScript, Response, Script, Server, Step, openai as wire};
use rondo_types::{ErrorClass, ModelEvent};
use std::time::Duration;

fn hello() -> Response {
    wire::streamed(&ReplyScript::text(["hello"]))
}

#[tokio::test]
async fn one_connection_serves_all_steps() {
    let server = Server::start(Script::repeat(hello())).await;
    let model = model(&openai(&server));
    for _ in 0..4 {
        let outcome = drive(ask(&model), Timers::default()).await;
        assert_eq!(outcome.end, Ok(()));
    }
    assert_eq!((server.connections(), server.requests().len()), (1, 4));
}

#[tokio::test]
async fn models_of_one_transport_share_connections() {
    let server = Server::start(Script::repeat(hello())).await;
    let endpoint = openai(&server);
    let transport = Transport::new(endpoint.network.clone()).unwrap();
    for name in ["a", "b"] {
        let model =
            HttpModel::with_transport(transport.clone(), &endpoint, ModelCard::new(name)).unwrap();
        drive(ask(&model), Timers::default()).await.end.unwrap();
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_connection_that_the_server_closed_is_replaced() {
    let server = Server::start(Script::repeat(hello().framing(Framing::UntilClose))).await;
    let model = model(&openai(&server));
    for _ in 0..2 {
        drive(ask(&model), Timers::default()).await.end.unwrap();
    }
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn dropping_the_stream_closes_the_request() {
    let first = wire::frames(&ReplyScript::text(["a"])).remove(0);
    let response = Response::sse([
        first,
        Bytes::from_static(
            b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n",
        ),
    ])
    .step(Step::Stall);
    let server = Server::start(response).await;
    let mut stream = ask(&model(&openai(&server)));
    stream.next().await.unwrap().unwrap();
    drop(stream);
    server.disconnected(0).await;
}

#[tokio::test]
async fn a_body_left_open_after_the_protocols_end_does_not_hold_the_reply() {
    let server = Server::start(hello().step(Step::Stall)).await;
    let timers = Timers {
        idle: Duration::from_secs(60),
        ..Timers::default()
    };
    let outcome = drive(ask(&model(&openai(&server))), timers).await;
    assert_eq!((outcome.text().as_str(), outcome.end), ("hello", Ok(())));
    server.disconnected(0).await;
}

#[tokio::test]
async fn a_redirect_is_named_but_not_followed() {
    let other = Server::start(hello()).await;
    let target = other.url("/v1/chat/completions?key=sk-123456789");
    let redirect = Response::text(307, "").header("location", &target);
    let server = Server::start(redirect).await;
    let outcome = run(&server).await;
    let error = outcome.error();
    assert_eq!((error.status, error.retryable), (Some(307), false));
    assert!(error.message.contains(&other.url("")), "{error}");
    assert!(!error.message.contains("sk-123456789"), "{error}");
    assert_eq!(other.connections(), 0);
}

#[tokio::test]
async fn an_http_proxy_is_used_unless_the_host_is_excepted() {
    let proxy = Server::start(Script::repeat(hello())).await;
    let mut endpoint = Endpoint::new("p", "openai-chat", "http://model.test/v1");
    endpoint.network.proxies = Proxies {
        http: Some(Secret::new(proxy.url(""))),
        ..Proxies::default()
    };
    drive(ask(&model(&endpoint)), Timers::default())
        .await
        .end
        .unwrap();
    let sent = proxy.request(0).await;
    assert_eq!(sent.path, "http://model.test/v1/chat/completions");

    let direct = Server::start(hello()).await;
    endpoint.base_url = direct.url("/v1");
    endpoint.network.proxies.except = Some("127.0.0.1".to_owned());
    drive(ask(&model(&endpoint)), Timers::default())
        .await
        .end
        .unwrap();
    assert_eq!((direct.connections(), proxy.connections()), (1, 1));
}

fn frames(payloads: &[&str]) -> Vec<Bytes> {
    let frame = |payload: &&str| Bytes::from(format!("data: {payload}\n\n"));
    payloads.iter().map(frame).collect()
}

/// Whole replies that say `hello`, without what their protocol ends with.
fn endless() -> [(&'static str, Vec<Bytes>); 5] {
    let chat = [
        r#"{"choices":[{"index":0,"delta":{"content":"hello"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#,
    ];
    let gemini = [
        r#"{"candidates":[{"content":{"parts":[{"text":"hello"}]}}]}"#,
        r#"{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":1}}"#,
    ];
    let anthropic = [
        r#"{"type":"message_start","message":{"id":"m","content":[]}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":3,"output_tokens":1}}"#,
    ];
    [
        ("openai-chat", frames(&chat)),
        ("react", frames(&chat)),
        ("gemini", frames(&gemini)),
        ("anthropic", frames(&anthropic)),
        (
            "openai-responses",
            frames(&[
                r#"{"type":"response.output_text.delta","output_index":0,"delta":"hello"}"#,
                r#"{"type":"response.completed","response":{"status":"completed"}}"#,
            ]),
        ),
    ]
}

/// Reads until `last` came, then lets time jump to whatever timer is next.
async fn run_until(
    server: &Server,
    dialect: &str,
    last: impl Fn(&ModelEvent) -> bool,
) -> crate::support::Run {
    let endpoint = Endpoint::new("p", dialect, server.url(""));
    let mut stream = ask(&model(&endpoint));
    let mut seen = Vec::new();
    while !seen.last().is_some_and(&last) {
        seen.push(stream.next().await.unwrap().unwrap());
    }
    tokio::time::pause();
    let outcome = drive_after(seen, stream, Timers::default()).await;
    tokio::time::resume();
    outcome
}

#[tokio::test]
async fn a_whole_reply_counts_although_its_body_never_ends() {
    let ping = Step::Forever {
        bytes: Bytes::from_static(b": ping\n\n"),
        every: Duration::from_millis(300),
    };
    for (dialect, frames) in endless() {
        for behind in [Step::Stall, ping.clone(), Step::Close] {
            let server = Server::start(Response::sse(frames.clone()).step(behind)).await;
            let finished = |event: &ModelEvent| matches!(event, ModelEvent::Finished { .. });
            let outcome = run_until(&server, dialect, finished).await;
            assert_eq!(
                (outcome.text().as_str(), outcome.end),
                ("hello", Ok(())),
                "{dialect}"
            );
        }
    }
}

#[tokio::test]
async fn a_reply_without_its_reason_does_not_count_however_long_its_body_stays_open() {
    for (dialect, frames) in endless() {
        let reason = frames.iter().position(|frame| {
            let frame = String::from_utf8_lossy(frame);
            ["finish_reason", "finishReason", "stop_reason", "completed"]
                .iter()
                .any(|it| frame.contains(it))
        });
        let frames = frames[..reason.unwrap()].to_vec();
        let server = Server::start(Response::sse(frames).step(Step::Stall)).await;
        let text = |event: &ModelEvent| matches!(event, ModelEvent::TextDelta { .. });
        let outcome = run_until(&server, dialect, text).await;
        assert_eq!(outcome.error().class, ErrorClass::IdleTimeout, "{dialect}");
    }
}
