//! Tests: a person's cells among turns, messages and answers.

use super::*;

#[test]
fn a_cell_waits_for_the_turn_that_runs_and_goes_before_the_messages_that_wait() {
    let mut machine = running();
    machine.handle(NOW, queue("a"));
    assert_eq!(done(&mut machine, Input::CellAsked), []);
    assert_eq!(done(&mut machine, Input::CellAsked), []);
    let ended = done(&mut machine, Input::TurnEnded { run: Run(1) });
    assert_eq!(ended, [Action::RunCell]);
    // Nothing else begins while it runs, and it is what a stop is about.
    assert_eq!(done(&mut machine, steer("b")), []);
    assert_eq!(done(&mut machine, Input::Cancel), [Action::StopCell]);
    assert_eq!(done(&mut machine, Input::Cancel), [Action::StopCell]);
    assert_eq!(done(&mut machine, Input::CellEnded), [Action::RunCell]);
    let ended = done(&mut machine, Input::CellEnded);
    assert_eq!(ended, [start(2, "a", Delivery::Queue)]);
    assert_eq!(done(&mut machine, Input::CellEnded), []);
}

#[test]
fn a_cell_alone_takes_the_session_and_lets_it_go() {
    let mut machine = SessionMachine::new();
    assert_eq!(done(&mut machine, Input::CellAsked), [Action::Take]);
    let taken = done(&mut machine, owned(None, &[]));
    assert_eq!(taken, [Action::RunCell]);
    assert_eq!(done(&mut machine, Input::CellEnded), [Action::Release]);
    assert!(machine.is_at_rest());
    assert_eq!(done(&mut machine, Input::CellAsked), [Action::Take]);
    assert_eq!(done(&mut machine, Input::NotTaken), []);
    assert!(machine.is_at_rest());
    machine.handle(NOW, Input::Drain);
    assert_eq!(done(&mut machine, Input::CellAsked), []);
}

#[test]
fn a_cell_is_stopped_where_the_session_is_lost_and_its_end_changes_nothing_then() {
    let mut machine = SessionMachine::new();
    machine.handle(NOW, Input::CellAsked);
    machine.handle(NOW, owned(None, &[]));
    assert_eq!(done(&mut machine, Input::OwnerLost), [Action::StopCell]);
    assert_eq!(done(&mut machine, Input::CellEnded), []);
    assert!(machine.is_at_rest());
}

#[test]
fn what_is_answered_or_expires_while_a_cell_runs_is_given_to_the_parked_turn_after_it() {
    let resumes = |value: AnswerValue, actor: &str, before: Option<Input>, now: u64| {
        let mut machine = SessionMachine::new();
        machine.handle(NOW, Input::CellAsked);
        let taken = done(&mut machine, owned(parked(&["q"]), &[]));
        assert_eq!(taken, [Action::RunCell]);
        if let Some(input) = before {
            assert_eq!(done(&mut machine, input), []);
        }
        let ended = machine.handle(TimeMs(now), Input::CellEnded);
        let answer = Answer {
            actor: actor.to_owned(),
            value,
            remember: None,
            ..approve("q")
        };
        let expected = Action::Resume {
            run: Run(1),
            turn: turn(),
            answers: vec![answer],
        };
        assert!(ended.contains(&expected), "{ended:?}");
    };
    let answered = Some(Input::Answered(approve("q")));
    resumes(AnswerValue::Approve, "me", answered, 1_000);
    let reason = "the question expired without an answer".to_owned();
    resumes(AnswerValue::Deny { reason }, "expiry", None, 2_000);
}
