//! A dialect is one implementation of a trait and one line that registers it: everything that sends
//! requests, reads replies or describes them asks the dialect.

use crate::bench::{Bench, KEY};
use crate::collector::{Collector, attribute, shut_down};
use bytes::Bytes;
use futures_util::StreamExt as _;
use rondo_core::Model as _;
use rondo_core::ports::{Embedder as _, EmbeddingUse};
use rondo_http::{Auth, Endpoint, HttpEmbedder, HttpModel, ModelCard, Secret, list_models};
use rondo_otel::Exporter;
use rondo_testkit::{Recorded, Response, Server};
use rondo_types::{
    ErrorClass, FinishReason, Message, ModelError, ModelEvent, ModelRequest, Sampling, ToolChoice,
    Usage,
};
use rondo_wire::{
    Bounds, Decoder, Dialect, Encoded, EncodedPrefix, Target, dialect, dialect_names, react_over,
    register,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// The name of the model at its provider.
const MODEL: &str = "m-1";

/// A protocol that no provider speaks: what was said as a list of texts, and the reply as one object.
struct Parrot;

impl Dialect for Parrot {
    fn name(&self) -> &str {
        "parrot"
    }

    fn key_header(&self) -> Option<&'static str> {
        Some("x-parrot-key")
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("x-parrot-version", "3")]
    }

    fn models_path(&self) -> &'static str {
        "/parrots"
    }

    fn operation(&self) -> &'static str {
        "text_completion"
    }

    fn embedding_request(&self, model: &str, texts: &[String], is_query: bool) -> (String, Value) {
        let path = format!("/parrots/{model}/places");
        (path, json!({"texts": texts, "query": is_query}))
    }

    fn encode_onto(
        &self,
        _prefix: &mut EncodedPrefix,
        request: &ModelRequest,
        _target: &Target,
    ) -> Encoded<Vec<Bytes>> {
        let messages = request.messages.iter().map(|message| message.text());
        let said: Vec<String> = request.system.iter().cloned().chain(messages).collect();
        let body = json!({ "said": said }).to_string();
        Encoded {
            path: format!("/parrots/{}/talk", request.model),
            body: vec![body.into()],
            notes: Vec::new(),
        }
    }

    fn decoder(&self, _target: &Target, _bounds: Bounds) -> Box<dyn Decoder> {
        Box::new(ParrotDecoder::default())
    }
}

/// Reads `{"says": "..", "heard": 7, "spoke": 2}`.
#[derive(Default)]
struct ParrotDecoder {
    body: Vec<u8>,
    usage: Option<Usage>,
}

impl Decoder for ParrotDecoder {
    fn push(&mut self, bytes: &[u8], _out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        self.body.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let body: Value = serde_json::from_slice(&self.body)
            .map_err(|error| ModelError::new(ErrorClass::Protocol, error.to_string()))?;
        let count = |name: &str| body.get(name).and_then(Value::as_u64).unwrap_or_default();
        let usage = Usage {
            input: count("heard"),
            output: count("spoke"),
            ..Usage::default()
        };
        self.usage = Some(usage);
        let (candidate, raw) = (0, "said".to_owned());
        let text = body.get("says").and_then(Value::as_str);
        let text = text.unwrap_or_default().to_owned();
        out.push(ModelEvent::TextDelta { candidate, text });
        out.push(ModelEvent::Usage(usage));
        out.push(ModelEvent::Finished {
            candidate,
            reason: FinishReason::Stop,
            raw,
        });
        Ok(())
    }

    fn ended(&self) -> bool {
        false
    }

    fn is_whole(&self) -> bool {
        false
    }

    fn conclude(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        self.finish(out)
    }

    fn reported_usage(&self) -> Option<Usage> {
        self.usage
    }
}

fn endpoint(dialect: &str, server: &Server) -> Endpoint {
    let mut endpoint = Endpoint::new("zoo", dialect, server.url(""));
    endpoint.auth = Auth::Key(Secret::new(KEY));
    endpoint
}

fn model(endpoint: &Endpoint) -> HttpModel {
    HttpModel::new(endpoint, ModelCard::new(MODEL)).unwrap()
}

fn said(text: &str) -> Response {
    Response::json(200, &json!({"says": text, "heard": 7, "spoke": 2}))
}

/// Checks what each request carries: the dialect's path, its key and its own header.
fn sent(request: &Recorded, path: &str) {
    assert_eq!(request.path, path);
    assert_eq!(request.header("x-parrot-key"), Some(KEY));
    assert_eq!(request.header("authorization"), None);
    assert_eq!(request.header("x-parrot-version"), Some("3"));
}

