//! The tool `web_search`, against servers that speak as the engines' documentation says.

use crate::fetch::invocation;
use crate::names::transport;
use rondo_core::ports::Tool as _;
use rondo_http::{Network, Secret};
use rondo_testkit::{Response, Server};
use rondo_types::{ToolErrorCode, ToolOutcome};
use rondo_web::search::{SearchEngine, WebSearch};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

async fn search(engine: SearchEngine, arguments: Value) -> ToolOutcome {
    let tool = WebSearch::new(transport(Network::default()), engine).unwrap();
    tool.call(invocation(arguments, CancellationToken::new()))
        .await
}

fn text(outcome: &ToolOutcome) -> &str {
    match outcome {
        ToolOutcome::Ok(output) => {
            assert!(output.from_outside);
            output.value.as_str().unwrap()
        }
        ToolOutcome::Error(error) => panic!("{error:?}"),
    }
}

#[tokio::test]
async fn brave_is_asked_with_its_key() {
    let answer = json!({"type": "search", "web": {"results": [
        {"title": "Serde", "url": "https://serde.rs/", "description": "A <strong>framework</strong>"}
    ]}});
    let server = Server::start([Response::json(200, &answer)]).await;
    let engine = SearchEngine::Brave {
        url: server.url("/res/v1/web/search"),
        key: Secret::new("k-1"),
    };
    let outcome = search(engine, json!({"query": "serde & more", "count": 3})).await;
    assert_eq!(
        text(&outcome),
        "1. Serde\n   https://serde.rs/\n   A framework"
    );
    let request = &server.requests()[0];
    assert_eq!(request.path, "/res/v1/web/search?q=serde+%26+more&count=3");
    assert_eq!(request.header("x-subscription-token"), Some("k-1"));
}

#[tokio::test]
async fn searxng_is_asked_for_json() {
    let answer = json!({"query": "serde", "results": [
        {"title": "Serde", "url": "https://serde.rs/", "content": "A framework", "engine": "x"}
    ]});
    for path in ["", "/", "/search", "/search/"] {
        let server = Server::start([Response::json(200, &answer)]).await;
        let engine = SearchEngine::SearXng {
            url: server.url(path),
        };
        let outcome = search(engine, json!({"query": "serde"})).await;
        assert_eq!(
            text(&outcome),
            "1. Serde\n   https://serde.rs/\n   A framework"
        );
        assert_eq!(server.requests()[0].path, "/search?q=serde&format=json");
    }
}

#[tokio::test]
async fn what_goes_wrong_is_said_without_the_key() {
    for (response, expected) in [
        (Response::html(200, "<p>no JSON"), "must list `json`"),
        (Response::text(422, "k-1 is no key"), "answered 422"),
        (
            Response::new(302).header("location", "http://127.0.0.1:1/"),
            "is not reached",
        ),
    ] {
        let server = Server::start([response]).await;
        let engine = SearchEngine::Brave {
            url: server.url("/"),
            key: Secret::new("k-1"),
        };
        let ToolOutcome::Error(error) = search(engine, json!({"query": "x"})).await else {
            panic!("{expected}")
        };
        assert_eq!(error.code, ToolErrorCode::Failed);
        assert!(error.message.contains(expected), "{}", error.message);
        assert!(!error.message.contains("k-1"), "{}", error.message);
    }
}

#[tokio::test]
async fn a_query_has_a_bound() {
    for (bytes, is_asked) in [(0, false), (399, true), (400, true), (401, false)] {
        let server = Server::start([Response::json(200, &json!({}))]).await;
        let engine = SearchEngine::SearXng {
            url: server.url("/"),
        };
        let outcome = search(engine, json!({"query": "x".repeat(bytes)})).await;
        assert_eq!(outcome.is_ok(), is_asked, "{bytes}");
        assert_eq!(server.requests().len(), usize::from(is_asked));
    }
}
