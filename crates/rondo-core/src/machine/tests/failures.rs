//! Tests: retries, waits, and failures that no retry mends.

use super::sim::{Say, Sim, calls, handle, text};
use crate::machine::{Action, Input, TurnMachine};
use crate::pairing::is_paired;
use rondo_types::{
    ErrorClass, EventBody, Message, ModelError, Outcome, StopReason, TimeMs, ToolErrorCode,
    ToolOutcome,
};

fn fail(class: ErrorClass) -> Say {
    Say::Fail {
        error: ModelError::new(class, "boom"),
        partial: "",
        committed: false,
    }
}

fn asked_to_wait(ms: u64) -> Say {
    let mut error = ModelError::new(ErrorClass::RateLimited, "slow down");
    error.retry_after_ms = Some(ms);
    Say::Fail {
        error,
        partial: "",
        committed: false,
    }
}

#[test]
fn hub_11_transient_failures_are_retried_three_times_after_one_two_and_four_seconds() {
    let script = vec![
        fail(ErrorClass::Server),
        fail(ErrorClass::Overloaded),
        fail(ErrorClass::Network),
        text("ok"),
    ];
    let ran = Sim::new("hub", script).run();
    assert_eq!(ran.outcome.text, "ok");
    let waits: Vec<_> = ran.waits.iter().map(std::time::Duration::as_secs).collect();
    assert_eq!(waits, [1, 2, 4]);
    assert_eq!(ran.outcome.steps, 1, "transport retries are no steps");

    let ran = Sim::new("hub", vec![fail(ErrorClass::Server); 4]).run();
    assert_eq!(ran.outcome.stop_reason, StopReason::Error);
    assert_eq!(ran.requests.len(), 4);
}

#[test]
fn hub_18_what_cannot_heal_is_not_retried() {
    for class in [
        ErrorClass::Auth,
        ErrorClass::Quota,
        ErrorClass::BadRequest,
        ErrorClass::NotFound,
    ] {
        let ran = Sim::new("hub", vec![fail(class)]).run();
        assert_eq!(ran.requests.len(), 1);
        assert_eq!(
            ran.outcome.error.as_ref().map(|error| error.class),
            Some(class)
        );
    }
}

#[test]
fn nothing_is_retried_once_output_was_shown_and_the_shown_text_is_kept() {
    let said = Say::Fail {
        error: ModelError::new(ErrorClass::Network, "reset"),
        partial: "half an ans",
        committed: true,
    };
    let ran = Sim::new("default", vec![said]).run();
    assert_eq!(ran.requests.len(), 1);
    assert_eq!(ran.outcome.stop_reason, StopReason::Error);
    assert!(ran.outcome.text.contains("half an ans"));
    assert_eq!(ran.outcome.transcript.last().unwrap().text(), "half an ans");
}

#[test]
fn the_providers_wish_to_wait_is_kept_within_the_bounds() {
    let ran = Sim::new("default", vec![asked_to_wait(7_000), text("ok")]).run();
    assert_eq!(ran.waits[0].as_millis(), 7_000);
    let ran = Sim::new("default", vec![asked_to_wait(61_000)]).run();
    assert!(
        ran.waits.is_empty(),
        "a longer wait than the policy allows is no retry"
    );
    let mut sim = Sim::new("default", vec![asked_to_wait(30_000)]);
    sim.profile.limits.turn_timeout = Some(std::time::Duration::from_secs(20));
    assert!(
        sim.run().waits.is_empty(),
        "a wait past the deadline is no retry"
    );
}

#[test]
fn py_46_transport_failures_degrade_and_keep_the_findings() {
    let ran = Sim::new(
        "python",
        vec![calls(&[("look", "{}")]), fail(ErrorClass::Network)],
    )
    .run();
    assert_eq!(ran.requests.len(), 2, "the design retries nothing");
    assert!(ran.outcome.degraded);
    assert_eq!(ran.outcome.findings.len(), 1);
    assert!(ran.outcome.text.contains("look"));
}

