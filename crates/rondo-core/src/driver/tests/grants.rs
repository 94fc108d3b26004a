//! Terms of an approval, remembered grants, and text from outside at the gate.

use super::fakes::{Act, AskAlways, Bench, Ran, answer, calls};
use super::outputs::{committed, watched};
use crate::OutsideText;
use crate::history::History;
use crate::ports::{
    Approver, Gate, GateRequest, QuestionReply, Record, RecordBody, Terms, Tool, ToolInvocation,
    Verdict, question_about_call,
};
use async_trait::async_trait;
use rondo_types::{
    Answer, AnswerValue, Grant, GrantScope, MailId, Message, Question, QuestionKind,
    QuestionSubject, ToolErrorCode, ToolKind, ToolOutcome, ToolOutput, ToolSpec,
};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::sleep;

fn grant(tool: &str) -> Grant {
    Grant {
        scope: GrantScope::Tool {
            tool: tool.to_owned(),
        },
        despite_outside_text: false,
    }
}

/// Asks about every call that was not allowed for good, under circumstances that change so many times.
#[derive(Default)]
struct Circumstances {
    changes: u32,
    looks: AtomicU32,
    remembered: Mutex<Vec<Grant>>,
}

#[async_trait]
impl Gate for Circumstances {
    async fn check(&self, request: &GateRequest) -> Verdict {
        let grant = grant(&request.spec.name);
        if self.remembered.lock().unwrap().contains(&grant) {
            return Verdict::Allow;
        }
        AskAlways.check(request).await
    }

    async fn terms(&self, request: &GateRequest) -> Terms {
        let looks = self.looks.fetch_add(1, Ordering::Relaxed);
        Terms {
            hash: looks.min(self.changes).to_string(),
            offers: vec![grant(&request.spec.name)],
        }
    }

    fn remember(&self, grant: &Grant) {
        self.remembered.lock().unwrap().push(grant.clone());
    }
}

/// Says the same to every question, and keeps the questions.
struct Says {
    value: AnswerValue,
    remember: Option<Grant>,
    asked: Mutex<Vec<String>>,
}

impl Says {
    fn yes(remember: Option<Grant>) -> Arc<Self> {
        Arc::new(Self {
            value: AnswerValue::Approve,
            remember,
            asked: Mutex::default(),
        })
    }
}

#[async_trait]
impl Approver for Says {
    async fn ask(&self, question: &Question) -> QuestionReply {
        self.asked.lock().unwrap().push(question.prompt.clone());
        QuestionReply::Answered(
            Answer {
                remember: self.remember.clone(),
                ..question.answered("ada", self.value.clone())
            },
            None,
        )
    }
}

async fn two_calls(gate: &Arc<Circumstances>, says: &Arc<Says>) -> (Ran, Vec<Record>) {
    let script = vec![
        calls(&[("put", "{}")]),
        calls(&[("put", "{}")]),
        answer("done"),
    ];
    let mut bench = Bench::new("default", script).tool("put", false, &[]);
    bench.gate = Arc::clone(gate) as _;
    bench.approver = Arc::clone(says) as _;
    let journal = Arc::clone(&bench.records);
    (bench.run().await, journal.records())
}

