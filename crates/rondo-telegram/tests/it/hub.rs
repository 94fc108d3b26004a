//! From what a person writes to what they see: the hub, its sessions and a model behind the channel.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test fails where the test does"
)]

use crate::support::{TOKEN, bot, telegram};
use rondo_hub::{Hub, HubConfig, config};
use rondo_runtime::{Env, Layer, NoNotices, Runtime};
use rondo_telegram::Api;
use rondo_testkit::telegram::{BOT_NAME, BotServer, Fault, Place};
use rondo_testkit::{CallScript, Gate, ReplyScript, Response, Script, Server, Step, openai};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const USERS: &str = "
    [users.ann]
    role = 'owner'
    ids = ['telegram:7']
    [users.bob]
    role = 'member'
    ids = ['telegram:8']
";

/// State that outlives a hub.
struct World {
    home: tempfile::TempDir,
    model: Server,
    server: BotServer,
    api: Api,
}

struct RunningHub {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl World {
    async fn new(replies: impl Into<Script>) -> Self {
        let (server, api) = bot().await;
        Self {
            home: tempfile::tempdir().unwrap(),
            model: Server::start(replies).await,
            server,
            api,
        }
    }

    fn start(&self) -> RunningHub {
        let env = Env::of(&[
            ("RONDO_HOME", self.home.path().to_str().unwrap()),
            ("RONDO_MODEL", "local/any"),
            ("RONDO_BASE_URL", &self.model.url("/v1")),
        ]);
        let plain = Runtime::new(env.clone(), Layer::default(), Arc::new(NoNotices));
        let flags = config::flags(Layer::default(), &plain.settings("/".into()).unwrap());
        let runtime = Runtime::new(env, flags, Arc::new(NoNotices));
        let users: HubConfig = toml::from_str(USERS).unwrap();
        let hub = Hub::open(runtime, &users, vec![telegram(&self.api)]).unwrap();
        let stop = CancellationToken::new();
        let token = stop.clone();
        let task = tokio::spawn(async move { hub.run(token).await.unwrap() });
        RunningHub { stop, task }
    }