#[test]
fn a_call_the_provider_could_not_read_spends_a_corrective_request() {
    let ran = Sim::new(
        "default",
        vec![fail(ErrorClass::InvalidToolCall), text("ok")],
    )
    .run();
    assert_eq!(ran.outcome.text, "ok");
    assert!(
        ran.events
            .iter()
            .any(|it| matches!(it, EventBody::ReplyRejected { .. }))
    );
}

#[test]
fn jitter_is_the_same_for_the_same_seed_and_within_its_share() {
    let waits = || {
        Sim::new("default", vec![fail(ErrorClass::Server); 5])
            .run()
            .waits
    };
    assert_eq!(waits(), waits());
    for (wait, base) in waits().iter().zip([1_000, 2_000, 4_000, 8_000]) {
        let ms = wait.as_millis();
        assert!(ms >= base && ms <= base * 12 / 10, "{ms} for {base}");
    }
}

/// Feeds inputs by hand; returns the outcome when there is one.
struct Hand {
    machine: TurnMachine,
    now: TimeMs,
}

impl Hand {
    fn new(profile: &str) -> Self {
        let config = Sim::new(profile, vec![]).config();
        Self {
            machine: TurnMachine::new(config),
            now: TimeMs(5),
        }
    }

    fn feed(&mut self, input: Input) -> Vec<Action> {
        handle(&mut self.machine, self.now, input)
    }

    fn begin(&mut self) {
        self.feed(Input::Begin {
            history: vec![],
            message: Message::user("q").into(),
        });
    }

    fn reply(&mut self, say: Say) -> Vec<Action> {
        let Say::Reply(reply) = say else {
            panic!("a reply")
        };
        self.feed(Input::Reply { reply })
    }
}

fn outcome(actions: Vec<Action>) -> Option<Outcome> {
    actions.into_iter().find_map(|action| match action {
        Action::Done(outcome) => Some(*outcome),
        _ => None,
    })
}

#[test]
fn fa_28_a_cancel_in_the_middle_of_a_reply_keeps_what_was_said() {
    let mut hand = Hand::new("stream");
    hand.begin();
    assert_eq!(hand.feed(Input::Cancel), [Action::Abort]);
    let ended = outcome(hand.feed(Input::ReplyFailed {
        error: ModelError::new(ErrorClass::Cancelled, "cancelled"),
        partial: "so far".into(),
        committed: true,
        received: true,
    }))
    .unwrap();
    assert_eq!(ended.stop_reason, StopReason::Cancelled);
    assert!(ended.text.contains("so far"));
    assert!(is_paired(&ended.transcript));
}

