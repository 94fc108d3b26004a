//! Decisions of a host about its sessions: their settings, when turns may begin, and cells that it runs itself.

use crate::service::{LONG, World, gated, is_parked, is_result, says, text, until, writes};
use async_trait::async_trait;
use rondo_core::ports::{CellEnding, RecordBody};
use rondo_core::redact::Secrets;
use rondo_core::session::{Delivery, TicketId};
use rondo_core::{Approver, QuestionReply};
use rondo_runtime::error::Result;
use rondo_runtime::service::{
    AskedTurn, Cell, CellEnd, CellEvent, Cursor, LentPython, SessionHandle, SessionHost,
    SessionService, SortedCells, UpdateBody,
};
use rondo_runtime::sessions::Cells;
use rondo_runtime::settings::Settings;
use rondo_runtime::{Layer, NoNotices, Runtime, SetupErrorKind, TurnBuilder};
use rondo_testkit::{CallScript, Gate, ReplyScript, Step, openai};
use rondo_types::{AnswerValue, Message, Question, SessionId};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::time::timeout;

/// Decisions of a test's host.
#[derive(Default)]
struct Decided {
    settings: Mutex<Option<Settings>>,
    is_closed: AtomicBool,
    asks_again: AtomicBool,
    /// The same session in another process, which edits the message that the next turn is built for.
    editor: Mutex<Option<SessionHandle>>,
}

struct Host(Arc<Decided>);

/// Allows everything.
pub(crate) struct Yes;

#[async_trait]
impl Approver for Yes {
    async fn ask(&self, question: &Question) -> QuestionReply {
        QuestionReply::Answered(question.answered("host", AnswerValue::Approve), None)
    }
}

#[async_trait]
impl SessionHost for Host {
    async fn turn(&self, turn: &AskedTurn<'_>, builder: &mut TurnBuilder) -> Result<()> {
        let editor = self.0.editor.lock().unwrap().take();
        if let Some((editor, (key, _))) = editor.zip(turn.begins) {
            let ticket = TicketId(key.to_owned());
            let edited = editor.edit(&ticket, Message::user("Edited."));
            assert!(edited.await.unwrap());
        }
        if self.0.asks_again.load(Ordering::Relaxed) {
            builder.approver = Arc::new(Yes);
        }
        Ok(())
    }

    fn settings(&self, _: &SessionId) -> Option<Settings> {
        self.0.settings.lock().unwrap().clone()
    }

    fn lets_begin(&self, _: &SessionId) -> bool {
        !self.0.is_closed.load(Ordering::Relaxed)
    }

    fn asks_again(&self, _: &SessionId) -> bool {
        self.0.asks_again.load(Ordering::Relaxed)
    }
}

fn hosted(world: &World) -> (SessionService, Arc<Decided>) {
    let decided = Arc::<Decided>::default();
    let service = world.service_of(Layer::default(), Host(Arc::clone(&decided)));
    (service, decided)
}

async fn submit(session: &SessionHandle, text: &str) {
    let submitted = session.submit(Message::user(text), Delivery::Queue).await;
    submitted.unwrap();
}

async fn rests(session: &SessionHandle) {
    timeout(LONG, session.at_rest()).await.unwrap();
}

#[tokio::test]
async fn a_message_waits_until_the_host_lets_its_turn_begin() {
    let world = World::new([text(&["Hello."])]).await;
    let (service, decided) = hosted(&world);
    let session = service.new_session(world.options());
    decided.is_closed.store(true, Ordering::Relaxed);
    submit(&session, "Hello?").await;
    rests(&session).await;
    assert_eq!(session.waiting().await.unwrap(), 1);
    assert_eq!(world.server.requests().len(), 0);
    decided.is_closed.store(false, Ordering::Relaxed);
    let mut listener = session.subscribe(Cursor::START);
    session.look();
    let heard = until(&mut listener, is_result).await;
    assert!(heard.iter().any(|it| says(&it.body, "Hello.")));
}