async fn a_turn_is_asked_answered_and_traced(collector: &Collector) {
    let server = Server::start(said("answered")).await;
    let exporter = Exporter::start(&collector.settings()).unwrap();
    let bench = Bench::asking(endpoint("parrot", &server));
    let outcome = bench.ask("asked", exporter.telemetry()).await;
    shut_down(exporter).await.unwrap();
    assert_eq!(outcome.text, "answered");
    assert_eq!((outcome.usage.input, outcome.usage.output), (7, 2));

    let request = server.request(0).await;
    sent(&request, "/parrots/m-1/talk");
    assert_eq!(request.json(), json!({"said": ["be-terse", "asked"]}));

    let span = collector.span("text_completion m-1");
    let operation = attribute(&span, "gen_ai.operation.name");
    assert_eq!(operation.as_deref(), Some("text_completion"));
}

async fn models_are_listed_and_texts_embedded() {
    let server = Server::start([
        Response::json(200, &json!({"data": [{"id": "grey"}, {"id": "green"}]})),
        Response::json(200, &json!({"data": [{"embedding": [1]}]})),
    ])
    .await;
    let model = model(&endpoint("parrot", &server));
    let listed = list_models(&model).await.unwrap();
    assert_eq!(listed, ["grey", "green"]);
    let texts = ["a".to_owned()];
    let vectors = HttpEmbedder::new(model)
        .embed(&texts, EmbeddingUse::Query)
        .await;
    assert_eq!(vectors, Ok(vec![vec![1.0]]));
    sent(&server.request(0).await, "/parrots");
    let request = server.request(1).await;
    sent(&request, "/parrots/m-1/places");
    assert_eq!(request.json(), json!({"texts": ["a"], "query": true}));
}

async fn a_refusal_is_classed_without_the_key() {
    let refusal = json!({"error": {"message": format!("wrong key {KEY}"), "code": 401}});
    let server = Server::start(Response::json(401, &refusal)).await;
    let request = ModelRequest {
        model: MODEL.to_owned(),
        system: Vec::new().into(),
        messages: vec![Arc::new(Message::user("asked"))],
        tools: Arc::default(),
        tool_choice: ToolChoice::Auto,
        sampling: Sampling::default(),
        response_schema: None,
    };
    let mut events = model(&endpoint("parrot", &server)).stream(Arc::new(request));
    let error = loop {
        match events.next().await {
            Some(Ok(_)) => {}
            Some(Err(error)) => break error,
            None => panic!("the refusal is an error"),
        }
    };
    assert_eq!((error.class, error.status), (ErrorClass::Auth, Some(401)));
    assert!(!error.message.contains(KEY), "{}", error.message);
}

/// The text loop runs over it as over the others, and every request and name is its own.
async fn text_calls_run_over_it(collector: &Collector) {
    let call = "<tool_code>\n<name>left</name>\n<parameters>\n{}\n</parameters>\n</tool_code>";
    let server = Server::start([said(call), said("answered")]).await;
    let exporter = Exporter::start(&collector.settings()).unwrap();
    let over = react_over("parrot").unwrap();
    assert_eq!(over, "react+parrot");
    let bench = Bench::asking(endpoint(over, &server)).tool("left", 0, None);
    let outcome = bench.ask("asked", exporter.telemetry()).await;
    shut_down(exporter).await.unwrap();
    assert_eq!((outcome.text.as_str(), outcome.tool_calls), ("answered", 1));
    for number in [0, 1] {
        sent(&server.request(number).await, "/parrots/m-1/talk");
    }
}

#[tokio::test]
async fn a_sixth_dialect_takes_one_implementation_and_one_line() {
    assert!(dialect("parrot").is_none());
    assert!(register(&Parrot));

    assert!(!register(&Parrot), "its name is taken");
    assert_eq!(dialect_names().last(), Some(&"parrot"));
    let collector = Collector::start().await;
    a_turn_is_asked_answered_and_traced(&collector).await;
    models_are_listed_and_texts_embedded().await;
    a_refusal_is_classed_without_the_key().await;
    text_calls_run_over_it(&Collector::start().await).await;
    let unknown = Endpoint::new("zoo", "budgie", "http://127.0.0.1:1");
    let error = HttpModel::new(&unknown, ModelCard::new(MODEL)).unwrap_err();
    assert!(error.to_string().contains("`parrot`"), "{error}");
}
