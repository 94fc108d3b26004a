//! Tests: the time between a question and its turn.

use super::*;
use rondo_core::session::{Delivery, SessionEvent};

fn submitted(scene: &mut Scene, text: &str) {
    scene.app.waits(PendingMessage {
        ticket: TicketId(text.to_owned()),
        text: text.to_owned(),
        attached: Vec::new(),
        delivery: Delivery::Steer,
    });
}

fn session(scene: &mut Scene, event: SessionEvent) {
    let now = TimeMs(scene.now);
    scene.app.update(UpdateBody::Session { event }, now);
}

fn delivered(text: &str) -> SessionEvent {
    SessionEvent::Delivered {
        ticket: TicketId(text.to_owned()),
    }
}

#[test]
fn a_question_is_shown_with_a_spinner_until_its_turn_begins_and_later_ones_wait() {
    let mut scene = Scene::new();
    submitted(&mut scene, "first");
    assert!(scene.shown().contains("› first"), "{}", scene.shown());
    session(&mut scene, delivered("first"));
    submitted(&mut scene, "second");
    scene.now += 3_000;
    scene.app.tick(TimeMs(scene.now));
    let shown = scene.shown();
    assert!(
        shown.contains("› first") && shown.contains("Preparing  3 s · Esc stops"),
        "{shown}"
    );
    assert!(shown.contains("⧗ steers: second"), "{shown}");
    assert!(scene.app.moves());
    scene.app.set_progress(Some("qwen  12 %".to_owned()));
    let shown = scene.shown();
    assert!(shown.contains("Preparing · qwen  12 %"), "{shown}");
    let asked = UpdateBody::Asked {
        turn: TurnId::new("t"),
        message: std::sync::Arc::new(rondo_types::Message::user("first")),
    };
    scene.app.update(asked, TimeMs(scene.now));
    let shown = scene.shown();
    assert!(!shown.contains("Preparing"), "{shown}");
    assert_eq!(shown.matches("› first").count(), 1, "{shown}");
    assert!(shown.contains("⧗ steers: second"), "{shown}");
}

#[test]
fn esc_and_ctrl_c_stop_the_preparation_and_the_question_is_in_the_input_again() {
    for stops in [KeyCode::Esc, KeyCode::Null] {
        let mut scene = Scene::new();
        submitted(&mut scene, "first");
        session(&mut scene, delivered("first"));
        let effects = match stops {
            KeyCode::Esc => scene.press(stops),
            _ => scene.ctrl('c'),
        };
        assert_eq!(effects, [Effect::Cancel]);
        let ticket = TicketId("first".to_owned());
        session(&mut scene, SessionEvent::Withdrawn { ticket });
        let shown = scene.shown();
        assert!(shown.contains("stopped before the turn began"), "{shown}");
        assert!(shown.contains("│ first "), "{shown}");
        assert!(
            !shown.contains("Preparing") && !scene.app.moves(),
            "{shown}"
        );
    }
}

#[test]
fn a_question_of_the_preparation_stops_the_spinner() {
    let mut scene = Scene::new();
    submitted(&mut scene, "first");
    session(&mut scene, delivered("first"));
    scene.asks("use this folder?");
    assert!(!scene.app.moves());
}

#[test]
fn a_turn_that_cannot_begin_ends_the_preparation() {
    let mut scene = Scene::new();
    submitted(&mut scene, "first");
    session(&mut scene, delivered("first"));
    let failed = UpdateBody::Failed {
        message: "no key".to_owned(),
        hint: None,
    };
    scene.app.update(failed, TimeMs(scene.now));
    let shown = scene.shown();
    assert!(
        shown.contains("no key") && !shown.contains("Preparing"),
        "{shown}"
    );
}
