//! The channel that `docs/channels.md` shows, with a hub behind it.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test fails where the test does"
)]

#[expect(dead_code, reason = "its `main` runs the hub of whoever starts it")]
#[path = "../../examples/lines.rs"]
mod lines;

use lines::Lines;
use rondo_hub::{Hub, HubConfig, config};
use rondo_runtime::{Env, Layer, NoNotices, Runtime};
use rondo_testkit::{ReplyScript, Script, Server, openai};
use serde_json::Value;
use std::fs;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines as ReadLines};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

struct Person {
    writer: OwnedWriteHalf,
    reader: ReadLines<BufReader<OwnedReadHalf>>,
}

impl Person {
    async fn connect(address: std::net::SocketAddr) -> Self {
        let (reader, writer) = TcpStream::connect(address).await.unwrap().into_split();
        let reader = BufReader::new(reader).lines();
        Self { writer, reader }
    }

    async fn write(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.writer.write_all(line.as_bytes()).await.unwrap();
    }

    async fn read(&mut self) -> Value {
        let line = self.reader.next_line().await.unwrap();
        serde_json::from_str(&line.expect("a line")).unwrap()
    }
}

#[tokio::test]
async fn the_channel_of_the_docs_answers_each_message_once() {
    let model = Server::start(Script::repeat(openai::streamed(
        &ReplyScript::text(["Hello, Ann."]).usage(1, 1),
    )))
    .await;
    let home = tempfile::tempdir().unwrap();
    let env = Env::of(&[
        ("RONDO_HOME", home.path().to_str().unwrap()),
        ("RONDO_MODEL", "local/any"),
        ("RONDO_BASE_URL", &model.url("/v1")),
    ]);
    let open = |flags| Runtime::new(env.clone(), flags, Arc::new(NoNotices));
    let settings = open(Layer::default()).settings("/".into()).unwrap();
    let flags = config::flags(Layer::default(), &settings);
    let users: HubConfig =
        toml::from_str("[users.ann]\nrole = 'owner'\nids = ['lines:ann']").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let hub = Hub::open(open(flags), &users, vec![Arc::new(Lines::new(listener))]).unwrap();
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let stop = stop.clone();
        async move { hub.run(stop).await }
    });
    let mut ann = Person::connect(address).await;
    let hello = r#"{"id": "1", "from": "ann", "text": "hello"}"#;
    ann.write(hello).await;
    assert_eq!(ann.read().await["taken"], "1");
    assert_eq!(ann.read().await["text"], "Hello, Ann.");
    ann.write(hello).await;
    assert_eq!(
        ann.read().await["taken"],
        "1",
        "it came before, and is taken"
    );
    ann.write(&hello.replace("\"1\"", "\"2\"")).await;
    assert_eq!(ann.read().await["taken"], "2");
    assert_eq!(ann.read().await["text"], "Hello, Ann.");
    assert_eq!(model.requests().len(), 2);
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[test]
fn the_page_of_channels_shows_this_channel() {
    let folder = env!("CARGO_MANIFEST_DIR");
    let page = fs::read_to_string(format!("{folder}/../../docs/channels.md")).unwrap();
    let channel = fs::read_to_string(format!("{folder}/examples/lines.rs")).unwrap();
    let shown = page.contains(&format!("```rust\n{channel}```"));
    assert!(shown, "docs/channels.md shows another program");
}
