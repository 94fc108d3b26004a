//! The tool calls of one reply: runs their stages and commits their results in call order.

use super::io::{Action, Arguments, PlannedCall, PreparedCall};
use super::render;
use super::turn::{Cx, Phase, TurnMachine, assign_ids};
use crate::ports::{Approval, RecordBody, Verdict};
use rondo_types::{
    BlockInfo, CallId, Candidate, EventBody, Finding, InDoubtDecision, Message, Recovery,
    StopReason, ToolCall, ToolErrorCode, ToolOutcome, ToolOutput,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Message to the model about calls that the turn's time did not reach.
const OUT_OF_TIME: &str = "there was no time left";

/// The calls of one reply, from plan to committed results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Batch {
    pub(super) calls: Vec<BatchCall>,
    /// Indexes into `calls`: each stage is run at once, the stages one after another.
    pub(super) stages: Vec<Vec<usize>>,
    /// The stage under way.
    pub(super) stage: usize,
    /// Set if calls were left out because the turn has no more, or one reply asked for too many.
    pub(super) exhausted: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct BatchCall {
    pub(super) call_id: CallId,
    pub(super) wire_id: Option<String>,
    pub(super) name: String,
    pub(super) raw: String,
    pub(super) arguments: Value,
    pub(super) recovery: Recovery,
    pub(super) state: CallState,
    /// Set once its `tool_call_finished` was sent.
    pub(super) reported: bool,
    /// Set if a person changed the arguments.
    #[serde(default)]
    pub(super) edited: bool,
    /// Parts of the proposed arguments that the change leaves out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) left_out: Option<String>,
    /// The tool's own bound on the time of a call.
    #[serde(default)]
    pub(super) timeout: Option<std::time::Duration>,
    /// Set if it runs turns of its own, which the profile's bound on the time of calls does not cover.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) runs_turns: bool,
    /// Interceptors that changed the arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) rewritten_by: Vec<String>,
    /// Condition of its beginning, though it may count as running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) awaits: Option<StartAwaits>,
    /// Decision about it, if a crash cut it off; then its beginning is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) doubt: Option<InDoubtDecision>,
    /// Set once the interceptors were asked about it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_intercepted: bool,
    /// Text that the model reads in place of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reads: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[expect(
    clippy::large_enum_variant,
    reason = "there are as many as calls of one reply, and most end with an outcome"
)]
pub(super) enum CallState {
    Planned,
    AwaitingGate,
    AwaitingApproval,
    Cleared,
    Running,
    /// A person says whether it runs, though the machine took it to be running.
    AwaitingRepeat {
        has_begun: bool,
    },
    Done {
        outcome: ToolOutcome,
        synthetic: bool,
    },
}

/// Condition, in a resumed turn, of the beginning of a call that the gate has judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StartAwaits {
    /// The gate of this process judges it: so far only a record says what an earlier one made of it, and whoever wrote the
    /// records may have written that.
    Verdict,
    /// Nothing more than others of its stage, or the record of what is done about it.
    Others,
}

/// How long calls may run.
#[derive(Clone, Copy)]
pub(super) struct CallTime {
    /// Time left for calls by the profile's limits.
    timeout: Option<std::time::Duration>,
    /// Time left for calls that run turns of their own.
    left: Option<std::time::Duration>,
    /// When they must have ended.
    end_by: Option<rondo_types::TimeMs>,
}

impl Batch {
    /// Returns whether calls run whose ends will come.
    pub(super) fn is_running(&self) -> bool {
        let is_running = |call: &BatchCall| {
            let state = &call.state;
            matches!(state, CallState::Running | CallState::AwaitingRepeat { .. })
        };
        self.calls.iter().any(is_running)
    }

    fn position(&self, call_id: &CallId) -> Option<usize> {
        self.calls.iter().position(|call| call.call_id == *call_id)
    }

    fn current(&self) -> &[usize] {
        self.stages.get(self.stage).map_or(&[], Vec::as_slice)
    }

