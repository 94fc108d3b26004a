//! A client that does what the scenarios of `@modelcontextprotocol/conformance` ask of one: it connects to the address
//! that is its last argument, lists the tools and calls each of them, and accepts every question with its defaults.

use async_trait::async_trait;
use rondo_core::ports::{Asker, CallQuestion, OutputSink, ProgressSink, ToolInvocation, ToolScope};
use rondo_mcp::config::{Origin, Placeholders, WrittenServer};
use rondo_mcp::{Consent, Options, PinStore, Program, ProgramSpec, Servers, StartPrograms};
use rondo_types::{Allowance, AnswerValue, CallId, SessionId, TurnId};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The name of the server.
const SERVER: &str = "server";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().next_back().unwrap_or_default();
    let written = WrittenServer {
        url: Some(url),
        always_load: true,
        ..WrittenServer::default()
    };
    let none = |_: &str| None;
    let folder = std::path::PathBuf::from("/");
    let server = written.server(SERVER, Origin::User, Placeholders::None, &none, &folder);
    let server = server.map_err(|why| format!("{why:?}"))?;
    let transport = rondo_http::Transport::new(Default::default())?;
    let servers = Servers::start(Options {
        servers: vec![server],
        transport,
        programs: Arc::new(NoPrograms),
        pins: PinStore::default(),
        notes: Arc::new(|_| ()),
        consent: Consent::Ask,
        bytes_max: Options::BYTES,
    });
    let report = servers.report(SERVER).await;
    if let Some(failure) = report.ok_or("there is no report")?.failure {
        return Err(format!("{failure:?}").into());
    }
    let source = servers.source(&SessionId::new("s-1"));
    let scope = ToolScope {
        session: SessionId::new("s-1"),
        turn: TurnId::new("t-1"),
        step: 1,
    };
    for tool in source.tools(&scope) {
        let parameters = tool.spec().parameters;
        tool.call(invocation(arguments(&parameters))).await;
    }
    servers.close().await;
    Ok(())
}

/// Returns a value for each argument that is needed.
fn arguments(schema: &Value) -> Value {
    let required = schema.get("required").and_then(Value::as_array);
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    let value = |name: &str| match schema.pointer(&format!("/properties/{name}/type")) {
        Some(kind) if kind == "number" || kind == "integer" => json!(1),
        Some(kind) if kind == "boolean" => json!(true),
        _ => json!("x"),
    };
    names
        .map(|name| (name.to_owned(), value(name)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn invocation(arguments: Value) -> ToolInvocation {
    ToolInvocation {
        session: SessionId::new("s-1"),
        turn: TurnId::new("t-1"),
        call_id: CallId::new("c-1"),
        idempotency_key: "k".to_owned(),
        arguments,
        timeout: None,
        cancel: CancellationToken::new(),
        output: OutputSink::discard(),
        progress: ProgressSink::discard(),
        allowance: Allowance::default(),
        asker: Asker::new(|question| {
            let answer = match question {
                CallQuestion::Approval { .. } => AnswerValue::Approve,
                CallQuestion::Input { .. } => AnswerValue::Value { value: json!({}) },
            };
            Box::pin(std::future::ready(Ok(answer)))
        }),
    }
}

struct NoPrograms;

#[async_trait]
impl StartPrograms for NoPrograms {
    async fn start(&self, _: &ProgramSpec) -> Result<Box<dyn Program>, String> {
        Err("the scenarios are servers at addresses".to_owned())
    }
}
