//! Tests: answers that come at any time, and count once.

use super::*;

#[test]
fn a_turn_that_was_cut_off_before_it_recorded_an_answer_goes_on_with_it() {
    let mut machine = SessionMachine::new();
    machine.handle(NOW, Input::Due);
    machine.handle(NOW, Input::Answered(approve("q")));
    let taken = done(&mut machine, owned(cut_off(), &[]));
    let resume = Action::Resume {
        run: Run(1),
        turn: turn(),
        answers: vec![approve("q")],
    };
    assert_eq!(taken, [resume]);
}

#[test]
fn an_answer_that_comes_before_the_session_knows_that_its_turn_is_parked_is_found_in_the_mailbox() {
    let mut machine = running();
    assert_eq!(done(&mut machine, Input::Answered(approve("q"))), []);
    let input = Input::Parked {
        run: Run(1),
        turn: turn(),
        questions: vec![question("q")],
    };
    assert_eq!(done(&mut machine, input), [Action::Release, Action::Take]);
}

#[test]
fn an_answer_that_is_seen_twice_is_taken_once_and_not_refused() {
    let mut machine = SessionMachine::new();
    machine.handle(NOW, Input::Answered(approve("q")));
    // The mailbox is read as the session is taken.
    machine.handle(NOW, Input::Answered(approve("q")));
    let taken = done(&mut machine, owned(parked(&["q"]), &[]));
    assert!(matches!(taken[..], [Action::Resume { .. }]), "{taken:?}");
}

#[test]
fn an_answer_to_what_changed_or_is_answered_already_changes_nothing() {
    let mut machine = SessionMachine::new();
    let stale = Answer {
        hash: "another".to_owned(),
        ..approve("q")
    };
    machine.handle(NOW, Input::Answered(stale));
    let second = Answer {
        actor: "another".to_owned(),
        ..approve("q")
    };
    machine.handle(NOW, Input::Answered(approve("q")));
    machine.handle(NOW, Input::Answered(second));
    machine.handle(NOW, Input::Answered(approve("other")));
    let taken = done(&mut machine, owned(parked(&["q"]), &[]));
    let id = |name: &str| QuestionId(name.to_owned());
    let refused = |question| Action::Refuse(Refusal::NoQuestion { question });
    let resume = Action::Resume {
        run: Run(1),
        turn: turn(),
        answers: vec![approve("q")],
    };
    assert_eq!(
        taken,
        [
            Action::Refuse(Refusal::Changed { question: id("q") }),
            refused(id("q")),
            refused(id("other")),
            resume,
        ]
    );
    // It may be about what the turn asks next.
    assert_eq!(done(&mut machine, Input::Answered(approve("q"))), []);
    let ended = done(&mut machine, Input::TurnEnded { run: Run(1) });
    assert_eq!(ended, [refused(id("q")), Action::Release]);
}