    fn in_state(&self, state: &CallState) -> Vec<usize> {
        let is = |index: &usize| {
            self.calls
                .get(*index)
                .is_some_and(|call| call.state == *state)
        };
        self.current().iter().copied().filter(is).collect()
    }
}

impl TurnMachine {
    /// Returns how many calls run, and how many of the same reply may yet run.
    pub(super) fn calls_under_way(&self) -> (u32, u32) {
        let Phase::Batch(batch) = &self.phase else {
            return (0, 0);
        };
        let count = |is: fn(&CallState) -> bool| {
            let calls = batch.calls.iter().filter(|call| is(&call.state));
            u32::try_from(calls.count()).unwrap_or(u32::MAX)
        };
        let running = count(|it| *it == CallState::Running);
        let unbegun = count(|it| !matches!(it, CallState::Running | CallState::Done { .. }));
        (running, unbegun)
    }

    /// Takes the calls of a reply into the transcript and begins to run them.
    pub(super) fn begin_batch(&mut self, cx: &mut Cx<'_>, mut candidate: Candidate) {
        assign_ids(&mut candidate, self.config.turn_number, self.spent.steps);
        let calls: Vec<ToolCall> = candidate.tool_calls().cloned().collect();
        self.push_candidate(candidate);
        for call in &calls {
            let arguments = serde_json::from_str(&call.arguments)
                .unwrap_or_else(|_| Value::String(call.arguments.clone()));
            let (id, name) = (call.id.clone(), call.name.clone());
            cx.emit(EventBody::ToolCallPending {
                id,
                name,
                arguments,
            });
        }
        let ids: Vec<CallId> = calls.iter().map(|call| call.id.clone()).collect();
        let batch = self.plan_calls(cx, calls);
        self.phase = Phase::Batch(batch);
        for id in &ids {
            self.report_if_done(cx, id, 0);
        }
        self.begin_stage(cx);
    }

    /// Sends the next stage to the gate, or commits when there is none.
    fn begin_stage(&mut self, cx: &mut Cx<'_>) {
        let out_of_time = self.is_out_of_time(cx.at);
        let time = self.call_time(cx.at);
        let cancelled = self.cancelled;
        let Phase::Batch(batch) = &mut self.phase else {
            return;
        };
        if batch.stage >= batch.stages.len() {
            return self.commit_batch(cx);
        }
        if cancelled || out_of_time {
            let text = if cancelled {
                "the turn was cancelled"
            } else {
                OUT_OF_TIME
            };
            resolve_open(batch, ToolErrorCode::NotRun, text);
            return self.commit_batch(cx);
        }
        let stage = batch.current().to_vec();
        let mut planned = Vec::with_capacity(stage.len());
        for index in stage {
            if let Some(call) = batch.calls.get_mut(index) {
                call.state = CallState::AwaitingGate;
                planned.push(call.planned(time));
            }
        }
        cx.out.push(Action::CheckGate(planned));
    }

    /// Takes the gate's verdict on one call.
    pub(super) fn gate(&mut self, cx: &mut Cx<'_>, call_id: &CallId, verdict: Verdict) {
        let time = self.call_time(cx.at);
        let Some(call) = self.call_in(call_id, &CallState::AwaitingGate) else {
            return;
        };
        match verdict {
            Verdict::Allow => call.state = CallState::Cleared,
            Verdict::Deny { reason } => call.state = done(ToolErrorCode::Denied, reason),
            Verdict::Ask { prompt, reasons } => {
                call.state = CallState::AwaitingApproval;
                let call = call.planned(time);
                let id = call.call_id.clone();
                cx.emit(EventBody::ApprovalRequested {
                    id,
                    prompt: prompt.clone(),
                });
                cx.out.push(Action::Ask {
                    call: Box::new(call),
                    prompt,
                    reasons,
                    is_repeat: false,
                });
            }
        }
        self.report_if_done(cx, call_id, 0);
        self.run_stage_if_cleared(cx);
    }