#[tokio::test]
async fn a_turn_works_with_the_settings_that_the_host_gives() {
    let world = World::new([writes("w", "a.txt"), text(&["Done."])]).await;
    let (service, decided) = hosted(&world);
    let elsewhere = tempfile::tempdir().unwrap();
    let mut settings = service
        .runtime()
        .settings(world.project.path().to_owned())
        .unwrap();
    settings.directory = elsewhere.path().to_owned();
    settings.values.yolo = Some(true);
    *decided.settings.lock().unwrap() = Some(settings);
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    submit(&session, "Write a.txt.").await;
    until(&mut listener, is_result).await;
    assert!(elsewhere.path().join("a.txt").exists());
    assert!(!world.project.path().join("a.txt").exists());
}

#[tokio::test]
async fn a_message_that_is_edited_elsewhere_just_before_its_turn_is_recorded_begins_another() {
    let world = World::new([text(&["One."]), text(&["Two."])]).await;
    let (service, decided) = hosted(&world);
    let session = service.new_session(world.options());
    let elsewhere = world.service();
    let there = elsewhere.session(session.id().clone(), world.options());
    *decided.editor.lock().unwrap() = Some(there);
    let mut listener = session.subscribe(Cursor::START);
    submit(&session, "First.").await;
    until(&mut listener, is_result).await;
    until(&mut listener, is_result).await;
    rests(&session).await;
    let requests = world.server.requests();
    let says = |number: usize, words: &str| requests[number].json().to_string().contains(words);
    assert!(says(0, "First.") && !says(0, "Edited."));
    assert!(says(1, "Edited."));
    assert_eq!((requests.len(), session.waiting().await.unwrap()), (2, 0));
}

#[tokio::test]
async fn a_steering_message_that_is_edited_elsewhere_before_the_turn_says_it_begins_another() {
    let gate = Gate::new();
    let read = CallScript::new("c", "read_file", &json!({"path": "."}));
    let read = openai::streamed(&ReplyScript::calls([read]).usage(1, 1));
    let replies = [
        read.before(Step::Gate(gate.clone())),
        text(&["Blue."]),
        text(&["Red."]),
    ];
    let world = World::new(replies).await;
    let service = world.service();
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    submit(&session, "Paint.").await;
    gate.reached().await;
    let in_blue = || Message::user("In blue.");
    let ticket = session.submit(in_blue(), Delivery::Steer).await.unwrap();
    // It can be edited in this process until it is handed to the turn.
    while ticket.edit(in_blue()).await.unwrap() {
        tokio::task::yield_now().await;
    }
    let elsewhere = world.service();
    let there = elsewhere.session(session.id().clone(), world.options());
    let edited = there.edit(&ticket.id, Message::user("In red."));
    assert!(edited.await.unwrap());
    gate.open();
    until(&mut listener, is_result).await;
    until(&mut listener, is_result).await;
    rests(&session).await;
    let requests = world.server.requests();
    let says = |number: usize, words: &str| requests[number].json().to_string().contains(words);
    assert!(says(1, "In blue.") && !says(1, "In red."));
    assert!(says(2, "In red."));
    assert_eq!((requests.len(), session.waiting().await.unwrap()), (3, 0));
}

#[tokio::test]
async fn a_parked_turn_asks_again_at_once_if_the_host_wants_that() {
    let world = World::new([writes("w", "a.txt"), text(&["Done."])]).await;
    let first = world.service();
    let session = first.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    submit(&session, "Write a.txt.").await;
    until(&mut listener, is_parked).await;
    rests(&session).await;
    let (service, decided) = hosted(&world);
    decided.asks_again.store(true, Ordering::Relaxed);
    let again = service.session(session.id().clone(), world.options());
    let mut listener = again.subscribe_to_next();
    again.resume();
    until(&mut listener, is_result).await;
    assert!(world.project.path().join("a.txt").exists());
}

