//! A service that was opened to read listens to sessions of other processes, and costs what is new in them.

use crate::env;
use crate::service::{World, gated, is_parked, is_result, text, until, writes};
use rondo_core::session::Delivery;
use rondo_journal::SessionState;
use rondo_runtime::service::{Cursor, SessionService};
use rondo_runtime::{Layer, NoNotices, Runtime};
use rondo_testkit::Gate;
use rondo_types::Message;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};

/// Listeners that wait for nothing.
const LISTENERS: usize = 1_000;

fn reader(world: &World) -> SessionService {
    let env = env(&world.home, &world.server);
    let runtime = Runtime::new(env, Layer::default(), Arc::new(NoNotices));
    SessionService::open_to_read(runtime, world.project.path().to_owned()).unwrap()
}

#[tokio::test]
async fn a_service_that_was_opened_to_read_begins_nothing_and_refuses_what_is_submitted() {
    let world = World::new([writes("c1", "one")]).await;
    let service = world.service();
    let session = service.new_session(world.options());
    let reader = reader(&world);
    let read = reader.session(session.id().clone(), world.options());
    let mut listener = read.subscribe(Cursor::START);
    let message = Message::user("Write.");
    session.submit(message, Delivery::Queue).await.unwrap();
    until(&mut listener, is_parked).await;
    service.close().await;
    read.at_rest_everywhere().await.unwrap();
    assert_eq!(read.state().await.unwrap(), SessionState::Parked);
    // The message is in the mailbox; any other service would begin a turn with it.
    let message = Message::user("And then?");
    session.submit(message, Delivery::Queue).await.unwrap();
    read.look();
    read.resume();
    read.at_rest().await;
    let refused = read
        .submit(Message::user("No."), Delivery::Queue)
        .await
        .unwrap_err();
    assert!(
        refused.to_string().contains("for reading only"),
        "{refused}"
    );
    read.cancel().await.unwrap_err();
    assert_eq!(session.waiting().await.unwrap(), 1);
    assert_eq!(world.server.requests().len(), 1);
}

/// Counts how often a listener is woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_thousand_listeners_of_an_idle_session_are_not_woken_by_what_happens_in_another() {
    let gate = Gate::new();
    let idle = gated(&["Half ", "done."], &gate);
    let world = World::new([idle, text(&["One."]), text(&["Two."])]).await;
    let service = world.service();
    let [running, other] = [(), ()].map(|()| service.new_session(world.options()));
    let message = Message::user("Go.");
    running.submit(message, Delivery::Queue).await.unwrap();
    gate.reached().await;
    let reader = reader(&world);
    let read = reader.session(running.id().clone(), world.options());
    let mut listeners: Vec<_> = (0..LISTENERS)
        .map(|_| read.subscribe(Cursor::START))
        .collect();
    for listener in &mut listeners {
        while listener.next_of_past().await.unwrap().is_some() {}
    }
    let wakes = Arc::<Wakes>::default();
    let waker = Waker::from(Arc::clone(&wakes));
    let mut context = Context::from_waker(&waker);
    let mut waiting: Vec<_> = listeners.iter_mut().map(|it| Box::pin(it.next())).collect();
    let is_idle = waiting
        .iter_mut()
        .all(|it| it.as_mut().poll(&mut context).is_pending());
    assert!(is_idle);
    // The journal changes, and the reading service looks at it.
    let read_other = reader.session(other.id().clone(), world.options());
    let mut told = read_other.subscribe(Cursor::START);
    for _ in 0..2 {
        let message = Message::user("Next.");
        other.submit(message, Delivery::Queue).await.unwrap();
        until(&mut told, is_result).await;
    }
    assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
    // A record of their own session wakes all of them.
    gate.open();
    running.at_rest().await;
    let mut late = read.subscribe(Cursor::START);
    until(&mut late, is_result).await;
    drop(waiting);
    for listener in &mut listeners {
        until(listener, is_result).await;
    }
}
