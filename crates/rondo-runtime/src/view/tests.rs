//! Tests: the events of a turn, told as steps.

use super::*;
use rondo_types::{
    CallId, EventBody, InitEvent, NanoUsd, Outcome, ResultEvent, SessionId, ToolErrorCode,
    TurnEvent, TurnId,
};
use serde_json::json;

pub(super) fn event(at: u64, body: EventBody) -> TurnEvent {
    TurnEvent {
        session: SessionId::new("s"),
        turn: TurnId::new("t"),
        seq: 0,
        at: TimeMs(at),
        body,
    }
}

pub(super) fn init() -> EventBody {
    let limits = rondo_core::profile::builtin("default").unwrap().limits;
    EventBody::Init(Box::new(InitEvent {
        schema_version: 1,
        model: "p/m".to_owned(),
        fallbacks: Vec::new(),
        profile: "default".to_owned(),
        limits,
        tools: Default::default(),
    }))
}

pub(super) fn text(text: &str) -> EventBody {
    let text = text.to_owned();
    EventBody::TextDelta { text }
}

pub(super) fn pending(id: &str) -> EventBody {
    EventBody::ToolCallPending {
        id: CallId::new(id),
        name: "look".to_owned(),
        arguments: json!({"n": 1}),
    }
}

pub(super) fn finished(id: &str, code: Option<ToolErrorCode>) -> EventBody {
    EventBody::ToolCallFinished {
        id: CallId::new(id),
        ok: code.is_none(),
        code,
        result: json!("it"),
        blocks: Vec::new(),
        truncated: false,
        spill: None,
        duration_ms: 5,
        changes: Vec::new(),
        child: None,
        job: None,
        from_outside: false,
        used: None,
    }
}

pub(super) fn result(change: impl FnOnce(&mut Outcome)) -> EventBody {
    let error = rondo_types::ModelError::new(rondo_types::ErrorClass::Auth, "no key");
    let mut outcome = Outcome::failed(error);
    change(&mut outcome);
    EventBody::Result(Box::new(ResultEvent::from_outcome(&outcome)))
}

fn counted() -> EventBody {
    let usage = Usage {
        input: 10,
        output: 2,
        ..Usage::default()
    };
    EventBody::of_usage(usage, Some(NanoUsd(5).usd()))
}

fn fold(bodies: Vec<EventBody>) -> Fold {
    let mut fold = Fold::default();
    for (at, body) in (0..).zip(bodies) {
        fold.event(&event(at * 100, body));
    }
    fold
}

#[test]
fn events_become_steps_with_texts_calls_and_figures() {
    let fold = fold(vec![
        init(),
        EventBody::StepStarted { step: 1 },
        text("I "),
        text("look."),
        counted(),
        pending("c"),
        EventBody::ToolCallRewritten {
            id: CallId::new("c"),
            by: vec!["x".to_owned()],
            arguments: json!({"n": 2}),
        },
        finished("c", Some(ToolErrorCode::Failed)),
        EventBody::StepStarted { step: 2 },
        text("Nothing."),
        counted(),
        result(|outcome| {
            outcome.text = "Nothing.".to_owned();
            outcome.error = None;
        }),
    ]);
    let turn = fold.turn().unwrap();
    assert_eq!((turn.took_ms, turn.usage.input), (1100, 20));
    assert_eq!(turn.cost_usd, Some(2.0 * NanoUsd(5).usd()));
    let (text, tool) = ("I look.".to_owned(), "look".to_owned());
    let items = vec![
        Item::Text { text },
        Item::Call {
            tool: tool.clone(),
            arguments: r#"{"n":1}"#.to_owned(),
        },
        Item::Result {
            tool,
            arguments: json!({"n": 2}),
            error: Some("failed".to_owned()),
            text: "it".to_owned(),
            took_ms: 5,
        },
    ];
    assert_eq!(turn.steps[0].items, items);
    let times: Vec<_> = turn.timed_steps().map(|it| it.1).collect();
    assert_eq!(times, [Some(700), Some(300)]);
    assert_eq!(turn.built_answer(), None, "a step said it");
}

#[test]
fn a_turn_that_is_resumed_goes_on_and_another_one_begins_anew() {
    let mut fold = fold(vec![
        init(),
        EventBody::StepStarted { step: 1 },
        text("I look."),
    ]);
    fold.event(&event(300, init()));
    assert_eq!(fold.turn().unwrap().steps.len(), 1);
    let mut next = event(400, init());
    next.turn = TurnId::new("next");
    fold.event(&next);
    assert!(fold.turn().unwrap().steps.is_empty());
}

#[test]
fn the_totals_of_a_session_count_each_turn_once() {
    let mut totals = Totals::default();
    for turn in ["one", "two"] {
        for body in [
            init(),
            EventBody::StepStarted { step: 1 },
            counted(),
            result(|_| ()),
        ] {
            let turn = TurnId::new(turn);
            totals.event(&TurnEvent {
                turn,
                ..event(0, body)
            });
        }
    }
    assert_eq!((totals.turns, totals.usage.input), (2, 20));
    assert_eq!(totals.context_tokens, Some(12));
    assert!(!totals.is_cost_partial);
}
