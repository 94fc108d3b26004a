//! Questions of a session about its folder: before a turn, recorded, and answered once, by the first to answer.

use crate::service::{LONG, World, approve, event, is_parked, is_result, text, until, writes};
use rondo_core::session::Delivery;
use rondo_runtime::service::{
    Attendance, Cursor, SessionHandle, SessionService, Subscription, UpdateBody,
};
use rondo_types::{AnswerValue, EventBody, Message, Question, QuestionKind};
use std::fs;
use tokio::time::timeout;

/// Adds a setting to the folder of a world that counts only with trust.
fn bring(world: &World, setting: &str) {
    let directory = world.project.path().join(".rondo");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("config.toml"), setting).unwrap();
}

fn is_trusted(world: &World) -> bool {
    let file = world.home.path().join("config.toml");
    fs::read_to_string(file).is_ok_and(|it| it.contains("trusted_folders"))
}

async fn submit(session: &SessionHandle, text: &str) {
    let message = Message::user(text);
    session.submit(message, Delivery::Queue).await.unwrap();
}

fn is_of_folder(body: &UpdateBody) -> bool {
    matches!(event(body), Some(EventBody::QuestionAsked { question }) if question.kind == QuestionKind::Trust)
}

/// Waits until the folder is asked about, and returns the question as it is recorded.
async fn asked(session: &SessionHandle, listener: &mut Subscription) -> Question {
    until(listener, is_of_folder).await;
    let mut questions = session.questions().await.unwrap();
    assert_eq!(questions.len(), 1, "{questions:?}");
    let question = questions.remove(0);
    assert_eq!(question.kind, QuestionKind::Trust);
    question
}

#[tokio::test]
async fn a_person_who_attends_is_asked_about_the_folder_and_a_yes_counts_for_the_same_turn() {
    let world = World::new([writes("c1", "one"), text(&["Done."])]).await;
    bring(&world, "yolo = true");
    let service = world.service();
    let session = service.new_session(world.options());
    let _attendance = session.attend();
    let mut listener = session.subscribe(Cursor::START);
    submit(&session, "Write.").await;
    let question = asked(&session, &mut listener).await;
    assert!(question.prompt.contains("yolo = true"), "{question:?}");
    assert!(world.server.requests().is_empty() && !is_trusted(&world));
    session.answer(approve(&question)).await.unwrap();
    let told = until(&mut listener, is_result).await;
    let is_answered = |it: &EventBody| matches!(it, EventBody::QuestionAnswered { .. });
    let told: Vec<&EventBody> = told.iter().filter_map(|it| event(&it.body)).collect();
    assert!(told.iter().any(|it| is_answered(it)), "{told:?}");
    // The setting counts: the call runs without asking.
    assert!(world.project.path().join("one").exists() && is_trusted(&world));
    assert_eq!(session.questions().await.unwrap(), []);
}

/// Says something in an attended session of a folder that brings settings.
async fn first_said(world: &World) -> (SessionService, SessionHandle, Attendance, Subscription) {
    bring(world, "yolo = true");
    let service = world.service();
    let session = service.new_session(world.options());
    let attendance = session.attend();
    let listener = session.subscribe(Cursor::START);
    submit(&session, "first").await;
    (service, session, attendance, listener)
}

#[tokio::test]
async fn a_no_is_kept_and_the_turn_goes_on_without_what_the_folder_brings() {
    let world = World::new([text(&["One."]), text(&["Two."])]).await;
    let (_service, session, _attendance, mut listener) = first_said(&world).await;
    let question = asked(&session, &mut listener).await;
    let reason = "no".to_owned();
    let no = question.answered("someone", AnswerValue::Deny { reason });
    session.answer(no).await.unwrap();
    until(&mut listener, is_result).await;
    submit(&session, "second").await;
    let told = until(&mut listener, is_result).await;
    assert!(!told.iter().any(|it| is_of_folder(&it.body)));
    assert!(!is_trusted(&world));
    assert_eq!(session.questions().await.unwrap(), []);
}

