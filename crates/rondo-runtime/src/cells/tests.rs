//! Tests: records of Python cells.

use super::*;
use rondo_python::Loss;

#[test]
fn a_key_in_the_code_is_not_kept_and_the_record_says_so() {
    let secrets = Secrets::new(["k-1234567890".to_owned()]);
    let kept = kept_code("login('k-1234567890')", &secrets);
    let changed = Some(CodeChange::Redacted);
    assert_eq!(kept, ("login('[redacted]')".to_owned(), changed));
    let kept = kept_code("x = 1", &secrets);
    assert_eq!(kept, ("x = 1".to_owned(), None));
    let long = format!("'{}'", "ä".repeat(CODE_BYTES_MAX / 2));
    let (code, changed) = kept_code(&long, &secrets);
    assert_eq!(changed, Some(CodeChange::Cut));
    assert!(code.len() <= CODE_BYTES_MAX && long.starts_with(&code));
}

#[test]
fn long_output_keeps_its_head_and_its_tail() {
    assert_eq!(both_ends("short\n", STREAM_BYTES_MAX), "short\n");
    let text = format!("begin{}end", "ä".repeat(STREAM_BYTES_MAX));
    let kept = both_ends(&text, STREAM_BYTES_MAX);
    assert!(kept.starts_with("begin") && kept.ends_with("end"));
    assert!(kept.contains("bytes left out") && kept.len() < STREAM_BYTES_MAX + 100);
}

#[test]
fn code_that_did_not_begin_since_the_interpreter_was_gone_did_not_run() {
    let lost = |is_earlier| {
        let loss = Loss {
            how: "it ended".to_owned(),
            stopped: None,
            stdout: "out".to_owned(),
            stderr: String::new(),
            is_earlier,
        };
        let ended = Err(SessionError::Lost(Box::new(loss)));
        match cell_finished(&ended, false, Duration::ZERO, &Secrets::default()) {
            RecordBody::CellFinished { ending, .. } => ending,
            other => panic!("{other:?}"),
        }
    };
    assert!(matches!(lost(false), CellEnding::Lost { .. }));
    assert!(matches!(lost(true), CellEnding::NotRun { .. }));
}

#[test]
fn what_ran_in_an_interpreter_is_known_until_that_is_lost() {
    let (one, other) = (SessionId::new("one"), SessionId::new("other"));
    let mut presence = InterpreterRecords::default();
    assert!(!presence.sync(1));
    presence.add(&one, Seq(3), Seq(4));
    presence.add(&one, Seq(5), Seq(9));
    presence.add(&one, Seq(12), Seq(12));
    let held = |presence: &InterpreterRecords, lost_at| -> Vec<u64> {
        let is_held = |seq: &u64| presence.holds(&one, Seq(*seq), Seq(lost_at));
        (1..15).filter(is_held).collect()
    };
    assert_eq!(held(&presence, 0), [3, 4, 5, 6, 7, 8, 9, 12]);
    assert_eq!(held(&presence, 5), [6, 7, 8, 9, 12]);
    presence.repeat(&one, [Seq(4)]);
    assert_eq!(held(&presence, 5), [4, 6, 7, 8, 9, 12]);
    assert!(!presence.holds(&other, Seq(4), Seq(0)));
    assert!(!presence.sync(1));
    assert!(presence.sync(2));
    assert!(held(&presence, 0).is_empty());
}

#[test]
fn the_words_of_a_message_are_without_what_goes_along() {
    let shell = Part::text(shell_text("ls", Path::new("/x"), 0, "a", 0));
    let message = |parts: Vec<Part>| Message {
        parts,
        ..Message::user(String::new())
    };
    for parts in [
        vec![Part::text("what is this?"), shell.clone()],
        vec![shell.clone(), Part::text("what is this?")],
    ] {
        assert_eq!(words(&message(parts)), "what is this?");
    }
    assert!(words(&message(vec![shell])).starts_with("<shell "));
}
