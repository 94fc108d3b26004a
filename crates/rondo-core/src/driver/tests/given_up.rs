//! Beginning of a turn that follows one that was cut off and not resumed.

use super::fakes::{AskAlways, Bench, answer, calls, observe};
use crate::driver::{control, run_turn};
use crate::history::History;
use crate::ports::{
    Append, Approver, Fence, Journal as _, MemoryJournal, QuestionReply, Record, RecordBody, Seq,
};
use crate::replay::{Changes, replay};
use async_trait::async_trait;
use rondo_types::{
    AnswerValue, CallId, Message, Question, SessionId, ToolErrorCode, Transcript, TurnId,
};
use serde_json::json;
use std::sync::Arc;

/// Approves, and changes every call but the first.
struct ChangesTheOthers;

#[async_trait]
impl Approver for ChangesTheOthers {
    async fn ask(&self, question: &Question) -> QuestionReply {
        let value = match question.subject.arguments["n"].as_u64() {
            Some(1) => AnswerValue::Approve,
            _ => AnswerValue::value(json!({"n": 9})),
        };
        QuestionReply::answered(question, "ada", value)
    }
}

/// A turn of three calls, one after the other, each asked about; and its transcript.
async fn asked_about_each(profile: &str) -> (Vec<Record>, Transcript) {
    let three = [1, 2, 3].map(|n| json!({ "n": n }).to_string());
    let three: Vec<_> = three.iter().map(|it| ("act", it.as_str())).collect();
    let mut bench = Bench::new(profile, vec![calls(&three), answer("done")]);
    bench.gate = Arc::new(AskAlways);
    bench.approver = Arc::new(ChangesTheOthers);
    let journal = Arc::clone(&bench.records);
    let ran = bench.tool("act", false, &[]).run().await;
    (journal.records(), ran.outcome.transcript)
}

/// Begins another turn after records, from what they lead to, and returns all records.
async fn then_another(records: Vec<Record>) -> Vec<Record> {
    let history = History::of(&records);
    let journal = Arc::new(MemoryJournal::default());
    let fence = Fence {
        session: SessionId::new("s"),
        epoch: 0,
    };
    journal
        .append(&fence, Append::new(Seq(0), records))
        .await
        .unwrap();
    let mut bench = Bench::new("default", vec![answer("done")]);
    bench.model.journal = Arc::clone(&journal);
    bench.records = Arc::clone(&journal);
    bench.journal = Arc::clone(&journal) as _;
    let (mut setup, _) = bench.tool("act", false, &[]).setup();
    setup.turn = TurnId::new("t2");
    setup.turn_number = history.turns() + 1;
    let (_handle, turn_control) = control();
    let (before, asks) = (history.transcript(), Message::user("and?"));
    observe(|events| run_turn(setup, before, asks, events, turn_control)).await;
    journal.records()
}

/// Error of each call, by its records alone.
fn known(records: &[Record]) -> [Option<ToolErrorCode>; 3] {
    [0, 1, 2].map(|index| {
        let id = CallId::generated(1, 1, index);
        let any = |is: &dyn Fn(&RecordBody) -> bool| records.iter().any(|it| is(&it.body));
        let is_over =
            any(&|it| matches!(it, RecordBody::ToolFinished { call_id, .. } if *call_id == id));
        let is_begun =
            any(&|it| matches!(it, RecordBody::ToolStarted { call_id, .. } if *call_id == id));
        match (is_over, is_begun) {
            (true, _) => None,
            (false, true) => Some(ToolErrorCode::InDoubt),
            (false, false) => Some(ToolErrorCode::NotRun),
        }
    })
}

fn codes(transcript: &Transcript) -> Vec<Option<ToolErrorCode>> {
    let results = transcript.iter().flat_map(|it| it.results());
    results.map(|it| it.error).collect()
}

#[tokio::test(start_paused = true)]
async fn a_call_that_never_began_is_not_run_and_one_that_began_is_in_doubt() {
    for profile in ["default", "python"] {
        let (records, _) = asked_about_each(profile).await;
        let replied = |it: &Record| matches!(it.body, RecordBody::ModelReplied { .. });
        let first = records.iter().position(replied).unwrap();
        let last = records.iter().rposition(replied).unwrap();
        for cut in first + 1..last {
            let records = records[..cut].to_vec();
            let expected = known(&records);
            let transcript = History::of(&records).transcript();
            assert_eq!(codes(&transcript), expected, "{profile} {cut}");
            let all = then_another(records).await;
            assert_eq!(codes(&History::of(&all).transcript()), expected);
            let again = replay(&SessionId::new("s"), &all, &Changes::default()).unwrap();
            for turn in &again.turns {
                assert_eq!(turn.differences, [], "{profile} {cut}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_an_earlier_version_began_has_them_in_doubt() {
    let (mut records, _) = asked_about_each("default").await;
    let asked = |it: &Record| matches!(it.body, RecordBody::Asked { .. });
    records.truncate(records.iter().position(asked).unwrap() + 1);
    let mut all = then_another(records).await;
    for record in &mut all {
        if let RecordBody::TurnStarted {
            unbegun_not_run, ..
        } = &mut record.body
        {
            *unbegun_not_run = false;
        }
    }
    let transcript = History::of(&all).transcript();
    assert_eq!(codes(&transcript), [Some(ToolErrorCode::InDoubt); 3]);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_opened_again_tells_which_arguments_a_person_changed() {
    for profile in ["default", "python"] {
        let (records, transcript) = asked_about_each(profile).await;
        assert_eq!(History::of(&records).transcript(), transcript, "{profile}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_history_that_was_kept_without_what_began_has_the_calls_in_doubt() {
    let (mut records, _) = asked_about_each("default").await;
    let asked = |it: &Record| matches!(it.body, RecordBody::Asked { .. });
    records.truncate(records.iter().position(asked).unwrap() + 1);
    let mut kept = serde_json::to_value(History::of(&records)).unwrap();
    let known: History = serde_json::from_value(kept.clone()).unwrap();
    assert_eq!(codes(&known.transcript()), [Some(ToolErrorCode::NotRun); 3]);
    kept["open"]
        .as_object_mut()
        .unwrap()
        .remove("begun")
        .unwrap();
    let unknown: History = serde_json::from_value(kept).unwrap();
    assert_eq!(
        codes(&unknown.transcript()),
        [Some(ToolErrorCode::InDoubt); 3]
    );
}
