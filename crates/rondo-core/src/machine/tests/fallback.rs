//! Failure of a model's requests for good: the next model of the list follows, within the same
//! limits.

use super::sim::{Ran, Say, Sim, calls, reply, text};
use rondo_types::{
    ErrorClass, EventBody, FinishReason, ModelError, ModelInfo, NanoUsd, Origin, Part, Price, Role,
    StopReason,
};
use std::time::Duration;

const PRICE: Price = Price {
    input: 1_000,
    output: 4_000,
    cache_read: 0,
    cache_write: 0,
};

fn model(name: &str) -> ModelInfo {
    ModelInfo {
        origin: Origin {
            dialect: "gemini".into(),
            provider: "q".into(),
            model: name.into(),
        },
        streaming: true,
        price: None,
        context_tokens: None,
    }
}

fn priced(name: &str, price: Price) -> ModelInfo {
    ModelInfo {
        price: Some(price),
        ..model(name)
    }
}

fn fail(class: ErrorClass) -> Say {
    Say::Fail {
        error: ModelError::new(class, "boom"),
        partial: "",
        committed: false,
    }
}

/// A turn with two fallbacks whose requests follow a script.
fn sim(replies: Vec<Say>) -> Sim {
    let mut sim = Sim::new("hub", replies);
    sim.fallbacks = vec![model("f1"), model("f2")];
    sim
}

fn asked(ran: &Ran) -> Vec<(usize, u32)> {
    let calls = ran.requests.iter();
    calls.map(|call| (call.model, call.attempt)).collect()
}

fn fallbacks(ran: &Ran) -> Vec<(&str, &str, ErrorClass)> {
    let events = ran.events.iter().filter_map(|event| match event {
        EventBody::ModelFallback {
            from, to, class, ..
        } => Some((from.as_str(), to.as_str(), *class)),
        _ => None,
    });
    events.collect()
}

#[test]
fn the_list_is_walked_once_in_its_order_within_one_step() {
    let names = ["p/m", "q/f1", "q/f2"];
    for (failing, name) in names.into_iter().enumerate() {
        let mut script = vec![fail(ErrorClass::Auth); failing];
        script.push(text("ok"));
        let ran = sim(script).run();
        assert_eq!(ran.outcome.text, "ok");
        assert_eq!(ran.outcome.model.as_deref(), Some(name));
        assert_eq!((ran.outcome.steps, ran.requests.len()), (1, failing + 1));
        assert_eq!(fallbacks(&ran).len(), failing);
        let answer = ran.outcome.transcript.last().unwrap();
        let origin = answer.origin.as_ref().unwrap();
        assert_eq!(format!("{}/{}", origin.provider, origin.model), name);
    }
    let ran = sim(vec![fail(ErrorClass::Auth); 3]).run();
    assert_eq!(ran.outcome.stop_reason, StopReason::Error);
    assert_eq!(ran.outcome.error.as_ref().unwrap().class, ErrorClass::Auth);
    assert_eq!(ran.outcome.model.as_deref(), Some("q/f2"));
    assert_eq!(asked(&ran), [(0, 0), (1, 0), (2, 0)]);
    let told = [
        ("p/m", "q/f1", ErrorClass::Auth),
        ("q/f1", "q/f2", ErrorClass::Auth),
    ];
    assert_eq!(fallbacks(&ran), told);
}

#[test]
fn each_model_has_all_its_retries_before_the_next_is_asked() {
    let mut script = vec![fail(ErrorClass::Server); 4];
    script.extend(vec![fail(ErrorClass::Overloaded); 3]);
    script.push(text("ok"));
    let ran = sim(script).run();
    let expected = [
        (0, 0),
        (0, 1),
        (0, 2),
        (0, 3),
        (1, 0),
        (1, 1),
        (1, 2),
        (1, 3),
    ];
    assert_eq!(asked(&ran), expected);
    assert_eq!(fallbacks(&ran), [("p/m", "q/f1", ErrorClass::Server)]);
    let waits: Vec<_> = ran.waits.iter().map(Duration::as_secs).collect();
    assert_eq!(waits, [1, 2, 4, 1, 2, 4]);
    assert_eq!(ran.outcome.steps, 1);
}

#[test]
fn a_wait_that_is_too_long_is_not_waited_for_where_somebody_else_can_answer() {
    let mut error = ModelError::new(ErrorClass::RateLimited, "tomorrow");
    error.retry_after_ms = Some(86_400_000);
    let limited = Say::Fail {
        error,
        partial: "",
        committed: false,
    };
    let ran = sim(vec![limited, text("ok")]).run();
    assert!(ran.waits.is_empty());
    assert_eq!(asked(&ran), [(0, 0), (1, 0)]);
}

#[test]
fn what_another_model_may_do_better_goes_there_and_the_rest_does_not() {
    let elsewhere = [
        ErrorClass::Auth,
        ErrorClass::Quota,
        ErrorClass::NotFound,
        ErrorClass::ContextTooLong,
        ErrorClass::BadRequest,
        ErrorClass::Unsupported,
        ErrorClass::Protocol,
        ErrorClass::TooLarge,
        ErrorClass::StepTimeout,
    ];
    for class in elsewhere {
        let ran = sim(vec![fail(class), text("ok")]).run();
        assert_eq!(asked(&ran), [(0, 0), (1, 0)], "{class}");
    }
    for class in [
        ErrorClass::ContentFilter,
        ErrorClass::Cancelled,
        ErrorClass::Internal,
    ] {
        let ran = sim(vec![fail(class)]).run();
        assert_eq!(asked(&ran), [(0, 0)], "{class}");
    }
}