#[test]
fn fa_21_fa_28_a_cancel_in_the_middle_of_a_batch_pairs_every_call() {
    let mut hand = Hand::new("stream");
    hand.begin();
    let actions = hand.reply(calls(&[("act", "{}"), ("act", r#"{"n":2}"#)]));
    let Some(Action::CheckGate(gated)) = actions.last() else {
        panic!("the gate comes first")
    };
    let first = gated[0].call_id.clone();
    hand.feed(Input::Gate {
        call_id: first.clone(),
        verdict: crate::ports::Verdict::Allow,
    });
    assert_eq!(hand.feed(Input::Cancel), [Action::Abort]);
    assert!(!hand.machine.is_done(), "the running call's end is awaited");
    let ended = outcome(hand.feed(Input::ToolFinished {
        call_id: first,
        outcome: ToolOutcome::error(ToolErrorCode::Cancelled, "cancelled"),
        duration_ms: 3,
    }))
    .unwrap();
    assert_eq!(ended.stop_reason, StopReason::Cancelled);
    assert!(is_paired(&ended.transcript));
    let codes: Vec<_> = ended
        .transcript
        .last()
        .unwrap()
        .results()
        .map(|result| result.error)
        .collect();
    assert_eq!(
        codes,
        [Some(ToolErrorCode::Cancelled), Some(ToolErrorCode::NotRun)]
    );
}

#[test]
fn a_cancel_while_a_person_is_asked_ends_at_once() {
    let mut hand = Hand::new("default");
    hand.begin();
    let actions = hand.reply(calls(&[("act", "{}")]));
    let Some(Action::CheckGate(gated)) = actions.last() else {
        panic!("the gate comes first")
    };
    let call_id = gated[0].call_id.clone();
    let verdict = crate::ports::Verdict::Ask {
        prompt: "?".into(),
        reasons: Vec::new(),
    };
    hand.feed(Input::Gate { call_id, verdict });
    let ended = outcome(hand.feed(Input::Cancel)).unwrap();
    assert!(is_paired(&ended.transcript));
}

#[test]
fn steering_enters_between_steps_and_keeps_an_answered_turn_going() {
    let mut hand = Hand::new("default");
    hand.begin();
    hand.feed(Input::Steer {
        message: "also this".into(),
    });
    let actions = hand.reply(text("first answer"));
    let Some(Action::CallModel(call)) = actions.last() else {
        panic!("another step: {actions:?}")
    };
    let texts: Vec<_> = call
        .request
        .messages
        .iter()
        .map(|message| message.text())
        .collect();
    assert_eq!(texts, ["q", "first answer", "also this"]);
}

#[test]
fn steering_that_comes_too_late_costs_no_answer_and_goes_back_to_its_sender() {
    for profile in ["shell", "default"] {
        let mut config = Sim::new(profile, vec![]).config();
        std::sync::Arc::make_mut(&mut config.profile)
            .limits
            .max_steps = 2;
        let mut hand = Hand {
            machine: TurnMachine::new(config),
            now: TimeMs(5),
        };
        hand.begin();
        hand.reply(calls(&[("look", "{}")]));
        let gated = hand.machine.clone();
        assert!(!gated.is_done());
        let call_id = rondo_types::CallId::generated(1, 1, 0);
        let verdict = crate::ports::Verdict::Allow;
        hand.feed(Input::Gate {
            call_id: call_id.clone(),
            verdict,
        });
        let outcome_of_call = ToolOutcome::text("seen");
        hand.feed(Input::ToolFinished {
            call_id,
            outcome: outcome_of_call,
            duration_ms: 1,
        });
        hand.feed(Input::Steer {
            message: "and this?".into(),
        });
        let ended = outcome(hand.reply(text("the answer"))).unwrap();
        assert!(ended.answered);
        assert_eq!(ended.text, "the answer");
        assert_eq!(ended.undelivered_steering, [Message::user("and this?")]);
    }
}

#[test]
fn tokens_of_failed_requests_count_once_something_had_arrived() {
    let failed = |received| {
        let mut hand = Hand::new("stream");
        hand.begin();
        outcome(hand.feed(Input::ReplyFailed {
            error: ModelError::new(ErrorClass::IdleTimeout, "stalled"),
            partial: String::new(),
            committed: false,
            received,
        }))
        .unwrap()
        .usage
        .total()
    };
    assert_eq!(failed(false), 0);
    assert!(failed(true) > 0);
}

#[test]
fn a_fault_ends_the_turn_with_its_cause_and_every_call_paired() {
    let mut hand = Hand::new("default");
    hand.begin();
    hand.reply(calls(&[("act", "{}")]));
    let error = ModelError::new(ErrorClass::Internal, "disk full");
    let ended = outcome(hand.feed(Input::Fault { error })).unwrap();
    assert_eq!(ended.stop_reason, StopReason::Error);
    assert!(is_paired(&ended.transcript));
    assert!(
        hand.feed(Input::Cancel).is_empty(),
        "a finished turn ignores everything"
    );
}
