//! A person's own cells in a served session.

use crate::service::{LONG, World, event, gated, is_result, next, text, until};
use rondo_core::ports::CellEnding;
use rondo_core::session::Delivery;
use rondo_runtime::SetupErrorKind;
use rondo_runtime::service::{
    Cell, CellEnd, CellEvent, Cursor, LentPython, SessionHandle, Subscription, UpdateBody,
};
use rondo_runtime::sessions::Cells;
use rondo_testkit::{CallScript, Gate, ReplyScript, Response, openai};
use rondo_types::{AnswerValue, EventBody, Message};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;

fn python(world: &World) -> Arc<LentPython> {
    let directory = world.project.path().to_owned();
    let settings = world.service().runtime().settings(directory).unwrap();
    Arc::new(LentPython::of(&settings))
}

fn code(code: &str) -> Cell {
    Cell::Python(code.to_owned())
}

async fn run(session: &SessionHandle, cell: &str) -> CellEnd {
    let end = timeout(LONG, session.cell(code(cell))).await;
    end.expect("the cell hangs").unwrap()
}

fn returned(value: Option<&str>, stdout: &str) -> CellEnd {
    CellEnd::Python {
        ending: CellEnding::Returned {
            value_repr: value.map(str::to_owned),
        },
        stdout: stdout.to_owned(),
        stderr: String::new(),
        traceback: None,
        is_restarted: false,
    }
}

/// Returns the events of a cell: its beginning, its output joined, and its end.
async fn heard(listener: &mut Subscription) -> (CellEvent, String, CellEvent) {
    let is_end = |body: &UpdateBody| {
        let UpdateBody::Cell { event } = body else {
            return false;
        };
        matches!(event, CellEvent::Ended { .. })
    };
    let told = until(listener, is_end).await;
    let events = told.into_iter().filter_map(|it| match it.body {
        UpdateBody::Cell { event } => Some(event),
        _ => None,
    });
    let mut events: Vec<CellEvent> = events.collect();
    let (end, began) = (events.pop().unwrap(), events.remove(0));
    let output = events.iter().map(|it| match it {
        CellEvent::Output { text } => text.as_str(),
        other => panic!("{other:?}"),
    });
    (began, output.collect(), end)
}

fn calls(name: &str, arguments: &serde_json::Value) -> Response {
    openai::streamed(&ReplyScript::calls([CallScript::new("c", name, arguments)]).usage(1, 1))
}

#[tokio::test]
async fn a_python_cell_is_recorded_and_all_who_listen_hear_of_it() {
    let world = World::new([text(&["Hello."])]).await;
    let service = world.service();
    let session = service.new_session(world.options());
    let mut listeners = [(), ()].map(|()| session.subscribe(Cursor::START));
    session.lend_python(&python(&world));
    let end = run(&session, "x = 20\nprint('out')\nx + 1").await;
    assert_eq!(end, returned(Some("21"), "out\n"));
    let raised = run(&session, "1 / 0").await;
    let CellEnd::Python {
        ending, traceback, ..
    } = &raised
    else {
        panic!("{raised:?}");
    };
    let traceback = traceback.as_deref().unwrap();
    assert!(traceback.starts_with("Traceback (most recent call last):"));
    assert!(traceback.ends_with("ZeroDivisionError: division by zero"));
    let division = CellEnding::Raised {
        exc_type: "ZeroDivisionError".to_owned(),
        message: "division by zero".to_owned(),
    };
    assert_eq!(*ending, division);
    for listener in &mut listeners {
        let (began, output, ended) = heard(listener).await;
        let CellEvent::Started { cell, .. } = began else {
            panic!("{began:?}");
        };
        assert_eq!(cell, code("x = 20\nprint('out')\nx + 1"));
        assert_eq!(output, "out\n");
        assert_eq!(ended, CellEvent::Ended { end: end.clone() });
    }
    // What follows continues in the record that the first one began.
    let message = Message::user("Hello?");
    session.submit(message, Delivery::Queue).await.unwrap();
    until(&mut listeners[0], is_result).await;
    service.close().await;
    let directory = world.project.path().to_owned();
    let settings = service.runtime().settings(directory).unwrap();
    let store = rondo_runtime::sessions::open(&settings).unwrap();
    let cells = Cells::read(&store, session.id()).unwrap();
    let kept: Vec<&str> = cells.kept.iter().map(|it| &*it.cell.code).collect();
    assert_eq!(kept, ["x = 20\nprint('out')\nx + 1", "1 / 0"]);
    let mut late = session.subscribe(Cursor::START);
    until(&mut late, is_result).await;
}

