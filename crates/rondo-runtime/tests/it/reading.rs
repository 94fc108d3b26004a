//! A service that was opened to read listens to sessions of other processes, and costs what is new in them.

use crate::env;
use crate::service::{
    Page, World, gated, is_parked, is_result, process, says, served_apart, text, until, writes,
};
use rondo_core::session::Delivery;
use rondo_journal::SessionState;
use rondo_runtime::service::{Cursor, SessionService, UpdateBody};
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
        until(listener, |it| says(it, "Half")).await;
        assert!(listener.next_of_past().await.unwrap().is_none());
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

#[tokio::test]
async fn text_of_another_process_is_heard_before_it_is_recorded_and_once() {
    let gate = Gate::new();
    let world = World::new([gated(&["One ", "two ", "three."], &gate), text(&["More."])]).await;
    let service = world.service();
    let session = service.new_session(world.options());
    let mut own = session.subscribe(Cursor::START);
    let reader = reader(&world);
    let read = reader.session(session.id().clone(), world.options());
    // One listens from before the turn, one from the middle of it.
    let mut early = read.subscribe(Cursor::START);
    let message = Message::user("Count.");
    session.submit(message, Delivery::Queue).await.unwrap();
    gate.reached().await;
    let mut told = until(&mut early, |it| says(it, "two")).await;
    let mut late = read.subscribe(Cursor::START);
    let mut told_late = until(&mut late, |it| says(it, "two")).await;
    gate.open();
    told.extend(until(&mut early, is_result).await);
    assert!(early.ending().is_some());
    told_late.extend(until(&mut late, is_result).await);
    let expected = Page::of(&until(&mut own, is_result).await);
    Page::of(&told).assert_is(&expected, "the listener from the beginning");
    Page::of(&told_late).assert_is(&expected, "the listener from the middle");
    let message = Message::user("And then?");
    session.submit(message, Delivery::Queue).await.unwrap();
    let expected = Page::of(&until(&mut own, is_result).await);
    Page::of(&until(&mut early, is_result).await).assert_is(&expected, "the next turn");
}

#[tokio::test]
async fn sockets_of_killed_processes_are_removed_and_those_of_others_stay() {
    let gate = Gate::new();
    let world = World::new([gated(&["One ", "moment."], &gate), text(&["Two."])]).await;
    let service = world.service();
    let [first, second] = [(), ()].map(|()| service.new_session(world.options()));
    let sockets = world.home.path().join("state/live");
    std::fs::create_dir_all(&sockets).unwrap();
    drop(std::os::unix::net::UnixListener::bind(sockets.join("s-killed")).unwrap());
    let message = Message::user("Wait.");
    first.submit(message, Delivery::Queue).await.unwrap();
    gate.reached().await;
    assert!(!sockets.join("s-killed").exists());
    let message = Message::user("Go.");
    second.submit(message, Delivery::Queue).await.unwrap();
    until(&mut second.subscribe(Cursor::START), is_result).await;
    assert!(sockets.join(first.id().as_str()).exists());
    gate.open();
    service.close().await;
    assert_eq!(std::fs::read_dir(&sockets).unwrap().count(), 0);
}

#[test]
fn text_that_was_lost_with_another_process_is_taken_back() {
    let gate = Gate::new();
    let world = served_apart([
        gated(&["Half ", "of ", "it."], &gate),
        text(&["The whole."]),
    ]);
    let reading = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let reader = reading.block_on(async { reader(&world) });
    let mut told = Vec::new();
    let there = &world;
    let (id, mut listener) = std::thread::scope(|scope| {
        let (begun, id) = std::sync::mpsc::channel();
        let (kill, killed) = tokio::sync::oneshot::channel::<()>();
        let owner = scope.spawn(move || {
            process(async {
                let service = there.service();
                let session = service.new_session(there.options());
                let message = Message::user("Write.");
                session.submit(message, Delivery::Queue).await.unwrap();
                begun.send(session.id().clone()).unwrap();
                killed.await.unwrap();
            });
        });
        let id = id.recv().unwrap();
        let read = reader.session(id.clone(), world.options());
        let mut listener = read.subscribe(Cursor::START);
        told.extend(reading.block_on(until(&mut listener, |it| says(it, "of"))));
        kill.send(()).unwrap();
        owner.join().unwrap();
        (id, listener)
    });
    let fresh = process(async {
        let service = world.service();
        let session = service.session(id, world.options());
        session.resume();
        until(&mut session.subscribe(Cursor::START), is_result).await
    });
    told.extend(reading.block_on(until(&mut listener, is_result)));
    Page::of(&told).assert_is(&Page::of(&fresh), "the listener");
    let sockets = world.home.path().join("state/live");
    assert_eq!(std::fs::read_dir(sockets).unwrap().count(), 0);
    assert!(told.iter().any(|it| it.body == UpdateBody::Reset));
}
