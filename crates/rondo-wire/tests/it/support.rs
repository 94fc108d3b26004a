//! Loads recordings and decodes bodies.

use rondo_core::accumulator::{Accumulator, ReplyBounds};
use rondo_types::{
    CallId, Candidate, Concurrency, Effects, ErrorClass, Message, ModelError, ModelEvent,
    ModelRequest, Opaque, Origin, Part, Recovery, Reply, Role, Sampling, ToolCall, ToolChoice,
    ToolContent, ToolResult, ToolSpec, Usage,
};
use rondo_wire::{Bounds, Lowering, Target, dialect};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

/// One recorded exchange.
pub(crate) struct Recorded {
    pub(crate) name: String,
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    pub(crate) request: Option<Value>,
    pub(crate) expected: Value,
}

/// Result of decoding a body.
#[derive(Debug, PartialEq)]
pub(crate) struct Decoded {
    pub(crate) events: Vec<ModelEvent>,
    pub(crate) reply: Reply,
    pub(crate) usage: Option<Usage>,
    pub(crate) error: Option<ModelError>,
}

impl Decoded {
    pub(crate) fn candidate(&self) -> Candidate {
        self.reply.candidates.first().cloned().unwrap_or_default()
    }

    /// Returns name, arguments and completeness of the calls of all candidates.
    pub(crate) fn calls(&self) -> Vec<(String, String, bool)> {
        self.reply
            .candidates
            .iter()
            .flat_map(Candidate::tool_calls)
            .map(|call| (call.name.clone(), call.arguments.clone(), call.complete))
            .collect()
    }
}

pub(crate) fn origin(dialect: &str) -> Origin {
    Origin {
        dialect: dialect.to_owned(),
        provider: "recorded".to_owned(),
        model: "some-model".to_owned(),
    }
}

pub(crate) fn target(dialect: &str) -> Target {
    Target::new(origin(dialect))
}

pub(crate) fn request() -> ModelRequest {
    ModelRequest {
        model: "some-model".to_owned(),
        system: Vec::new().into(),
        messages: Vec::new(),
        tools: Arc::default(),
        tool_choice: ToolChoice::Auto,
        sampling: Sampling::default(),
        response_schema: None,
    }
}

pub(crate) fn decode(name: &str, body: &str) -> Decoded {
    decode_pieces(&target(name), &[body.as_bytes()])
}

pub(crate) fn decode_pieces(target: &Target, pieces: &[&[u8]]) -> Decoded {
    decode_within(target, Bounds::default(), pieces)
}

pub(crate) fn decode_within(target: &Target, bounds: Bounds, pieces: &[&[u8]]) -> Decoded {
    let mut decoder = dialect(&target.origin.dialect)
        .unwrap()
        .decoder(target, bounds);
    let mut events = Vec::new();
    let pushed = pieces
        .iter()
        .try_for_each(|piece| decoder.push(piece, &mut events));
    let ended = pushed.and_then(|()| decoder.finish(&mut events));
    let mut accumulator = Accumulator::new(ReplyBounds::default());
    for event in &events {
        accumulator.push(event.clone()).unwrap();
    }
    Decoded {
        events,
        reply: accumulator.finish(),
        usage: decoder.reported_usage(),
        error: ended.err(),
    }
}

pub(crate) fn encode(target: &Target, request: &ModelRequest) -> Value {
    let encoded = dialect(&target.origin.dialect)
        .unwrap()
        .encode(request, target);
    serde_json::from_slice(&encoded.body).unwrap()
}

/// Frames payloads as an event stream.
pub(crate) fn sse(payloads: &[&str]) -> String {
    payloads
        .iter()
        .map(|payload| format!("data: {payload}\n\n"))
        .collect()
}

/// Returns every recorded exchange of a dialect with what is expected of it.
pub(crate) fn recordings(dialect: &str) -> Vec<Recorded> {
    let folder = folder(dialect);
    let expected = json(folder.join("EXPECTED.json"));
    let mut list = Vec::new();
    for (file, exchanges) in expected.as_object().unwrap() {
        for expected in exchanges.as_array().unwrap() {
            list.push(load(dialect, file, expected));
        }
    }
    list
}

/// Returns the exchanges of the recorded sessions that have more than one.
pub(crate) fn sessions(dialect: &str) -> Vec<Vec<Recorded>> {
    let mut sessions: Vec<Vec<Recorded>> = Vec::new();
    for recorded in recordings(dialect) {
        if recorded.expected["exchange"] == 0 {
            sessions.push(Vec::new());
        }
        sessions.last_mut().unwrap().push(recorded);
    }
    sessions.retain(|session| session.len() > 1);
    sessions
}

