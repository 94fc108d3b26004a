//! A service of sessions: listeners, messages that wait, questions, restarts.

use crate::env;
use rondo_core::ports::{MailBody, Mailbox as _, NewMail};
use rondo_core::session::{Delivery, SessionEvent};
use rondo_runtime::service::{
    Cursor, NoHost, SessionHandle, SessionHost, SessionService, Subscription, Update, UpdateBody,
};
use rondo_runtime::{Layer, NoNotices, Runtime, SessionOptions};
use rondo_testkit::{CallScript, Dice, Gate, ReplyScript, Response, Script, Server, Step, openai};
use rondo_types::{
    Answer, AnswerValue, EventBody, Media, MediaKind, MediaSource, Message, Part, Question,
    SessionId,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Timeout that nothing here reaches; a listener that hangs fails its test.
pub(crate) const LONG: Duration = Duration::from_secs(20);

pub(crate) struct World {
    pub(crate) home: tempfile::TempDir,
    pub(crate) project: tempfile::TempDir,
    pub(crate) server: Server,
}

impl World {
    pub(crate) async fn new(replies: impl Into<Script>) -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
            project: tempfile::tempdir().unwrap(),
            server: Server::start(replies).await,
        }
    }

    pub(crate) fn options(&self) -> SessionOptions {
        SessionOptions::in_directory(self.project.path())
    }

    pub(crate) fn service(&self) -> SessionService {
        self.service_with(Layer::default())
    }

    pub(crate) fn service_with(&self, flags: Layer) -> SessionService {
        self.service_of(flags, NoHost)
    }

    pub(crate) fn service_of(&self, flags: Layer, host: impl SessionHost) -> SessionService {
        let env = env(&self.home, &self.server);
        let runtime = Runtime::new(env, flags, Arc::new(NoNotices));
        SessionService::open(runtime, self.project.path().to_owned(), host).unwrap()
    }
}

pub(crate) fn text(pieces: &[&str]) -> Response {
    openai::streamed(&ReplyScript::text(pieces.iter().copied()).usage(1, 1))
}

pub(crate) fn writes(id: &str, path: &str) -> Response {
    let call = CallScript::new(id, "write_file", &json!({"path": path, "content": id}));
    openai::streamed(&ReplyScript::calls([call]).usage(1, 1))
}

/// A reply that stops before its last pieces until the gate opens.
pub(crate) fn gated(pieces: &[&str], gate: &Gate) -> Response {
    let reply = ReplyScript::text(pieces.iter().copied()).usage(1, 1);
    let mut frames = openai::frames(&reply);
    let rest = frames.split_off(pieces.len().min(frames.len() - 1));
    let mut response = Response::sse(frames).step(Step::Gate(gate.clone()));
    for frame in rest {
        response = response.send(frame);
    }
    response
}

pub(crate) async fn next(listener: &mut Subscription) -> Update {
    let next = timeout(LONG, listener.next()).await;
    next.expect("nothing was told").unwrap()
}

/// Listens up to an update.
pub(crate) async fn until(
    listener: &mut Subscription,
    is_last: impl Fn(&UpdateBody) -> bool,
) -> Vec<Update> {
    let mut all = Vec::new();
    loop {
        let update = next(listener).await;
        let is_last = is_last(&update.body);
        all.push(update);
        if is_last {
            return all;
        }
    }
}

pub(crate) fn event(body: &UpdateBody) -> Option<&EventBody> {
    match body {
        UpdateBody::Turn { event } => Some(&event.body),
        _ => None,
    }
}

pub(crate) fn is_result(body: &UpdateBody) -> bool {
    matches!(event(body), Some(EventBody::Result(_)))
}

pub(crate) fn is_parked(body: &UpdateBody) -> bool {
    matches!(event(body), Some(EventBody::Parked { .. }))
}

/// Returns whether a delta says this.
pub(crate) fn says(body: &UpdateBody, said: &str) -> bool {
    matches!(event(body), Some(EventBody::TextDelta { text }) if text.contains(said))
}

/// Returns the number of turns that are over when this update is the last one.
pub(crate) fn results(updates: &[Update]) -> usize {
    updates.iter().filter(|it| is_result(&it.body)).count()
}

/// Page that a listener builds from its updates: deltas appended, and reset ones removed.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Page {
    lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq)]
struct Line {
    /// Turn, run, update.
    place: (u64, u64, u64),
    text: String,
}