    /// Text that the model read last.
    fn last_read(&self) -> String {
        let requests = self.model.requests();
        requests.last().unwrap().json().to_string()
    }
}

impl RunningHub {
    async fn stopped(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

fn text(said: &str) -> Response {
    openai::streamed(&ReplyScript::text([said]).usage(1, 1))
}

/// A reply that does not go on before the gate opens.
fn slow(said: &str, gate: &Gate) -> Response {
    let frames = openai::frames(&ReplyScript::text([said]).usage(1, 1));
    let mut response = Response::sse(Vec::<String>::new()).step(Step::Gate(gate.clone()));
    for frame in frames {
        response = response.send(frame);
    }
    response
}

fn writes(path: &str) -> Response {
    let arguments: Value = json!({ "path": path, "content": "x" });
    let calls = [CallScript::new("c1", "write_file", &arguments)];
    openai::streamed(&ReplyScript::calls(calls).usage(1, 1))
}

#[tokio::test]
async fn a_document_named_with_90_cjk_characters_is_taken() {
    let world = World::new(Script::repeat(text("Thanks."))).await;
    let hub = world.start();
    let name = format!("{}.pdf", "\u{540d}".repeat(90));
    world.server.add_file("d1", vec![b'x'; 10]);
    let document = json!({
        "document": { "file_id": "d1", "file_unique_id": "d1", "file_name": name }, "caption": "read it",
    });
    world.server.write(Place::Private(7), 7, &document);
    let seen = world.server.shown(7, 1).await.remove(0);
    assert_eq!(seen.text, "Thanks.");
    assert!(world.last_read().contains(".pdf` came with this message"));
    world.server.until(|it| it.unconfirmed() == 0).await;
    hub.stopped().await;
}

#[tokio::test]
async fn what_a_person_writes_is_answered_where_they_wrote_it() {
    let world = World::new(Script::repeat(text("**Hello** to you."))).await;
    let hub = world.start();
    world.server.say(Place::Private(7), 7, "hello");
    let seen = world.server.shown(7, 1).await.remove(0);
    assert_eq!(
        (seen.text.as_str(), seen.covered("bold")),
        ("Hello to you.", vec!["Hello".to_owned()])
    );

    world.server.say(Place::Group(-70), 8, "nothing for you");
    world
        .server
        .say(Place::Topic(-80, 5), 8, &format!("@{BOT_NAME} hello"));
    let seen = world.server.shown(-80, 1).await.remove(0);
    assert_eq!(seen.thread_id, Some(5));
    assert_eq!(world.server.texts(-70), Vec::<String>::new());
    assert_eq!(world.model.requests().len(), 2);

    world.server.say(Place::Private(7), 7, "/help");
    let help = world.server.shown(7, 2).await.remove(1);
    assert!(help.text.contains("/approve"), "{}", help.text);
    assert_eq!(world.server.violations(), Vec::<String>::new());
    hub.stopped().await;
}

#[tokio::test]
async fn a_stranger_is_told_their_id_and_asks_no_model() {
    let world = World::new(Script::repeat(text("no"))).await;
    let hub = world.start();
    world.server.say(Place::Private(99), 99, "let me in");
    world.server.say(Place::Private(99), 99, "/approve");
    let seen = world.server.shown(99, 1).await.remove(0);
    assert!(seen.text.contains("telegram:99"), "{}", seen.text);
    world.server.until(|it| it.unconfirmed() == 0).await;
    assert_eq!(world.server.texts(99).len(), 1);
    assert_eq!(world.model.requests().len(), 0);
    hub.stopped().await;
}

#[tokio::test]
async fn a_question_is_answered_by_its_button_after_a_restart_and_by_its_owner_alone() {
    let world = World::new(vec![writes("/etc/rondo-test"), text("It was denied.")]).await;
    let hub = world.start();
    world.server.say(Place::Private(7), 7, "write it");
    world
        .server
        .until(|it| it.seen(7).iter().any(|it| !it.buttons.is_empty()))
        .await;
    hub.stopped().await;
    let question = world.server.seen(7).remove(0);
    let hub = world.start();
    world.server.press(&question, 99, "Deny");
    world.server.until(|it| !it.pressed().is_empty()).await;
    assert_eq!(
        world.server.pressed()[0].1.as_deref(),
        Some("You may not answer this.")
    );
    assert!(
        !world.server.seen(7)[0].buttons.is_empty(),
        "it is still asked"
    );
    world.server.press(&question, 7, "Deny");
    world
        .server
        .until(|it| it.texts(7).iter().any(|it| it == "It was denied."))
        .await;
    assert!(world.server.seen(7)[0].buttons.is_empty());
    assert_eq!(world.server.violations(), Vec::<String>::new());
    hub.stopped().await;
}

#[tokio::test]
async fn an_answer_waits_for_its_chat_and_no_other_waits_with_it() {
    let world = World::new(Script::repeat(text("Hi."))).await;
    world.server.fail_chat(7, Some(Fault::TooMany(1)));
    let hub = world.start();
    world.server.say(Place::Private(7), 7, "hello");
    world.server.say(Place::Private(8), 8, "hello");
    world.server.shown(8, 1).await;
    assert_eq!(world.server.texts(7), Vec::<String>::new());
    world.server.fail_chat(7, None);
    assert_eq!(world.server.shown(7, 1).await[0].text, "Hi.");
    hub.stopped().await;
}

#[tokio::test]
async fn an_update_that_comes_again_is_answered_once_and_a_restart_loses_none() {
    let world = World::new(Script::repeat(text("Hi."))).await;
    let hub = world.start();
    world.server.say(Place::Private(7), 7, "one");
    world.server.shown(7, 1).await;
    let again = json!({
        "update_id": 700_000_001,
        "message": {
            "message_id": 1, "date": 1_780_000_001, "text": "one",
            "chat": { "id": 7, "type": "private" },
            "from": { "id": 7, "is_bot": false, "first_name": "Person 7" },
        },
    });
    hub.stopped().await;
    world.server.push_again(again);
    world.server.say(Place::Private(7), 7, "two");
    let hub = world.start();
    world.server.shown(7, 2).await;
    world.server.until(|it| it.unconfirmed() == 0).await;
    hub.stopped().await;
    assert_eq!(world.server.texts(7), ["Hi.", "Hi."]);
    assert_eq!(world.model.requests().len(), 2);
}

#[tokio::test]
async fn a_voice_message_asks_no_model_and_a_photo_is_seen_by_it() {
    let world = World::new(Script::repeat(text("A picture."))).await;
    let hub = world.start();
    let voice = json!({ "voice": { "file_id": "v", "file_unique_id": "v", "duration": 1 } });
    world.server.write(Place::Private(7), 7, &voice);
    let seen = world.server.shown(7, 1).await.remove(0);
    assert_eq!(
        seen.text,
        "I cannot listen to voice messages. Please write it instead."
    );
    assert_eq!(world.model.requests().len(), 0);
    world
        .server
        .add_file("p", [&b"\x89PNG\r\n\x1a\n"[..], &[0; 50]].concat());
    let photo = json!({ "caption": "what is it?", "photo": [{ "file_id": "p", "file_unique_id": "p", "width": 1, "height": 1 }] });
    world.server.write(Place::Private(7), 7, &photo);
    world.server.shown(7, 2).await;
    assert!(world.last_read().contains("what is it?"));
    assert!(world.last_read().contains("data:image/png;base64,"));
    hub.stopped().await;
}

#[tokio::test]
async fn an_image_that_is_none_or_that_the_provider_refuses_is_answered_in_words() {
    let refusal =
        json!({ "error": { "message": "could not process image", "code": "invalid_image" } });
    let replies = [
        text("A file."),
        Response::text(400, refusal.to_string()),
        text("No picture."),
    ];
    let world = World::new(replies).await;
    let hub = world.start();
    world.server.add_file("none", b"no image".to_vec());
    let cut = b"\x89PNG\r\n\x1a\n".to_vec();
    world.server.add_file("cut", cut);
    let photo = |id: &str| json!({ "photo": [{ "file_id": id, "file_unique_id": id, "width": 1, "height": 1 }] });
    world.server.write(Place::Private(7), 7, &photo("none"));
    let seen = world.server.shown(7, 1).await.remove(0);
    assert_eq!(seen.text, "A file.");
    assert!(
        world
            .last_read()
            .contains("photo.jpg` came with this message]")
    );
    world.server.write(Place::Private(7), 7, &photo("cut"));
    let seen = world.server.shown(7, 2).await.remove(1);
    assert_eq!(seen.text, "No picture.");
    let read = world.last_read();
    assert!(read.contains("cannot be read by this model"), "{read}");
    assert!(!read.contains("data:image/png"), "{read}");
    hub.stopped().await;
}

#[tokio::test]
async fn an_edited_message_of_telegram_replaces_the_one_that_waits() {
    let gate = Gate::new();
    let world = World::new([slow("One.", &gate), text("Two.")]).await;
    let hub = world.start();
    let edited = |id: i64, text: &str, more: Value| {
        let mut message = json!({
            "message_id": id, "date": 5, "edit_date": 6, "text": text,
            "chat": { "id": 7, "type": "private", "first_name": "Ann" },
            "from": { "id": 7, "is_bot": false, "first_name": "Ann" },
        });
        for (name, value) in more.as_object().unwrap() {
            message[name] = value.clone();
        }
        world.server.push("edited_message", message)
    };
    world.server.say(Place::Private(7), 7, "First.");
    world.model.request(0).await;
    world.server.say(Place::Private(7), 7, "Waits.");
    world.server.until(|it| it.unconfirmed() == 0).await;
    edited(2, "Edited.", json!({}));
    world.server.until(|it| it.unconfirmed() == 0).await;
    // A part of an album says not all that was said.
    edited(2, "Part.", json!({ "media_group_id": "a" }));
    let told = world.server.shown(7, 1).await.remove(0);
    assert!(
        told.text.starts_with("I read your message as it was"),
        "{}",
        told.text
    );
    gate.open();
    world.server.shown(7, 3).await;
    hub.stopped().await;
    assert_eq!(world.model.requests().len(), 2);
    let read = world.last_read();
    assert!(
        read.contains("Edited.") && !read.contains("Waits."),
        "{read}"
    );
    assert_eq!(world.server.violations(), Vec::<String>::new());
}

/// What is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns all files below a directory that hold some bytes.
fn holding(directory: &Path, bytes: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holding(&path, bytes));
        } else if is_in(&std::fs::read(&path).unwrap(), bytes) {
            found.push(path.display().to_string());
        }
    }
    found
}

