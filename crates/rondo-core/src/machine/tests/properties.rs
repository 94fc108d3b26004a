//! For any sequence of replies, ends, verdicts, cancels and stored states, the machine ends within
//! its bounds and pairs every call.

use super::sim::{AnyObject, Sim, call_part, reply};
use crate::machine::{Action, Input, PlannedCall, TurnMachine};
use crate::pairing::is_paired;
use crate::ports::{Approval, Interception, Verdict};
use crate::profile;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use rondo_types::{
    CallId, ErrorClass, EventBody, FinishReason, InDoubtDecision, Message, ModelError, ModelInfo,
    NanoUsd, Outcome, Part, Price, Reply, TimeMs, ToolErrorCode, ToolOutcome, Usage,
};
use std::collections::{HashSet, VecDeque};
use std::time::Duration;

#[derive(Debug, Clone)]
enum Move {
    Reply(Reply),
    Fail(ErrorClass, bool),
}

#[derive(Debug, Clone)]
struct Script {
    profile: &'static str,
    fallbacks: usize,
    max_steps: u32,
    max_tool_calls: Option<u32>,
    max_tokens_total: Option<u64>,
    max_cost: Option<u64>,
    turn_timeout_ms: Option<u64>,
    fault_after: Option<usize>,
    moves: Vec<Move>,
    verdicts: Vec<u8>,
    outcomes: Vec<u8>,
    delays_ms: Vec<u64>,
    cancel_after: Option<usize>,
    steer_after: Option<usize>,
    store_every: usize,
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        "[a-z ]{0,12}".prop_map(Part::text),
        (
            prop_oneof![Just("look"), Just("act"), Just("nope"), Just("")],
            "[0-9]{0,2}"
        )
            .prop_map(|(name, n)| {
                let arguments = if n.is_empty() {
                    "{".into()
                } else {
                    format!(r#"{{"n":"{n}"}}"#)
                };
                let Part::ToolCall(mut call) = call_part(name, &arguments) else {
                    unreachable!()
                };
                call.complete = !n.is_empty();
                Part::ToolCall(call)
            }),
    ]
}

fn one_move() -> impl Strategy<Value = Move> {
    let reason = prop_oneof![
        Just(FinishReason::Stop),
        Just(FinishReason::ToolCalls),
        Just(FinishReason::Length),
        Just(FinishReason::ContentFilter),
        Just(FinishReason::MalformedCall),
        Just(FinishReason::Refusal),
        Just(FinishReason::Paused),
        Just(FinishReason::Error),
        Just(FinishReason::Other),
    ];
    let class = prop_oneof![
        Just(ErrorClass::Server),
        Just(ErrorClass::Auth),
        Just(ErrorClass::IdleTimeout),
        Just(ErrorClass::StepTimeout),
        Just(ErrorClass::Deadline),
        Just(ErrorClass::InvalidToolCall),
    ];
    prop_oneof![
        4 => (prop::collection::vec(part(), 0..4), reason)
            .prop_map(|(parts, reason)| Move::Reply(reply(parts, reason))),
        1 => (class, any::<bool>()).prop_map(|(class, shown)| Move::Fail(class, shown)),
    ]
}

fn script() -> impl Strategy<Value = Script> {
    (
        (prop::sample::select(profile::builtin_names()), 0_usize..4),
        (
            1_u32..8,
            prop::option::of(0_u32..6),
            (
                prop::option::of(0_u64..4_000),
                prop::option::of(0_u64..4_000_000),
            ),
            (
                prop::option::of(0_u64..40_000),
                prop::option::of(0_usize..30),
            ),
        ),
        prop::collection::vec(one_move(), 1..12),
        prop::collection::vec(0_u8..3, 1..6),
        prop::collection::vec(0_u8..3, 1..6),
        prop::collection::vec(0_u64..9_000, 1..6),
        prop::option::of(0_usize..30),
        (prop::option::of(0_usize..10), 1_usize..4),
    )
        .prop_map(
            |(
                (profile, fallbacks),
                (
                    max_steps,
                    max_tool_calls,
                    (max_tokens_total, max_cost),
                    (turn_timeout_ms, fault_after),
                ),
                moves,
                verdicts,
                outcomes,
                delays_ms,
                cancel_after,
                rest,
            )| {
                Script {
                    profile,
                    fallbacks,
                    max_steps,
                    max_tool_calls,
                    max_tokens_total,
                    max_cost,
                    turn_timeout_ms,
                    fault_after,
                    moves,
                    verdicts,
                    outcomes,
                    delays_ms,
                    cancel_after,
                    steer_after: rest.0,
                    store_every: rest.1,
                }
            },
        )
}

