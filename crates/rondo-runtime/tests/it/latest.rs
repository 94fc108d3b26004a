//! Listeners that begin with the latest turns of a session.

use crate::service::{LONG, Page, World, is_result, next, results, text, until};
use futures_util::FutureExt as _;
use rondo_core::session::Delivery;
use rondo_runtime::service::{Cursor, Subscription, Update, UpdateBody};
use rondo_testkit::Response;
use rondo_types::Message;
use tokio::time::timeout;

/// Records of more turns than are read at once from the end.
const TURNS: usize = 60;

/// Listens as a screen does, which looks at its keys and its clock in between: what is being read meanwhile is not lost.
async fn next_though_cancelled(listener: &mut Subscription) -> Update {
    let told = timeout(LONG, async {
        loop {
            if let Some(told) = listener.next().now_or_never() {
                return told;
            }
            tokio::task::yield_now().await;
        }
    });
    told.await.expect("nothing was told").unwrap()
}

#[tokio::test]
async fn who_begins_with_the_latest_turns_hears_what_the_others_hear_and_can_have_the_rest() {
    let answers: Vec<Response> = (0..=TURNS)
        .map(|it| text(&[&format!("Answer {it}.")]))
        .collect();
    let world = World::new(answers).await;
    let service = world.service();
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    let mut all = Vec::new();
    for turn in 0..TURNS {
        let message = Message::user(format!("Question {turn}?"));
        session.submit(message, Delivery::Queue).await.unwrap();
        all.extend(until(&mut listener, is_result).await);
    }
    service.close().await;
    let service = world.service();
    let session = service.session(session.id().clone(), world.options());
    let mut late = session.subscribe_to_latest();
    let mut told = vec![next_though_cancelled(&mut late).await];
    let passed = late.turns_passed();
    assert!(
        0 < passed && usize::try_from(passed).unwrap() < TURNS,
        "{passed}"
    );
    while results(&told) + usize::try_from(passed).unwrap() < TURNS {
        told.push(next_though_cancelled(&mut late).await);
    }
    let bodies = |updates: &[Update]| updates.iter().map(|it| it.body.clone()).collect::<Vec<_>>();
    let mut whole = session.subscribe(Cursor::START);
    let mut recorded = Vec::new();
    while results(&recorded) < TURNS {
        recorded.push(next(&mut whole).await);
    }
    let earlier = session
        .earlier(passed, Vec::new(), |all, body| all.push(body))
        .await
        .unwrap();
    assert_eq!([earlier, bodies(&told)].concat(), bodies(&recorded));
    Page::of(&recorded).assert_is(&Page::of(&all), "the records");
    // What comes next is the same for both.
    session
        .submit(Message::user("And now?"), Delivery::Queue)
        .await
        .unwrap();
    let (late, whole) = (
        until(&mut late, is_result).await,
        until(&mut whole, is_result).await,
    );
    Page::of(&late).assert_is(&Page::of(&whole), "the next turn");
}

#[tokio::test]
async fn a_session_of_one_turn_is_heard_from_its_beginning_also_by_who_wants_the_latest() {
    let world = World::new([text(&["Yes."])]).await;
    let service = world.service();
    let session = service.new_session(world.options());
    let mut listener = session.subscribe_to_latest();
    session
        .submit(Message::user("Well?"), Delivery::Queue)
        .await
        .unwrap();
    let told = until(&mut listener, is_result).await;
    let is_asked = |it: &Update| matches!(it.body, UpdateBody::Asked { .. });
    assert!(told.iter().any(is_asked), "{told:?}");
    assert_eq!(listener.turns_passed(), 0);
}

#[tokio::test]
async fn where_the_latest_turns_were_summed_up_all_are_told_from_the_first() {
    let long = "word ".repeat(200);
    let mut answers: Vec<Response> = (0..TURNS).map(|_| text(&[&long])).collect();
    answers.push(text(&["In short: words."]));
    let world = World::new(answers).await;
    let service = world.service();
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    for turn in 0..TURNS {
        let message = Message::user(format!("Question {turn}?"));
        session.submit(message, Delivery::Queue).await.unwrap();
        until(&mut listener, is_result).await;
    }
    session.compact("").await.unwrap();
    until(&mut listener, is_result).await;
    service.close().await;
    let service = world.service();
    let session = service.session(session.id().clone(), world.options());
    let mut late = session.subscribe_to_latest();
    let mut told = Vec::new();
    while results(&told) <= TURNS {
        told.push(next(&mut late).await);
    }
    assert_eq!(late.turns_passed(), 0);
    let asked = told.iter().find_map(|it| match &it.body {
        UpdateBody::Asked { message, .. } => Some(message.text()),
        _ => None,
    });
    assert_eq!(asked.as_deref(), Some("Question 0?"));
}