impl Page {
    pub(crate) fn of(updates: &[Update]) -> Self {
        let mut page = Self::default();
        updates.iter().for_each(|it| page.take(it));
        page
    }

    fn take(&mut self, update: &Update) {
        let numbers: Vec<u64> = update
            .cursor
            .to_string()
            .split('.')
            .map(|it| it.parse().unwrap())
            .collect();
        let [turn, run, number, offset, ..] = numbers[..] else {
            panic!("{numbers:?}");
        };
        let place = (turn, run, number);
        let offset = usize::try_from(offset).unwrap();
        match &update.body {
            UpdateBody::Session { .. }
            | UpdateBody::Cell { .. }
            | UpdateBody::Failed { .. }
            | UpdateBody::Missed { .. } => {}
            UpdateBody::Reset => {
                self.lines.retain(|it| it.place <= place);
                if let Some(last) = self
                    .lines
                    .last_mut()
                    .filter(|it| it.place == place && offset > 0)
                {
                    last.text.truncate(offset);
                }
            }
            UpdateBody::Asked { message, .. } => {
                self.line(place, format!("asked {}", message.text()))
            }
            UpdateBody::Turn { event } => match &event.body {
                EventBody::ToolOutputDelta { .. } => {}
                EventBody::TextDelta { text } => match self.lines.last_mut() {
                    Some(last) if last.place == place => last.text += text,
                    _ => self.line(place, text.clone()),
                },
                body => self.line(place, serde_json::to_string(body).unwrap()),
            },
        }
    }

    fn line(&mut self, place: (u64, u64, u64), text: String) {
        if let Some(last) = self.lines.last() {
            assert!(last.place < place, "{last:?} before {place:?} {text}");
        }
        self.lines.push(Line { place, text });
    }

    /// Fails with the first line that differs, and the text around it.
    pub(crate) fn assert_is(&self, expected: &Self, what: &str) {
        let both = self.lines.iter().zip(&expected.lines);
        let same = both.take_while(|(it, other)| it == other).count();
        let around = |page: &Self| {
            let lines = page.lines.iter().skip(same.saturating_sub(2)).take(5);
            let lines = lines.map(|it| format!("{:?} {:.200}\n", it.place, it.text));
            lines.collect::<String>()
        };
        assert!(
            self == expected,
            "{what}:\n{}is not\n{}",
            around(self),
            around(expected)
        );
    }

    fn append(mut self, updates: &[Update]) -> Self {
        updates.iter().for_each(|it| self.take(it));
        self
    }
}

pub(crate) fn approve(question: &Question) -> Answer {
    question.answered("someone", AnswerValue::Approve)
}

#[tokio::test]
async fn two_listeners_hear_the_same_and_one_that_comes_later_too() {
    let world = World::new([
        writes("c1", "one"),
        text(&["It ", "is ", "done."]),
        text(&["Bye."]),
    ])
    .await;
    let service = world.service();
    let session = service.new_session(world.options());
    let mut listeners = [
        session.subscribe(Cursor::START),
        session.subscribe(Cursor::START),
    ];
    session
        .submit(Message::user("Write."), Delivery::Queue)
        .await
        .unwrap();
    let mut heard = [Vec::new(), Vec::new()];
    for (listener, heard) in listeners.iter_mut().zip(&mut heard) {
        heard.extend(until(listener, is_parked).await);
    }
    session
        .answer(approve(&session.questions().await.unwrap()[0]))
        .await
        .unwrap();
    for (listener, heard) in listeners.iter_mut().zip(&mut heard) {
        heard.extend(until(listener, is_result).await);
    }
    session
        .submit(Message::user("Bye."), Delivery::Queue)
        .await
        .unwrap();
    for (listener, heard) in listeners.iter_mut().zip(&mut heard) {
        heard.extend(until(listener, is_result).await);
    }
    assert!(world.project.path().join("one").exists());
    let page = Page::of(&heard[0]);
    assert_eq!(page, Page::of(&heard[1]));
    service.close().await;
    // By the records alone, in this process and in another one.
    for service in [service, world.service()] {
        let session = service.session(session.id().clone(), world.options());
        let mut late = session.subscribe(Cursor::START);
        let mut told = Vec::new();
        while results(&told) < 2 {
            told.push(next(&mut late).await);
        }
        assert_eq!(Page::of(&told), page);
    }
}