#[tokio::test]
async fn a_live_python_session_is_the_agents_too_and_moves_to_another_session_with_its_variables() {
    let evaluates = calls("eval_expr", &json!({"expr": "x * 2"}));
    let world = World::new([evaluates, text(&["It is 42."])]).await;
    let service = world.service();
    let [one, other] = [(), ()].map(|()| service.new_session(world.options()));
    let live = python(&world);
    one.lend_python(&live);
    run(&one, "x = 21").await;
    let mut listener = one.subscribe(Cursor::START);
    let message = Message::user("What is twice x?");
    one.submit(message, Delivery::Queue).await.unwrap();
    let mut told = Vec::new();
    loop {
        let update = next(&mut listener).await;
        if let Some(EventBody::Parked { questions }) = event(&update.body) {
            let answer = questions[0].answered("someone", AnswerValue::Approve);
            one.answer(answer).await.unwrap();
        }
        let is_last = is_result(&update.body);
        told.extend(event(&update.body).cloned());
        if is_last {
            break;
        }
    }
    let told = serde_json::to_string(&told).unwrap();
    assert!(told.contains("\"42\""), "{told}");
    // It is lent to one session at a time, survives the handle of the first, and takes its variables along.
    other.lend_python(&live);
    assert!(one.take_python().is_none());
    let refused = one.cell(code("x")).await.unwrap_err();
    assert_eq!(
        (refused.kind, refused.to_string()),
        (
            SetupErrorKind::Usage,
            "this session has no live Python session".to_owned()
        )
    );
    let id = other.id().clone();
    drop((one, other, listener));
    let other = service.session(id, world.options());
    assert_eq!(run(&other, "x").await, returned(Some("21"), ""));
    assert!(Arc::ptr_eq(&other.take_python().unwrap(), &live));
}

/// Begins a turn, and returns once its reply has begun.
async fn replying(session: &SessionHandle) -> Subscription {
    let mut listener = session.subscribe(Cursor::START);
    let message = Message::user("Go.");
    session.submit(message, Delivery::Queue).await.unwrap();
    until(&mut listener, |it| {
        matches!(event(it), Some(EventBody::TextDelta { .. }))
    })
    .await;
    listener
}

#[tokio::test]
async fn a_cell_waits_for_the_turn_that_runs_and_is_stopped_by_a_cancel() {
    let gate = Gate::new();
    let world = World::new([gated(&["Half ", "of ", "it."], &gate)]).await;
    let service = world.service();
    let session = service.new_session(world.options());
    session.lend_python(&python(&world));
    let mut listener = replying(&session).await;
    let sleeps = "import time\nprint('runs', flush=True)\ntime.sleep(600)";
    let cell = session.cell(code(sleeps));
    let stopping = async {
        let early = timeout(Duration::from_millis(100), until(&mut listener, is_cell)).await;
        assert!(early.is_err(), "{early:?}");
        gate.open();
        let told = until(&mut listener, is_output).await;
        assert!(told.iter().any(|it| is_result(&it.body)));
        session.cancel().await.unwrap();
    };
    let (end, ()) = timeout(LONG, async { tokio::join!(cell, stopping) })
        .await
        .unwrap();
    let CellEnd::Python { ending, stdout, .. } = end.unwrap() else {
        panic!("no Python");
    };
    assert_eq!(
        (ending, stdout.as_str()),
        (CellEnding::Interrupted, "runs\n")
    );
    assert_eq!(run(&session, "1").await, returned(Some("1"), ""));
}

fn is_cell(body: &UpdateBody) -> bool {
    matches!(body, UpdateBody::Cell { .. })
}

fn is_output(body: &UpdateBody) -> bool {
    let UpdateBody::Cell { event } = body else {
        return false;
    };
    matches!(event, CellEvent::Output { .. })
}

#[tokio::test]
async fn code_that_takes_no_notice_of_an_interrupt_loses_its_interpreter_at_a_later_cancel_alone() {
    let world = World::new([text(&["Hello."])]).await;
    let service = world.service();
    let session = service.new_session(world.options());
    session.lend_python(&python(&world));
    let mut listener = session.subscribe(Cursor::START);
    let deaf = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('deaf', flush=True)\nwhile True: pass";
    let stopping = async {
        until(&mut listener, is_output).await;
        let began = Instant::now();
        loop {
            session.cancel().await.unwrap();
            let lost = timeout(Duration::from_millis(200), until(&mut listener, is_cell)).await;
            if lost.is_ok() {
                return began.elapsed();
            }
        }
    };
    let both = async { tokio::join!(session.cell(code(deaf)), stopping) };
    let (end, took) = timeout(LONG, both).await.unwrap();
    assert!(took >= Duration::from_secs(2), "{took:?}");
    let CellEnd::Python { ending, .. } = end.unwrap() else {
        panic!("no Python");
    };
    assert!(matches!(ending, CellEnding::Lost { .. }), "{ending:?}");
    let next = run(&session, "1").await;
    let CellEnd::Python { is_restarted, .. } = next else {
        panic!("{next:?}");
    };
    assert!(is_restarted);
}

#[tokio::test]
async fn a_cell_of_a_session_that_another_process_works_on_is_refused() {
    let gate = Gate::new();
    let world = World::new([gated(&["Half ", "of ", "it."], &gate)]).await;
    let [service, another] = [(), ()].map(|()| world.service());
    let session = service.new_session(world.options());
    let mut listener = replying(&session).await;
    let there = another.session(session.id().clone(), world.options());
    there.lend_python(&python(&world));
    let refused = timeout(LONG, there.cell(code("1"))).await.unwrap();
    assert_eq!(refused.unwrap_err().kind, SetupErrorKind::SessionInUse);
    gate.open();
    until(&mut listener, is_result).await;
}

#[tokio::test]
async fn no_cell_begins_in_a_session_that_is_closed() {
    let world = World::new([text(&["Hello."])]).await;
    let service = world.service();
    let session = service.new_session(world.options());
    session.lend_python(&python(&world));
    session.close().await;
    let refused = timeout(LONG, session.cell(code("1"))).await.unwrap();
    assert_eq!(refused.unwrap_err().kind, SetupErrorKind::SessionInUse);
}
