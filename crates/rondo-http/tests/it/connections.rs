use crate::support::{Timers, ask, drive, model, openai, run};
use bytes::Bytes;
use futures_util::StreamExt;
use rondo_http::{Endpoint, HttpModel, ModelCard, Proxies, Secret, Transport};
use rondo_testkit::{Framing, ReplyScript, Response, Script, Server, Step, openai as wire};
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
