//! A day of a bot: people write to `rondo serve` over Telegram while it is killed, told to stop, and left without its servers.
//! In the end everyone was answered once and in order. Only what people saw counts.
//!
//! `cargo xtask chaos --messages 1000 --stops 100` makes it a long day.

use crate::harness::TestEnv;
use rondo_core::ports::Outbox as _;
use rondo_journal::{Options, Store};
use rondo_testkit::telegram::{BotServer, Fault, Place};
use rondo_testkit::{
    CallScript, Dice, Recorded, ReplyScript, Response, Script, Server, faults, openai,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::process::Child;
use tokio::time::timeout;

const TOKEN: &str = "4200000001:day-SECRETSECRETSECRETSECRETSECRET0";
const CHATS: i64 = 20;
/// How long the day is unless [`DAY`] says otherwise: messages and stops.
const SHORT: (usize, usize) = (100, 10);
/// Names messages, stops and a seed, as `cargo xtask chaos` does.
const DAY: &str = "RONDO_TEST_DAY";
/// How long something that a stop follows is waited for.
const MOMENT: Duration = Duration::from_millis(1_500);
/// After the last stop, everything is answered within this time: Telegram takes one message a second of each chat.
const LIVELY: Duration = Duration::from_secs(90);
/// A hub that is told to stop ends within this time.
const STOPPED: Duration = Duration::from_secs(60);

/// Stops of a day.
#[derive(Debug, Clone, Copy)]
enum Stop {
    Killed,
    Told,
    /// Telegram is gone: connections break before anything was done, or a gateway answers.
    Gone,
    /// Messages land, and the bot is not told.
    Unanswered,
    TooMany,
    Conflict,
    /// The model's reply is cut in the middle, or it has too much to do.
    ModelCut,
}

const STOPS: [Stop; 8] = [
    Stop::Killed,
    Stop::Told,
    Stop::Gone,
    Stop::Killed,
    Stop::Unanswered,
    Stop::TooMany,
    Stop::Conflict,
    Stop::ModelCut,
];

struct Day {
    env: TestEnv,
    telegram: Arc<BotServer>,
    /// Replies that are cut from now on.
    cuts: Arc<AtomicUsize>,
    model: Server,
    hub: Child,
    dice: Dice,
    /// The tasks of each chat, in the order in which they were given.
    given: BTreeMap<i64, Vec<usize>>,
    count: usize,
}

impl Day {
    async fn begin(seed: u64) -> Self {
        let telegram = Arc::new(BotServer::start(TOKEN).await);
        let cuts = Arc::new(AtomicUsize::new(0));
        let cut = Arc::clone(&cuts);
        let model = Server::start(Script::answering(move |request| reply(request, &cut))).await;
        let users: String = (1..=CHATS)
            .map(|it| format!("[hub.users.p{it}]\nrole = 'owner'\nids = ['telegram:{it}']\n"))
            .collect();
        let env = TestEnv::new().var("TELEGRAM_BOT_TOKEN", TOKEN);
        env.user_config(&format!(
            "model = 'local/any'\nbase_url = '{}'\n[hub.channels.api]\nlisten = '127.0.0.1:0'\n[hub.channels.telegram]\nbase_url = '{}'\n{users}",
            model.url("/v1"),
            telegram.url()
        ));
        Self {
            hub: start(&env),
            env,
            telegram,
            cuts,
            model,
            dice: Dice::new(seed),
            given: BTreeMap::new(),
            count: 0,
        }
    }

    fn roll(&mut self, sides: usize) -> usize {
        usize::try_from(self.dice.roll(sides as u64)).unwrap()
    }

    fn write(&mut self) {
        let chat = 1 + i64::try_from(self.roll(CHATS as usize)).unwrap();
        let kinds = ["plain", "plain", "calls", "slowly", "writes"];
        let kind = kinds[self.roll(kinds.len())];
        let number = self.count;
        self.count += 1;
        self.given.entry(chat).or_default().push(number);
        let said = format!("task {number} {kind}");
        self.telegram.say(Place::Private(chat), chat, &said);
    }

    /// Waits until something happened, so that stops meet all that a hub does.
    async fn wait_for_moment(&mut self) {
        let more = 1 + self.roll(3);
        match self.roll(3) {
            0 => {
                let seen = self.telegram.all_seen().len() + more;
                let shown = self.telegram.until(|it| it.all_seen().len() >= seen);
                let _ = timeout(MOMENT, shown).await;
            }
            1 => {
                let asked = self.model.requests().len() + more;
                let _ = timeout(MOMENT, self.model.request(asked)).await;
            }
            _ => {
                let shown = self.telegram.actions().len() + more;
                let typing = self.telegram.until(|it| it.actions().len() >= shown);
                let _ = timeout(MOMENT, typing).await;
            }
        }
    }

    async fn strike(&mut self, stop: Stop) {
        let fail = |method: &str, fault: &Fault, count: usize| {
            (0..count).for_each(|_| self.telegram.fail(method, fault.clone()));
        };
        match stop {
            Stop::Killed => {
                self.hub.kill().await.unwrap();
                self.hub = start(&self.env);
            }
            Stop::Told => self.stop().await,
            Stop::Gone => {
                fail("getUpdates", &Fault::ResetBefore, 2);
                fail("sendMessage", &Fault::ResetBefore, 2);
                fail("sendMessage", &Fault::Gateway(502), 2);
            }
            Stop::Unanswered => fail("sendMessage", &Fault::ResetAfter, 2),
            Stop::TooMany => {
                fail("sendMessage", &Fault::TooMany(1), 3);
                fail("getUpdates", &Fault::TooMany(1), 1);
            }
            Stop::Conflict => {
                let reason = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running";
                fail("getUpdates", &Fault::Refused(409, reason.to_owned()), 2);
            }
            Stop::ModelCut => self.cuts.store(2, Ordering::SeqCst),
        }
    }

    async fn stop(&mut self) {
        let pid = self.hub.id().and_then(|it| Pid::from_raw(it.cast_signed()));
        kill_process(pid.unwrap(), Signal::TERM).unwrap();
        let ended = timeout(STOPPED, self.hub.wait()).await;
        let status = ended.expect("a hub that is told to stop ends").unwrap();
        assert_eq!(status.code(), Some(0), "{}", self.log());
        self.hub = start(&self.env);
    }

    fn log(&self) -> String {
        let log = std::fs::read_to_string(self.env.home().join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    /// Waits until everyone was answered, and returns how often the hub says that it sent something again in doubt.
    async fn end(&mut self) -> u64 {
        let answered = self.telegram.until(|it| {
            self.given
                .iter()
                .all(|(chat, tasks)| answers(it, *chat) == *tasks)
        });
        let is_answered = timeout(LIVELY, answered).await.is_ok();
        assert!(is_answered, "{}\n{}", self.wrong(), self.log());
        self.telegram.until(|it| it.unconfirmed() == 0).await;
        self.hub.kill().await.unwrap();
        let sessions = self.env.home().join(".local/share/rondo/sessions");
        let store = Store::open(&sessions, Options::default()).unwrap();
        store.counts().await.unwrap().doubts
    }

    /// Returns the chats that did not see the expected messages.
    fn wrong(&self) -> String {
        let chats = self.given.iter();
        let wrong = chats.filter(|(chat, tasks)| answers(&self.telegram, **chat) != **tasks);
        let lines = wrong.map(|(chat, tasks)| {
            let saw = self.telegram.texts(*chat);
            format!("chat {chat} was given {tasks:?} and saw {saw:?}\n")
        });
        lines.collect()
    }

    /// Returns the messages that people saw again, and checks that they saw nothing else.
    fn repeats(&self) -> u64 {
        let mut known = BTreeSet::new();
        let seen = self.telegram.all_seen();
        let is_asked = |text: &str| text.contains("write_file");
        let repeated = seen.iter().filter(|it| {
            let is_answer = it.text.starts_with("Answer ") && it.text.ends_with('.');
            assert!(is_answer || is_asked(&it.text), "{it:?}");
            !known.insert(it.text.clone())
        });
        repeated.count() as u64
    }
}

fn start(env: &TestEnv) -> Child {
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(env.home().join("log"))
        .unwrap();
    let mut command = env.command(&["serve"]);
    command.stdout(Stdio::null()).stderr(Stdio::from(log));
    command.spawn().unwrap()
}

/// The tasks whose answers a chat saw, each once.
fn answers(telegram: &BotServer, chat: i64) -> Vec<usize> {
    let mut known = BTreeSet::new();
    let texts = telegram.texts(chat).into_iter();
    let numbers = texts.filter_map(|it| {
        let number = it.strip_prefix("Answer ")?.strip_suffix('.')?;
        number.parse().ok()
    });
    numbers.filter(|it| known.insert(*it)).collect()
}

/// Answers as the last message asks: with some calls, slowly, or after a question.
fn reply(request: &Recorded, cuts: &AtomicUsize) -> Response {
    let body = request.json();
    let messages = body["messages"].as_array().unwrap();
    let said = messages.iter().rposition(|it| it["role"] == "user");
    let since = &messages[said.unwrap()..];
    let made = since.iter().filter(|it| it["role"] == "tool").count();
    let text = text_of(&since[0]);
    let mut words = text.lines().last().unwrap_or_default().split(' ').skip(1);
    let (number, kind) = (words.next().unwrap_or("?"), words.next());
    let answer = ReplyScript::text(["Answer ".to_owned(), format!("{number}.")]).usage(10, 10);
    let is_cut = cuts.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |it| it.checked_sub(1));
    match is_cut {
        Ok(2) => return faults::cut_after(openai::frames(&answer).drain(..2).collect()),
        Ok(_) => return faults::rate_limited(Some(0)),
        Err(_) => {}
    }
    let call = |name: &str, arguments: &Value| {
        let call = CallScript::new(&format!("c{number}-{made}"), name, arguments);
        openai::streamed(&ReplyScript::calls([call]).usage(10, 10))
    };
    match kind {
        Some("calls") if made < 2 => call("list_files", &json!({"path": "."})),
        Some("writes") if made == 0 => call(
            "write_file",
            &json!({"path": format!("note{number}"), "content": number}),
        ),
        Some("slowly") => openai::streamed(&answer).byte_by_byte(),
        _ => openai::streamed(&answer),
    }
}

fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|it| it["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// Presses what is asked, as people would: each question once, also if it was sent again.
async fn press(telegram: Arc<BotServer>) {
    let mut pressed = BTreeSet::new();
    loop {
        let is_new = |telegram: &BotServer| {
            let mut seen = telegram.all_seen().into_iter();
            seen.find(|it| !it.buttons.is_empty() && !pressed.contains(&it.text))
        };
        telegram.until(|it| is_new(it).is_some()).await;
        let Some(question) = is_new(&telegram) else {
            continue;
        };
        pressed.insert(question.text.clone());
        telegram.press(&question, question.chat_id, &question.buttons[0].0);
    }
}

fn length() -> (usize, usize, u64) {
    let told = std::env::var(DAY).unwrap_or_default();
    let numbers: Vec<u64> = told.split(' ').filter_map(|it| it.parse().ok()).collect();
    match numbers[..] {
        [messages, stops, seed] => (messages as usize, stops as usize, seed),
        _ => (SHORT.0, SHORT.1, u64::from(std::process::id())),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_day_of_stops_everyone_is_answered_once_and_in_order() {
    let (messages, stops, seed) = length();
    println!("{messages} messages, {stops} stops, seed {seed}");
    let mut day = Day::begin(seed).await;
    let pressing = tokio::spawn(press(Arc::clone(&day.telegram)));
    for stop in 0..stops {
        while day.count < messages * (stop + 1) / stops {
            day.write();
        }
        day.wait_for_moment().await;
        day.strike(STOPS[stop % STOPS.len()]).await;
    }
    let doubts = day.end().await;
    pressing.abort();
    let repeats = day.repeats();
    println!("{repeats} messages were seen again, {doubts} were sent again in doubt");
    assert!(
        repeats <= doubts,
        "{repeats} were seen again, the hub counted {doubts}"
    );
    assert_eq!(day.telegram.violations(), Vec::<String>::new());
}