#[tokio::test]
async fn another_process_answers_what_is_asked_about_the_folder() {
    let world = World::new([writes("c1", "one"), text(&["Done."])]).await;
    bring(&world, "yolo = true");
    let (here, there) = (world.service(), world.service());
    let session = here.new_session(world.options());
    let _attendance = session.attend();
    let mut listener = session.subscribe(Cursor::START);
    submit(&session, "Write.").await;
    asked(&session, &mut listener).await;
    let remote = there.session(session.id().clone(), world.options());
    let question = remote.questions().await.unwrap().remove(0);
    remote.answer(approve(&question)).await.unwrap();
    until(&mut listener, is_result).await;
    assert!(world.project.path().join("one").exists() && is_trusted(&world));
}

#[tokio::test]
async fn nobody_is_waited_for_who_does_not_attend_and_a_later_answer_holds_from_the_next_turn_on() {
    let world = World::new([text(&["One."]), writes("c1", "one"), text(&["Done."])]).await;
    bring(&world, "yolo = true");
    let service = world.service();
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    submit(&session, "first").await;
    until(&mut listener, is_result).await;
    let question = session.questions().await.unwrap().remove(0);
    assert_eq!(question.kind, QuestionKind::Trust);
    timeout(LONG, session.at_rest()).await.unwrap();
    assert!(!is_trusted(&world));
    session.answer(approve(&question)).await.unwrap();
    submit(&session, "Write.").await;
    until(&mut listener, |it| is_result(it) || is_parked(it)).await;
    assert!(world.project.path().join("one").exists() && is_trusted(&world));
    assert_eq!(session.questions().await.unwrap(), []);
}

#[tokio::test]
async fn a_yes_does_not_count_for_a_folder_that_changed_since_it_was_asked_about() {
    let world = World::new([text(&["One."])]).await;
    let (_service, session, _attendance, mut listener) = first_said(&world).await;
    let before = asked(&session, &mut listener).await;
    bring(&world, "yolo = true\nallowed_tools = ['exec']");
    session.answer(approve(&before)).await.unwrap();
    let now = asked(&session, &mut listener).await;
    assert!(now.hash != before.hash && now.prompt.contains("exec"));
    assert!(!is_trusted(&world));
    let reason = "no".to_owned();
    let no = now.answered("someone", AnswerValue::Deny { reason });
    session.answer(no).await.unwrap();
    until(&mut listener, is_result).await;
    assert!(!is_trusted(&world));
}

#[tokio::test]
async fn a_message_is_taken_back_while_the_folder_is_asked_about() {
    let world = World::new([text(&["One."])]).await;
    let (_service, session, _attendance, mut listener) = first_said(&world).await;
    asked(&session, &mut listener).await;
    session.cancel().await.unwrap();
    timeout(LONG, session.at_rest()).await.unwrap();
    assert_eq!(session.waiting().await.unwrap(), 0);
    assert!(world.server.requests().is_empty());
}

#[tokio::test]
async fn a_message_waits_if_the_person_leaves_while_the_folder_is_asked_about() {
    let world = World::new([text(&["One."])]).await;
    bring(&world, "yolo = true");
    let service = world.service();
    let session = service.new_session(world.options());
    let attendance = session.attend();
    let mut listener = session.subscribe(Cursor::START);
    submit(&session, "first").await;
    asked(&session, &mut listener).await;
    let leave = async { drop(attendance) };
    let closed = futures_util::future::join(service.close(), leave);
    timeout(LONG, closed).await.unwrap();
    assert_eq!(session.waiting().await.unwrap(), 1);
    assert!(world.server.requests().is_empty());
    // Another process continues it, and with the answer.
    let question = session.questions().await.unwrap().remove(0);
    session.answer(approve(&question)).await.unwrap();
    let there = world.service();
    let session = there.session(session.id().clone(), world.options());
    let mut listener = session.subscribe(Cursor::START);
    session.look();
    until(&mut listener, is_result).await;
    assert!(is_trusted(&world));
}