/// Has a file written and allows it, and returns what was told until the question.
async fn written(session: &SessionHandle, listener: &mut Subscription) -> Vec<Update> {
    let message = Message::user("Write.");
    session.submit(message, Delivery::Queue).await.unwrap();
    let told = until(listener, is_parked).await;
    let question = session.questions().await.unwrap().remove(0);
    session.answer(approve(&question)).await.unwrap();
    told
}

#[tokio::test]
async fn who_reconnects_with_any_cursor_misses_nothing_and_hears_nothing_twice() {
    let world = World::new([
        writes("c1", "one"),
        text(&["It ", "is ", "done."]),
        text(&["Good ", "bye."]),
    ])
    .await;
    let service = world.service();
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    let mut all = written(&session, &mut listener).await;
    all.extend(until(&mut listener, is_result).await);
    session
        .submit(Message::user("Bye."), Delivery::Queue)
        .await
        .unwrap();
    all.extend(until(&mut listener, is_result).await);
    let page = Page::of(&all);
    drop(listener);
    let other = world.service();
    for service in [&service, &other] {
        let session = service.session(session.id().clone(), world.options());
        for at in 0..all.len() {
            let before = &all[..=at];
            let mut back = session.subscribe(all[at].cursor);
            let mut told = Vec::new();
            while results(before) + results(&told) < 2 {
                told.push(next(&mut back).await);
            }
            assert_eq!(
                Page::of(before).append(&told),
                page,
                "from {}",
                all[at].cursor
            );
        }
    }
}

#[tokio::test]
async fn messages_wait_for_the_turn_that_runs_and_can_be_changed_until_theirs_begins() {
    let gate = Gate::new();
    let world = World::new([
        gated(&["One ", "moment."], &gate),
        text(&["Second."]),
        text(&["Third."]),
    ])
    .await;
    let service = world.service();
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    let first = session
        .submit(Message::user("first"), Delivery::Queue)
        .await
        .unwrap();
    until(&mut listener, |it| says(it, "One")).await;
    let second = session
        .submit(Message::user("second"), Delivery::Queue)
        .await
        .unwrap();
    let third = session
        .submit(Message::user("third"), Delivery::Queue)
        .await
        .unwrap();
    let fourth = session
        .submit(Message::user("fourth"), Delivery::Queue)
        .await
        .unwrap();
    assert!(second.edit(Message::user("second, changed")).await.unwrap());
    assert!(third.withdraw().await.unwrap());
    assert!(!third.withdraw().await.unwrap());
    assert!(!first.edit(Message::user("too late")).await.unwrap());
    gate.open();
    let mut told = Vec::new();
    while results(&told) < 3 {
        told.push(next(&mut listener).await);
    }
    let asked = told.iter().filter_map(|it| match &it.body {
        UpdateBody::Asked { message, .. } => Some(message.text()),
        _ => None,
    });
    let asked: Vec<String> = asked.collect();
    assert_eq!(asked, ["second, changed", "fourth"]);
    assert!(!fourth.withdraw().await.unwrap());
    assert_eq!(world.server.requests().len(), 3);
}

#[tokio::test]
async fn a_question_is_answered_from_another_process_and_both_hear_what_follows() {
    let world = World::new([writes("c1", "one"), text(&["Done."])]).await;
    let (here, there) = (world.service(), world.service());
    let session = here.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    session
        .submit(Message::user("Write."), Delivery::Queue)
        .await
        .unwrap();
    let mut heard = until(&mut listener, is_parked).await;
    let remote = there.session(session.id().clone(), world.options());
    let mut other = remote.subscribe(Cursor::START);
    let mut heard_there = until(&mut other, is_parked).await;
    remote
        .answer(approve(&remote.questions().await.unwrap()[0]))
        .await
        .unwrap();
    heard.extend(until(&mut listener, is_result).await);
    heard_there.extend(until(&mut other, is_result).await);
    assert!(world.project.path().join("one").exists());
    assert_eq!(Page::of(&heard), Page::of(&heard_there));
}

#[tokio::test]
async fn a_turn_is_stopped_from_another_process() {
    let gate = Gate::new();
    let world = World::new([gated(&["One ", "moment."], &gate)]).await;
    let (here, there) = (world.service(), world.service());
    let session = here.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    session
        .submit(Message::user("first"), Delivery::Queue)
        .await
        .unwrap();
    until(&mut listener, |it| says(it, "One")).await;
    let remote = there.session(session.id().clone(), world.options());
    remote.cancel().await.unwrap();
    let told = until(&mut listener, is_result).await;
    let Some(EventBody::Result(result)) = told.last().and_then(|it| event(&it.body)) else {
        panic!("{told:?}");
    };
    assert_eq!(result.stop_reason, rondo_types::StopReason::Cancelled);
    gate.open();
}

