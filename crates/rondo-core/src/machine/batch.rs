use super::io::{Action, PlannedCall, PreparedCall};
use super::render;
use super::turn::{Cx, Phase, TurnMachine, assign_ids};
use crate::ports::{Approval, Verdict};
use rondo_types::{
    CallId, Candidate, Concurrency, Effects, EventBody, Finding, Message, Overflow, Recovery,
    StopReason, ToolCall, ToolError, ToolErrorCode, ToolOutcome, ToolSpec,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// What the model reads of calls that the turn's time did not reach.
const OUT_OF_TIME: &str = "there was no time left";

/// The calls of one reply, from plan to committed results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Batch {
    calls: Vec<BatchCall>,
    /// Indexes into `calls`: each stage is run at once, the stages one after another.
    stages: Vec<Vec<usize>>,
    /// The stage under way.
    stage: usize,
    /// Whether calls were left out because the turn has no more, or one reply asked for too many.
    exhausted: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct BatchCall {
    call_id: CallId,
    wire_id: Option<String>,
    name: String,
    raw: String,
    arguments: Value,
    recovery: Recovery,
    state: CallState,
    /// Whether the listener was told of its end.
    reported: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum CallState {
    Planned,
    AwaitingGate,
    AwaitingApproval,
    Cleared,
    Running,
    Done {
        outcome: ToolOutcome,
        synthetic: bool,
    },
}

/// How long a call may run, and when it must have ended.
type CallTime = (Option<std::time::Duration>, Option<rondo_types::TimeMs>);

impl Batch {
    /// Returns whether calls run whose ends will come.
    pub(super) fn is_running(&self) -> bool {
        self.calls
            .iter()
            .any(|call| call.state == CallState::Running)
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
        let batch = self.plan(cx, calls);
        self.phase = Phase::Batch(batch);
        for id in &ids {
            self.report_if_done(cx, id, 0);
        }
        self.begin_stage(cx);
    }

    fn plan(&mut self, cx: &mut Cx<'_>, calls: Vec<ToolCall>) -> Batch {
        let limits = self.config.profile.limits.clone();
        let per_step = limits.max_tool_calls_per_step.map_or(usize::MAX, to_index);
        let too_many = calls.len() > per_step;
        let stop_all = too_many && limits.overflow == Overflow::Stop;
        let mut quota = limits.max_tool_calls.map_or(usize::MAX, |max| {
            to_index(max.saturating_sub(self.spent.calls))
        });
        let mut exhausted = stop_all;
        let mut planned = Vec::with_capacity(calls.len());
        for (index, call) in calls.into_iter().enumerate() {
            let refused = if stop_all || index >= per_step {
                Some(per_step_text(per_step, stop_all))
            } else if self.finalising.is_some() {
                Some("no tools are available for the last answer".to_owned())
            } else {
                None
            };
            let mut call = match refused {
                Some(text) => resolved(call, ToolErrorCode::NotRun, text),
                None => self.prepare(cx, call),
            };
            if call.state == CallState::Planned {
                if quota == 0 {
                    exhausted = true;
                    let max = limits.max_tool_calls.unwrap_or(0);
                    let text = format!("the limit of {max} tool calls in a turn is reached");
                    call.state = done(ToolErrorCode::NotRun, text);
                } else {
                    quota -= 1;
                }
            }
            planned.push(call);
        }
        let stages = self.stages(&planned);
        Batch {
            calls: planned,
            stages,
            stage: 0,
            exhausted,
        }
    }

    /// Finds the tool and readies the arguments; what cannot run is resolved at once.
    fn prepare(&mut self, cx: &mut Cx<'_>, call: ToolCall) -> BatchCall {
        let tools = Arc::clone(&self.config.tools);
        let Some(spec) = tools.iter().find(|tool| tool.name == call.name) else {
            let text = self.unknown_tool_text(&call.name);
            return resolved(call, ToolErrorCode::UnknownTool, text);
        };
        if self.guard.withholds(&call.name) {
            self.guard.insist();
            let text = "this tool is no longer available in this turn, because its calls kept \
                        returning the same results; answer with what you have"
                .to_owned();
            return resolved(call, ToolErrorCode::NotRun, text);
        }
        if !call.complete {
            let text = "the arguments were cut off before their end, so the call was not run; \
                        send it again, shorter"
                .to_owned();
            return resolved(call, ToolErrorCode::InvalidArgs, text);
        }
        match cx.arguments.prepare(&call.name, &call.arguments) {
            PreparedCall::Ready {
                arguments,
                diff,
                meaning_changed,
            } => {
                if !diff.is_empty() {
                    let id = call.id.clone();
                    cx.emit(EventBody::ArgumentsRepaired {
                        id,
                        diff: diff.clone(),
                    });
                }
                if meaning_changed && spec.effects == Effects::Writes {
                    return sent_back(call, &arguments, &diff);
                }
                ready(call, spec, arguments)
            }
            PreparedCall::Invalid { message, details } => {
                let error = ToolError {
                    code: ToolErrorCode::InvalidArgs,
                    message,
                    details,
                };
                resolved_with(call, ToolOutcome::Error(error))
            }
        }
    }

    fn unknown_tool_text(&self, name: &str) -> String {
        let offered: Vec<&str> = self
            .config
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .filter(|tool| !self.guard.withholds(tool))
            .collect();
        let known = offered.join(", ");
        let name: String = name.chars().take(100).collect();
        format!("there is no tool `{name}`; the tools are: {known}")
    }

    /// Groups neighbouring shared calls; any other call is a barrier of its own.
    fn stages(&self, calls: &[BatchCall]) -> Vec<Vec<usize>> {
        let width = to_index(self.config.profile.limits.max_parallel.max(1));
        let mut stages: Vec<Vec<usize>> = Vec::new();
        let mut last_is_shared = false;
        for (index, call) in calls.iter().enumerate() {
            if call.state != CallState::Planned {
                continue;
            }
            let shared = self
                .config
                .tools
                .iter()
                .any(|tool| tool.name == call.name && tool.concurrency == Concurrency::Shared);
            match stages.last_mut() {
                Some(stage) if shared && last_is_shared && stage.len() < width => stage.push(index),
                _ => stages.push(vec![index]),
            }
            last_is_shared = shared;
        }
        stages
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
        let until = self.work_deadline();
        let time = self.call_time(cx.at);
        let Some(call) = self.call_in(call_id, &CallState::AwaitingGate) else {
            return;
        };
        match verdict {
            Verdict::Allow => call.state = CallState::Cleared,
            Verdict::Deny { reason } => call.state = done(ToolErrorCode::Denied, reason),
            Verdict::Ask { prompt } => {
                call.state = CallState::AwaitingApproval;
                let call = call.planned(time);
                let id = call.call_id.clone();
                cx.emit(EventBody::ApprovalRequested {
                    id,
                    prompt: prompt.clone(),
                });
                cx.out.push(Action::Ask {
                    call,
                    prompt,
                    until,
                });
            }
        }
        self.report_if_done(cx, call_id, 0);
        self.run_stage_if_cleared(cx);
    }

    /// Takes a person's answer about one call.
    pub(super) fn approval(&mut self, cx: &mut Cx<'_>, call_id: &CallId, approval: Approval) {
        let Some(call) = self.call_in(call_id, &CallState::AwaitingApproval) else {
            return;
        };
        let (approved, reason) = match approval {
            Approval::Approved => {
                call.state = CallState::Cleared;
                (true, None)
            }
            Approval::Denied { reason } => {
                call.state = done(ToolErrorCode::Denied, reason.clone());
                (false, Some(reason))
            }
        };
        cx.emit(EventBody::ApprovalResolved {
            id: call_id.clone(),
            approved,
            reason,
        });
        self.report_if_done(cx, call_id, 0);
        self.run_stage_if_cleared(cx);
    }

    fn run_stage_if_cleared(&mut self, cx: &mut Cx<'_>) {
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
        let mut planned = Vec::with_capacity(cleared.len());
        for index in cleared {
            if let Some(call) = batch.calls.get_mut(index) {
                call.state = CallState::Running;
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
        cx.out.push(Action::RunTools(planned));
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
        call.state = CallState::Done {
            outcome,
            synthetic: false,
        };
        self.report_if_done(cx, call_id, duration_ms);
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

    /// Puts the results into the transcript, in call order, and goes on.
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
                emit_finished(cx, rendering, &call.call_id, &outcome, 0);
            }
            if outcome.code() != Some(ToolErrorCode::NotRun) {
                let arguments = if call.arguments.is_null() {
                    &call.raw
                } else {
                    &call.arguments.to_string()
                };
                self.guard.note(guard, &call.name, arguments, &outcome);
            }
            let result = render::result(
                rendering,
                call.call_id,
                call.wire_id,
                call.name,
                &outcome,
                synthetic,
            );
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

    fn call_time(&self, at: rondo_types::TimeMs) -> CallTime {
        (self.tool_timeout(at), self.work_deadline())
    }

    fn call_in(&mut self, call_id: &CallId, state: &CallState) -> Option<&mut BatchCall> {
        let Phase::Batch(batch) = &mut self.phase else {
            return None;
        };
        let index = batch.position(call_id)?;
        batch
            .calls
            .get_mut(index)
            .filter(|call| call.state == *state)
    }

    fn report_if_done(&mut self, cx: &mut Cx<'_>, call_id: &CallId, duration_ms: u64) {
        let rendering = self.config.profile.results;
        let Phase::Batch(batch) = &mut self.phase else {
            return;
        };
        let index = batch.position(call_id);
        let Some(call) = index.and_then(|index| batch.calls.get_mut(index)) else {
            return;
        };
        if let CallState::Done { outcome, .. } = &call.state {
            emit_finished(cx, rendering, call_id, outcome, duration_ms);
            call.reported = true;
        }
    }
}

impl BatchCall {
    fn planned(&self, (timeout, end_by): CallTime) -> PlannedCall {
        PlannedCall {
            call_id: self.call_id.clone(),
            name: self.name.clone(),
            arguments: self.arguments.clone(),
            recovery: self.recovery,
            timeout,
            end_by,
        }
    }
}

fn emit_finished(
    cx: &mut Cx<'_>,
    rendering: rondo_types::ResultRendering,
    call_id: &CallId,
    outcome: &ToolOutcome,
    duration_ms: u64,
) {
    let rendered = render::result(
        rendering,
        call_id.clone(),
        None,
        String::new(),
        outcome,
        false,
    );
    let (truncated, spill) = match outcome {
        ToolOutcome::Ok(output) => (output.truncated, output.spill.clone()),
        ToolOutcome::Error(_) => (false, None),
    };
    cx.emit(EventBody::ToolCallFinished {
        id: call_id.clone(),
        ok: outcome.is_ok(),
        code: outcome.code(),
        result: match rendered.content {
            rondo_types::ToolContent::Text(text) => Value::String(text),
            rondo_types::ToolContent::Json(value) => value,
        },
        truncated,
        spill,
        duration_ms,
    });
}

fn ready(call: ToolCall, spec: &ToolSpec, arguments: Value) -> BatchCall {
    BatchCall {
        arguments,
        recovery: spec.recovery,
        ..blank(call, CallState::Planned)
    }
}

fn resolved(call: ToolCall, code: ToolErrorCode, text: String) -> BatchCall {
    blank(call, done(code, text))
}

fn resolved_with(call: ToolCall, outcome: ToolOutcome) -> BatchCall {
    blank(
        call,
        CallState::Done {
            outcome,
            synthetic: true,
        },
    )
}

/// A call with effects that means something else after its repair is the model's to decide on.
fn sent_back(call: ToolCall, arguments: &Value, diff: &[String]) -> BatchCall {
    let error = ToolError {
        code: ToolErrorCode::InvalidArgs,
        message: "the arguments do not fit the schema; they could be read only by changing what \
                  they say, so the call was not run; send it again as you mean it"
            .to_owned(),
        details: json!({ "read_as": arguments, "changes": diff }),
    };
    resolved_with(call, ToolOutcome::Error(error))
}

fn blank(call: ToolCall, state: CallState) -> BatchCall {
    BatchCall {
        call_id: call.id,
        wire_id: call.wire_id,
        name: call.name,
        raw: call.arguments,
        arguments: Value::Null,
        recovery: Recovery::AtMostOnce,
        state,
        reported: false,
    }
}

fn done(code: ToolErrorCode, text: impl Into<String>) -> CallState {
    CallState::Done {
        outcome: ToolOutcome::error(code, text),
        synthetic: true,
    }
}

fn resolve_open(batch: &mut Batch, code: ToolErrorCode, text: &str) {
    for call in &mut batch.calls {
        match call.state {
            CallState::Done { .. } => {}
            CallState::Running => call.state = done(code, text),
            CallState::Planned
            | CallState::AwaitingGate
            | CallState::AwaitingApproval
            | CallState::Cleared => call.state = done(ToolErrorCode::NotRun, text),
        }
    }
}

fn per_step_text(per_step: usize, stop_all: bool) -> String {
    if stop_all {
        format!("a reply may ask for {per_step} calls at most; none was run")
    } else if per_step == 1 {
        "only one call a reply is run; this one was ignored, send it again if you still need it"
            .to_owned()
    } else {
        format!(
            "only the first {per_step} calls of a reply are run; this one was not, send it again \
             if you still need it"
        )
    }
}

fn to_index(value: u32) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
