//! Tests: calls that were under way when the turn was cut off.

use super::sim::{AnyObject, Say, Sim, calls, handle};
use crate::machine::{Action, Input, PlannedCall, TurnMachine};
use crate::ports::{Approval, Reconciled, Verdict};
use rondo_types::{CallId, InDoubtDecision, Message, Recovery, TimeMs, ToolErrorCode, ToolOutcome};

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

/// Returns the ids of the calls that are judged again.
fn judged_again(actions: &[Action]) -> Vec<CallId> {
    match actions.last() {
        Some(Action::JudgeAgain(calls)) => calls.iter().map(|it| it.call_id.clone()).collect(),
        _ => Vec::new(),
    }
}

fn judge_again(machine: &mut TurnMachine, verdicts: Vec<(CallId, Verdict)>) -> Vec<Action> {
    machine.handle(TimeMs(4), Input::JudgedAgain { verdicts }, &AnyObject)
}

/// Two calls of one stage: a record lets the first run, and the gate of now the second.
fn cleared_in_two_processes() -> (TurnMachine, Vec<CallId>) {
    let (mut machine, ids) = with_calls(2);
    assert!(allow(&mut machine, &ids[0]).is_empty());
    let resumed = Input::Resumed { unanswered: None };
    machine.handle(TimeMs(3), resumed, &AnyObject);
    assert_eq!(judged_again(&allow(&mut machine, &ids[1])), ids);
    let awaiting = ids.iter().map(|id| machine.awaits_verdict(id));
    assert_eq!(awaiting.collect::<Vec<_>>(), [true, false]);
    (machine, ids)
}

#[test]
fn a_call_that_only_a_record_lets_run_is_judged_again_and_begins_with_the_others() {
    let (mut machine, ids) = cleared_in_two_processes();
    let unjudged = judge_again(&mut machine.clone(), Vec::new());
    assert_eq!(run(&unjudged).map(<[_]>::len), Some(1));
    let actions = judge_again(&mut machine, vec![(ids[0].clone(), Verdict::Allow)]);
    let begun = run(&actions).unwrap().iter().map(|call| &call.call_id);
    assert_eq!(begun.collect::<Vec<_>>(), [&ids[0], &ids[1]]);
    // It is judged once in a process.
    assert!(ids.iter().all(|id| !machine.awaits_verdict(id)));
    assert!(judge_again(&mut machine, vec![(ids[0].clone(), Verdict::Allow)]).is_empty());
}

#[test]
fn a_call_that_the_gate_of_now_denies_ends_and_the_others_begin() {
    let (mut machine, ids) = cleared_in_two_processes();
    let reason = "not any more".to_owned();
    let verdicts = vec![(ids[0].clone(), Verdict::Deny { reason })];
    let actions = judge_again(&mut machine, verdicts);
    let [Action::RunTools(begun), Action::EndCall { call, outcome }] = actions.as_slice() else {
        panic!("{actions:?}")
    };
    assert_eq!((begun.len(), &begun[0].call_id), (1, &ids[1]));
    assert_eq!(call.call_id, ids[0]);
    assert_eq!(outcome.code(), Some(ToolErrorCode::Denied));
}

#[test]
fn a_call_that_the_gate_of_now_asks_about_is_put_to_a_person() {
    let (mut machine, ids) = cleared_in_two_processes();
    let ask = Verdict::Ask {
        prompt: "may it?".into(),
        reasons: Vec::new(),
    };
    let actions = judge_again(&mut machine, vec![(ids[0].clone(), ask)]);
    let [Action::RunTools(_), Action::AskAgain { call, prompt, .. }] = actions.as_slice() else {
        panic!("{actions:?}")
    };
    assert_eq!((&call.call_id, prompt.as_str()), (&ids[0], "may it?"));
}

