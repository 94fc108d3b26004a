//! A server whose replies are scripted. It speaks the protocol's own lines over pipes.

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use rondo_core::notices::Notices;
use rondo_core::ports::{Tool, ToolInvocation, ToolScope, ToolSource};
use rondo_mcp::config::{Origin, Placeholders, Server, WrittenServer};
use rondo_mcp::{
    Consent, Options, PinStore, Program, ProgramSpec, Servers, StartPrograms, Streams, TokenStore,
};
use rondo_types::{SessionId, ToolOutcome, TurnId};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, split};
use tokio::sync::mpsc;

/// Lines that wait to be written.
const LINES_MAX: usize = 10_000;
const PIPE_BYTES: usize = 64 << 10;

/// Reaction of a script to a message of the client.
pub(crate) type Handle = Arc<dyn Fn(Value, Out) -> BoxFuture<'static, ()> + Send + Sync>;

/// Output of a script, by lines.
#[derive(Clone)]
pub(crate) struct Out(mpsc::Sender<Option<String>>);

impl Out {
    pub(crate) async fn line(&self, line: impl Into<String>) {
        let _ = self.0.send(Some(line.into())).await;
    }

    pub(crate) async fn send(&self, message: Value) {
        self.line(message.to_string()).await;
    }

    pub(crate) async fn reply(&self, to: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": to["id"], "result": result}))
            .await;
    }

    pub(crate) async fn refuse(&self, to: &Value, code: i64, message: &str) {
        let error = json!({"code": code, "message": message});
        self.send(json!({"jsonrpc": "2.0", "id": to["id"], "error": error}))
            .await;
    }

    /// Ends the server.
    pub(crate) async fn die(&self) {
        let _ = self.0.send(None).await;
    }
}

/// Servers by name, what they were sent, and how often each was started.
#[derive(Default, Clone)]
pub(crate) struct Scripts {
    handles: Arc<Mutex<HashMap<String, Handle>>>,
    received: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Scripts {
    pub(crate) fn add(&self, name: &str, handle: Handle) {
        self.handles.lock().unwrap().insert(name.to_owned(), handle);
    }

    /// Returns the messages of one method that a server received.
    pub(crate) fn received(&self, name: &str, method: &str) -> Vec<Value> {
        let received = self.received.lock().unwrap();
        let of = received
            .iter()
            .filter(|(to, it)| to == name && it["method"] == method);
        of.map(|(_, it)| it.clone()).collect()
    }

    /// Returns the methods that a server was sent, in order.
    pub(crate) fn methods(&self, name: &str) -> Vec<String> {
        let received = self.received.lock().unwrap();
        let of = received.iter().filter(|(to, _)| to == name);
        of.filter_map(|(_, it)| it["method"].as_str().map(str::to_owned))
            .collect()
    }
}

#[async_trait]
impl StartPrograms for Scripts {
    async fn start(&self, spec: &ProgramSpec) -> Result<Box<dyn Program>, String> {
        let handle = self.handles.lock().unwrap().get(&spec.server).cloned();
        let handle =
            handle.ok_or_else(|| format!("the program `{}` is not found", spec.command))?;
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let (received, name) = (Arc::clone(&self.received), spec.server.clone());
        let seen = move |message: &Value| {
            received
                .lock()
                .unwrap()
                .push((name.clone(), message.clone()))
        };
        tokio::spawn(serve(theirs, handle, seen));
        Ok(Box::new(Scripted(Some(ours))))
    }
}

struct Scripted(Option<DuplexStream>);

#[async_trait]
impl Program for Scripted {
    fn take_streams(&mut self) -> Option<Streams> {
        let (output, input) = split(self.0.take()?);
        Some((Box::new(input), Box::new(output)))
    }

    fn stderr(&self) -> String {
        "a line of its standard error\n".to_owned()
    }

    async fn end(self: Box<Self>, _: Duration) {}
}

async fn serve(stream: DuplexStream, handle: Handle, seen: impl Fn(&Value)) {
    let (reader, mut writer) = split(stream);
    let (lines, mut written) = mpsc::channel::<Option<String>>(LINES_MAX);
    let writing = async move {
        while let Some(Some(line)) = written.recv().await {
            if writer
                .write_all(format!("{line}\n").as_bytes())
                .await
                .is_err()
            {
                return;
            }
        }
    };
    let reading = async move {
        let mut messages = BufReader::new(reader).lines();
        while let Ok(Some(line)) = messages.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            seen(&message);
            tokio::spawn(handle(message, Out(lines.clone())));
        }
    };
    // Ends when either does: then the pipe is closed.
    tokio::select! {
        () = writing => {}
        () = reading => {}
    }
}

/// Which lifecycle a script speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaks {
    Initialize,
    Discover,
}

/// Answers what begins a connection, and lists; returns whether it did.
pub(crate) async fn begin(speaks: Speaks, tools: &Value, message: &Value, out: &Out) -> bool {
    let capabilities = json!({"tools": {"listChanged": true}, "prompts": {}, "resources": {}});
    let info = json!({"name": "scripted", "version": "1"});
    match (message["method"].as_str().unwrap_or_default(), speaks) {
        ("server/discover", Speaks::Initialize) => {
            out.refuse(message, -32601, "Method not found").await
        }
        ("server/discover", Speaks::Discover) => {
            let result = json!({
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": capabilities,
                "ttlMs": 0,
                "cacheScope": "private",
                "_meta": {"io.modelcontextprotocol/serverInfo": info},
            });
            out.reply(message, result).await;
        }
        ("initialize", Speaks::Initialize) => {
            let result = json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": capabilities,
                "serverInfo": info,
            });
            out.reply(message, result).await;
        }
        ("initialize", Speaks::Discover) => out.refuse(message, -32601, "Method not found").await,
        ("tools/list", Speaks::Initialize) => out.reply(message, json!({"tools": tools})).await,
        ("tools/list", Speaks::Discover) => {
            let result = json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"});
            out.reply(message, result).await;
        }
        ("notifications/initialized" | "notifications/cancelled", _) => {}
        _ => return false,
    }
    true
}

