//! Tests: calls that were under way when the turn was cut off.

use super::sim::{AnyObject, Say, Sim, calls, handle};
use crate::machine::{Action, Input, PlannedCall, TurnMachine};
use crate::ports::{Approval, Verdict};
use rondo_types::{CallId, InDoubtDecision, Message, TimeMs};

/// A turn whose reply asked for calls of `act`, and the ids of these calls.
pub(super) fn with_calls(count: usize) -> (TurnMachine, Vec<CallId>) {
    let mut machine = TurnMachine::new(Sim::new("default", vec![]).config());
    let begin = Input::Begin {
        history: vec![],
        message: Message::user("q").into(),
    };
    handle(&mut machine, TimeMs(1), begin);
    let Say::Reply(reply) = calls(&vec![("look", "{}"); count]) else {
        unreachable!()
    };
    let actions = handle(&mut machine, TimeMs(2), Input::Reply { reply });
    let Some(Action::CheckGate(calls)) = actions.last() else {
        panic!("the gate comes first: {actions:?}")
    };
    let ids = calls.iter().map(|call| call.call_id.clone()).collect();
    (machine, ids)
}

fn allow(machine: &mut TurnMachine, call_id: &CallId) -> Vec<Action> {
    let allow = Input::Gate {
        call_id: call_id.clone(),
        verdict: Verdict::Allow,
    };
    machine.handle(TimeMs(3), allow, &AnyObject)
}

fn ask_again(machine: &mut TurnMachine, call_id: &CallId, has_begun: bool) -> Vec<Action> {
    let ask = Input::AskAgain {
        call_id: call_id.clone(),
        prompt: "again?".into(),
        reasons: Vec::new(),
        has_begun,
    };
    machine.handle(TimeMs(4), ask, &AnyObject);
    let approval = Input::Approval {
        call_id: call_id.clone(),
        approval: Approval::Approved,
    };
    machine.handle(TimeMs(5), approval, &AnyObject)
}

fn run(actions: &[Action]) -> Option<&[PlannedCall]> {
    match actions.last() {
        Some(Action::RunTools(calls)) => Some(calls),
        _ => None,
    }
}

#[test]
fn an_approved_call_whose_beginning_is_recorded_runs_without_beginning_anew() {
    let (mut machine, ids) = with_calls(1);
    assert!(run(&allow(&mut machine, &ids[0])).is_some());
    machine.handle(TimeMs(3), Input::Resumed { unanswered: None }, &AnyObject);
    let in_doubt = Input::InDoubt {
        call_id: ids[0].clone(),
        decision: InDoubtDecision::Retry,
        still_running: false,
    };
    machine.handle(TimeMs(4), in_doubt, &AnyObject);
    // Its tool knows that nothing of it was done, and its beginning is recorded all the same.
    let actions = ask_again(&mut machine, &ids[0], false);
    assert!(matches!(actions.last(), Some(Action::RepeatCall(call)) if call.call_id == ids[0]));
}

#[test]
fn an_approved_call_that_never_began_begins() {
    let (mut machine, ids) = with_calls(1);
    allow(&mut machine, &ids[0]);
    let actions = ask_again(&mut machine, &ids[0], false);
    assert_eq!(run(&actions).map(<[_]>::len), Some(1));
}
