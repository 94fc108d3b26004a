//! Tests: the messages of a session, folded from its records.

use super::*;
use crate::compaction::{Change, Compaction};
use crate::ports::Purpose;
use rondo_types::{Candidate, FinishReason, Message, Part, Reply, StopReason, TimeMs};

fn record(turn: &str, body: RecordBody) -> Record {
    Record {
        turn: TurnId::new(turn),
        step: 1,
        at_ms: TimeMs(1),
        body,
    }
}

fn started(number: u32, history: usize) -> RecordBody {
    RecordBody::TurnStarted {
        profile: crate::profile::builtin("default").unwrap().into(),
        seed: 1,
        tools_hash: String::new(),
        addresses: vec![],
        models: vec![],
        turn_number: number,
        history: u32::try_from(history).unwrap(),
        initial_history: vec![],
        unbegun_not_run: true,
    }
}

fn said(text: &str) -> RecordBody {
    RecordBody::UserMessage {
        message: Message::user(text),
    }
}

fn requested(purpose: Purpose) -> RecordBody {
    RecordBody::ModelRequested {
        model: "p/m".into(),
        request_hash: String::new(),
        attempt: 0,
        parts: None,
        purpose,
    }
}

fn replied(text: &str) -> RecordBody {
    let candidate = Candidate {
        parts: vec![Part::text(text)],
        finish_reason: Some(FinishReason::Stop),
        raw_finish_reasons: vec![],
    };
    RecordBody::ModelReplied {
        reply: Box::new(Reply {
            candidates: vec![candidate],
            ..Reply::default()
        }),
    }
}

fn done() -> RecordBody {
    RecordBody::Final {
        stop_reason: StopReason::Complete,
        text: String::new(),
        degraded: false,
        process: None,
    }
}

/// A turn of a question and its answer.
fn turn(number: u32, history: usize) -> Vec<Record> {
    let name = format!("t{number}");
    let bodies = [
        started(number, history),
        said(&format!("q{number}")),
        requested(Purpose::Step),
        replied(&format!("a{number}")),
        done(),
    ];
    bodies.into_iter().map(|body| record(&name, body)).collect()
}

fn texts(transcript: &Transcript) -> Vec<String> {
    transcript.iter().map(|message| message.text()).collect()
}

#[test]
fn turns_follow_one_another() {
    let records = [turn(1, 0), turn(2, 2)].concat();
    let history = History::of(&records);
    assert_eq!(texts(&history.transcript()), ["q1", "a1", "q2", "a2"]);
    assert_eq!((history.turns(), history.head()), (2, Seq(10)));
    assert_eq!(history.open_turn(), None);
}

#[test]
fn a_session_that_began_with_messages_of_another_has_them() {
    let mut records = turn(1, 1);
    if let RecordBody::TurnStarted {
        initial_history, ..
    } = &mut records[0].body
    {
        initial_history.push(std::sync::Arc::new(Message::user("before")));
    }
    let history = History::of(&records);
    assert_eq!(texts(&history.transcript()), ["before", "q1", "a1"]);
    let cut = History::of(&records[..3]);
    assert_eq!(texts(&cut.before_open_turn()), ["before"]);
}

/// Cell that a person ran in the Python session.
fn cell() -> Record {
    let body = RecordBody::CellStarted {
        code: "x = 1".into(),
        changed: None,
    };
    record("", body)
}

#[test]
fn cells_count_as_records_and_say_nothing() {
    let mut first = turn(1, 1);
    if let RecordBody::TurnStarted {
        initial_history, ..
    } = &mut first[0].body
    {
        initial_history.push(std::sync::Arc::new(Message::user("before")));
    }
    let (one, two) = first.split_at(3);
    let records = [vec![cell()], one.to_vec(), vec![cell()], two.to_vec()].concat();
    let open = History::of(&records[..5]).open_turn().unwrap();
    assert_eq!((open.first, open.turn.as_str()), (Seq(2), "t1"));
    let history = History::of(&[records, vec![cell()]].concat());
    assert_eq!(texts(&history.transcript()), ["before", "q1", "a1"]);
    assert_eq!((history.turns(), history.head()), (1, Seq(8)));
    assert_eq!(history.open_turn(), None);
    let only = History::of(&[cell()]);
    assert_eq!((only.turns(), only.open_turn()), (0, None));
}