/// Plays a script. With `stored`, the machine is serialized and read back on its way.
struct Play<'a> {
    script: &'a Script,
    machine: TurnMachine,
    now: TimeMs,
    inputs: VecDeque<Input>,
    requests: u32,
    fed: usize,
    intercepted: HashSet<CallId>,
    asked_again: HashSet<CallId>,
    log: Vec<(TimeMs, Action)>,
}

/// Price of a token in these scripts.
const PRICE: Price = Price {
    input: 1_000,
    output: 4_000,
    cache_read: 0,
    cache_write: 0,
};

/// It has the price of the first model, by which the spending is checked.
fn fallback() -> ModelInfo {
    ModelInfo {
        origin: super::sim::origin(),
        streaming: false,
        price: Some(PRICE),
        context_tokens: None,
    }
}

impl<'a> Play<'a> {
    fn new(script: &'a Script) -> Self {
        let mut sim = Sim::new(script.profile, vec![]);
        sim.profile.limits.max_steps = script.max_steps;
        let limits = &mut sim.profile.limits;
        limits.max_tool_calls = script.max_tool_calls;
        limits.max_tokens_total = script.max_tokens_total;
        limits.max_cost = script.max_cost.map(NanoUsd);
        if let Some(timeout) = script.turn_timeout_ms {
            limits.turn_timeout = Some(Duration::from_millis(timeout));
        }
        sim.price = Some(PRICE);
        sim.fallbacks = vec![fallback(); script.fallbacks];
        let begin = Input::Begin {
            history: vec![],
            message: Message::user("q").into(),
        };
        Self {
            script,
            machine: TurnMachine::new(sim.config()),
            now: TimeMs(1_000),
            inputs: VecDeque::from([begin]),
            requests: 0,
            fed: 0,
            intercepted: HashSet::new(),
            asked_again: HashSet::new(),
            log: vec![],
        }
    }

    /// Returns the replies of interceptors about a call, once for each and not for all.
    fn interception(&mut self, call: &PlannedCall) -> Option<Input> {
        let is_first = self.intercepted.insert(call.call_id.clone());
        let call_id = call.call_id.clone();
        let what = match self.fed % 7 {
            _ if !is_first => return None,
            0 => Interception::Allowed { call_id },
            1 => Interception::Rewritten {
                call_id,
                by: vec!["hook".into()],
                arguments: serde_json::json!({"rewritten": self.fed}),
            },
            2 => Interception::Denied {
                call_id,
                by: "hook".into(),
                reason: "no".into(),
            },
            _ => return None,
        };
        Some(Input::Intercepted { what })
    }

    /// Asks a person about calls that run, as after a crash; once for each and not for all.
    fn ask_again(&mut self, calls: &[PlannedCall]) {
        for call in calls {
            let call_id = call.call_id.clone();
            if self.fed.is_multiple_of(3) && self.asked_again.insert(call_id.clone()) {
                let in_doubt = Input::InDoubt {
                    call_id: call_id.clone(),
                    decision: InDoubtDecision::Ask,
                    still_running: false,
                };
                let ask = Input::AskAgain {
                    call_id,
                    prompt: "again?".into(),
                    reasons: Vec::new(),
                    has_begun: self.fed.is_multiple_of(2),
                };
                self.inputs.extend([in_doubt, ask]);
            }
        }
    }

    fn pick<T: Clone>(list: &[T], at: usize) -> T {
        list[at % list.len()].clone()
    }