#[test]
fn a_call_that_was_under_way_is_judged_again_unless_it_is_over() {
    let (mut machine, ids) = with_calls(2);
    allow(&mut machine, &ids[0]);
    allow(&mut machine, &ids[1]);
    let resumed = Input::Resumed { unanswered: None };
    machine.handle(TimeMs(3), resumed, &AnyObject);
    let in_doubt = Input::InDoubt {
        call_id: ids[0].clone(),
        decision: InDoubtDecision::Fail,
        still_running: false,
    };
    machine.handle(TimeMs(4), in_doubt, &AnyObject);
    let awaiting = ids.iter().map(|id| machine.awaits_verdict(id));
    assert_eq!(awaiting.collect::<Vec<_>>(), [false, true]);
    let actions = judge_again(&mut machine, vec![(ids[1].clone(), Verdict::Allow)]);
    let begun = run(&actions).unwrap().iter().map(|call| &call.call_id);
    assert_eq!(begun.collect::<Vec<_>>(), [&ids[1]]);
}

/// Gives the machine what is known of the first call of a turn that continues, and returns its decision.
fn settled(machine: &mut TurnMachine, recovery: Recovery, known: Reconciled) -> InDoubtDecision {
    let call_id = CallId::generated(1, 1, 0);
    let cut_off = Input::CutOff {
        call_id: call_id.clone(),
        recovery,
        known,
    };
    let actions = machine.handle(TimeMs(4), cut_off, &AnyObject);
    let [
        Action::Settle {
            call_id: of,
            decision,
            still_running,
        },
    ] = actions.as_slice()
    else {
        panic!("{actions:?}")
    };
    assert_eq!(*of, call_id);
    let in_doubt = Input::InDoubt {
        call_id,
        decision: *decision,
        still_running: *still_running,
    };
    machine.handle(TimeMs(4), in_doubt, &AnyObject);
    *decision
}

/// A turn that continues in another process, and whose first call had begun.
fn cut_off() -> TurnMachine {
    let (mut machine, ids) = with_calls(1);
    allow(&mut machine, &ids[0]);
    let resumed = Input::Resumed { unanswered: None };
    machine.handle(TimeMs(3), resumed, &AnyObject);
    machine
}

#[test]
fn a_call_that_was_cut_off_is_settled_by_its_recovery_and_by_what_its_tool_knows() {
    let cases = [
        (
            Recovery::ReadOnly,
            Reconciled::Unknown,
            InDoubtDecision::Retry,
        ),
        (
            Recovery::Idempotent,
            Reconciled::Unknown,
            InDoubtDecision::Retry,
        ),
        (Recovery::Confirm, Reconciled::Unknown, InDoubtDecision::Ask),
        (
            Recovery::AtMostOnce,
            Reconciled::Unknown,
            InDoubtDecision::Fail,
        ),
        (
            Recovery::Checkable,
            Reconciled::Unknown,
            InDoubtDecision::Fail,
        ),
        (
            Recovery::Checkable,
            Reconciled::NotDone,
            InDoubtDecision::Retry,
        ),
        (
            Recovery::Checkable,
            Reconciled::Running,
            InDoubtDecision::Retry,
        ),
        (
            Recovery::Checkable,
            Reconciled::Done(ToolOutcome::text("done")),
            InDoubtDecision::Done,
        ),
    ];
    for (recovery, known, decision) in cases {
        assert_eq!(settled(&mut cut_off(), recovery, known), decision);
    }
}

#[test]
fn no_call_of_a_turn_that_was_stopped_runs_again() {
    for (recovery, known) in [
        (Recovery::ReadOnly, Reconciled::Unknown),
        (Recovery::Confirm, Reconciled::Unknown),
        (Recovery::Checkable, Reconciled::Running),
    ] {
        let mut machine = cut_off();
        machine.handle(TimeMs(3), Input::Cancel, &AnyObject);
        let decision = settled(&mut machine, recovery, known);
        assert_eq!(decision, InDoubtDecision::Fail, "{recovery:?}");
    }
}

/// Returns the machine's actions for a call that was cut off, by the verdict of now.
fn after_verdict(recovery: Recovery, known: Reconciled, verdict: Verdict) -> Vec<Action> {
    let mut machine = cut_off();
    settled(&mut machine, recovery, known);
    judge_again(&mut machine, vec![(CallId::generated(1, 1, 0), verdict)])
}