#[test]
fn a_turn_that_was_cut_off_is_open_and_what_came_before_it_is_apart() {
    let mut records = [turn(1, 0), turn(2, 2)].concat();
    records.truncate(9);
    let history = History::of(&records);
    let open = history.open_turn().unwrap();
    assert_eq!((open.number, open.first), (2, Seq(6)));
    assert_eq!(open.turn, TurnId::new("t2"));
    assert_eq!(texts(&history.before_open_turn()), ["q1", "a1"]);
    assert_eq!(texts(&history.transcript()), ["q1", "a1", "q2", "a2"]);
}

#[test]
fn a_turn_that_was_given_up_leaves_what_the_next_one_began_with() {
    for (began_with, rest) in [(2, vec!["q1", "a1"]), (4, vec!["q1", "a1", "q2", "a2"])] {
        let mut records = [turn(1, 0), turn(2, 2)].concat();
        records.truncate(9);
        records.extend(turn(3, began_with));
        let history = History::of(&records);
        let expected = [rest, vec!["q3", "a3"]].concat();
        assert_eq!(texts(&history.transcript()), expected);
    }
}

#[test]
fn a_compaction_changes_what_is_there_and_the_reply_that_it_took_is_no_message() {
    let summed_up = RecordBody::Compacted(Compaction {
        from: 0,
        to: 2,
        change: Change::Summarised {
            message: Message::synthetic_user("sum"),
            model: "p/m".into(),
        },
    });
    let mut records = turn(1, 0);
    let bodies = [
        started(2, 2),
        said("q2"),
        requested(Purpose::Summary),
        replied("sum"),
        summed_up,
        requested(Purpose::Step),
        replied("a2"),
    ];
    records.extend(bodies.into_iter().map(|body| record("t2", body)));
    let mut history = History::of(&records);
    assert_eq!(texts(&history.transcript()), ["sum", "q2", "a2"]);
    assert_eq!(texts(&history.before_open_turn()), ["q1", "a1"]);
    history.take(&record("t2", done()));
    assert_eq!(texts(&history.before_open_turn()), ["sum", "q2", "a2"]);
}

#[test]
fn a_call_without_its_end_is_in_doubt_and_one_that_never_began_is_not_run() {
    let mut records = turn(1, 0);
    let call = crate::machine::tests::sim::call_part("send", "{}");
    let candidate = Candidate {
        parts: vec![call],
        finish_reason: Some(FinishReason::ToolCalls),
        raw_finish_reasons: vec![],
    };
    let reply = Box::new(Reply {
        candidates: vec![candidate],
        ..Reply::default()
    });
    records[3].body = RecordBody::ModelReplied { reply };
    let call_id = rondo_types::CallId::generated(1, 1, 0);
    records[4].body = RecordBody::ToolStarted {
        call_id: call_id.clone(),
        name: "send".into(),
        arguments: serde_json::json!({}),
        recovery: rondo_types::Recovery::AtMostOnce,
        idempotency_key: String::new(),
        evidence: None,
    };
    let codes = [
        rondo_types::ToolErrorCode::NotRun,
        rondo_types::ToolErrorCode::InDoubt,
    ];
    for (len, code) in [4, 5].into_iter().zip(codes) {
        let transcript = History::of(&records[..len]).transcript();
        let result = transcript[2].results().next().unwrap();
        assert_eq!((result.error, &result.call_id), (Some(code), &call_id));
    }
}

#[test]
fn a_question_about_the_folder_is_open_until_it_is_answered_whatever_turns_do() {
    let question = Question::new(
        (
            rondo_types::QuestionId("trust-settings".to_owned()),
            rondo_types::QuestionKind::Trust,
        ),
        None,
        "Trust it?".to_owned(),
        "1".to_owned(),
        rondo_types::QuestionSubject::default(),
    );
    let answer = question.answered("ada", rondo_types::AnswerValue::Approve);
    let other = rondo_types::Answer {
        hash: "2".to_owned(),
        ..answer.clone()
    };
    let asked = record(
        "",
        RecordBody::FolderAsked {
            question: question.clone(),
        },
    );
    let mut history = History::of(&[record("t", started(1, 0)), asked, record("t", said("x"))]);
    assert_eq!(history.questions(), std::slice::from_ref(&question));
    assert_eq!(history.folder_question().unwrap().subject.record, 2);
    assert_eq!(history.open_turn().unwrap().turn, TurnId::new("t"));
    history.take(&record("", RecordBody::FolderAnswered { answer: other }));
    assert_eq!(history.questions(), [question]);
    history.take(&record("", RecordBody::FolderAnswered { answer }));
    assert_eq!(history.questions(), []);
}