    fn run(mut self, stored: bool) -> (Outcome, Vec<(TimeMs, Action)>) {
        // Every step costs a bounded number of inputs; this is far above the sum.
        for _ in 0..2_000 {
            let input = self.next_input();
            if stored && self.fed.is_multiple_of(self.script.store_every) {
                let json = serde_json::to_string(&self.machine).unwrap();
                let back: TurnMachine = serde_json::from_str(&json).unwrap();
                assert_eq!(back, self.machine);
                self.machine = back;
            }
            let actions = self.machine.handle(self.now, input, &AnyObject);
            let at = self.now;
            self.log
                .extend(actions.iter().map(|action| (at, action.clone())));
            for action in actions {
                if let Some(outcome) = self.act(action) {
                    return (outcome, self.log);
                }
            }
        }
        panic!("no end after {} requests", self.requests);
    }

    fn next_input(&mut self) -> Input {
        self.fed += 1;
        // The checks of a request cost no time here, so that none is sent later than it was allowed.
        if !matches!(self.inputs.front(), Some(Input::RequestPassed { .. })) {
            let delay_ms = Self::pick(&self.script.delays_ms, self.fed);
            self.now = self.now.after(Duration::from_millis(delay_ms));
        }
        if self.script.cancel_after == Some(self.fed) {
            return Input::Cancel;
        }
        if self.script.fault_after == Some(self.fed) {
            let error = ModelError::new(ErrorClass::Internal, "the journal is full");
            return Input::Fault { error };
        }
        if self.script.steer_after == Some(self.fed) {
            return Input::Steer {
                message: "steer".into(),
            };
        }
        self.inputs.pop_front().unwrap_or(Input::Time)
    }

    fn act(&mut self, action: Action) -> Option<Outcome> {
        match action {
            Action::CheckRequest(check) => self.inputs.push_front(Input::RequestPassed { check }),
            Action::EndRequest { error, .. } => self.inputs.push_front(Input::ReplyFailed {
                error,
                partial: String::new(),
                committed: false,
                received: false,
            }),
            Action::CallModel(call) => {
                self.requests += u32::from(call.attempt == 0);
                let index = usize::try_from(call.step + call.attempt).unwrap() + call.model;
                self.inputs
                    .push_back(match Self::pick(&self.script.moves, index) {
                        Move::Reply(reply) => Input::Reply { reply },
                        Move::Fail(class, committed) => Input::ReplyFailed {
                            error: ModelError::new(class, "x"),
                            partial: if committed {
                                "par".into()
                            } else {
                                String::new()
                            },
                            committed,
                            received: committed,
                        },
                    });
            }
            Action::CheckGate(calls) => self.judge(calls),
            Action::Ask { call, .. } => {
                let approval = match self.fed % 4 {
                    0 | 2 => Approval::Approved,
                    1 => Approval::Denied {
                        reason: "no".into(),
                    },
                    _ => Approval::edited(serde_json::json!({"edited": self.fed})),
                };
                self.inputs.push_back(Input::Approval {
                    call_id: call.call_id,
                    approval,
                });
            }
            Action::RunTools(calls) => {
                self.ask_again(&calls);
                self.finish_tools(calls);
            }
            Action::RepeatCall(call) => self.finish_tools(vec![*call]),
            Action::EndCall { call, outcome } => self.inputs.push_back(Input::ToolFinished {
                call_id: call.call_id,
                outcome,
                duration_ms: 0,
            }),
            Action::Wait { .. } => self.inputs.push_back(Input::Time),
            Action::JudgeAgain(_)
            | Action::AskAgain { .. }
            | Action::Answer { .. }
            | Action::Settle { .. }
            | Action::Emit(_)
            | Action::Abort
            | Action::Record(_) => {}
            Action::Done(outcome) => return Some(*outcome),
        }
        None
    }

