//! A channel that listens, a hub that keeps what it is handed, and a client.

use async_trait::async_trait;
use rondo_http::{Network, Secret, Transport};
use rondo_hub::channel::{Channel as _, ChannelError, Inbound};
use rondo_hub::inbox::{Inbox, InboxError, InboxResult, Receiver};
use rondo_webhook::{Endpoint, Signed, Signer, Webhook};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

pub(crate) fn signer() -> Signer {
    Signer::new(&Secret::new(SECRET)).expect("it is a secret")
}

pub(crate) fn webhook(reply_url: &str) -> Webhook {
    let endpoint = Endpoint {
        signer: signer(),
        reply_url: reply_url.to_owned(),
    };
    let endpoints = BTreeMap::from([("ci".to_owned(), endpoint)]);
    let transport = Transport::new(Network::default()).expect("the network is usual");
    Webhook::new(
        SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        endpoints,
        transport,
    )
}

pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("it is after 1970").as_secs()
}

/// Keeps events, each once.
#[derive(Default)]
pub(crate) struct Hub {
    pub(crate) events: Mutex<Vec<Inbound>>,
    pub(crate) refusals: Mutex<Vec<Result<InboxResult, InboxError>>>,
}

#[async_trait]
impl Receiver for Hub {
    async fn admits(&self, _: &Inbound) -> bool {
        true
    }

    async fn take(&self, event: Inbound) -> Result<InboxResult, InboxError> {
        if let Some(refusal) = self.refusals.lock().expect("no panic").pop() {
            return refusal;
        }
        let mut events = self.events.lock().expect("no panic");
        if events.iter().any(|it| it.event_id == event.event_id) {
            return Ok(InboxResult::Duplicate);
        }
        events.push(event);
        Ok(InboxResult::Accepted)
    }
}

pub(crate) struct Running {
    pub(crate) hub: Arc<Hub>,
    pub(crate) address: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<Result<(), ChannelError>>,
}

pub(crate) async fn running() -> Running {
    let (hub, stop) = (Arc::new(Hub::default()), CancellationToken::new());
    let channel = webhook("http://127.0.0.1:1/");
    let (receiving, inbox, stopped) = (channel.clone(), Inbox::new(hub.clone()), stop.clone());
    let task = tokio::spawn(async move { receiving.receive(inbox, stopped).await });
    let address = channel.address().await.expect("it listens");
    Running {
        hub,
        address,
        stop,
        task,
    }
}

impl Running {
    /// Posts a body with these headers and returns the status and the body of the answer.
    pub(crate) async fn post(&self, path: &str, signed: &Signed, body: &[u8]) -> (u16, String) {
        self.post_from(1, path, signed, body).await
    }

    /// Does the same from an address of loopback that ends with this byte.
    pub(crate) async fn post_from(
        &self,
        last: u8,
        path: &str,
        signed: &Signed,
        body: &[u8],
    ) -> (u16, String) {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n\
             webhook-id: {}\r\nwebhook-timestamp: {}\r\nwebhook-signature: {}\r\n\r\n",
            self.address,
            body.len(),
            signed.id,
            signed.timestamp,
            signed.signature
        );
        self.raw_from(last, &[head.as_bytes(), body].concat()).await
    }

    pub(crate) async fn raw(&self, request: &[u8]) -> (u16, String) {
        self.raw_from(1, request).await
    }

    async fn raw_from(&self, last: u8, request: &[u8]) -> (u16, String) {
        let socket = TcpSocket::new_v4().expect("there is a socket");
        let from = SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0));
        socket.bind(from).expect("it is an address of loopback");
        let mut stream = socket.connect(self.address).await.expect("it listens");
        // It may answer and close before all is read.
        let _ = stream.write_all(request).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|it| it.parse().ok());
        (status.unwrap_or_default(), answer)
    }

    pub(crate) async fn stopped(self) {
        self.stop.cancel();
        self.task.await.expect("no panic").expect("it ends well");
    }
}