/// A script with these tools, of which `on_call` answers each call.
pub(crate) fn server<F>(speaks: Speaks, tools: Value, on_call: F) -> Handle
where
    F: Fn(Value, Out) -> BoxFuture<'static, ()> + Send + Sync + 'static,
{
    let tools = Arc::new(Mutex::new(tools));
    changing(speaks, tools, on_call)
}

/// As [`server`], with tools that may change.
pub(crate) fn changing<F>(speaks: Speaks, tools: Arc<Mutex<Value>>, on_call: F) -> Handle
where
    F: Fn(Value, Out) -> BoxFuture<'static, ()> + Send + Sync + 'static,
{
    let on_call = Arc::new(on_call);
    Arc::new(move |message, out| {
        let (on_call, tools) = (Arc::clone(&on_call), tools.lock().unwrap().clone());
        Box::pin(async move {
            if !begin(speaks, &tools, &message, &out).await && message.get("method").is_some() {
                on_call(message, out).await;
            }
        })
    })
}

/// Answers a call with its arguments.
pub(crate) fn echo(message: Value, out: Out) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let text = message["params"]["arguments"].to_string();
        out.reply(&message, text_result(&text)).await;
    })
}

pub(crate) fn text_result(text: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": text}]})
}

pub(crate) fn tool(name: &str) -> Value {
    json!({
        "name": name,
        "description": format!("Does {name}."),
        "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}},
    })
}

pub(crate) fn configured(name: &str, change: impl FnOnce(&mut WrittenServer)) -> Server {
    let mut written = WrittenServer {
        command: Some(name.to_owned()),
        ..WrittenServer::default()
    };
    change(&mut written);
    let none = |_: &str| None;
    written
        .server(name, Origin::User, Placeholders::None, &none, &"/".into())
        .unwrap()
}

/// Notes so far.
pub(crate) type Notes = Arc<Mutex<Vec<String>>>;

/// Keeps notes.
struct Kept(Notes);

impl Notices for Kept {
    fn note(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

pub(crate) fn options(scripts: &Scripts, servers: Vec<Server>) -> (Options, Notes) {
    let notes = Notes::default();
    let options = Options {
        servers,
        transport: rondo_http::Transport::new(rondo_http::Network::default()).unwrap(),
        programs: Arc::new(scripts.clone()),
        tokens: TokenStore::default(),
        pins: PinStore::default(),
        notices: Arc::new(Kept(Arc::clone(&notes))),
        consent: Consent::Ask,
        results: None,
        bytes_max: Options::BYTES,
    };
    (options, notes)
}

/// Starts one server under the name `s` and waits until it is listed or cannot be.
pub(crate) async fn one(handle: Handle) -> (Servers, Scripts, Notes) {
    let scripts = Scripts::default();
    scripts.add("s", handle);
    let (options, notes) = options(&scripts, vec![configured("s", |_| ())]);
    let servers = Servers::start(options);
    servers.report("s").await.unwrap();
    (servers, scripts, notes)
}

pub(crate) fn scope() -> ToolScope {
    ToolScope {
        session: SessionId::new("s-1"),
        turn: TurnId::new("t-1"),
        step: 1,
    }
}

pub(crate) fn source(servers: &Servers) -> Arc<dyn ToolSource> {
    servers.source(&SessionId::new("s-1"))
}

pub(crate) fn names(source: &Arc<dyn ToolSource>) -> Vec<String> {
    source
        .tools(&scope())
        .iter()
        .map(|it| it.spec().name)
        .collect()
}

pub(crate) fn find(source: &Arc<dyn ToolSource>, name: &str) -> Arc<dyn Tool> {
    let tools = source.tools(&scope());
    let named: Vec<String> = tools.iter().map(|it| it.spec().name).collect();
    let found = tools.into_iter().find(|it| it.spec().name == name);
    found.unwrap_or_else(|| panic!("`{name}` is not among {named:?}"))
}

pub(crate) fn invocation(arguments: Value) -> ToolInvocation {
    ToolInvocation {
        idempotency_key: "k".to_owned(),
        ..ToolInvocation::new(SessionId::new("s-1"), arguments)
    }
}

pub(crate) async fn call(source: &Arc<dyn ToolSource>, name: &str) -> ToolOutcome {
    find(source, name).call(invocation(json!({"a": "x"}))).await
}

pub(crate) fn text(outcome: &ToolOutcome) -> String {
    match outcome {
        ToolOutcome::Ok(output) => output.value.as_str().unwrap_or_default().to_owned(),
        ToolOutcome::Error(error) => format!("{}: {}", error.code, error.message),
    }
}

impl Scripts {
    /// Returns the answers that a server received.
    pub(crate) fn replies(&self, name: &str) -> Vec<Value> {
        let received = self.received.lock().unwrap();
        let of = received
            .iter()
            .filter(|(to, it)| to == name && it.get("method").is_none());
        of.map(|(_, it)| it.clone()).collect()
    }
}