    fn judge(&mut self, calls: Vec<PlannedCall>) {
        for call in calls {
            if let Some(input) = self.interception(&call) {
                self.inputs.push_back(input);
                continue;
            }
            let verdict = match Self::pick(&self.script.verdicts, self.fed) {
                0 => Verdict::Allow,
                1 => Verdict::Deny {
                    reason: "no".into(),
                },
                _ => Verdict::Ask {
                    prompt: "?".into(),
                    reasons: Vec::new(),
                },
            };
            self.inputs.push_back(Input::Gate {
                call_id: call.call_id,
                verdict,
            });
        }
    }

    fn finish_tools(&mut self, mut calls: Vec<PlannedCall>) {
        calls.reverse();
        for call in calls {
            let outcome = match Self::pick(&self.script.outcomes, self.fed) {
                0 => ToolOutcome::text("fine"),
                1 => ToolOutcome::error(ToolErrorCode::Timeout, "late"),
                _ => ToolOutcome::text(self.fed.to_string()),
            };
            let call_id = call.call_id;
            self.inputs.push_back(Input::ToolFinished {
                call_id,
                outcome,
                duration_ms: 1,
            });
        }
    }
}

/// No request and no call begins once its time, tokens, money or number is used up, so that at most
/// one request overspends.
fn check_spending(script: &Script, log: &[(TimeMs, Action)]) -> Result<(), TestCaseError> {
    let limits = &Play::new(script).machine.config().profile.limits.clone();
    let deadline = log
        .first()
        .and_then(|(at, _)| Some(at.after(limits.turn_timeout?)));
    let mut usage = Usage::default();
    // A call that was in doubt and may run again counts once.
    let mut run = HashSet::new();
    for (at, action) in log {
        let in_time = deadline.is_none_or(|deadline| *at < deadline);
        match action {
            Action::Emit(EventBody::Usage { input, output, .. }) => {
                usage += Usage {
                    input: *input,
                    output: *output,
                    ..Usage::default()
                };
            }
            Action::CallModel(_) => {
                prop_assert!(in_time, "a request after the deadline");
                prop_assert!(
                    script
                        .max_tokens_total
                        .is_none_or(|max| usage.total() <= max)
                );
                prop_assert!(script.max_cost.is_none_or(|max| PRICE.cost(usage).0 <= max));
            }
            Action::RunTools(calls) => {
                // One that runs again has the time that is left, and the driver ends it if there is none.
                let is_new = calls.iter().any(|it| !run.contains(&it.call_id));
                prop_assert!(in_time || !is_new, "a call after the deadline");
                run.extend(calls.iter().map(|it| &it.call_id));
            }
            _ => {}
        }
    }
    let calls = u32::try_from(run.len()).unwrap();
    prop_assert!(script.max_tool_calls.is_none_or(|max| calls <= max));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn any_script_ends_within_its_bounds_with_every_call_paired(script in script()) {
        let (outcome, log) = Play::new(&script).run(false);
        prop_assert!(outcome.steps <= script.max_steps);
        check_spending(&script, &log)?;
        let actions: Vec<Action> = log.into_iter().map(|(_, action)| action).collect();
        prop_assert!(is_paired(&outcome.transcript));
        let limits = profile::builtin(script.profile).unwrap().limits;
        let attempts = actions.iter().filter(|it| matches!(it, Action::CallModel(_))).count();
        let bound = (script.max_steps + script.fallbacks as u32) * (1 + limits.retry.max_retries);
        prop_assert!(attempts as u32 <= bound);
        let mut asked = 0;
        for action in &actions {
            if let Action::CallModel(call) = action {
                prop_assert!(call.model >= asked, "nobody is asked again");
                asked = call.model;
                prop_assert!(is_paired(&call.request.messages), "every request pairs its calls");
            }
        }
        let done = actions.iter().filter(|it| matches!(it, Action::Done(_))).count();
        prop_assert_eq!(done, 1);
    }

    #[test]
    fn storing_the_machine_between_any_two_inputs_changes_nothing(script in script()) {
        let (plain, plain_log) = Play::new(&script).run(false);
        let (stored, stored_log) = Play::new(&script).run(true);
        prop_assert_eq!(plain, stored);
        prop_assert_eq!(plain_log, stored_log);
    }
}