fn load(dialect: &str, file: &str, expected: &Value) -> Recorded {
    let path = folder(dialect).join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    let index = usize::try_from(expected["exchange"].as_u64().unwrap()).unwrap();
    let status = expected["status"].as_u64().unwrap_or(200);
    let mut recorded = Recorded {
        name: format!("{file}#{index}"),
        status: u16::try_from(status).unwrap(),
        body: Vec::new(),
        request: None,
        expected: expected.clone(),
    };
    if file.ends_with(".cassette.json") {
        let cassette: Value = serde_json::from_str(&text).unwrap();
        let exchange = &cassette["exchanges"][index];
        recorded.body = exchange["response"]["body"].as_str().unwrap().into();
        recorded.request = Some(match &exchange["request"]["body"] {
            Value::String(body) => serde_json::from_str(body).unwrap(),
            body => body.clone(),
        });
    } else if file.ends_with(".chunks.txt") {
        let mut payloads: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        if dialect == "openai-chat" {
            payloads.push("[DONE]");
        }
        recorded.body = sse(&payloads).into();
    } else {
        recorded.body = text.into();
    }
    recorded
}

fn folder(dialect: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/wire")
        .join(dialect)
}

fn json(path: PathBuf) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Builds a call with an id of ours.
pub(crate) fn tool_call(wire_id: Option<&str>, name: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: CallId::generated(1, 1, 0),
        wire_id: wire_id.map(str::to_owned),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        complete: true,
        opaque: None,
    }
}

/// Builds the result of a call.
pub(crate) fn tool_result(call: &ToolCall, content: ToolContent) -> ToolResult {
    ToolResult {
        call_id: call.id.clone(),
        wire_id: call.wire_id.clone(),
        name: call.name.clone(),
        error: None,
        content,
        blocks: Vec::new(),
        synthetic: false,
    }
}

/// Builds an assistant message.
pub(crate) fn assistant(parts: Vec<Part>, origin: Option<Origin>) -> Message {
    Message {
        role: Role::Assistant,
        parts,
        origin,
        synthetic: false,
        paused: false,
        from_outside: false,
    }
}

pub(crate) fn with_messages(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        messages: messages.into_iter().map(Arc::new).collect(),
        ..request()
    }
}

pub(crate) fn opaque(origin: Origin, json: &str) -> Opaque {
    Opaque {
        origin,
        json: json.to_owned(),
    }
}

pub(crate) fn tool_spec(name: &str, parameters: Value) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: "does it".to_owned(),
        parameters,
        effects: Effects::ReadOnly,
        concurrency: Concurrency::Shared,
        recovery: Recovery::ReadOnly,
        ..ToolSpec::default()
    }
}

/// Returns tools of these names, as a request offers them.
pub(crate) fn offered(names: &[&str]) -> Arc<Vec<ToolSpec>> {
    let specs = names.iter().map(|it| tool_spec(it, Value::Null));
    Arc::new(specs.collect())
}

/// Returns the changes that the encoding of a request made.
pub(crate) fn lowerings(target: &Target, request: &ModelRequest) -> Vec<Lowering> {
    let encoded = dialect(&target.origin.dialect)
        .unwrap()
        .encode(request, target);
    encoded.notes.iter().map(|note| note.lowering).collect()
}

/// Returns a call as a test compares it: its name, its arguments and whether it is whole.
pub(crate) fn call(name: &str, arguments: &str, complete: bool) -> (String, String, bool) {
    (name.to_owned(), arguments.to_owned(), complete)
}

/// Returns a call as the expectations of a recording write it, with its id under `id`.
pub(crate) fn recorded_call(id: &str, call: &ToolCall) -> Value {
    json!({
        id: call.wire_id,
        "name": call.name,
        "arguments": call.arguments,
        "arguments_json": serde_json::from_str::<Value>(&call.arguments).ok(),
        "arguments_valid": call.complete,
    })
}

/// Checks that a body that was cut off is a network error without a whole call.
#[track_caller]
pub(crate) fn assert_cut_off(decoded: &Decoded, place: &str) {
    let error = decoded.error.clone().unwrap();
    assert_eq!(error.class, ErrorClass::Network, "{place}");
    assert!(decoded.calls().iter().all(|call| !call.2), "{place}");
}