#[tokio::test]
async fn steering_joins_the_turn_that_runs_once() {
    let gate = Gate::new();
    let read = CallScript::new("c", "read_file", &json!({"path": "."}));
    let mut call = openai::frames(&ReplyScript::calls([read]).usage(1, 1)).into_iter();
    let first = call.next().unwrap();
    let mut reply = Response::sse([first]).step(Step::Gate(gate.clone()));
    for frame in call {
        reply = reply.send(frame);
    }
    let world = World::new([reply, text(&["Blue it is."]), text(&["Bye."])]).await;
    let service = world.service();
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    session
        .submit(Message::user("Paint."), Delivery::Queue)
        .await
        .unwrap();
    gate.reached().await;
    let mut in_blue = Message::user("In blue.");
    in_blue.parts.push(Part::Media(Media {
        kind: MediaKind::Image,
        mime: "image/png".to_owned(),
        name: Some("sketch.png".to_owned()),
        source: MediaSource::Base64("QUJD".to_owned()),
    }));
    session.submit(in_blue, Delivery::Steer).await.unwrap();
    until(&mut listener, |it| matches!(it, UpdateBody::Turn { event } if matches!(event.body, EventBody::StepStarted { .. }))).await;
    gate.open();
    let told = until(&mut listener, |it| {
        matches!(
            it,
            UpdateBody::Session {
                event: SessionEvent::Idle
            }
        )
    })
    .await;
    let steered = told.iter().filter(
        |it| matches!(event(&it.body), Some(EventBody::Steered { media, .. }) if media.len() == 1),
    );
    assert_eq!((steered.count(), results(&told)), (1, 1));
    session
        .submit(Message::user("Bye."), Delivery::Queue)
        .await
        .unwrap();
    let told = until(&mut listener, is_result).await;
    assert_eq!(results(&told), 1);
    assert_eq!(world.server.requests().len(), 3);
}

/// Runs something in a process of its own, as far as the session can tell: what runs is gone when it returns.
pub(crate) fn process<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(work)
}

/// A world whose server outlives the processes; it ends with the tests.
pub(crate) fn served_apart(replies: impl Into<Script> + Send + 'static) -> World {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        process(async {
            sender.send(World::new(replies).await).unwrap();
            std::future::pending::<()>().await;
        });
    });
    receiver.recv().unwrap()
}

#[test]
fn what_a_listener_was_told_and_was_lost_with_its_process_is_taken_back() {
    let gate = Gate::new();
    let world = served_apart([
        writes("c1", "one"),
        gated(&["Half ", "of ", "it."], &gate),
        text(&["The whole."]),
    ]);
    let (id, told) = process(async {
        let service = world.service();
        let session = service.new_session(world.options());
        let mut listener = session.subscribe(Cursor::START);
        let mut told = written(&session, &mut listener).await;
        told.extend(until(&mut listener, |it| says(it, "of")).await);
        (session.id().clone(), told)
    });
    let (rest, fresh) = process(async {
        let service = world.service();
        let session = service.session(id.clone(), world.options());
        let cursors = told.iter().map(|it| it.cursor);
        let mut back: Vec<Subscription> = cursors.map(|it| session.subscribe(it)).collect();
        session.resume();
        let mut rest = Vec::new();
        for listener in &mut back {
            rest.push(until(listener, is_result).await);
        }
        let fresh = until(&mut session.subscribe(Cursor::START), is_result).await;
        (rest, fresh)
    });
    let page = Page::of(&fresh);
    for (at, rest) in rest.iter().enumerate() {
        assert_eq!(
            Page::of(&told[..=at]).append(rest),
            page,
            "from {}",
            told[at].cursor
        );
    }
    let is_reset = |it: &Update| it.body == UpdateBody::Reset;
    assert!(rest.last().unwrap().iter().any(is_reset));
    let texts = page.lines.iter().filter(|it| it.text == "The whole.");
    assert_eq!(texts.count(), 1);
}

