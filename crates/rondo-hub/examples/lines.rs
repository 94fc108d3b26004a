//! A channel in a hundred lines: programs connect to a socket, write a message a line, and read replies a line.
//!
//! ```text
//! -> {"id": "1", "from": "ann", "text": "hello"}
//! <- {"taken": "1"}
//! <- {"key": "...", "text": "Hello, Ann."}
//! ```

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use rondo_hub::channel::{
    Abilities, Channel, ChannelError, ChatKey, ChatKind, Delivery, Inbound, InboundBody, Outgoing,
    Receipt, SendError, Sender,
};
use rondo_hub::inbox::Inbox;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

const LINE_BYTES_MAX: u64 = 64 << 10;

/// The channel: where it listens, and who is connected.
pub(crate) struct Lines {
    pub(crate) listener: TcpListener,
    connected: Mutex<HashMap<String, Arc<Mutex<OwnedWriteHalf>>>>,
}

#[derive(Deserialize)]
struct Line {
    id: String,
    from: String,
    text: String,
}

impl Lines {
    pub(crate) fn new(listener: TcpListener) -> Self {
        let connected = Mutex::default();
        Self {
            listener,
            connected,
        }
    }

    async fn converse(&self, stream: TcpStream, inbox: &Inbox) -> Option<()> {
        let (reader, writer) = stream.into_split();
        let mut reader = BufReader::new(reader);
        let mut line = read(&mut reader).await?;
        // A real channel would have its people prove who they are.
        let who = line.from.clone();
        let writer = Arc::new(Mutex::new(writer));
        self.connected.lock().await.insert(who.clone(), writer);
        loop {
            let id = line.id.clone();
            // Only what is durable may be acknowledged: what is not comes again.
            if line.from != who || inbox.push(inbound(line)).await.is_err() {
                return None;
            }
            self.write(&who, &json!({ "taken": id })).await.ok()?;
            line = read(&mut reader).await?;
        }
    }

    async fn write(&self, who: &str, value: &Value) -> Result<(), &'static str> {
        let writer = self.connected.lock().await.get(who).cloned();
        let writer = writer.ok_or("nobody is connected")?;
        let line = format!("{value}\n");
        let written = writer.lock().await.write_all(line.as_bytes()).await;
        written.map_err(|_| "the connection broke")
    }
}

#[async_trait]
impl Channel for Lines {
    fn name(&self) -> &str {
        "lines"
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            // Each reply has its key, so that the receiver knows one that comes again.
            delivery: Delivery::Key,
            drafts: false,
            typing: false,
            buttons: false,
        }
    }

    async fn receive(&self, inbox: Inbox, stop: CancellationToken) -> Result<(), ChannelError> {
        let mut connections = FuturesUnordered::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                Ok((stream, _)) = self.listener.accept() => {
                    connections.push(self.converse(stream, &inbox));
                }
                Some(_) = connections.next(), if !connections.is_empty() => {}
            }
        }
    }

    async fn send(&self, message: &Outgoing) -> Result<Receipt, SendError> {
        let reply = json!({ "key": message.key, "text": message.text });
        let sent = self.write(&message.chat.chat_id, &reply).await;
        let later = |reason: &str| SendError::Retry {
            after: None,
            reason: reason.to_owned(),
        };
        sent.map_err(later)?;
        Ok(Receipt(message.key.clone()))
    }
}

async fn read(reader: &mut BufReader<OwnedReadHalf>) -> Option<Line> {
    let mut line = String::new();
    reader
        .take(LINE_BYTES_MAX)
        .read_line(&mut line)
        .await
        .ok()?;
    serde_json::from_str(&line).ok()
}

fn inbound(line: Line) -> Inbound {
    Inbound {
        // Ids of events are unique on the channel, and senders choose these.
        event_id: format!("{}/{}", line.from, line.id),
        chat: ChatKey {
            channel: "lines".to_owned(),
            account: String::new(),
            chat_id: line.from.clone(),
            topic: None,
        },
        chat_kind: ChatKind::Private,
        sender: Sender {
            id: line.from.clone(),
            name: line.from,
            is_bot: false,
        },
        mentioned: true,
        body: InboundBody::Message {
            text: line.text,
            images: Vec::new(),
            files: Vec::new(),
            notes: Vec::new(),
            by_others: false,
        },
        message_id: None,
        is_edit: false,
        at_ms: 0,
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    use rondo_hub::{Hub, HubConfig, config};
    use rondo_runtime::{Env, Layer, NoNotices, Runtime};
    let open = |flags| Runtime::new(Env::from_env(), flags, Arc::new(NoNotices));
    let settings = open(Layer::default()).settings("/".into())?;
    let flags = config::flags(Layer::default(), &settings);
    let listener = TcpListener::bind("127.0.0.1:7458").await?;
    let channels = vec![Arc::new(Lines::new(listener)) as _];
    let hub = Hub::open(open(flags), &HubConfig::of(&settings)?, channels)?;
    Ok(hub.run(CancellationToken::new()).await?)
}