    /// Takes a person's answer about one call.
    pub(super) fn approval(&mut self, cx: &mut Cx<'_>, call_id: &CallId, approval: Approval) {
        if self.repeat_answered(cx, call_id, &approval) {
            return;
        }
        let Some(call) = self.call_in(call_id, &CallState::AwaitingApproval) else {
            return;
        };
        call.awaits = None;
        let (approved, reason, arguments) = match approval {
            Approval::Approved => {
                call.state = CallState::Cleared;
                (true, None, None)
            }
            Approval::Denied { reason } => {
                call.state = done(ToolErrorCode::Denied, reason.clone());
                (false, Some(reason), None)
            }
            Approval::Edited {
                arguments,
                left_out,
            } => {
                call.edit(cx.arguments, &arguments);
                call.left_out = left_out;
                (true, None, Some(arguments))
            }
        };
        cx.emit(EventBody::ApprovalResolved {
            id: call_id.clone(),
            approved,
            reason,
            arguments,
        });
        self.report_if_done(cx, call_id, 0);
        self.run_stage_if_cleared(cx);
    }

    pub(super) fn run_stage_if_cleared(&mut self, cx: &mut Cx<'_>) {
        let time = self.call_time(cx.at);
        let out_of_time = self.is_out_of_time(cx.at);
        let Phase::Batch(batch) = &mut self.phase else {
            return;
        };
        let waiting = batch.in_state(&CallState::AwaitingGate).len()
            + batch.in_state(&CallState::AwaitingApproval).len();
        if waiting > 0 || batch.is_running() {
            return;
        }
        let cleared = batch.in_state(&CallState::Cleared);
        if cleared.is_empty() {
            return self.end_stage(cx);
        }
        // A verdict or an answer may come at the last moment: no effect begins after it.
        if out_of_time {
            resolve_open(batch, ToolErrorCode::NotRun, OUT_OF_TIME);
            return self.commit_batch(cx);
        }
        let is_judged_again = cleared.iter().any(|index| {
            let call = batch.calls.get(*index);
            call.is_some_and(|call| call.awaits.is_some())
        });
        let mut planned = Vec::with_capacity(cleared.len());
        for index in cleared {
            if let Some(call) = batch.calls.get_mut(index) {
                call.state = CallState::Running;
                if is_judged_again {
                    call.awaits.get_or_insert(StartAwaits::Others);
                }
                planned.push(call.planned(time));
            }
        }
        self.spent.calls = self
            .spent
            .calls
            .saturating_add(u32::try_from(planned.len()).unwrap_or(u32::MAX));
        for call in &planned {
            cx.emit(EventBody::ToolCallStarted {
                id: call.call_id.clone(),
            });
        }
        cx.out.push(match is_judged_again {
            true => Action::JudgeAgain(planned),
            false => Action::RunTools(planned),
        });
    }

    /// Takes the end of one call.
    pub(super) fn tool_finished(
        &mut self,
        cx: &mut Cx<'_>,
        call_id: &CallId,
        outcome: ToolOutcome,
        duration_ms: u64,
    ) {
        let Some(call) = self.call_in(call_id, &CallState::Running) else {
            return;
        };
        let outcome = match call.reads.take() {
            Some(text) => render::with_text(outcome, text),
            None => outcome,
        };
        let used = outcome.used();
        let todo = match &outcome {
            ToolOutcome::Ok(output) => output.todo.clone(),
            ToolOutcome::Error(_) => None,
        };
        call.state = CallState::Done {
            outcome,
            synthetic: false,
        };
        self.report_if_done(cx, call_id, duration_ms);
        self.spent.note_delegated(used.unwrap_or_default());
        if let Some(items) = todo {
            cx.emit(EventBody::TodoChanged { items });
        }
        let Phase::Batch(batch) = &self.phase else {
            return;
        };
        if !batch.is_running() {
            self.end_stage(cx);
        }
    }

