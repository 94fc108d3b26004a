//! Tests: the checks that a request passes before it is sent.

use super::sim::{AnyObject, Sim, text};
use crate::machine::{Action, Input, ModelCall, RequestCheck, TurnMachine};
use crate::ports::{Amount, Interception, Note, Reservation};
use rondo_types::{ErrorClass, Message, QuestionId, StopReason, TimeMs};
use std::time::Duration;

/// A machine and what it asks for.
struct Hand {
    machine: TurnMachine,
    now: TimeMs,
}

impl Hand {
    /// Returns a machine that holds the first request of its turn.
    fn begun() -> Self {
        let mut hand = Self {
            machine: TurnMachine::new(Sim::new("default", vec![]).config()),
            now: TimeMs(1_000),
        };
        let begin = Input::Begin {
            history: vec![],
            message: Message::user("q").into(),
        };
        assert_eq!(check(&hand.feed(begin)), Some(RequestCheck::Tools));
        hand
    }

    fn feed(&mut self, input: Input) -> Vec<Action> {
        self.machine.handle(self.now, input, &AnyObject)
    }

    fn pass(&mut self, check: RequestCheck) -> Vec<Action> {
        self.feed(Input::RequestPassed { check })
    }

    /// Passes the request until the budgets are asked.
    fn pass_to_budgets(&mut self) {
        self.pass(RequestCheck::Tools);
        let actions = self.pass(RequestCheck::Interceptors);
        assert_eq!(check(&actions), Some(RequestCheck::Budgets));
    }
}

fn check(actions: &[Action]) -> Option<RequestCheck> {
    match actions.last() {
        Some(Action::CheckRequest(check)) => Some(*check),
        _ => None,
    }
}

fn sent(actions: &[Action]) -> Option<&ModelCall> {
    match actions.last() {
        Some(Action::CallModel(call)) => Some(call),
        _ => None,
    }
}

fn stop_reason(actions: &[Action]) -> Option<StopReason> {
    match actions.last() {
        Some(Action::Done(outcome)) => Some(outcome.stop_reason),
        _ => None,
    }
}

#[test]
fn a_request_is_sent_once_tools_interceptors_and_budgets_let_it_pass_in_this_order() {
    let mut hand = Hand::begun();
    // What is not asked about yet cannot pass.
    assert!(hand.pass(RequestCheck::Budgets).is_empty());
    assert_eq!(
        check(&hand.pass(RequestCheck::Tools)),
        Some(RequestCheck::Interceptors)
    );
    assert_eq!(
        check(&hand.pass(RequestCheck::Interceptors)),
        Some(RequestCheck::Budgets)
    );
    assert_eq!(
        sent(&hand.pass(RequestCheck::Budgets)).map(|call| call.step),
        Some(1)
    );
}

#[test]
fn a_request_that_is_sent_again_in_its_step_asks_the_budgets_alone() {
    let mut hand = Hand::begun();
    hand.pass_to_budgets();
    hand.pass(RequestCheck::Budgets);
    let waits = hand.feed(Input::ReplyFailed {
        error: rondo_types::ModelError::new(ErrorClass::Server, "busy"),
        partial: String::new(),
        committed: false,
        received: false,
    });
    assert!(matches!(waits.last(), Some(Action::Wait { .. })));
    let again = hand.feed(Input::Time);
    assert_eq!(check(&again), Some(RequestCheck::Budgets));
}

#[test]
fn what_interceptors_add_goes_into_the_request_that_is_held_and_is_asked_for_once() {
    let mut hand = Hand::begun();
    hand.pass(RequestCheck::Tools);
    let notes = vec![Note {
        by: "hook".into(),
        text: "mind this".into(),
    }];
    let what = Interception::Added { notes };
    let actions = hand.feed(Input::Intercepted { what });
    assert_eq!(check(&actions), Some(RequestCheck::Budgets));
    let actions = hand.pass(RequestCheck::Budgets);
    let messages = &sent(&actions).unwrap().request.messages;
    assert_eq!(messages.last().unwrap().text(), "mind this");
}

#[test]
fn a_spent_budget_ends_the_turn_only_while_the_request_is_held() {
    let reservation = Reservation {
        id: "b".into(),
        estimate: Amount::default(),
        beyond: false,
        refused: Some("the day's money is spent".into()),
    };
    let spent = Input::BudgetSpent { reservation };
    let mut hand = Hand::begun();
    hand.pass_to_budgets();
    let mut late = Hand {
        machine: hand.machine.clone(),
        now: hand.now,
    };
    assert_eq!(
        stop_reason(&hand.feed(spent.clone())),
        Some(StopReason::BudgetSpent)
    );
    late.pass(RequestCheck::Budgets);
    assert!(late.feed(spent).is_empty());
}

#[test]
fn a_cancel_ends_the_request_that_is_held_before_the_turn() {
    let mut hand = Hand::begun();
    let actions = hand.feed(Input::Cancel);
    let [Action::EndRequest { error, .. }, Action::Abort] = actions.as_slice() else {
        panic!("{actions:?}")
    };
    assert_eq!(error.class, ErrorClass::Cancelled);
    // What a check found meanwhile changes nothing.
    assert!(hand.pass(RequestCheck::Tools).is_empty());
    let ended = hand.feed(Input::ReplyFailed {
        error: error.clone(),
        partial: String::new(),
        committed: false,
        received: false,
    });
    assert_eq!(stop_reason(&ended), Some(StopReason::Cancelled));
}

#[test]
fn the_time_for_an_answer_moves_the_end_of_the_request_that_is_held() {
    let mut hand = Hand::begun();
    hand.pass_to_budgets();
    let before = hand.machine.held_request().unwrap().clone();
    let question = QuestionId("q".into());
    hand.feed(Input::Asked {
        question: question.clone(),
        call: None,
        is_of_running_call: false,
    });
    hand.now = hand.now.after(Duration::from_secs(3600));
    hand.feed(Input::Answered { question });
    let after = hand.machine.held_request().unwrap();
    let hour = |at: TimeMs| at.after(Duration::from_secs(3600));
    assert_eq!(after.since, hand.now);
    assert_eq!(
        after.call.end.map(|end| end.at),
        before.call.end.map(|end| hour(end.at))
    );
}

#[test]
fn a_request_without_its_reply_is_checked_again_in_the_next_process() {
    let mut hand = Hand::begun();
    hand.pass_to_budgets();
    let held = hand.machine.clone();
    let actions = hand.pass(RequestCheck::Budgets);
    let call = Box::new(sent(&actions).unwrap().clone());
    let unanswered = Some(call);
    let actions = hand.feed(Input::Resumed { unanswered });
    assert_eq!(check(&actions), Some(RequestCheck::Budgets));
    assert!(sent(&hand.pass(RequestCheck::Budgets)).is_some());
    let super::sim::Say::Reply(reply) = text("done") else {
        unreachable!()
    };
    assert_eq!(
        stop_reason(&hand.feed(Input::Reply { reply })),
        Some(StopReason::Complete)
    );
    // One that was never sent takes the tools of the next process.
    hand.machine = held;
    let actions = hand.feed(Input::Resumed { unanswered: None });
    assert_eq!(check(&actions), Some(RequestCheck::Tools));
    let actions = hand.pass(RequestCheck::Tools);
    assert_eq!(check(&actions), Some(RequestCheck::Budgets));
}