#[tokio::test]
async fn a_session_is_summed_up_and_a_listener_hears_of_it() {
    let long = "word ".repeat(200);
    let world = World::new([
        text(&[&long]),
        text(&["In short: words."]),
        text(&["Words."]),
    ])
    .await;
    let service = world.service();
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    session.compact("").await.unwrap();
    until(&mut listener, |it| matches!(it, UpdateBody::Failed { message, .. } if message.contains("nothing to summarize"))).await;
    let first = Message::user("Words, please.");
    session.submit(first, Delivery::Queue).await.unwrap();
    let mut told = until(&mut listener, is_result).await;
    session.compact("verbs").await.unwrap();
    told.extend(until(&mut listener, is_result).await);
    let compacted = |it: &Update| matches!(event(&it.body), Some(EventBody::Compacted { .. }));
    assert!(told.iter().any(compacted));
    let next = Message::user("What was said?");
    session.submit(next, Delivery::Queue).await.unwrap();
    told.extend(until(&mut listener, is_result).await);
    let asked = world.server.requests()[2].json().to_string();
    assert!(asked.contains("In short: words.") && !asked.contains("word word"));
    let mut late = session.subscribe(Cursor::START);
    let mut again = Vec::new();
    while results(&again) < 3 {
        again.push(self::next(&mut late).await);
    }
    Page::of(&again).assert_is(&Page::of(&told), "told again");
}

#[tokio::test]
async fn sessions_that_begin_in_one_millisecond_have_different_ids() {
    let world = World::new(Vec::<Response>::new()).await;
    let service = world.service();
    let sessions: Vec<_> = (0..1_000)
        .map(|_| service.new_session(world.options()))
        .collect();
    let ids: BTreeSet<_> = sessions.iter().map(|it| it.id().clone()).collect();
    assert_eq!(ids.len(), sessions.len());
}

#[tokio::test]
async fn a_thousand_sessions_that_wait_cost_no_task_and_no_descriptor_each() {
    let world = World::new(Vec::<Response>::new()).await;
    let service = world.service();
    let sessions: Vec<_> = (0..1_000)
        .map(|_| service.new_session(world.options()))
        .collect();
    let count = || std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let before = (count(), tasks());
    let listeners: Vec<_> = sessions
        .iter()
        .map(|it| it.subscribe(Cursor::START))
        .collect();
    let after = (count(), tasks());
    assert_eq!(after.1, before.1);
    // Other tests open theirs meanwhile.
    assert!(after.0 < before.0 + 100, "{before:?} {after:?}");
    drop(listeners);
}

#[tokio::test]
async fn a_turn_that_cannot_begin_says_why_and_its_message_waits() {
    let world = World::new([text(&["Now."])]).await;
    let service = world.service();
    let session = service.session(SessionId::new("s-1"), world.options());
    let mut listener = session.subscribe(Cursor::START);
    let settings = world.home.path().join("config.toml");
    std::fs::write(&settings, "model = 1\n").unwrap();
    session
        .submit(Message::user("first"), Delivery::Queue)
        .await
        .unwrap();
    let told = until(&mut listener, |it| matches!(it, UpdateBody::Failed { .. })).await;
    let Some(UpdateBody::Failed { message, .. }) = told.last().map(|it| &it.body) else {
        panic!("{told:?}");
    };
    assert!(message.contains("config.toml"), "{message}");
    std::fs::remove_file(settings).unwrap();
    session.resume();
    let told = until(&mut listener, is_result).await;
    assert_eq!(Page::of(&told).lines[0].text, "asked first");
}

#[tokio::test]
async fn a_session_that_cannot_be_taken_is_not_tried_once_for_each_message() {
    let world = World::new(Vec::<Response>::new()).await;
    let service = world.service();
    std::fs::write(world.home.path().join("config.toml"), "model = 1\n").unwrap();
    let id = SessionId::new("s-1");
    let journal = world.home.path().join("data/sessions");
    let store = rondo_journal::Store::open(&journal, rondo_journal::Options::default()).unwrap();
    for number in 0..20 {
        let mail = NewMail {
            session: id.clone(),
            key: format!("m{number}"),
            actor: "another process".to_owned(),
            at_ms: rondo_types::TimeMs(0),
            body: MailBody::Message {
                message: Message::user("hello"),
                delivery: Delivery::Queue,
            },
        };
        store.push(mail).await.unwrap();
    }
    let session = service.session(id, world.options());
    let mut listener = session.subscribe(Cursor::START);
    session.resume();
    let mut failed = 0;
    while let Ok(update) = timeout(Duration::from_millis(200), listener.next()).await {
        failed += usize::from(matches!(update.unwrap().body, UpdateBody::Failed { .. }));
    }
    // The watcher has it looked at, too.
    assert!((1..=10).contains(&failed), "{failed}");
}