#[tokio::test(start_paused = true)]
async fn what_is_allowed_for_good_is_asked_about_once_and_recorded() {
    let gate = Arc::new(Circumstances::default());
    let says = Says::yes(Some(grant("put")));
    let (ran, records) = two_calls(&gate, &says).await;
    assert_eq!(
        (ran.outcome.tool_calls, says.asked.lock().unwrap().len()),
        (2, 1)
    );
    assert_eq!(*gate.remembered.lock().unwrap(), [grant("put")]);
    assert_eq!(History::of(&records).grants(), [grant("put")]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_remembered_that_was_not_offered_or_not_allowed() {
    let deny = AnswerValue::Deny {
        reason: "no".to_owned(),
    };
    for (value, remember) in [(AnswerValue::Approve, "other"), (deny, "put")] {
        let gate = Arc::new(Circumstances::default());
        let says = Arc::new(Says {
            value,
            remember: Some(grant(remember)),
            asked: Mutex::default(),
        });
        let (_, records) = two_calls(&gate, &says).await;
        assert_eq!(*gate.remembered.lock().unwrap(), []);
        assert_eq!(History::of(&records).grants(), []);
        assert_eq!(says.asked.lock().unwrap().len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_yes_does_not_count_once_its_circumstances_have_changed() {
    // Each round looks before and after the question.
    for (changes, asked, ran) in [(0, 2, 2), (1, 3, 2), (5, 5, 2), (u32::MAX, 8, 0)] {
        let gate = Arc::new(Circumstances {
            changes,
            ..Circumstances::default()
        });
        let says = Says::yes(None);
        let (_, records) = two_calls(&gate, &says).await;
        let prompts = says.asked.lock().unwrap().clone();
        assert_eq!(prompts.len(), asked, "{changes}");
        assert_eq!(
            prompts.iter().any(|it| it.contains("Asked again")),
            changes > 0
        );
        let begun = records
            .iter()
            .filter(|it| matches!(it.body, RecordBody::ToolStarted { .. }));
        assert_eq!(begun.count(), ran, "{changes}");
    }
}

/// Says yes from a row of the mailbox, a new one each time.
#[derive(Default)]
struct FromMail(AtomicU32);

#[async_trait]
impl Approver for FromMail {
    async fn ask(&self, question: &Question) -> QuestionReply {
        let row = u64::from(self.0.fetch_add(1, Ordering::Relaxed)) + 1;
        let answer = question.answered("ada", AnswerValue::Approve);
        QuestionReply::Answered(answer, Some(MailId(row)))
    }
}

#[tokio::test(start_paused = true)]
async fn rows_of_answers_that_did_not_count_are_removed_too() {
    for (changes, answers) in [(0, 1), (2, 2), (u32::MAX, 4)] {
        let script = vec![calls(&[("put", "{}")]), answer("done")];
        let mut bench = Bench::new("default", script).tool("put", false, &[]);
        bench.gate = Arc::new(Circumstances {
            changes,
            ..Circumstances::default()
        });
        bench.approver = Arc::new(FromMail::default());
        let journal = watched(&mut bench);
        bench.run().await;
        let rows = committed(&journal).into_iter().flat_map(|it| it.1);
        let rows: Vec<MailId> = rows.collect();
        assert_eq!(rows, (1..=answers).map(MailId).collect::<Vec<_>>());
    }
}

#[test]
fn an_answer_does_not_count_for_other_circumstances_or_offers() {
    let subject = QuestionSubject {
        session: rondo_types::SessionId::new("s"),
        turn: rondo_types::TurnId::new("s-1"),
        step: 1,
        tool: "put".to_owned(),
        ..QuestionSubject::default()
    };
    let asked = |terms: &Terms| {
        let call = rondo_types::CallId::new("c");
        let words = "run it?".to_owned();
        question_about_call(subject.clone(), &call, QuestionKind::Approval, words, terms)
    };
    let mut terms = Terms::default();
    let plain = asked(&terms).hash;
    // Sessions that are parked name questions by it.
    let stored = "5271ace87954c598ffe8d59c11323338a0225ff9b123bf1a4ed2a670559052ab";
    assert_eq!(plain, stored);
    terms.hash = "1".to_owned();
    let changed = asked(&terms).hash;
    terms.offers = vec![grant("put")];
    let offered = asked(&terms);
    assert!(plain != changed && changed != offered.hash && plain != offered.hash);
    assert_eq!(offered.offers, [grant("put")]);
}

/// Notes of each call whether the gate knew of text from outside.
#[derive(Default)]
struct Told(Mutex<Vec<bool>>);

#[async_trait]
impl Gate for Told {
    async fn check(&self, request: &GateRequest) -> Verdict {
        self.0.lock().unwrap().push(request.has_outside_text);
        Verdict::Allow
    }
}

struct Reads(ToolKind, ToolOutcome);

#[async_trait]
impl Tool for Reads {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "get".to_owned(),
            kind: self.0,
            ..ToolSpec::default()
        }
    }

    async fn call(&self, _: ToolInvocation) -> ToolOutcome {
        self.1.clone()
    }
}

fn reading(kind: ToolKind, outcome: ToolOutcome, script: usize) -> (Bench, Arc<Told>) {
    let mut script: Vec<_> = std::iter::repeat_n(calls(&[("get", "{}")]), script).collect();
    script.push(answer("done"));
    let mut bench = Bench::new("default", script);
    bench.tools.push(Arc::new(Reads(kind, outcome)));
    let told = Arc::new(Told::default());
    bench.gate = Arc::clone(&told) as _;
    (bench, told)
}

fn ok(from_outside: bool) -> ToolOutcome {
    ToolOutcome::Ok(ToolOutput {
        value: "x".into(),
        from_outside,
        ..ToolOutput::default()
    })
}

#[tokio::test(start_paused = true)]
async fn the_gate_is_told_of_text_from_outside_from_the_call_after_it_on() {
    let error = || ToolOutcome::error(ToolErrorCode::Internal, "404: obey");
    let marked = || {
        let mut outcome = error();
        if let ToolOutcome::Error(error) = &mut outcome {
            error.details = serde_json::json!({ crate::FROM_OUTSIDE: true });
        }
        outcome
    };
    for (kind, outcome, is_told) in [
        (ToolKind::Other, ok(true), true),
        (ToolKind::Other, ok(false), false),
        (ToolKind::Fetch, ok(false), true),
        (ToolKind::Fetch, error(), true),
        (ToolKind::Read, error(), false),
        (ToolKind::Execute, marked(), true),
    ] {
        let (bench, told) = reading(kind, outcome, 2);
        let journal = Arc::clone(&bench.records);
        bench.run().await;
        assert_eq!(*told.0.lock().unwrap(), [false, is_told], "{kind:?}");
        let history = History::of(&journal.records());
        assert_eq!(history.has_outside_text(), is_told, "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_gate_is_told_of_what_others_wrote_into_the_conversation() {
    let script = vec![
        calls(&[("act", "{}")]),
        calls(&[("act", "{}")]),
        answer("done"),
    ];
    let acts = [Act::SleepThenReturn(5_000), Act::SleepThenReturn(1)];
    let mut bench = Bench::new("default", script).tool("act", false, &acts);
    let (told, journal) = (Arc::new(Told::default()), Arc::clone(&bench.records));
    bench.gate = Arc::clone(&told) as _;
    let by_others = Message {
        from_outside: true,
        ..Message::user("Obey.")
    };
    bench
        .run_with(|handle| async move {
            sleep(Duration::from_secs(1)).await;
            assert!(handle.steer(by_others));
        })
        .await;
    assert_eq!(*told.0.lock().unwrap(), [false, true]);
    assert!(History::of(&journal.records()).has_outside_text());
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_goes_on_still_knows_of_text_from_outside() {
    let (bench, _) = reading(ToolKind::Fetch, ok(false), 1);
    let journal = Arc::clone(&bench.records);
    bench.run().await;
    let mut records = journal.records();
    let finished = |it: &Record| matches!(it.body, RecordBody::ToolFinished { .. });
    let read = records.iter().position(finished).unwrap();
    records.truncate(read + 1);
    let (again, told) = reading(ToolKind::Fetch, ok(false), 1);
    again.resume(records).await;
    assert_eq!(*told.0.lock().unwrap(), [true]);
}

#[test]
fn turns_of_one_session_share_what_they_know_of_text_from_outside() {
    let first = OutsideText::default();
    let second = first.clone();
    assert!(!second.is_present());
    first.note();
    assert!(second.is_present());
}
