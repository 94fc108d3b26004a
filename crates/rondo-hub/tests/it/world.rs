//! A hub with its messenger and its model.

use crate::messenger::{LONG, Messenger, WireChannel};
use rondo_hub::channel::Delivery;
use rondo_hub::extending::TurnExtensions;
use rondo_hub::{Hub, HubConfig, config};
use rondo_runtime::env::Env;
use rondo_runtime::{Extensions, Layer, NoNotices, Runtime};
use rondo_script::OwnInit;
use rondo_testkit::{CallScript, Gate, ReplyScript, Response, Script, Server, Step, openai};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::runtime;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio_util::sync::CancellationToken;

pub(crate) const USERS: &str = "
    [users.ann]
    role = 'owner'
    ids = ['wire:ann']
    [users.bob]
    role = 'member'
    ids = ['wire:bob']
    [users.gus]
    role = 'guest'
    ids = ['wire:gus']
";

/// State that outlives a hub.
pub(crate) struct World {
    pub(crate) home: tempfile::TempDir,
    pub(crate) messenger: Messenger,
    pub(crate) model: Server,
    pub(crate) delivery: Delivery,
    pub(crate) config: String,
    pub(crate) flags: Layer,
    /// The owner's `init.lua`, if there is one.
    pub(crate) init: Option<String>,
}

/// The owner's `init.lua`, as `rondo serve` has it.
struct OwnFile(OwnInit);

impl TurnExtensions for OwnFile {
    fn of_turn(&self) -> rondo_runtime::error::Result<Extensions> {
        Ok(self.0.of_turn()?.extensions())
    }
}

/// A hub that runs apart from the test, so that it can end as if its process did.
pub(crate) struct HubApart {
    pub(crate) hub: RunningHub,
    runtime: runtime::Runtime,
}

impl HubApart {
    /// Ends it at once, with all that it has under way.
    pub(crate) async fn kill(self) {
        drop(self.hub);
        let ended = spawn_blocking(|| self.runtime.shutdown_timeout(LONG));
        ended.await.unwrap();
    }

    /// Tells it to stop, and ends what it left when it has.
    pub(crate) async fn stop(self) {
        self.hub.stop().await;
        let ended = spawn_blocking(|| self.runtime.shutdown_timeout(LONG));
        ended.await.unwrap();
    }
}

/// A hub that runs.
pub(crate) struct RunningHub {
    pub(crate) hub: Hub,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl World {
    pub(crate) async fn new(replies: impl Into<Script>) -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
            messenger: Messenger::start().await,
            model: Server::start(replies).await,
            delivery: Delivery::AtLeastOnce,
            config: USERS.to_owned(),
            flags: Layer::default(),
            init: None,
        }
    }

    pub(crate) fn open(&self) -> Hub {
        let home = self.home.path().to_str().unwrap();
        let env = Env::of(&[
            ("RONDO_HOME", home),
            ("RONDO_MODEL", "local/any"),
            ("RONDO_BASE_URL", &self.model.url("/v1")),
        ]);
        let notices = || Arc::new(NoNotices);
        let plain = Runtime::new(env.clone(), self.flags.clone(), notices());
        let flags = config::flags(self.flags.clone(), &plain.settings("/".into()).unwrap());
        let runtime = Runtime::new(env, flags, notices());
        let config: HubConfig = toml::from_str(&self.config).unwrap();
        let channel = WireChannel {
            messenger: self.messenger.address(),
            delivery: self.delivery,
        };
        let own = self.own_file(&runtime);
        let hub = Hub::open(runtime, &config, vec![Arc::new(channel)]).unwrap();
        if let Some(own) = own {
            hub.extend_turns(Arc::new(own));
        }
        hub
    }

    fn own_file(&self, runtime: &Runtime) -> Option<OwnFile> {
        let settings = runtime.settings(self.home.path().to_owned()).unwrap();
        let file = settings.paths.user_init();
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, self.init.as_ref()?).unwrap();
        let own = OwnInit::read(runtime, &settings, Arc::new(NoNotices));
        own.unwrap().map(OwnFile)
    }

    pub(crate) fn start(&self) -> RunningHub {
        let (hub, stop) = (self.open(), CancellationToken::new());
        let (running, stopped) = (hub.clone(), stop.clone());
        let task = tokio::spawn(async move { running.run(stopped).await.unwrap() });
        RunningHub { hub, stop, task }
    }

    pub(crate) fn start_apart(&self) -> HubApart {
        let runtime = runtime::Runtime::new().unwrap();
        let entered = runtime.enter();
        let hub = self.start();
        drop(entered);
        HubApart { hub, runtime }
    }

    /// Requests to the model, as JSON.
    pub(crate) fn requests(&self) -> Vec<Value> {
        let requests = self.model.requests();
        requests.iter().map(|it| it.json()).collect()
    }
}

impl RunningHub {
    /// Tells it to stop, and waits until it has.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

pub(crate) fn text(pieces: &[&str]) -> Response {
    openai::streamed(&ReplyScript::text(pieces.iter().copied()).usage(1, 1))
}

pub(crate) fn calls(calls: &[(&str, &str, Value)]) -> Response {
    let calls = calls
        .iter()
        .map(|(id, name, arguments)| CallScript::new(id, name, arguments));
    openai::streamed(&ReplyScript::calls(calls).usage(1, 1))
}

pub(crate) fn writes(id: &str, path: &str) -> Response {
    calls(&[(id, "write_file", json!({"path": path, "content": id}))])
}

/// A reply that does not continue before the gate opens.
pub(crate) fn gated(said: &str, gate: &Gate) -> Response {
    let mut frames = openai::frames(&ReplyScript::text([said]).usage(1, 1));
    let rest = frames.split_off(1);
    let mut response = Response::sse(frames).step(Step::Gate(gate.clone()));
    for frame in rest {
        response = response.send(frame);
    }
    response
}

/// The last message of a request, as text.
pub(crate) fn last_said(request: &Value) -> String {
    let messages = request["messages"].as_array().unwrap();
    content(messages.last().unwrap())
}

pub(crate) fn content(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|it| it["text"].as_str()).collect(),
        _ => String::new(),
    }
}

pub(crate) fn tools(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().cloned().unwrap_or_default();
    let names = tools
        .iter()
        .map(|it| it["function"]["name"].as_str().unwrap().to_owned());
    names.collect()
}