    fn end_stage(&mut self, cx: &mut Cx<'_>) {
        if let Phase::Batch(batch) = &mut self.phase {
            batch.stage += 1;
        }
        self.begin_stage(cx);
    }

    /// Puts the results into the transcript, in call order, and continues.
    fn commit_batch(&mut self, cx: &mut Cx<'_>) {
        let Some(exhausted) = self.commit_results(cx) else {
            return;
        };
        if exhausted {
            self.guard.take();
            return self.stop_early(cx, StopReason::MaxToolCalls);
        }
        if let Some(reason) = self.finalising {
            return self.finish(cx, super::finish::Ending::stopped(reason));
        }
        self.after_batch(cx);
    }

    /// Returns whether a call of that tool is progress however often it is made.
    fn polls(&self, name: &str) -> bool {
        let mut tools = self.config.tools.iter();
        tools.any(|tool| tool.polls && tool.name == name)
    }

    fn commit_results(&mut self, cx: &mut Cx<'_>) -> Option<bool> {
        let Phase::Batch(batch) = std::mem::replace(&mut self.phase, Phase::Idle) else {
            return None;
        };
        let rendering = self.config.profile.results;
        let guard = self.config.profile.loop_guard;
        let mut results = Vec::with_capacity(batch.calls.len());
        for call in batch.calls {
            let CallState::Done { outcome, synthetic } = call.state else {
                continue;
            };
            if !call.reported {
                cx.emit(finished_event(rendering, &call.call_id, &outcome, 0));
            }
            if outcome.code() != Some(ToolErrorCode::NotRun) {
                let polls = self.polls(&call.name);
                let arguments = if call.arguments.is_null() {
                    &call.raw
                } else {
                    &call.arguments.to_string()
                };
                self.guard
                    .note(guard, &call.name, polls, arguments, &outcome);
            }
            if synthetic {
                cx.record(RecordBody::CallResolved {
                    call_id: call.call_id.clone(),
                    outcome: outcome.clone(),
                });
            }
            let mut result = render::result(
                rendering,
                call.call_id,
                call.wire_id,
                call.name,
                &outcome,
                synthetic,
            );
            if call.edited {
                render::note_edit(&mut result.content, &call.raw, call.left_out.as_deref());
            } else if !call.rewritten_by.is_empty() {
                render::note_rewrite(&mut result.content, &call.rewritten_by, &call.raw);
            }
            if outcome.is_ok() {
                let (id, tool) = (result.call_id.clone(), result.name.clone());
                let found = render::plain(&outcome);
                self.findings
                    .push(Finding::new(id, tool, &call.raw, &found));
            }
            results.push(result);
        }
        self.push(Message::tool_results(results));
        Some(batch.exhausted)
    }

    /// Gives every open call its result when the turn ends under it.
    pub(super) fn close_batch(&mut self, cx: &mut Cx<'_>, reason: StopReason) {
        let Phase::Batch(batch) = &mut self.phase else {
            return;
        };
        let text = format!("the turn ended before the call did ({reason})");
        resolve_open(batch, ToolErrorCode::Cancelled, &text);
        self.commit_results(cx);
    }

    pub(super) fn call_time(&self, at: rondo_types::TimeMs) -> CallTime {
        let left = self.call_time_left(at);
        let limit = self.config.profile.limits.tool_timeout;
        CallTime {
            timeout: least(limit, left),
            left,
            end_by: self.work_deadline(),
        }
    }

    pub(super) fn call_in(
        &mut self,
        call_id: &CallId,
        state: &CallState,
    ) -> Option<&mut BatchCall> {
        let Phase::Batch(batch) = &mut self.phase else {
            return None;
        };
        let index = batch.position(call_id)?;
        batch
            .calls
            .get_mut(index)
            .filter(|call| call.state == *state)
    }