#[test]
fn nobody_else_goes_on_from_what_was_shown() {
    let shown = Say::Fail {
        error: ModelError::new(ErrorClass::Network, "reset"),
        partial: "half an ans",
        committed: true,
    };
    let ran = sim(vec![shown]).run();
    assert_eq!(asked(&ran), [(0, 0)]);
    assert!(ran.outcome.text.contains("half an ans"));
}

#[test]
fn the_model_that_answered_is_asked_for_the_rest_of_the_turn() {
    let script = vec![
        calls(&[("look", "{}")]),
        fail(ErrorClass::Auth),
        calls(&[("look", r#"{"n":1}"#)]),
        text("ok"),
    ];
    let ran = sim(script).run();
    assert_eq!(asked(&ran), [(0, 0), (0, 0), (1, 0), (1, 0)]);
    assert_eq!(ran.outcome.steps, 3);
    let request = &ran.requests[2].request;
    assert_eq!(request.model, "f1");
    let first = ran.requests[1].request.messages.clone();
    assert_eq!(request.messages, first, "the same transcript goes there");
}

#[test]
fn a_reply_that_its_provider_paused_is_not_left_hanging_with_another() {
    let paused = reply(vec![Part::text("looking")], FinishReason::Paused);
    let script = vec![Say::Reply(paused), fail(ErrorClass::Auth), text("ok")];
    let ran = sim(script).run();
    assert_eq!(asked(&ran), [(0, 0), (0, 0), (1, 0)]);
    let last = |call: usize| ran.requests[call].request.messages.last().unwrap();
    assert!(last(1).paused);
    assert_eq!((last(2).role, last(2).synthetic), (Role::User, true));
}

#[test]
fn the_last_answer_may_come_from_another_model_too() {
    let script = vec![
        calls(&[("look", "{}")]),
        fail(ErrorClass::Quota),
        text("in short"),
    ];
    let mut sim = sim(script);
    sim.profile.limits.max_steps = 2;
    sim.profile.limits.reserve_final = true;
    let ran = sim.run();
    assert_eq!(ran.outcome.stop_reason, StopReason::MaxSteps);
    assert_eq!(ran.outcome.text, "in short");
    assert!(ran.outcome.answered);
    assert_eq!(ran.outcome.steps, 2);
}

#[test]
fn money_is_counted_at_the_price_of_who_was_paid() {
    let dear = Price {
        input: 10_000,
        output: 40_000,
        ..PRICE
    };
    let script = || vec![calls(&[("look", "{}")]), fail(ErrorClass::Auth), text("ok")];
    // Each reply has 100 tokens in and 10 out.
    for (fallback, cost) in [
        (priced("f1", dear), Some(NanoUsd(140_000 + 1_400_000))),
        (model("f1"), None),
    ] {
        let mut sim = Sim::new("hub", script());
        sim.price = Some(PRICE);
        sim.fallbacks = vec![fallback];
        assert_eq!(sim.run().outcome.cost, cost);
    }
    let mut sim = Sim::new("hub", vec![fail(ErrorClass::Auth), text("ok")]);
    sim.fallbacks = vec![priced("f1", PRICE)];
    assert_eq!(sim.run().outcome.cost, Some(NanoUsd(140_000)));
}

#[test]
fn under_a_budget_in_money_only_what_fits_it_is_asked() {
    let dear = Price {
        input: 1_000_000_000,
        ..PRICE
    };
    let mut sim = Sim::new("hub", vec![fail(ErrorClass::Auth), text("ok")]);
    sim.price = Some(PRICE);
    sim.profile.limits.max_cost = Some(NanoUsd(100_000_000));
    sim.fallbacks = vec![model("unknown"), priced("dear", dear), priced("f3", PRICE)];
    let ran = sim.run();
    assert_eq!(asked(&ran), [(0, 0), (3, 0)]);
    assert_eq!(ran.outcome.text, "ok");
}

#[test]
fn a_conversation_that_is_too_long_goes_where_more_may_fit() {
    let holds = |name: &str, tokens| ModelInfo {
        context_tokens: Some(tokens),
        ..model(name)
    };
    let mut sim = Sim::new(
        "hub",
        vec![
            fail(ErrorClass::Auth),
            fail(ErrorClass::ContextTooLong),
            text("ok"),
        ],
    );
    sim.fallbacks = vec![holds("f1", 100), holds("f2", 100), holds("f3", 101)];
    assert_eq!(asked(&sim.run()), [(0, 0), (1, 0), (3, 0)]);
}

#[test]
fn no_other_model_is_asked_once_the_time_or_the_tokens_are_over() {
    for (took, models) in [(9_999, 2), (10_000, 1)] {
        let mut late = sim(vec![fail(ErrorClass::Auth), text("ok")]);
        late.profile.limits.turn_timeout = Some(Duration::from_secs(10));
        late.profile.limits.reserve_final = false;
        late.profile.limits.step_timeout = None;
        late.model_time = Duration::from_millis(took);
        let ran = late.run();
        let first = ran.requests.iter().map(|call| call.model).max();
        assert_eq!(first, Some(models - 1), "after {took} ms");
    }
    let tokens = |max| {
        let mut sim = sim(vec![fail(ErrorClass::Auth), text("ok")]);
        sim.profile.limits.max_tokens_total = Some(max);
        sim.run().requests.len()
    };
    assert_eq!(tokens(1_000_000), 2);
}
