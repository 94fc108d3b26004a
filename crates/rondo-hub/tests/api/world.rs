//! A hub with the API alone, a scripted model, and users with keys.

use crate::http::{Events, Request, Response};
use rondo_hub::accounts::Accounts;
use rondo_hub::api::{Api, ApiOptions};
use rondo_hub::channel::Channel;
use rondo_hub::users::Role;
use rondo_hub::{Hub, HubConfig};
use rondo_runtime::env::Env;
use rondo_runtime::{Layer, NoNotices, Runtime};
use rondo_testkit::{Script, Server};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) struct World {
    pub(crate) home: tempfile::TempDir,
    pub(crate) model: Server,
    pub(crate) address: SocketAddr,
    pub(crate) accounts: Accounts,
    stop: CancellationToken,
    running: JoinHandle<rondo_runtime::error::Result<()>>,
}

impl World {
    pub(crate) async fn new(replies: impl Into<Script>) -> Self {
        let home = tempfile::tempdir().unwrap();
        Self::on(home, Server::start(replies).await).await
    }

    /// Starts a hub that has other channels besides.
    pub(crate) async fn beside(replies: impl Into<Script>, others: Vec<Arc<dyn Channel>>) -> Self {
        let home = tempfile::tempdir().unwrap();
        Self::with(home, Server::start(replies).await, others).await
    }

    /// Starts a hub on a directory that may have been another's.
    pub(crate) async fn on(home: tempfile::TempDir, model: Server) -> Self {
        Self::with(home, model, Vec::new()).await
    }

    async fn with(home: tempfile::TempDir, model: Server, others: Vec<Arc<dyn Channel>>) -> Self {
        let env = Env::of(&[
            ("RONDO_HOME", home.path().to_str().unwrap()),
            ("RONDO_MODEL", "local/any"),
            ("RONDO_BASE_URL", &model.url("/v1")),
        ]);
        let runtime = Runtime::new(env, Layer::default(), Arc::new(NoNotices));
        let api = Api::new(ApiOptions {
            listen: "127.0.0.1:0".parse().unwrap(),
            hosts: vec!["hub.example.org".to_owned()],
            ..ApiOptions::default()
        });
        let mut channels = others;
        channels.push(Arc::new(api.clone()));
        let hub = Hub::open(runtime, &HubConfig::default(), channels).unwrap();
        let stop = CancellationToken::new();
        let running = {
            let (hub, stop) = (hub.clone(), stop.clone());
            tokio::spawn(async move { hub.run(stop).await })
        };
        Self {
            address: api.address().await.unwrap(),
            accounts: Accounts::new(Vec::new(), Arc::clone(hub.store())),
            home,
            model,

            stop,
            running,
        }
    }

    /// Stops the hub, and returns what another one can continue with.
    pub(crate) async fn stop(self) -> (tempfile::TempDir, Server) {
        self.stop.cancel();
        self.running.await.unwrap().unwrap();
        (self.home, self.model)
    }

    /// Adds a user and returns their key.
    pub(crate) async fn user(&self, name: &str, role: Role) -> String {
        let key = self.accounts.add(name, role, Vec::new()).await.unwrap();
        key.reveal().to_owned()
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> Request {
        Request::new(self.address, method, path)
    }

    pub(crate) async fn get(&self, path: &str, key: &str) -> Response {
        self.request("GET", path).key(key).send().await
    }

    pub(crate) async fn post(&self, path: &str, key: &str, body: &Value) -> Response {
        self.request("POST", path).key(key).json(body).send().await
    }

    /// Sends a message, which must be taken.
    pub(crate) async fn say(&self, chat: &str, key: &str, text: &str) -> Value {
        let path = format!("/v1/chats/{chat}/messages");
        let response = self.post(&path, key, &json!({ "text": text })).await;
        assert_eq!(response.status, 202, "{}", response.text());
        response.json()
    }

    pub(crate) async fn events(&self, chat: &str, key: &str, query: &str) -> Events {
        let path = format!("/v1/chats/{chat}/events{query}");
        Events::open(self.request("GET", &path).key(key)).await
    }
}
