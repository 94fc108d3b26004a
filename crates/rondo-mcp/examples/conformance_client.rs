//! A client that does what the scenarios of `@modelcontextprotocol/conformance` ask of one: it connects to the address
//! that is its last argument, lists the tools and calls each of them, and accepts every question with its defaults.
//! If the server asks for the user, it signs in, without a browser: the suite's authorization servers ask nothing.

use async_trait::async_trait;
use hyper::header::{HeaderMap, LOCATION};
use rondo_core::notices::NoNotices;
use rondo_core::ports::{Asker, ToolInvocation, ToolScope};
use rondo_http::{RawRequest, Secret, Transport};
use rondo_mcp::config::{Connection, Origin, Placeholders, Server, WrittenServer};
use rondo_mcp::{
    Consent, Options, PinStore, Program, ProgramSpec, Servers, SignIn, StartPrograms, TokenStore,
};
use rondo_types::{AnswerValue, QuestionKind, SessionId, TurnId};
use serde_json::{Value, json};
use std::sync::Arc;

/// The name of the server.
const SERVER: &str = "server";
/// How often it signs in: a server whose refusals do not end must not be asked forever.
const SIGN_INS_MAX: usize = 3;
/// The document that describes the client, if an authorization server takes one; the suite knows this address.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

type Failure = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let url = std::env::args().next_back().unwrap_or_default();
    let server = server(&url)?;
    let transport = Transport::new(Default::default())?;
    let home = tempfile::tempdir()?;
    let tokens = TokenStore::in_directory(home.path().to_owned());
    for _ in 0..SIGN_INS_MAX {
        if tried(&server, &transport, &tokens).await?.is_none() {
            return Ok(());
        }
        sign_in(&server, &transport, &tokens).await?;
    }
    match tried(&server, &transport, &tokens).await? {
        Some(refusal) => Err(refusal.into()),
        None => Ok(()),
    }
}

fn server(url: &str) -> Result<Server, Failure> {
    let written = WrittenServer {
        url: Some(url.to_owned()),
        always_load: true,
        ..WrittenServer::default()
    };
    let none = |_: &str| None;
    let folder = std::path::PathBuf::from("/");
    let server = written.server(SERVER, Origin::User, Placeholders::None, &none, &folder);
    let mut server = server.map_err(|why| format!("{why:?}"))?;
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    let given = |key: &str| Some(context.get(key)?.as_str()?.to_owned());
    if let Connection::Http { oauth, .. } = &mut server.connection {
        oauth.client_id = given("client_id");
        oauth.client_secret = given("client_secret").map(Secret::new);
        oauth.client_metadata_url = Some(DOCUMENT.to_owned());
    }
    Ok(server)
}

/// Uses the server. Returns what it says if it asks who the user is.
async fn tried(
    server: &Server,
    transport: &Transport,
    tokens: &TokenStore,
) -> Result<Option<String>, Failure> {
    let servers = Servers::start(Options {
        servers: vec![server.clone()],
        transport: transport.clone(),
        programs: Arc::new(NoPrograms),
        pins: PinStore::default(),
        tokens: tokens.clone(),
        notices: Arc::new(NoNotices),
        consent: Consent::Ask,
        results: None,
        bytes_max: Options::BYTES,
    });
    let report = servers.report(SERVER).await;
    if let Some(failure) = report.ok_or("there is no report")?.failure {
        return match failure.contains("rondo mcp login") {
            true => Ok(Some(failure)),
            false => Err(failure.into()),
        };
    }
    let source = servers.source(&SessionId::new("s-1"));
    let scope = ToolScope {
        session: SessionId::new("s-1"),
        turn: TurnId::new("t-1"),
        step: 1,
    };
    let mut refusal = None;
    for tool in source.tools(&scope) {
        let parameters = tool.spec().parameters;
        let outcome = tool.call(invocation(arguments(&parameters))).await;
        let outcome = format!("{outcome:?}");
        if outcome.contains("rondo mcp login") {
            refusal = Some(outcome);
        }
    }
    servers.close().await;
    Ok(refusal)
}

/// Signs in, with requests in place of a browser.
async fn sign_in(
    server: &Server,
    transport: &Transport,
    tokens: &TokenStore,
) -> Result<(), Failure> {
    let begun = SignIn::begin(server, transport, tokens).await?;
    let redirected = visit(transport, begun.address()).await?;
    let next = redirected.headers().get(LOCATION).ok_or("no redirect")?;
    let next = next.to_str()?.to_owned();
    let (url, page) = tokio::join!(begun.came_back(), visit(transport, &next));
    page?;
    Ok(begun.finish(&url?).await?)
}

async fn visit(transport: &Transport, url: &str) -> Result<rondo_http::RawResponse, Failure> {
    let request = RawRequest {
        method: hyper::Method::GET,
        url: url.to_owned(),
        headers: HeaderMap::new(),
        body: bytes::Bytes::new(),
    };
    Ok(transport.send(request).await?)
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
        asker: Asker::new(|_, kind, _| {
            let answer = match kind {
                QuestionKind::Input { .. } => AnswerValue::value(json!({})),
                _ => AnswerValue::Approve,
            };
            Box::pin(std::future::ready(Ok(answer)))
        }),
        ..ToolInvocation::new(SessionId::new("s-1"), arguments)
    }
}

struct NoPrograms;

#[async_trait]
impl StartPrograms for NoPrograms {
    async fn start(&self, _: &ProgramSpec) -> Result<Box<dyn Program>, String> {
        Err("the scenarios are servers at addresses".to_owned())
    }
}