    pub(super) fn report_if_done(&mut self, cx: &mut Cx<'_>, call_id: &CallId, duration_ms: u64) {
        let rendering = self.config.profile.results;
        let Phase::Batch(batch) = &mut self.phase else {
            return;
        };
        let index = batch.position(call_id);
        let Some(call) = index.and_then(|index| batch.calls.get_mut(index)) else {
            return;
        };
        if let CallState::Done { outcome, .. } = &call.state {
            cx.emit(finished_event(rendering, call_id, outcome, duration_ms));
            call.reported = true;
        }
    }
}

impl BatchCall {
    pub(super) fn is_asked_about_or_runs(&self) -> bool {
        matches!(self.state, CallState::AwaitingApproval | CallState::Running)
    }

    /// Takes other arguments, which must fit like the model's; what they say is not put in question.
    fn edit(&mut self, check: &dyn Arguments, arguments: &Value) {
        self.edited = true;
        self.replace(check, arguments);
    }

    /// Checks other arguments and takes them; the call is cleared if they fit, and over if not.
    pub(super) fn replace(&mut self, check: &dyn Arguments, arguments: &Value) {
        self.raw = arguments.to_string();
        match check.prepare(&self.name, &self.raw) {
            PreparedCall::Ready { arguments, .. } => {
                self.arguments = arguments;
                self.state = CallState::Cleared;
            }
            PreparedCall::Invalid { message, .. } => {
                self.state = done(ToolErrorCode::InvalidArgs, message);
            }
        }
    }

    pub(super) fn planned(&self, time: CallTime) -> PlannedCall {
        let left = match self.runs_turns {
            true => time.left,
            false => time.timeout,
        };
        PlannedCall {
            call_id: self.call_id.clone(),
            name: self.name.clone(),
            arguments: self.arguments.clone(),
            recovery: self.recovery,
            timeout: least(self.timeout, left),
            end_by: time.end_by,
        }
    }
}

fn least(
    limit: Option<std::time::Duration>,
    left: Option<std::time::Duration>,
) -> Option<std::time::Duration> {
    match (limit, left) {
        (Some(limit), Some(left)) => Some(limit.min(left)),
        (limit, left) => limit.or(left),
    }
}

/// Returns the event for a call's end.
pub(crate) fn finished_event(
    rendering: rondo_types::ResultRendering,
    call_id: &CallId,
    outcome: &ToolOutcome,
    duration_ms: u64,
) -> EventBody {
    let rendered = render::result(
        rendering,
        call_id.clone(),
        None,
        String::new(),
        outcome,
        false,
    );
    let nothing = ToolOutput::default();
    let output = match outcome {
        ToolOutcome::Ok(output) => output,
        ToolOutcome::Error(_) => &nothing,
    };
    EventBody::ToolCallFinished {
        id: call_id.clone(),
        ok: outcome.is_ok(),
        code: outcome.code(),
        result: match rendered.content {
            rondo_types::ToolContent::Text(text) => Value::String(text),
            rondo_types::ToolContent::Json(value) => value,
        },
        blocks: rendered.blocks.iter().map(BlockInfo::from).collect(),
        truncated: output.truncated,
        spill: output.spill.clone(),
        duration_ms,
        changes: output.changes.clone(),
        child: output.child.clone(),
        job: output.job.clone(),
        from_outside: output.from_outside,
        used: outcome.used(),
    }
}

pub(super) fn done(code: ToolErrorCode, text: impl Into<String>) -> CallState {
    CallState::Done {
        outcome: ToolOutcome::error(code, text),
        synthetic: true,
    }
}

fn resolve_open(batch: &mut Batch, code: ToolErrorCode, text: &str) {
    for call in &mut batch.calls {
        match call.state {
            CallState::Done { .. } => {}
            CallState::Running | CallState::AwaitingRepeat { .. } => call.state = done(code, text),
            CallState::Planned
            | CallState::AwaitingGate
            | CallState::AwaitingApproval
            | CallState::Cleared => call.state = done(ToolErrorCode::NotRun, text),
        }
    }
}
