//! Sessions that their host has opened before a service works on them.

use crate::hosting::Yes;
use crate::service::{
    LONG, World, event, gated, is_parked, is_result, results, says, text, until, writes,
};
use async_trait::async_trait;
use rondo_core::session::{Delivery, SessionEvent};
use rondo_core::{TurnEnd, TurnHandle};
use rondo_runtime::error::Result;
use rondo_runtime::service::{
    AskedTurn, Cursor, OpenedSession, SessionHandle, SessionHost, SessionService, UpdateBody,
};
use rondo_runtime::{
    Layer, NoNotices, Runtime, SessionSource, SetupError, Turn, TurnBuilder, parking,
};
use rondo_testkit::Gate;
use rondo_types::{AnswerValue, EventBody, Message, SessionId, StopReason};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Host that records its events, and approves questions if it is set to.
struct Host {
    told: mpsc::UnboundedSender<String>,
    approves: bool,
    asked: Arc<Mutex<Vec<bool>>>,
}

#[async_trait]
impl SessionHost for Host {
    async fn turn(&self, turn: &AskedTurn<'_>, builder: &mut TurnBuilder) -> Result<()> {
        self.asked.lock().unwrap().push(turn.is_of_host);
        if self.approves {
            builder.approver = parking::approver(turn.settings, Arc::new(Yes));
        }
        Ok(())
    }

    fn begins(&self, turn: &Turn, _: &TurnHandle) {
        self.told
            .send(format!("begins {}", turn.session()))
            .unwrap();
    }

    fn ended(&self, _: &SessionId, end: &Result<TurnEnd>) {
        let said = match end {
            Ok(TurnEnd::Done(outcome)) => outcome.text.clone(),
            Ok(TurnEnd::Parked(_)) => "parked".to_owned(),
            Err(error) => error.to_string(),
        };
        self.told.send(format!("ended: {said}")).unwrap();
    }

    fn failed(&self, _: &SessionId, _: Option<&str>, error: &SetupError) {
        self.told.send(format!("failed: {error}")).unwrap();
    }
}

/// A session that is worked on, and its host's news.
struct Hosted {
    _service: SessionService,
    session: SessionHandle,
    told: mpsc::UnboundedReceiver<String>,
    asked: Arc<Mutex<Vec<bool>>>,
}

fn opened(world: &World, source: &SessionSource, message: Option<&str>, approves: bool) -> Hosted {
    let env = crate::env(&world.home, &world.server);
    let runtime = Runtime::new(env, Layer::default(), Arc::new(NoNotices));
    let mut session = runtime.find(source, &world.options()).unwrap();
    session
        .open(message.unwrap_or_default().to_owned())
        .unwrap();
    let message = message.map(|it| (Message::user(it), session.spec().unwrap()));
    let opened = OpenedSession {
        mail: session.mail().unwrap(),
        session,
        message,
    };
    let (sender, told) = mpsc::unbounded_channel();
    let asked = Arc::default();
    let host = Host {
        told: sender,
        approves,
        asked: Arc::clone(&asked),
    };
    let (service, session) = SessionService::of_opened(opened, host).unwrap();
    Hosted {
        _service: service,
        session,
        told,
        asked,
    }
}

impl Hosted {
    /// Waits until nothing works on the session, and returns the host's news.
    async fn told(mut self) -> Vec<String> {
        timeout(LONG, self.session.at_rest()).await.unwrap();
        let mut told = Vec::new();
        while let Ok(more) = self.told.try_recv() {
            told.push(more);
        }
        told
    }
}

#[tokio::test]
async fn the_hosts_message_begins_a_turn_without_a_row_in_the_mailbox() {
    let world = World::new([text(&["It is ", "done."])]).await;
    let hosted = opened(&world, &SessionSource::New, Some("Do it."), false);
    let id = hosted.session.id().clone();
    let mut listener = hosted.session.subscribe_to_next();
    hosted.session.resume();
    let heard = until(&mut listener, is_result).await;
    assert!(heard.iter().any(|it| says(&it.body, "done.")));
    assert_eq!(*hosted.asked.lock().unwrap(), [true]);
    // Another process hears the same, and finds nothing that waits.
    let other = world.service();
    let session = other.find(id.as_str(), world.options()).await.unwrap();
    until(&mut session.subscribe(Cursor::START), is_result).await;
    assert_eq!(session.waiting().await.unwrap(), 0);
    let told = hosted.told().await;
    assert_eq!(told, [format!("begins {id}"), "ended: It is done.".into()]);
}

