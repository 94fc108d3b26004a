//! Drives a machine by a script, without a runtime.

use crate::machine::{
    Action, Arguments, Input, ModelCall, PlannedCall, PreparedCall, TurnConfig, TurnMachine,
};
use crate::ports::{Approval, Verdict};
use crate::profile;
use rondo_types::{
    CallId, Candidate, Concurrency, Effects, EventBody, FinishReason, Message, ModelError,
    ModelInfo, Origin, Outcome, Part, Price, Profile, Recovery, Reply, ResponseName, SessionId,
    TimeMs, ToolCall, ToolOutcome, ToolSpec, Transcript, TurnId, Usage,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Behavior of the model at one request.
#[derive(Debug, Clone)]
pub(super) enum Say {
    Reply(Reply),
    Fail {
        error: ModelError,
        partial: &'static str,
        committed: bool,
    },
}

/// Accepts whatever is a JSON object.
pub(super) struct AnyObject;

impl Arguments for AnyObject {
    fn prepare(&self, _tool: &str, raw: &str) -> PreparedCall {
        match serde_json::from_str::<Value>(raw) {
            Ok(arguments) if arguments.is_object() => PreparedCall::Ready {
                meaning_changed: arguments.get("changed").is_some(),
                diff: arguments
                    .get("changed")
                    .map(|_| "/changed".to_owned())
                    .into_iter()
                    .collect(),
                arguments,
            },
            _ => PreparedCall::Invalid {
                message: "not an object".into(),
                details: Value::Null,
            },
        }
    }

    fn check_answer(&self, text: String) -> Result<String, String> {
        Ok(text)
    }
}

/// One scripted turn.
pub(super) struct Sim {
    pub(super) profile: Profile,
    pub(super) price: Option<Price>,
    /// The models after the first, named `f1` and so on.
    pub(super) fallbacks: Vec<ModelInfo>,
    pub(super) history: Transcript,
    pub(super) context_tokens: Option<u64>,
    pub(super) model: Box<dyn FnMut(&ModelCall) -> Say>,
    pub(super) tool: Box<dyn FnMut(&PlannedCall) -> ToolOutcome>,
    pub(super) gate: Box<dyn FnMut(&PlannedCall) -> Verdict>,
    pub(super) approve: Box<dyn FnMut(&PlannedCall) -> Approval>,
    /// How long each model request and each tool call takes.
    pub(super) model_time: Duration,
    pub(super) tool_time: Duration,
    pub(super) tools: Vec<ToolSpec>,
}

/// Outcome of the script.
pub(super) struct Ran {
    pub(super) outcome: Outcome,
    pub(super) requests: Vec<ModelCall>,
    pub(super) runs: Vec<Vec<PlannedCall>>,
    pub(super) events: Vec<EventBody>,
    pub(super) waits: Vec<Duration>,
}

impl Sim {
    pub(super) fn new(profile: &str, replies: Vec<Say>) -> Self {
        let mut replies = replies.into_iter();
        Self {
            profile: profile::builtin(profile).unwrap(),
            price: None,
            fallbacks: vec![],
            history: Transcript::new(),
            context_tokens: None,
            model: Box::new(move |_| replies.next().expect("the script is long enough")),
            tool: Box::new(|call| ToolOutcome::json(json!({ "did": call.arguments }))),
            gate: Box::new(|_| Verdict::Allow),
            approve: Box::new(|_| Approval::Approved),
            model_time: Duration::from_millis(10),
            tool_time: Duration::from_millis(10),
            tools: tools(),
        }
    }

    /// A model that says the same at every request.
    pub(super) fn always(profile: &str, mut say: impl FnMut(&ModelCall) -> Say + 'static) -> Self {
        Self {
            model: Box::new(move |call| say(call)),
            ..Self::new(profile, vec![])
        }
    }

    pub(super) fn config(&self) -> TurnConfig {
        TurnConfig {
            session: SessionId::new("s"),
            turn: TurnId::new("t"),
            turn_number: 1,
            model: ModelInfo {
                origin: origin(),
                streaming: self.profile.streaming,
                price: self.price,
                context_tokens: self.context_tokens,
            },
            fallbacks: self.fallbacks.clone(),
            profile: self.profile.clone().into(),
            system: vec!["system".into()].into(),
            tools: Arc::new(self.tools.clone()),
            response_schema: None,
            seed: 7,
        }
    }

    pub(super) fn run(mut self) -> Ran {
        let mut machine = TurnMachine::new(self.config());
        let mut ran = Ran {
            outcome: blank_outcome(),
            requests: vec![],
            runs: vec![],
            events: vec![],
            waits: vec![],
        };
        let mut now = TimeMs(1_000_000);
        let begin = Input::Begin {
            history: self.history.clone(),
            message: Message::user("q").into(),
        };
        let mut inputs = std::collections::VecDeque::from([begin]);
        while let Some(input) = inputs.pop_front() {
            for action in handle(&mut machine, now, input) {
                match action {
                    Action::Emit(body) => ran.events.push(body),
                    Action::CallModel(call) => {
                        let said = (self.model)(&call);
                        now = now.after(self.model_time);
                        inputs.push_back(reply_input(said, &call, &mut now));
                        ran.requests.push(call);
                    }
                    Action::CheckGate(calls) => inputs.extend(calls.iter().map(|call| {
                        let verdict = (self.gate)(call);
                        Input::Gate {
                            call_id: call.call_id.clone(),
                            verdict,
                        }
                    })),
                    Action::Ask { call, .. } => {
                        let approval = (self.approve)(&call);
                        inputs.push_back(Input::Approval {
                            call_id: call.call_id,
                            approval,
                        });
                    }
                    Action::RunTools(calls) => {
                        for call in &calls {
                            now = now.after(self.tool_time);
                            inputs.push_back(Input::ToolFinished {
                                call_id: call.call_id.clone(),
                                outcome: (self.tool)(call),
                                duration_ms: 1,
                            });
                        }
                        ran.runs.push(calls);
                    }
                    Action::Wait { until } => {
                        ran.waits.push(until.since(now));
                        now = until;
                        inputs.push_back(Input::Time);
                    }
                    Action::Done(outcome) => {
                        ran.outcome = *outcome;
                        assert!(machine.is_done());
                        assert!(crate::pairing::is_paired(&ran.outcome.transcript));
                        return ran;
                    }
                    // The others have no effect in a script.
                    _ => {}
                }
            }
        }
        panic!("the machine waits for something that nobody does: {machine:?}");
    }
}

/// Hands the machine an input, and lets the request that follows pass its checks.
pub(super) fn handle(machine: &mut TurnMachine, now: TimeMs, input: Input) -> Vec<Action> {
    let mut actions = machine.handle(now, input, &AnyObject);
    while let Some(Action::CheckRequest(check)) = actions.last() {
        let check = *check;
        actions.pop();
        actions.extend(machine.handle(now, Input::RequestPassed { check }, &AnyObject));
    }
    actions
}

/// A reply that would come after the step's end fails there instead, as the driver does it.
fn reply_input(said: Say, call: &ModelCall, now: &mut TimeMs) -> Input {
    if let Some(end) = call.end
        && *now > end.at
    {
        *now = end.at;
        let class = if end.is_deadline {
            rondo_types::ErrorClass::Deadline
        } else {
            rondo_types::ErrorClass::StepTimeout
        };
        let error = ModelError::new(class, "too late");
        return Input::ReplyFailed {
            error,
            partial: String::new(),
            committed: false,
            received: false,
        };
    }
    match said {
        Say::Reply(reply) => Input::Reply { reply },
        Say::Fail {
            error,
            partial,
            committed,
        } => Input::ReplyFailed {
            error,
            partial: partial.into(),
            committed,
            received: committed,
        },
    }
}

pub(super) fn origin() -> Origin {
    Origin {
        dialect: "openai-chat".into(),
        provider: "p".into(),
        model: "m".into(),
    }
}

/// `look` is shared and read-only, `act` is exclusive and writes.
pub(super) fn tools() -> Vec<ToolSpec> {
    let spec = |name: &str, effects, concurrency| ToolSpec {
        name: name.into(),
        description: String::new(),
        parameters: json!({"type": "object"}),
        effects,
        concurrency,
        recovery: Recovery::AtMostOnce,
        ..ToolSpec::default()
    };
    vec![
        spec("look", Effects::ReadOnly, Concurrency::Shared),
        spec("act", Effects::Writes, Concurrency::Exclusive),
    ]
}

pub(super) fn text(text: &str) -> Say {
    Say::Reply(reply(vec![Part::text(text)], FinishReason::Stop))
}

pub(super) fn calls(calls: &[(&str, &str)]) -> Say {
    let parts = calls
        .iter()
        .map(|(name, arguments)| call_part(name, arguments))
        .collect();
    Say::Reply(reply(parts, FinishReason::ToolCalls))
}

pub(crate) fn call_part(name: &str, arguments: &str) -> Part {
    Part::ToolCall(ToolCall {
        id: CallId::new("pending"),
        wire_id: None,
        name: name.into(),
        arguments: arguments.into(),
        complete: true,
        opaque: None,
    })
}

pub(super) fn reply(parts: Vec<Part>, reason: FinishReason) -> Reply {
    let candidate = Candidate {
        parts,
        finish_reason: Some(reason),
        raw_finish_reasons: vec![reason.as_str().into()],
    };
    let usage = Usage {
        input: 100,
        output: 10,
        ..Usage::default()
    };
    Reply {
        candidates: vec![candidate],
        usage: Some(usage),
        prompt_blocked: None,
        response: ResponseName::default(),
    }
}

pub(super) fn empty() -> Say {
    Say::Reply(reply(vec![], FinishReason::Stop))
}

fn blank_outcome() -> Outcome {
    Outcome {
        text: String::new(),
        stop_reason: rondo_types::StopReason::Error,
        model: None,
        degraded: false,
        answered: false,
        findings: vec![],
        usage: Usage::default(),
        cost: None,
        delegated: None,
        steps: 0,
        tool_calls: 0,
        elapsed_ms: 0,
        finish_reason: None,
        error: None,
        undelivered_steering: vec![],
        transcript: Transcript::new(),
    }
}
