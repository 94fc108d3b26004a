//! Which updates are confirmed when.

use super::*;
use serde_json::json;

fn update(id: i64, chat: i64, album: Option<&str>) -> Update {
    let update = json!({
        "update_id": id,
        "message": {
            "message_id": id, "date": 5, "text": "x", "media_group_id": album,
            "chat": { "id": chat, "type": "private" },
            "from": { "id": chat, "is_bot": false, "first_name": "P" },
        },
    });
    Update::read(&update.to_string()).unwrap()
}

fn done(chat_id: i64, done: &[i64]) -> IntakeResult {
    IntakeResult {
        chat_id,
        done: done.to_vec(),
        left: Vec::new(),
    }
}

fn poll(intake: &mut Intake, updates: Vec<Update>, now: Instant) {
    intake.polled(intake.offset(), updates, now);
}

fn ready(intake: &mut Intake, now: Instant) -> Option<(i64, Vec<i64>)> {
    let (chat, items) = intake.next_ready(now)?;
    Some((chat, items.iter().map(|it| it.id).collect()))
}

#[tokio::test]
async fn what_is_not_done_is_not_confirmed_and_holds_up_no_other_chat() {
    let (mut intake, now) = (Intake::default(), Instant::now());
    assert_eq!(intake.offset(), None);
    poll(
        &mut intake,
        vec![update(10, 1, None), update(11, 2, None)],
        now,
    );
    assert_eq!(intake.offset(), Some(10));
    let mut first = [ready(&mut intake, now), ready(&mut intake, now)];
    first.sort();
    assert_eq!(first, [Some((1, vec![10])), Some((2, vec![11]))]);
    intake.finish(done(2, &[11]), now);
    assert_eq!(intake.offset(), Some(10), "chat 1 is still at work");
    poll(
        &mut intake,
        vec![
            update(10, 1, None),
            update(11, 2, None),
            update(12, 2, None),
        ],
        now,
    );
    assert_eq!(
        ready(&mut intake, now),
        Some((2, vec![12])),
        "11 is not taken again"
    );
    intake.finish(done(1, &[10]), now);
    intake.finish(done(2, &[12]), now);
    assert_eq!((intake.offset(), intake.has_work()), (Some(13), false));
    poll(&mut intake, Vec::new(), now);
    assert_eq!(intake.offset(), None, "ids may begin anew");
    poll(&mut intake, vec![update(3, 1, None)], now);
    assert_eq!(ready(&mut intake, now), Some((1, vec![3])));
}

#[tokio::test]
async fn the_updates_of_a_chat_stay_in_order() {
    let (mut intake, now) = (Intake::default(), Instant::now());
    poll(&mut intake, vec![update(1, 7, None)], now);
    assert_eq!(ready(&mut intake, now), Some((7, vec![1])));
    poll(
        &mut intake,
        vec![update(1, 7, None), update(2, 7, None)],
        now,
    );
    assert_eq!(ready(&mut intake, now), None, "one after the other");
    let left = vec![update(1, 7, None)];
    intake.finish(
        IntakeResult {
            left,
            ..done(7, &[])
        },
        now,
    );
    assert_eq!(ready(&mut intake, now), None, "it rests");
    assert_eq!(ready(&mut intake, now + REST), Some((7, vec![1, 2])));
}

#[tokio::test]
async fn an_album_is_taken_once_it_has_settled() {
    let (mut intake, now) = (Intake::default(), Instant::now());
    poll(
        &mut intake,
        vec![update(1, 7, Some("a")), update(2, 8, None)],
        now,
    );
    assert_eq!(ready(&mut intake, now), Some((8, vec![2])));
    let later = now + Duration::from_millis(900);
    poll(
        &mut intake,
        vec![update(1, 7, Some("a")), update(3, 7, Some("a"))],
        later,
    );
    assert_eq!(ready(&mut intake, now + ALBUM_SETTLES), None, "it grew");
    assert_eq!(
        ready(&mut intake, later + ALBUM_SETTLES),
        Some((7, vec![1, 3]))
    );
    let (mut intake, mut at) = (Intake::default(), now);
    for id in 0..20 {
        poll(&mut intake, vec![update(id, 7, Some("a"))], at);
        at += Duration::from_millis(500);
    }
    assert!(ready(&mut intake, at).is_some(), "it may not grow for ever");
}

#[tokio::test]
async fn what_was_done_during_a_poll_is_not_confirmed_by_it() {
    let (mut intake, now) = (Intake::default(), Instant::now());
    poll(&mut intake, vec![update(10, 1, None)], now);
    let asked = intake.offset();
    assert_eq!(ready(&mut intake, now), Some((1, vec![10])));
    intake.finish(done(1, &[10]), now);
    intake.polled(asked, vec![update(10, 1, None)], now);
    assert_eq!(ready(&mut intake, now), None, "10 is not taken again");
    assert_eq!(intake.offset(), Some(11));
}

#[tokio::test]
async fn what_comes_after_an_album_ends_it() {
    let (mut intake, now) = (Intake::default(), Instant::now());
    poll(
        &mut intake,
        vec![update(1, 7, Some("a")), update(2, 7, None)],
        now,
    );
    assert_eq!(ready(&mut intake, now), Some((7, vec![1, 2])));
}