#[tokio::test]
async fn a_listener_of_what_comes_next_hears_nothing_of_earlier_turns() {
    let world = World::new([text(&["First."]), text(&["Second."])]).await;
    let first = opened(&world, &SessionSource::New, Some("One."), false);
    let source = SessionSource::Id(first.session.id().to_string());
    first.session.resume();
    assert_eq!(first.told().await.len(), 2);
    let second = opened(&world, &source, Some("Two."), false);
    let mut listener = second.session.subscribe_to_next();
    second.session.resume();
    let heard = until(&mut listener, is_result).await;
    assert!(!heard.iter().any(|it| says(&it.body, "First.")));
    assert!(heard.iter().any(|it| says(&it.body, "Second.")));
    let is_asked = |it: &UpdateBody| matches!(it, UpdateBody::Asked { message, .. } if message.text() == "Two.");
    assert!(heard.iter().any(|it| is_asked(&it.body)));
}

#[tokio::test]
async fn a_parked_turn_goes_on_before_the_hosts_message_and_asks_its_host() {
    let world = World::new([
        writes("c1", "one"),
        text(&["Written."]),
        text(&["Also waited."]),
        text(&["And this."]),
    ])
    .await;
    let service = world.service();
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    let submit = |words: &str| session.submit(Message::user(words), Delivery::Queue);
    submit("Write.").await.unwrap();
    until(&mut listener, is_parked).await;
    submit("Then this.").await.unwrap();
    timeout(LONG, session.at_rest()).await.unwrap();
    service.close().await;
    let source = SessionSource::Id(session.id().to_string());
    drop((listener, session, service));
    let hosted = opened(&world, &source, Some("And that."), true);
    let mut listener = hosted.session.subscribe_to_next();
    hosted.session.resume();
    let is_resumed = |it: &UpdateBody| matches!(event(it), Some(EventBody::Resumed { .. }));
    let heard = until(&mut listener, is_resumed).await;
    assert_eq!(results(&heard), 0);
    let is_idle = |it: &UpdateBody| {
        let event = SessionEvent::Idle;
        *it == UpdateBody::Session { event }
    };
    until(&mut listener, is_idle).await;
    assert!(world.project.path().join("one").exists());
    assert_eq!(*hosted.asked.lock().unwrap(), [false, false, true]);
    let told = hosted.told().await;
    let ends = told.iter().filter(|it| it.starts_with("ended"));
    let expected = ["ended: Written.", "ended: Also waited.", "ended: And this."];
    assert_eq!(ends.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn a_session_that_its_host_opened_is_not_taken_again_once_it_was_let_go_of() {
    let world = World::new([writes("c1", "one"), text(&["Written."])]).await;
    let hosted = opened(&world, &SessionSource::New, Some("Write."), false);
    let id = hosted.session.id().clone();
    hosted.session.resume();
    timeout(LONG, hosted.session.at_rest()).await.unwrap();
    // It is parked. Its answer is for the next owner of the session.
    let question = hosted.session.questions().await.unwrap().remove(0);
    let answer = question.answered("ada", AnswerValue::Approve);
    hosted.session.answer(answer).await.unwrap();
    hosted.session.resume();
    let session = hosted.session.clone();
    let told = hosted.told().await;
    assert_eq!(told, [format!("begins {id}"), "ended: parked".into()]);
    assert!(!world.project.path().join("one").exists());
    let other = world.service();
    let other = other.find(id.as_str(), world.options()).await.unwrap();
    let mut listener = other.subscribe(Cursor::START);
    other.resume();
    until(&mut listener, is_result).await;
    drop(session);
    assert!(world.project.path().join("one").exists());
}

#[tokio::test]
async fn another_process_stops_the_turn_of_a_session_that_its_host_opened() {
    let gate = Gate::new();
    let world = World::new([gated(&["One ", "moment."], &gate)]).await;
    let hosted = opened(&world, &SessionSource::New, Some("Go."), false);
    let mut listener = hosted.session.subscribe_to_next();
    hosted.session.resume();
    until(&mut listener, |it| says(it, "One")).await;
    let other = world.service();
    let other = other.session(hosted.session.id().clone(), world.options());
    other.cancel().await.unwrap();
    let heard = until(&mut listener, is_result).await;
    let Some(EventBody::Result(result)) = heard.last().and_then(|it| event(&it.body)) else {
        panic!("{heard:?}");
    };
    assert_eq!(result.stop_reason, StopReason::Cancelled);
    gate.open();
}
