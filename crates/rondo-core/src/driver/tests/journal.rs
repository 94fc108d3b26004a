//! Tests: the records and their order, and the work that a failing journal stops.

use super::fakes::{Bench, answer, calls};
use crate::ports::{
    Append, AppendError, Fence, Head, Journal, MemoryJournal, Record, RecordBody, Seq,
    WrappedJournal,
};
use async_trait::async_trait;
use rondo_types::{ErrorClass, StopReason};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio_util::sync::CancellationToken;

pub(super) fn kinds(records: &[Record]) -> Vec<&'static str> {
    records
        .iter()
        .map(|record| match record.body {
            RecordBody::TurnStarted { .. } => "turn_started",
            RecordBody::TurnEnvironment { .. } => "equipped",
            RecordBody::UserMessage { .. } => "user_message",
            RecordBody::ModelRequested { .. } => "model_requested",
            RecordBody::ModelReplied { .. } => "model_replied",
            RecordBody::ModelFailed { .. } => "model_failed",
            RecordBody::GateJudged { .. } => "gate_judged",
            RecordBody::ToolStarted { .. } => "tool_started",
            RecordBody::ToolFinished { .. } => "tool_finished",
            RecordBody::ApprovalRequested { .. } => "approval_requested",
            RecordBody::Asked { .. } => "asked",
            RecordBody::ApprovalResolved { .. } => "approval_resolved",
            RecordBody::CallResolved { .. } => "call_resolved",
            RecordBody::AnswerRefused { .. } => "answer_refused",
            RecordBody::MessageAdded { .. } => "message_added",
            RecordBody::Compacted(_) => "compacted",
            RecordBody::Resumed { .. } => "resumed",
            RecordBody::ToolInDoubt { .. } => "tool_in_doubt",
            RecordBody::Parked { .. } => "parked",
            RecordBody::Answered { .. } => "answered",
            RecordBody::Intercepted(_) => "intercepted",
            RecordBody::Reserved(_) => "reserved",
            RecordBody::ToolsChanged { .. } => "tools_changed",
            RecordBody::Cancelled => "cancelled",
            RecordBody::RequestQueued => "request_queued",
            RecordBody::Faulted { .. } => "faulted",
            RecordBody::Final { .. } => "final",
            RecordBody::CellStarted { .. } => "cell_started",
            RecordBody::CellFinished { .. } => "cell_finished",
            RecordBody::CellsRepeating { .. } => "cells_repeating",
            RecordBody::CellsRepeated { .. } => "cells_repeated",
            RecordBody::FolderAsked { .. } => "folder_asked",
            RecordBody::FolderAnswered { .. } => "folder_answered",
            RecordBody::ScriptStarted(_) => "script_started",
            RecordBody::ScriptCallStarted { .. } => "script_call_started",
            RecordBody::ScriptCallFinished { .. } => "script_call_finished",
            RecordBody::ScriptFinished { .. } => "script_finished",
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn everything_is_recorded_in_order() {
    let bench = Bench::new("default", vec![calls(&[("look", "{}")]), answer("done")]);
    let records = Arc::clone(&bench.records);
    bench.tool("look", true, &[]).run().await;
    assert_eq!(
        kinds(&records.records()),
        [
            "turn_started",
            "equipped",
            "user_message",
            "model_requested",
            "model_replied",
            "gate_judged",
            "tool_started",
            "tool_finished",
            "model_requested",
            "model_replied",
            "final"
        ]
    );
}

/// Counts appends and refuses some of them, as a disk would that is full, for good or for a moment.
pub(super) struct Failing {
    inner: Arc<MemoryJournal>,
    appends: AtomicUsize,
    refused: Range<usize>,
}

impl Failing {
    /// Refuses some of the appends, counted from 0.
    pub(super) fn new(inner: &Arc<MemoryJournal>, refused: Range<usize>) -> Self {
        Self {
            inner: Arc::clone(inner),
            appends: AtomicUsize::new(0),
            refused,
        }
    }
}

#[async_trait]
impl WrappedJournal for Failing {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    async fn append_around(&self, fence: &Fence, append: Append) -> Result<Seq, AppendError> {
        let count = self.appends.fetch_add(1, Ordering::Relaxed);
        if self.refused.contains(&count) {
            return Err(AppendError::Full);
        }
        self.inner.append(fence, append).await
    }
}

/// The fakes refuse to run before their record is there, so a missed append fails the test.
#[tokio::test(start_paused = true)]
async fn a_journal_that_fails_stops_the_turn_before_the_effect() {
    for refuse_from in 0..4 {
        let mut bench = Bench::new("default", vec![calls(&[("look", "{}")]), answer("done")]);
        let inner = Arc::clone(&bench.records);
        bench.journal = Arc::new(Failing {
            inner: Arc::clone(&inner),
            appends: 0.into(),
            refused: refuse_from..usize::MAX,
        });
        let ran = bench.tool("look", true, &[]).run().await;
        assert_eq!(
            ran.outcome.error.as_ref().map(|error| error.class),
            Some(ErrorClass::Internal),
            "refusing from append {refuse_from}"
        );
        let (requests, runs) = (
            kinds(&inner.records())
                .iter()
                .filter(|kind| **kind == "model_requested")
                .count(),
            kinds(&inner.records())
                .iter()
                .filter(|kind| **kind == "tool_started")
                .count(),
        );
        assert_eq!(
            (requests, runs),
            [(0, 0), (1, 0), (1, 1), (2, 1)][refuse_from]
        );
        if refuse_from < 3 {
            assert_eq!(ran.outcome.stop_reason, StopReason::Error);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_with_one_call_or_one_parallel_batch_costs_two_appends() {
    for asked in [
        vec![("look", "{}")],
        vec![("look", r#"{"n":1}"#), ("look", r#"{"n":2}"#)],
    ] {
        let mut bench = Bench::new("hub", vec![calls(&asked), answer("done")]);
        let journal = Arc::new(Failing {
            inner: Arc::clone(&bench.records),
            appends: 0.into(),
            refused: 0..0,
        });
        bench.journal = Arc::clone(&journal) as Arc<dyn Journal>;
        bench.tool("look", true, &[]).run().await;
        // Request and call of the first step, request of the second, and the end.
        assert_eq!(journal.appends.load(Ordering::Relaxed), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_missed_records_gets_none_that_follow_them() {
    for refused in 0..3 {
        let mut bench = Bench::new("default", vec![calls(&[("look", "{}")]), answer("done")]);
        let inner = Arc::clone(&bench.records);
        bench.journal = Arc::new(Failing {
            inner: Arc::clone(&inner),
            appends: 0.into(),
            refused: refused..refused + 1,
        });
        let ran = bench.tool("look", true, &[]).run().await;
        assert_eq!(ran.outcome.stop_reason, StopReason::Error);
        assert!(!kinds(&inner.records()).contains(&"final"));
    }
}

/// Says of every append that it does not know whether it was made, which depends on `makes`; `hides` its head.
struct Vague {
    inner: Arc<MemoryJournal>,
    makes: bool,
    hides: bool,
}

#[async_trait]
impl Journal for Vague {
    fn at(&self) -> Seq {
        self.inner.at()
    }

    async fn head(&self) -> Result<Head, AppendError> {
        match self.hides {
            true => Err(AppendError::Full),
            false => self.inner.head().await,
        }
    }

    fn lost(&self) -> CancellationToken {
        self.inner.lost()
    }

    async fn append(&self, fence: &Fence, append: Append) -> Result<Seq, AppendError> {
        let after =
            MemoryJournal::with_records([self.inner.records(), append.batch.clone()].concat());
        if self.makes {
            self.inner.append(fence, append).await?;
        }
        let head = after.head().await?;
        let source = std::io::Error::other("the line is dead");
        Err(AppendError::Unknown { head, source })
    }
}

#[tokio::test(start_paused = true)]
async fn where_it_is_not_known_whether_records_were_written_the_head_says_it() {
    for (makes, hides, is_known) in [
        (true, false, true),
        (false, false, false),
        (true, true, false),
    ] {
        let mut bench = Bench::new("default", vec![calls(&[("look", "{}")]), answer("done")]);
        let inner = Arc::clone(&bench.records);
        bench.journal = Arc::new(Vague {
            inner: Arc::clone(&inner),
            makes,
            hides,
        });
        let ran = bench.tool("look", true, &[]).run().await;
        let why = ran.outcome.error.map(|error| error.message);
        let stopped =
            "the turn was stopped because the journal could not be written: the line is dead";
        assert_eq!(why.as_deref(), (!is_known).then_some(stopped));
        assert_eq!(kinds(&inner.records()).contains(&"final"), is_known);
    }
}
