//! Tests: the parts of a call's output besides its value.

use super::fakes::{Bench, answer, calls};
use super::journal::kinds;
use crate::ports::{
    Append, AppendError, Commit, Fence, InterruptedCall, Journal, MailId, MemoryJournal,
    Reconciled, Record, RecordBody, Seq, Tool, ToolInvocation, WrappedJournal,
};
use async_trait::async_trait;
use rondo_types::{
    ChangedFile, EventBody, FileVersion, JobId, Recovery, SessionId, TodoItem, TodoStatus,
    ToolKind, ToolOutcome, ToolOutput, ToolSpec,
};
use serde_json::json;
use std::sync::{Arc, Mutex};

/// Keeps what each append was to commit with its records.
pub(super) struct Watching {
    inner: Arc<MemoryJournal>,
    appends: Mutex<Vec<(Vec<&'static str>, Commit)>>,
}

#[async_trait]
impl WrappedJournal for Watching {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    async fn append_around(&self, fence: &Fence, append: Append) -> Result<Seq, AppendError> {
        let seen = (kinds(&append.batch), append.commit.clone());
        self.appends.lock().unwrap().push(seen);
        self.inner.append(fence, append).await
    }
}

/// Returns the same output at each call.
struct Says {
    kind: ToolKind,
    output: ToolOutput,
}

#[async_trait]
impl Tool for Says {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "say".to_owned(),
            kind: self.kind,
            recovery: Recovery::Checkable,
            ..ToolSpec::default()
        }
    }

    async fn call(&self, _: ToolInvocation) -> ToolOutcome {
        ToolOutcome::Ok(self.output.clone())
    }

    async fn reconcile(&self, _: &InterruptedCall) -> Reconciled {
        Reconciled::Done(ToolOutcome::Ok(self.output.clone()))
    }
}

fn bench(kind: ToolKind, output: ToolOutput) -> Bench {
    let script = vec![calls(&[("say", "{}")]), answer("done")];
    let mut bench = Bench::new("default", script);
    bench.tools.push(Arc::new(Says { kind, output }));
    bench
}

fn recorded(records: &[Record]) -> &ToolOutput {
    let output = records.iter().find_map(|record| match &record.body {
        RecordBody::ToolFinished {
            outcome: ToolOutcome::Ok(output),
            ..
        } => Some(output),
        _ => None,
    });
    output.expect("the call's end is recorded")
}

pub(super) fn watched(bench: &mut Bench) -> Arc<Watching> {
    let journal = Arc::new(Watching {
        inner: Arc::clone(&bench.records),
        appends: Mutex::default(),
    });
    bench.journal = Arc::clone(&journal) as Arc<dyn Journal>;
    journal
}

/// Returns the kinds of the records that each row was committed with.
pub(super) fn committed(journal: &Watching) -> Vec<(Vec<&'static str>, Vec<MailId>)> {
    let appends = journal.appends.lock().unwrap();
    let with_rows = appends.iter().filter(|(_, commit)| !commit.ack.is_empty());
    with_rows
        .map(|(kinds, commit)| (kinds.clone(), commit.ack.clone()))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn what_an_output_commits_joins_the_append_of_its_record() {
    let output = ToolOutput {
        value: json!("took the mail"),
        effects: Box::new(Commit::of(MailId(7))),
        ..ToolOutput::default()
    };
    let mut bench = bench(ToolKind::Other, output);
    let journal = watched(&mut bench);
    bench.run().await;
    let expected = (vec!["tool_finished", "model_requested"], vec![MailId(7)]);
    assert_eq!(committed(&journal), [expected]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_found_done_after_a_crash_commits_and_is_marked_too() {
    let output = ToolOutput {
        value: json!("took the mail"),
        effects: Box::new(Commit::of(MailId(7))),
        ..ToolOutput::default()
    };
    let first = bench(ToolKind::Fetch, output.clone());
    let records = Arc::clone(&first.records);
    first.run().await;
    let mut records = records.records();
    let begun = kinds(&records)
        .iter()
        .position(|kind| *kind == "tool_started");
    records.truncate(begun.unwrap() + 1);
    let mut again = bench(ToolKind::Fetch, output);
    again.model.script = Mutex::new(vec![answer("done")].into());
    let journal = watched(&mut again);
    let kept = Arc::clone(&again.records);
    again.resume(records).await;
    let committed = committed(&journal);
    assert_eq!(committed.len(), 1);
    let (kinds, rows) = &committed[0];
    assert!(kinds.contains(&"tool_finished"), "{kinds:?}");
    assert_eq!(*rows, [MailId(7)]);
    assert!(recorded(&kept.records()).from_outside);
}

#[tokio::test(start_paused = true)]
async fn the_marks_of_an_output_are_recorded_and_told() {
    let output = ToolOutput {
        value: json!("x"),
        changes: vec![ChangedFile {
            path: "a".to_owned(),
            before: FileVersion::Absent,
            after: FileVersion::Unknown,
        }],
        child: Some(SessionId::new("s-child")),
        job: Some(JobId::new("j")),
        ..ToolOutput::default()
    };
    let bench = bench(ToolKind::Other, output.clone());
    let records = Arc::clone(&bench.records);
    let ran = bench.run().await;
    assert_eq!(*recorded(&records.records()), output);
    let told = ran.events.iter().find_map(|event| match &event.body {
        EventBody::ToolCallFinished {
            changes,
            child,
            job,
            from_outside,
            ..
        } => Some((changes, child, job, *from_outside)),
        _ => None,
    });
    let expected = (&output.changes, &output.child, &output.job, false);
    assert_eq!(told, Some(expected));
}

#[tokio::test(start_paused = true)]
async fn what_was_fetched_is_marked_as_from_outside_whatever_the_tool_says() {
    for (kind, is_marked) in [(ToolKind::Fetch, true), (ToolKind::Read, false)] {
        let bench = bench(kind, ToolOutput::default());
        let records = Arc::clone(&bench.records);
        bench.run().await;
        assert_eq!(recorded(&records.records()).from_outside, is_marked);
    }
}

#[tokio::test(start_paused = true)]
async fn a_to_do_list_is_told_of_kept_in_the_history_and_bounded() {
    let item = |text: String, status| TodoItem { text, status };
    let mut items = vec![item("x".repeat(513), TodoStatus::InProgress)];
    items.extend((1..65).map(|n| item(n.to_string(), TodoStatus::Pending)));
    let output = ToolOutput {
        value: json!("noted"),
        todo: Some(items),
        ..ToolOutput::default()
    };
    let bench = bench(ToolKind::Think, output);
    let records = Arc::clone(&bench.records);
    let ran = bench.run().await;
    let told = ran.events.iter().find_map(|event| match &event.body {
        EventBody::TodoChanged { items } => Some(items),
        _ => None,
    });
    let told = told.unwrap();
    assert_eq!((told.len(), told[0].text.len()), (64, 512));
    assert_eq!(told[0].status, TodoStatus::InProgress);
    assert_eq!(crate::history::History::of(&records.records()).todo(), told);
}
