//! Tests: the events of a turn, told as steps.

use super::*;
use rondo_types::{
    CallId, EventBody, InitEvent, NanoUsd, Outcome, QuestionId, QuestionKind, QuestionSubject,
    ResultEvent, SessionId, ToolErrorCode, TurnEvent, TurnId,
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
        let _ = fold.event(&event(at * 100, body));
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
        Item::Note {
            text: r#"x changed the arguments to {"n":2}"#.to_owned(),
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
    let _ = fold.event(&event(300, init()));
    assert_eq!(fold.turn().unwrap().steps.len(), 1);
    let mut next = event(400, init());
    next.turn = TurnId::new("next");
    let _ = fold.event(&next);
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

fn rejected() -> EventBody {
    let reason = "the answer must be JSON alone".to_owned();
    EventBody::ReplyRejected { reason }
}

#[test]
fn asking_again_is_said_only_if_the_model_is_asked_again() {
    let mut fold = fold(vec![init(), EventBody::StepStarted { step: 1 }]);
    assert_eq!(fold.event(&event(300, rejected())), None);
    let note = fold.event(&event(400, EventBody::StepStarted { step: 2 }));
    let again = "the reply cannot be used (the answer must be JSON alone); asking again";
    assert_eq!(note.unwrap().text, again);
    assert_eq!(fold.event(&event(500, rejected())), None);
    let note = fold.event(&event(600, result(|_| ())));
    assert_eq!(note.unwrap().text, again.trim_end_matches("; asking again"));
}

#[test]
fn a_rejection_that_the_error_names_is_said_once() {
    let mut fold = fold(vec![init(), rejected()]);
    let error = ModelError::new(
        rondo_types::ErrorClass::Protocol,
        "the answer must be JSON alone",
    );
    let end = result(|outcome| outcome.error = Some(error));
    assert_eq!(fold.event(&event(300, end)), None);
}

#[test]
fn an_answer_of_the_runtime_is_told_without_what_was_shown_before() {
    let built = "I stopped: a request failed.\n\nReason: no key.\n\nI look.\n\nFound:\n- it";
    let of = |said: &str| {
        let fold = fold(vec![
            init(),
            EventBody::StepStarted { step: 1 },
            text(said),
            result(|outcome| outcome.text = built.to_owned()),
        ]);
        fold.turn().unwrap().found().to_owned()
    };
    assert_eq!(of("I look."), "Found:\n- it");
    assert_eq!(of(built), "", "the model said it");
}

#[test]
fn a_turn_without_an_answer_says_why_what_it_did_and_what_helps() {
    let failure = |change: &dyn Fn(&mut Outcome)| {
        let EventBody::Result(result) = result(|outcome| change(outcome)) else {
            unreachable!()
        };
        Failure::of(&result, None)
    };
    let limit = failure(&|outcome| {
        outcome.error = None;
        outcome.stop_reason = StopReason::MaxSteps;
        (outcome.steps, outcome.tool_calls) = (3, 2);
    });
    assert_eq!(
        limit.message,
        "there is no answer: the limit on steps was reached (3 steps, 2 calls, all of which failed)"
    );
    let hint = "raise the limit with `--max-steps`";
    assert_eq!(limit.hint.as_deref(), Some(hint));
    let unusable = failure(&|outcome| outcome.stop_reason = StopReason::InvalidResponse);
    assert_eq!(
        unusable.message,
        "there is no answer: the model's replies could not be used: no key"
    );
    assert_eq!(failure(&|_| ()).message, "no key");
}

#[test]
fn of_many_calls_and_steps_the_latest_are_kept() {
    let mut fold = fold(vec![init()]);
    for at in 1..=2_000 {
        let _ = fold.event(&event(0, EventBody::StepStarted { step: at }));
        let _ = fold.event(&event(0, pending(&at.to_string())));
        let _ = fold.event(&event(0, counted()));
    }
    let last = fold.calls().last().unwrap();
    assert_eq!((fold.calls().len(), last.id.as_str()), (1_024, "2000"));
    let turn = fold.turn().unwrap();
    assert_eq!((turn.steps.len(), turn.step()), (1_000, 2_000));
    assert!(turn.cost_usd.unwrap() > 1_999.0 * NanoUsd(5).usd());
}

#[test]
fn a_call_is_known_with_its_state_until_the_next_turn() {
    let mut fold = fold(vec![init(), pending("c")]);
    let id = CallId::new("c");
    let state = |fold: &Fold| fold.call(&id).map(|call| call.state);
    assert_eq!(state(&fold), Some(CallState::Asked));
    let _ = fold.event(&event(1, EventBody::ToolCallStarted { id: id.clone() }));
    assert_eq!(state(&fold), Some(CallState::Running));
    let _ = fold.event(&event(2, finished("c", None)));
    let (is_ok, took_ms) = (true, 5);
    assert_eq!(state(&fold), Some(CallState::Ended { is_ok, took_ms }));
    let mut next = event(3, init());
    next.turn = TurnId::new("next");
    let _ = fold.event(&next);
    assert_eq!(state(&fold), None);
}

#[test]
fn a_text_begins_anew_after_anything_else_and_is_said_as_a_whole() {
    let reasoning = |text: &str| EventBody::ReasoningDelta {
        text: text.to_owned(),
    };
    let mut fold = fold(vec![init(), EventBody::StepStarted { step: 1 }]);
    let mut begins = |body| {
        let _ = fold.event(&event(1, body));
        fold.begins_text()
    };
    assert!(begins(text("One ")));
    assert!(!begins(text("and ")));
    assert!(begins(reasoning("Hm.")));
    assert!(begins(text("two.")));
    assert!(!begins(result(
        |outcome| outcome.text = "One and two.".to_owned()
    )));
    let turn = fold.turn().unwrap();
    assert_eq!(turn.last_said(), "One and two.");
    assert_eq!(turn.built_answer(), None);
}

#[test]
fn a_brief_fold_keeps_figures_calls_and_the_latest_item() {
    let mut fold = Fold::brief();
    for body in [
        init(),
        EventBody::StepStarted { step: 1 },
        text("I look."),
        counted(),
        pending("c"),
        finished("c", None),
        EventBody::StepStarted { step: 2 },
        text("It is "),
        text("there."),
    ] {
        let _ = fold.event(&event(1, body));
    }
    let turn = fold.turn().unwrap();
    let items: Vec<_> = turn.steps.iter().flat_map(|step| &step.items).collect();
    let text = "It is there.".to_owned();
    assert_eq!(items, [&Item::Text { text }]);
    assert_eq!((fold.calls().len(), turn.usage.input), (1, 10));
}

#[test]
fn a_reply_that_was_cut_does_not_send_the_user_to_look_for_a_server() {
    let hint = |message: &str| {
        let body = result(|outcome| {
            outcome.error = Some(ModelError::new(rondo_types::ErrorClass::Network, message));
        });
        let EventBody::Result(result) = body else {
            unreachable!()
        };
        Failure::of(&result, None).hint
    };
    let cut = hint("the response ended early: the connection was closed");
    assert_eq!(
        cut.as_deref(),
        Some("the connection was lost in the middle of the reply; ask again")
    );
    assert_eq!(hint("cannot connect"), None, "no address is known");
}

#[test]
fn a_command_with_an_exit_code_is_a_call_that_failed() {
    for (result, is_ok) in [
        (json!({"stdout": "", "exitCode": 0}), true),
        (json!({"stdout": "", "exitCode": 3}), false),
        (json!({"stdout": "", "signal": "SIGKILL"}), false),
    ] {
        let mut fold = fold(vec![init(), pending("c")]);
        let mut end = finished("c", None);
        if let EventBody::ToolCallFinished { result: of, .. } = &mut end {
            *of = result;
        }
        let _ = fold.event(&event(1, end));
        let took_ms = 5;
        assert_eq!(fold.calls()[0].state, CallState::Ended { is_ok, took_ms });
    }
}

#[test]
fn questions_are_open_until_they_are_answered_those_of_a_subagent_too() {
    let question = |id: &str| Question {
        id: QuestionId(id.to_owned()),
        call: Some(CallId::new(id)),
        child: None,
        kind: QuestionKind::Approval,
        prompt: String::new(),
        hash: String::new(),
        expires: None,
        subject: QuestionSubject::default(),
        offers: Vec::new(),
        reasons: Vec::new(),
    };
    let asks = |id: &str| EventBody::QuestionAsked {
        question: Box::new(question(id)),
    };
    let in_child = |body| EventBody::ChildEvent {
        id: CallId::new("a"),
        event: Box::new(TurnEvent {
            session: SessionId::new("child"),
            ..event(1, body)
        }),
    };
    let mut fold = Fold::default();
    fold.event(&event(1, init()));
    for body in [asks("b"), asks("b"), in_child(asks("c"))] {
        fold.event(&event(1, body));
    }
    let open = |fold: &Fold| {
        let ids = fold.questions().iter().map(|it| it.id.to_string());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(open(&fold), ["b", "child:c"]);
    let answered = EventBody::QuestionAnswered {
        question: QuestionId("c".to_owned()),
        actor: "ada".to_owned(),
    };
    fold.event(&event(2, in_child(answered)));
    assert_eq!(open(&fold), ["b"]);
    fold.event(&event(3, finished("b", None)));
    assert_eq!(open(&fold), [""; 0]);
}
