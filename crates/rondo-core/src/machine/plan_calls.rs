//! Choice of the calls of a reply that may run, with their arguments and stages.

use super::batch::{Batch, BatchCall, CallState, done};
use super::io::PreparedCall;
use super::turn::{Cx, TurnMachine};
use rondo_types::{
    Concurrency, Effects, EventBody, Overflow, Recovery, ToolCall, ToolError, ToolErrorCode,
    ToolOutcome, ToolSpec,
};
use serde_json::{Value, json};
use std::sync::Arc;

impl TurnMachine {
    /// Decides on each call of a reply; what cannot run is resolved at once.
    pub(super) fn plan_calls(&mut self, cx: &mut Cx<'_>, calls: Vec<ToolCall>) -> Batch {
        let limits = self.config.profile.limits.clone();
        let per_step = limits.max_tool_calls_per_step.map_or(usize::MAX, to_index);
        let too_many = calls.len() > per_step;
        let stop_all = too_many && limits.overflow == Overflow::Stop;
        let mut quota = limits.max_tool_calls.map_or(usize::MAX, |max| {
            to_index(max.saturating_sub(self.spent.all_calls()))
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
                    used: None,
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

    /// Groups neighboring shared calls; any other call is a barrier of its own.
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
}

fn ready(call: ToolCall, spec: &ToolSpec, arguments: Value) -> BatchCall {
    BatchCall {
        arguments,
        recovery: spec.recovery,
        timeout: spec.timeout,
        runs_turns: spec.runs_turns,
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
        used: None,
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
        edited: false,
        left_out: None,
        timeout: None,
        runs_turns: false,
        rewritten_by: Vec::new(),
        awaits: None,
        doubt: None,
        is_intercepted: false,
        reads: None,
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