fn is_in(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|it| it == part)
}

#[tokio::test]
async fn the_token_is_in_no_log_no_message_no_file_and_nothing_a_model_reads() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    // The runtime of this test has no other thread.
    let _logged = tracing::subscriber::set_default(subscriber);
    // What other tests met before, without a subscriber, may be known as unheard.
    tracing::callsite::rebuild_interest_cache();
    let world = World::new(Script::repeat(text("A picture."))).await;
    world
        .server
        .add_file("p", [&b"\x89PNG\r\n\x1a\n"[..], &[0; 50]].concat());
    let hub = world.start();
    let photo = |id: &str| json!({ "caption": "what is it?", "photo": [{ "file_id": id, "file_unique_id": id, "width": 1, "height": 1 }] });
    world.server.write(Place::Private(7), 7, &photo("p"));
    world.server.shown(7, 1).await;
    // One that cannot be fetched, and a chat whose server fails.
    world.server.write(Place::Private(7), 7, &photo("missing"));
    world.server.shown(7, 2).await;
    world.server.fail_chat(8, Some(Fault::TooMany(1)));
    world.server.say(Place::Private(8), 8, "hello");
    world.server.until(|it| it.unconfirmed() == 0).await;
    world.server.fail_chat(8, None);
    world.server.shown(8, 1).await;
    hub.stopped().await;
    let secret = TOKEN.split_once(':').unwrap().1.as_bytes();
    let logged = log.0.lock().unwrap();
    assert!(is_in(&logged, b"TRACE"), "much is logged");
    assert!(!is_in(&logged, secret));
    assert_eq!(holding(world.home.path(), secret), Vec::<String>::new());
    for seen in [world.server.texts(7), world.server.texts(8)].concat() {
        assert!(!is_in(seen.as_bytes(), secret), "{seen}");
    }
    for request in world.model.requests() {
        assert!(!is_in(&request.body, secret));
    }
}
