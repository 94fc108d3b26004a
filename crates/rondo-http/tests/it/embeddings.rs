use crate::support::{gemini, model, openai};
use rondo_core::ports::{Embedder as _, EmbeddingUse};
use rondo_http::HttpEmbedder;
use rondo_testkit::{Response, Server, openai as wire};
use rondo_types::ErrorClass;
use serde_json::json;

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|it| (*it).to_owned()).collect()
}

#[tokio::test]
async fn openai_compatible_servers_are_asked_once_for_all_texts() {
    let body = json!({"object": "list", "data": [
        {"object": "embedding", "index": 0, "embedding": [1.0, 0.0]},
        {"object": "embedding", "index": 1, "embedding": [0.5, -0.5]},
    ]});
    let server = Server::start(Response::json(200, &body)).await;
    let embedder = HttpEmbedder::new(model(&openai(&server)));
    let vectors = embedder
        .embed(&texts(&["one", "two"]), EmbeddingUse::Stored)
        .await;
    assert_eq!(vectors, Ok(vec![vec![1.0, 0.0], vec![0.5, -0.5]]));
    let sent = server.request(0).await;
    assert_eq!(
        (sent.method.as_str(), sent.path.as_str()),
        ("POST", "/v1/embeddings")
    );
    let expected = json!({"model": "m", "input": ["one", "two"], "encoding_format": "float"});
    assert_eq!(sent.json(), expected);
}

#[tokio::test]
async fn gemini_is_asked_in_a_batch_or_for_the_query() {
    let server = Server::start([
        Response::json(
            200,
            &json!({"embeddings": [{"values": [1]}, {"values": [2]}]}),
        ),
        Response::json(200, &json!({"embedding": {"values": [3]}})),
    ])
    .await;
    let embedder = HttpEmbedder::new(model(&gemini(&server)));
    let stored = embedder
        .embed(&texts(&["one", "two"]), EmbeddingUse::Stored)
        .await;
    assert_eq!(stored, Ok(vec![vec![1.0], vec![2.0]]));
    let query = embedder
        .embed(&texts(&["which"]), EmbeddingUse::Query)
        .await;
    assert_eq!(query, Ok(vec![vec![3.0]]));
    let sent = server.requests();
    let name = embedder.name();
    let name = name.split_once('/').unwrap().1;
    let paths: Vec<_> = sent.iter().map(|it| it.path.clone()).collect();
    let path = |method: &str| format!("/v1beta/models/{name}:{method}");
    assert_eq!(paths, [path("batchEmbedContents"), path("embedContent")]);
    let one = |text: &str, task: &str| {
        json!({
            "model": format!("models/{name}"),
            "content": {"parts": [{"text": text}]},
            "taskType": task,
        })
    };
    let stored = "RETRIEVAL_DOCUMENT";
    assert_eq!(
        sent[0].json(),
        json!({"requests": [one("one", stored), one("two", stored)]})
    );
    assert_eq!(sent[1].json(), one("which", "RETRIEVAL_QUERY"));
}

#[tokio::test]
async fn a_refusal_and_a_page_that_is_no_list_are_errors() {
    let server = Server::start([
        wire::error(401, "invalid_api_key", "wrong key"),
        Response::html(200, "<html></html>"),
        Response::json(200, &json!({"data": [{"embedding": [1]}]})),
    ])
    .await;
    let embedder = HttpEmbedder::new(model(&openai(&server)));
    for class in [ErrorClass::Auth, ErrorClass::Protocol, ErrorClass::Protocol] {
        let error = embedder
            .embed(&texts(&["one", "two"]), EmbeddingUse::Stored)
            .await;
        assert_eq!(error.unwrap_err().class, class);
    }
    let none = embedder.embed(&[], EmbeddingUse::Stored).await;
    assert_eq!(none, Ok(Vec::new()));
    assert_eq!(server.requests().len(), 3, "no texts need no request");
}