#[test]
fn a_call_that_still_runs_is_waited_for_whatever_the_gate_says_now() {
    let mut machine = cut_off();
    settled(&mut machine, Recovery::Checkable, Reconciled::Running);
    assert!(!machine.awaits_verdict(&CallId::generated(1, 1, 0)));
    let actions = judge_again(&mut machine, Vec::new());
    assert!(matches!(actions.as_slice(), [Action::RepeatCall(_)]));
}

#[test]
fn a_call_that_was_cut_off_is_repeated_asked_about_or_ended_by_the_verdict_of_now() {
    let deny = || Verdict::Deny {
        reason: "no".into(),
    };
    let ask = || Verdict::Ask {
        prompt: "?".into(),
        reasons: Vec::new(),
    };
    let code = |recovery, known| match after_verdict(recovery, known, deny()).as_slice() {
        [Action::EndCall { outcome, .. }] => outcome.code(),
        other => panic!("{other:?}"),
    };
    let has_begun =
        |recovery, known, verdict| match after_verdict(recovery, known, verdict).as_slice() {
            [
                Action::AskAgain {
                    has_begun, prompt, ..
                },
            ] => (*has_begun, prompt.clone()),
            other => panic!("{other:?}"),
        };
    let allowed = after_verdict(Recovery::ReadOnly, Reconciled::Unknown, Verdict::Allow);
    assert!(matches!(allowed.as_slice(), [Action::RepeatCall(_)]));
    // One that may have been done is in doubt, and not merely denied.
    let (idempotent, confirm) = (Recovery::Idempotent, Recovery::Confirm);
    assert_eq!(
        code(idempotent, Reconciled::Unknown),
        Some(ToolErrorCode::InDoubt)
    );
    assert_eq!(
        code(confirm, Reconciled::Unknown),
        Some(ToolErrorCode::InDoubt)
    );
    assert_eq!(
        code(Recovery::ReadOnly, Reconciled::Unknown),
        Some(ToolErrorCode::Denied)
    );
    assert_eq!(
        code(Recovery::Checkable, Reconciled::NotDone),
        Some(ToolErrorCode::Denied)
    );
    let never_began = has_begun(Recovery::Checkable, Reconciled::NotDone, ask());
    assert_eq!(never_began, (false, "?".to_owned()));
    let may_be_done = has_begun(idempotent, Reconciled::Unknown, ask());
    assert_eq!(may_be_done, (true, "?".to_owned()));
    let (has_begun, prompt) = has_begun(confirm, Reconciled::Unknown, Verdict::Allow);
    assert!(
        has_begun && prompt.contains("may have finished"),
        "{prompt}"
    );
}

#[test]
fn a_question_is_put_again_in_another_process_unless_its_gate_has_the_answer() {
    let ask = || Verdict::Ask {
        prompt: "may it?".into(),
        reasons: Vec::new(),
    };
    let (mut machine, ids) = with_calls(1);
    let call_id = &ids[0];
    let asked = Input::Gate {
        call_id: call_id.clone(),
        verdict: ask(),
    };
    machine.handle(TimeMs(3), asked, &AnyObject);
    let resumed = Input::Resumed { unanswered: None };
    machine.handle(TimeMs(3), resumed, &AnyObject);
    assert!(machine.awaits_verdict(call_id));
    let after = |verdict| judge_again(&mut machine.clone(), vec![(call_id.clone(), verdict)]);
    let denied = Approval::Denied {
        reason: "no".into(),
    };
    let reason = "no".to_owned();
    for (verdict, expected) in [
        (Verdict::Allow, Approval::Approved),
        (Verdict::Deny { reason }, denied),
    ] {
        let answered = Action::Answer {
            call_id: call_id.clone(),
            approval: expected,
        };
        assert_eq!(after(verdict), [answered]);
    }
    let actions = after(ask());
    assert!(matches!(
        actions.as_slice(),
        [Action::AskAgain {
            has_begun: false,
            ..
        }]
    ));
}