#[tokio::test]
async fn cells_that_the_host_runs_are_recorded_and_a_turn_waits_for_their_end() {
    let gate = Gate::new();
    let world = World::new([gated(&["Hello."], &gate)]).await;
    let (service, _) = hosted(&world);
    let session = service.new_session(world.options());
    let secrets = Secrets::default().with(["hidden-key".to_owned()]);
    let cell = session.begin_cell("x = 'hidden-key'", &secrets).await;
    let cell = cell.unwrap();
    let started = cell.started();
    submit(&session, "Hello?").await;
    let ending = CellEnding::Returned { value_repr: None };
    let body = RecordBody::CellFinished {
        ending: ending.clone(),
        stdout: String::new(),
        stderr: String::new(),
        duration_ms: 1,
        has_read_input: false,
        is_restarted: false,
    };
    assert_eq!(world.server.requests().len(), 0);
    let ended = cell.end(body).await.unwrap();
    assert!(ended > started);
    gate.open();
    let mut listener = session.subscribe(Cursor::START);
    until(&mut listener, is_result).await;
    rests(&session).await;
    // Another one is dropped before its end.
    drop(session.begin_cell("y = 1", &secrets).await.unwrap());
    rests(&session).await;
    let cells = Cells::read(session.store(), session.id()).unwrap();
    let kept: Vec<_> = cells.kept.iter().map(|it| &it.cell).collect();
    assert!(!kept[0].code.contains("hidden-key"), "{:?}", kept[0].code);
    assert_eq!(kept[0].ending, Some(ending));
    assert_eq!((&*kept[1].code, &kept[1].ending), ("y = 1", &None));
    let info = session.info().unwrap().unwrap();
    assert_eq!((info.id, info.turns), (session.id().clone(), 1));
}

#[tokio::test]
async fn cells_of_an_earlier_interpreter_run_again_and_listeners_hear_of_it() {
    let world = World::new([]).await;
    let (service, _) = hosted(&world);
    let session = service.new_session(world.options());
    let settings = service
        .runtime()
        .settings(world.project.path().to_owned())
        .unwrap();
    let live = || Arc::new(LentPython::of(&settings));
    session.lend_python(&live());
    for code in ["x = 20", "x += 1"] {
        let cell = session.cell(Cell::Python(code.to_owned()));
        timeout(LONG, cell).await.unwrap().unwrap();
    }
    assert_eq!(session.sorted_cells().unwrap().here.len(), 2);
    session.lend_python(&live());
    let SortedCells { here, elsewhere } = session.sorted_cells().unwrap();
    assert_eq!((here.len(), elsewhere.len()), (0, 2));
    let mut listener = session.subscribe_to_next();
    let again = session.repeat_cells(&elsewhere, false, Secrets::default());
    let done = timeout(LONG, again).await.unwrap().unwrap();
    assert_eq!((done.repeated, done.is_stopped), (vec![1, 2], false));
    assert_eq!(session.sorted_cells().unwrap().here.len(), 2);
    let is_end = |body: &UpdateBody| {
        let UpdateBody::Cell { event } = body else {
            return false;
        };
        matches!(event, CellEvent::Ended { .. })
    };
    until(&mut listener, is_end).await;
    let cell = session.cell(Cell::Python("x".to_owned()));
    let end = timeout(LONG, cell).await.unwrap().unwrap();
    let CellEnd::Python { ending, .. } = end else {
        panic!("{end:?}");
    };
    let value_repr = Some("21".to_owned());
    assert_eq!(ending, CellEnding::Returned { value_repr });
}

#[tokio::test]
async fn a_cell_of_the_host_does_not_run_while_another_process_works_on_the_session() {
    let gate = Gate::new();
    let world = World::new([gated(&["Hello."], &gate)]).await;
    let first = world.service();
    let session = first.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    submit(&session, "Hello?").await;
    until(&mut listener, is_asked).await;
    let env = crate::env(&world.home, &world.server);
    let runtime = Runtime::new(env, Layer::default(), Arc::new(NoNotices));
    let other = SessionService::open(
        runtime,
        world.project.path().to_owned(),
        Host(Arc::default()),
    );
    let other = other
        .unwrap()
        .session(session.id().clone(), world.options());
    let refused = other.begin_cell("x = 1", &Secrets::default()).await;
    let error = refused.unwrap_err();
    assert_eq!(error.kind, SetupErrorKind::SessionInUse);
    gate.open();
    until(&mut listener, is_result).await;
}

fn is_asked(body: &UpdateBody) -> bool {
    matches!(body, UpdateBody::Asked { .. })
}