/// Replies by what was said last: a message is answered with a call, and a result with some text.
fn by_what_was_said() -> Script {
    Script::answering(|request| {
        let request = request.json();
        let messages = request.get("messages").and_then(Value::as_array).unwrap();
        let last = messages.last().unwrap();
        let count = messages.len();
        if request.get("tools").is_none() {
            return text(&["In ", "short."]);
        }
        match last.get("role").and_then(Value::as_str).unwrap() {
            "tool" => text(&[
                "It ",
                "is ",
                "done",
                &format!(" {count}."),
                &" Well.".repeat(99),
            ]),
            _ => writes(&format!("c{count}"), &format!("file{count}")),
        }
    })
}

/// The messages of [`cut_off_at_random`]; the last one joins a turn that runs, or begins its own.
const MESSAGES: [(&str, Delivery); 5] = [
    ("message 0", Delivery::Queue),
    ("message 1", Delivery::Queue),
    ("sum up", Delivery::Compact),
    ("message 2", Delivery::Queue),
    ("steering", Delivery::Steer),
];

impl Page {
    /// Messages, in order.
    fn said(&self) -> Vec<&str> {
        let said = self.lines.iter().filter_map(|it| {
            let steered = it.text.starts_with(r#"{"type":"steered""#);
            it.text
                .strip_prefix("asked ")
                .or(steered.then_some("steering"))
        });
        said.collect()
    }

    /// Returns whether all messages were said, and all turns are over.
    fn is_done(&self) -> bool {
        let count = |text: &str| {
            let lines = self.lines.iter();
            lines.filter(|it| it.text.starts_with(text)).count()
        };
        self.said().len() >= MESSAGES.len() && count("asked ") == count(r#"{"type":"result""#)
    }
}

/// One listener over many processes, each of which ends after some updates.
fn cut_off_at_random(world: &World, seed: u64) {
    let mut dice = Dice::new(seed);
    let id = SessionId::new(format!("s-{seed}"));
    let (mut page, mut cursor) = (Page::default(), Cursor::START);
    let mut answered = Vec::new();
    while !page.is_done() {
        let most = 1 + dice.roll(40);
        process(async {
            let services = [world.service(), world.service()];
            let sessions = services
                .each_ref()
                .map(|it| it.session(id.clone(), world.options()));
            let of = |dice: &mut Dice| match dice.roll(2) {
                0 => &sessions[0],
                _ => &sessions[1],
            };
            let mut listener = of(&mut dice).subscribe(cursor);
            for (text, delivery) in MESSAGES {
                let message = Message::user(text);
                let submitted = of(&mut dice).submit_as(text, "me", message, delivery);
                submitted.await.unwrap();
            }
            of(&mut dice).resume();
            for _ in 0..most {
                if page.is_done() {
                    break;
                }
                for question in sessions[0].questions().await.unwrap() {
                    if !answered.contains(&question.hash) || dice.roll(4) == 0 {
                        of(&mut dice).answer(approve(&question)).await.unwrap();
                        answered.push(question.hash);
                    }
                }
                // A question may be reported before it is seen here that it is asked.
                let Ok(update) = timeout(Duration::from_millis(300), listener.next()).await else {
                    answered.clear();
                    continue;
                };
                let update = update.unwrap();
                page.take(&update);
                cursor = update.cursor;
            }
        });
    }
    let fresh = process(async {
        let service = world.service();
        let session = service.session(id.clone(), world.options());
        let mut listener = session.subscribe(Cursor::START);
        let mut fresh = Page::default();
        while !fresh.is_done() {
            fresh.take(&next(&mut listener).await);
        }
        fresh
    });
    page.assert_is(&fresh, &format!("seed {seed}"));
    let mut said = fresh.said();
    assert_eq!(said.len(), MESSAGES.len(), "seed {seed}: {said:?}");
    said.retain(|it| *it != "steering");
    assert_eq!(
        said,
        ["message 0", "message 1", "sum up", "message 2"],
        "seed {seed}"
    );
    let compacted = fresh
        .lines
        .iter()
        .filter(|it| it.text.starts_with(r#"{"type":"compacted""#));
    assert_eq!(compacted.count(), 1, "seed {seed}");
}

#[test]
fn a_listener_of_a_session_whose_processes_end_at_random_has_what_the_records_say() {
    let count = std::env::var("RONDO_CUT_OFF_CASES").map_or(6, |it| it.parse().unwrap());
    for seed in 0..count {
        cut_off_at_random(&served_apart(by_what_was_said()), seed);
    }
}
