//! The remaining steps, time, tokens and money, and the reserve for the final answer.

use super::io::{StepEnd, TurnConfig};
use super::turn::TurnMachine;
use crate::compaction::{BYTES_PER_TOKEN, message_bytes, part_bytes, size, transcript_bytes};
use crate::ports::Amount;
use rondo_types::{Message, NanoUsd, Price, Reply, Spend, StopReason, TimeMs, Transcript, Usage};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Generated tokens that a request must have room for.
const OUTPUT_TOKENS_MIN: u64 = 256;
/// Generated tokens that are held back for the last answer.
const FINAL_OUTPUT_TOKENS: u64 = 1024;
/// Largest bound on generated tokens that is sent because the budget runs low. Larger ones are
/// refused by models whose own bound is lower.
const OUTPUT_CAP_MAX: u64 = 8192;
/// Tokens left below which the bound is sent: a reply is hardly ever longer.
const OUTPUT_CAP_BELOW: u64 = 32_768;
/// Longest slice of the turn that is held back for the last answer.
const FINAL_SLICE_MAX: Duration = Duration::from_secs(30);
/// The share of the turn that is held back for the last answer: one in so many.
const FINAL_SLICE_SHARE: u32 = 4;

/// Prompt tokens beyond which a count is wrong unless the estimate comes near it.
const INPUT_TOKENS_MAX: u64 = 4_000_000;
/// The same of generated tokens.
const OUTPUT_TOKENS_MAX: u64 = 1_000_000;
/// How many times the estimate a count may be.
const COUNT_FACTOR_MAX: u64 = 16;

/// Permission for the next action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextRequest {
    /// An ordinary step.
    Step,
    /// The last, tool-free request, because this ran out.
    FinalOnly(StopReason),
    /// Nothing, because this ran out.
    Nothing(StopReason),
}

/// Use by the turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TurnSpend {
    pub(super) steps: u32,
    pub(super) calls: u32,
    pub(super) usage: Usage,
    price: Option<Price>,
    pub(super) cost: Option<NanoUsd>,
    /// Tokens of the latest request and its reply, which the next request repeats.
    context_tokens: u64,
    /// Bytes of messages that no request has carried yet.
    unsent_bytes: u64,
    /// Bytes of the system prompt and the tools, which every request carries.
    #[serde(default)]
    fixed_bytes: u64,
    /// Bytes of all messages, sent or not.
    #[serde(default)]
    message_bytes: u64,
    /// Bytes that a hundred tokens of the latest request had.
    #[serde(default)]
    density: Option<u64>,
    /// Use by the latest finished request.
    #[serde(default)]
    last: Amount,
    /// Use by the turns that calls of this one started.
    #[serde(default)]
    pub(super) delegated: Spend,
}

impl TurnSpend {
    pub(super) fn new(price: Option<Price>) -> Self {
        Self {
            steps: 0,
            calls: 0,
            usage: Usage::default(),
            price,
            cost: price.map(|_| NanoUsd(0)),
            context_tokens: 0,
            unsent_bytes: 0,
            fixed_bytes: 0,
            message_bytes: 0,
            density: None,
            last: Amount::default(),
            delegated: Spend::default(),
        }
    }

    /// Counts what every request carries, and the history.
    pub(super) fn note_unsent(&mut self, config: &TurnConfig, history: &Transcript) {
        self.fixed_bytes = fixed_bytes(config);
        self.recount(history);
    }

    /// Counts what every request carries from now on, with other tools: what is more than before was not sent yet.
    pub(super) fn note_tools(&mut self, config: &TurnConfig) {
        let before = std::mem::replace(&mut self.fixed_bytes, fixed_bytes(config));
        let more = self.fixed_bytes.saturating_sub(before);
        self.unsent_bytes = self.unsent_bytes.saturating_add(more);
    }

    /// Estimates again what the next request carries, after older messages changed.
    pub(super) fn recount(&mut self, transcript: &Transcript) {
        self.context_tokens = 0;
        self.message_bytes = transcript_bytes(transcript);
        self.unsent_bytes = self.fixed_bytes.saturating_add(self.message_bytes);
    }

    /// Notes how many bytes the tokens of a request with all messages had.
    pub(super) fn note_density(&mut self, usage: Usage) {
        let bytes = self.fixed_bytes.saturating_add(self.message_bytes);
        // Nothing is learnt from a prompt that was not counted.
        let hundredfold = bytes.saturating_mul(100).checked_div(usage.input);
        self.density = hundredfold.map(|it| it.clamp(100, 100 * BYTES_PER_TOKEN));
    }

    /// Estimates how many bytes so many tokens have, rather too few.
    pub(super) fn bytes_of(&self, tokens: u64) -> u64 {
        let hundredfold = self.density.unwrap_or(100 * BYTES_PER_TOKEN);
        let bytes = u128::from(tokens) * u128::from(hundredfold) / 100;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Returns the bytes of all messages.
    pub(super) fn message_bytes(&self) -> u64 {
        self.message_bytes
    }

    /// Estimates the tokens of what every request carries besides its messages.
    pub(super) fn fixed_tokens(&self) -> u64 {
        let density = self.density.unwrap_or(100 * BYTES_PER_TOKEN);
        self.fixed_bytes.saturating_mul(100) / density.max(1)
    }

    /// Returns the bytes that every request carries besides its messages.
    pub(super) fn fixed_bytes(&self) -> u64 {
        self.fixed_bytes
    }

    pub(super) fn note_unsent_message(&mut self, message: &Message) {
        let bytes = message_bytes(message);
        self.message_bytes = self.message_bytes.saturating_add(bytes);
        self.unsent_bytes = self.unsent_bytes.saturating_add(bytes);
    }

    /// Returns the tokens of a reply. No prompt has none, and no text has none: a count of zero was
    /// not made, and is estimated like one that is missing, or else the budgets would never run out.
    pub(super) fn counted_usage(&self, reply: &Reply) -> Usage {
        let estimate = self.estimate_usage(reply);
        let Some(mut usage) = reply.usage else {
            return estimate;
        };
        // A figure that cannot be right would end the turn for its budget.
        if !is_plausible(usage.input, estimate.input, INPUT_TOKENS_MAX) {
            usage.input = estimate.input;
        }
        if !is_plausible(usage.output, estimate.output, OUTPUT_TOKENS_MAX) {
            usage.output = estimate.output;
        }
        if usage.input == 0 {
            let cached = usage.cache_read.saturating_add(usage.cache_write);
            let cached =
                Some(cached).filter(|it| is_plausible(*it, estimate.input, INPUT_TOKENS_MAX));
            usage.input = estimate.input.max(cached.unwrap_or_default());
        }
        if usage.output == 0 {
            let reasoning = Some(usage.reasoning);
            let reasoning =
                reasoning.filter(|it| is_plausible(*it, estimate.output, OUTPUT_TOKENS_MAX));
            usage.output = estimate.output.max(reasoning.unwrap_or_default());
        }
        usage.reasoning = usage.reasoning.min(usage.output);
        usage.cache_read = usage.cache_read.min(usage.input);
        usage.cache_write = usage.cache_write.min(usage.input);
        usage
    }

    /// Estimates what a provider that counts no tokens would have counted.
    fn estimate_usage(&self, reply: &Reply) -> Usage {
        let bytes: u64 = reply
            .candidates
            .iter()
            .flat_map(|it| &it.parts)
            .map(part_bytes)
            .sum();
        Usage {
            input: self.next_input(),
            output: bytes.div_ceil(BYTES_PER_TOKEN),
            ..Usage::default()
        }
    }

    /// Counts at another model's price from now on. Money spent at an unknown price leaves the sum unknown.
    pub(super) fn reprice(&mut self, price: Option<Price>) {
        self.cost = self.known_cost().filter(|_| price.is_some());
        self.price = price;
    }

    fn all_known_cost(&self) -> Option<NanoUsd> {
        let delegated = self.delegated.cost.unwrap_or_default();
        let own = self.known_cost()?;
        Some(NanoUsd(own.0.saturating_add(delegated.0)))
    }

    fn known_cost(&self) -> Option<NanoUsd> {
        let nothing = (self.usage.total() == 0).then_some(NanoUsd(0));
        self.cost.or(nothing)
    }

    /// Adds one reply's tokens and returns what they cost.
    pub(super) fn note_usage(&mut self, usage: Usage) -> Option<NanoUsd> {
        self.usage += usage;
        self.context_tokens = usage.total();
        self.unsent_bytes = 0;
        let cost = self.price.map(|price| price.cost(usage));
        if let (Some(total), Some(cost)) = (self.cost.as_mut(), cost) {
            *total += cost;
        }
        let tokens = usage.total();
        self.last = Amount { tokens, cost };
        cost
    }

    /// Counts what the turns have used that a call started: it was carved from what is left here.
    pub(super) fn note_delegated(&mut self, used: Spend) {
        self.delegated = self.delegated.plus(used);
    }

    /// Returns the steps, those of turns that calls started included.
    pub(super) fn all_steps(&self) -> u32 {
        self.steps.saturating_add(self.delegated.steps)
    }

    /// Returns the calls, likewise.
    pub(super) fn all_calls(&self) -> u32 {
        self.calls.saturating_add(self.delegated.calls)
    }

    /// Returns the tokens, likewise.
    fn all_tokens(&self) -> u64 {
        self.usage.total().saturating_add(self.delegated.tokens)
    }

    /// Returns the cost, likewise; `None` if that of this turn's own requests is not known.
    fn all_cost(&self) -> Option<NanoUsd> {
        let delegated = self.delegated.cost.unwrap_or_default();
        let own = self.cost?;
        Some(NanoUsd(own.0.saturating_add(delegated.0)))
    }

    /// Records that a request ended for which nothing is paid.
    pub(super) fn note_free_request(&mut self) {
        self.last = Amount::default();
    }

    /// Counts the tokens of a request whose reply never came whole: they were paid for.
    pub(super) fn note_failed_request(&mut self, partial: &str) {
        let usage = Usage {
            input: self.next_input(),
            output: size(partial.len()).div_ceil(BYTES_PER_TOKEN),
            ..Usage::default()
        };
        self.usage += usage;
        let cost = self.price.map(|price| price.cost(usage));
        if let (Some(total), Some(cost)) = (self.cost.as_mut(), cost) {
            *total += cost;
        }
        let tokens = usage.total();
        self.last = Amount { tokens, cost };
    }

    /// Estimates the prompt tokens of the next request.
    pub(super) fn next_input(&self) -> u64 {
        self.context_tokens
            .saturating_add(self.unsent_bytes.div_ceil(BYTES_PER_TOKEN))
    }

    /// Estimates tokens and money of the next request at its least, and of a last one after it.
    fn forecast(&self) -> (Usage, Usage) {
        let input = self.next_input();
        let next = Usage {
            input,
            output: OUTPUT_TOKENS_MIN,
            ..Usage::default()
        };
        let last = Usage {
            input: input.saturating_add(OUTPUT_TOKENS_MIN),
            output: FINAL_OUTPUT_TOKENS,
            ..Usage::default()
        };
        (next, last)
    }
}

/// Returns whether a provider's count may be right.
fn is_plausible(count: u64, estimate: u64, max: u64) -> bool {
    count <= max.max(estimate.saturating_mul(COUNT_FACTOR_MAX))
}

/// Returns the bytes of the system prompt and the tools.
fn fixed_bytes(config: &TurnConfig) -> u64 {
    let system: usize = config.system.iter().map(String::len).sum();
    let tools = config.tools.iter();
    let tools: usize = tools
        .map(|tool| tool.description.len() + tool.parameters.to_string().len())
        .sum();
    size(system + tools)
}

impl TurnMachine {
    /// Returns the allowance by the limits on steps, time, tokens and money. Those on calls are checked
    /// where a reply's calls are planned, in `plan_calls`.
    pub(super) fn allowance(&self, at: TimeMs) -> NextRequest {
        let verdicts = [
            self.steps_allowance(),
            self.time_allowance(at),
            self.tokens_allowance(),
            self.cost_allowance(),
        ];
        let nothing = verdicts
            .iter()
            .find(|it| matches!(it, NextRequest::Nothing(_)));
        if let Some(nothing) = nothing {
            return *nothing;
        }
        if let Some(reason) = self.finalising {
            return NextRequest::FinalOnly(reason);
        }
        let last = verdicts
            .iter()
            .find(|it| matches!(it, NextRequest::FinalOnly(_)));
        match last {
            // With no tool on offer every request is tool-free: there is nothing to hold back for.
            Some(last) if !self.config.tools.is_empty() => *last,
            _ => NextRequest::Step,
        }
    }

    fn steps_allowance(&self) -> NextRequest {
        let limits = &self.config.profile.limits;
        let left = limits.max_steps.saturating_sub(self.spent.all_steps());
        self.grade(left == 0, left == 1, StopReason::MaxSteps)
    }

    fn time_allowance(&self, at: TimeMs) -> NextRequest {
        let Some(deadline) = self.deadline() else {
            return NextRequest::Step;
        };
        // Once no call could run any more, tools are not offered either.
        let slice = self.final_slice() + self.time_to_end_calls();
        self.grade(
            at >= deadline,
            at >= deadline.before(slice),
            StopReason::Deadline,
        )
    }

    fn tokens_allowance(&self) -> NextRequest {
        let Some(max) = self.config.profile.limits.max_tokens_total else {
            return NextRequest::Step;
        };
        let (next, last) = self.spent.forecast();
        let used = self.spent.all_tokens();
        let with_next = used.saturating_add(next.total());
        let with_both = with_next.saturating_add(last.total());
        self.grade(with_next > max, with_both > max, StopReason::MaxTokens)
    }

    fn cost_allowance(&self) -> NextRequest {
        let limit = self.config.profile.limits.max_cost;
        let (Some(max), Some(price), Some(used)) =
            (limit, self.model().price, self.spent.all_cost())
        else {
            return NextRequest::Step;
        };
        let (next, last) = self.spent.forecast();
        let mut with_next = used;
        with_next += price.cost(next);
        let mut with_both = with_next;
        with_both += price.cost(last);
        self.grade(with_next > max, with_both > max, StopReason::MaxCost)
    }

    /// Estimates what the next request uses.
    pub(crate) fn next_amount(&self) -> Amount {
        let output = self.output_cap(self.config.profile.sampling.max_output_tokens);
        let output = output.map_or(FINAL_OUTPUT_TOKENS, u64::from);
        let usage = Usage {
            input: self.spent.next_input(),
            output: output.min(FINAL_OUTPUT_TOKENS),
            ..Usage::default()
        };
        Amount {
            tokens: usage.total(),
            cost: self.model().price.map(|price| price.cost(usage)),
        }
    }

    /// Returns the usage of the latest request that has ended.
    pub(crate) fn last_amount(&self) -> Amount {
        self.spent.last
    }

    /// Returns whether the request that is about to be sent fits the tokens and the money that are left.
    pub(super) fn next_allowance(&self) -> NextRequest {
        let verdicts = [self.tokens_allowance(), self.cost_allowance()];
        let mut nothing = verdicts
            .into_iter()
            .filter(|it| matches!(it, NextRequest::Nothing(_)));
        nothing.next().unwrap_or(NextRequest::Step)
    }

    /// Returns the allowance of a turn that one of the running calls starts, besides its time.
    pub(crate) fn call_allowance(&self) -> rondo_types::RemainingLimits {
        let limits = &self.config.profile.limits;
        let (at_once, unbegun) = self.calls_under_way();
        let at_once = at_once.max(1);
        let (next, last) = self.spent.forecast();
        let last = match limits.reserve_final {
            true => last,
            false => Usage::default(),
        };
        let held_back = 1 + u32::from(limits.reserve_final);
        let steps = limits.max_steps.saturating_sub(self.spent.all_steps());
        let calls = limits.max_tool_calls.map(|max| {
            let taken = self.spent.all_calls().saturating_add(unbegun);
            max.saturating_sub(taken) / at_once
        });
        let tokens = limits.max_tokens_total.map(|max| {
            let used = self.spent.all_tokens();
            let taken = used
                .saturating_add(next.total())
                .saturating_add(last.total());
            max.saturating_sub(taken) / u64::from(at_once)
        });
        let cost = limits.max_cost.map(|max| {
            // An amount that cannot be counted cannot be given away.
            let (Some(price), Some(mut taken)) = (self.model().price, self.spent.all_cost()) else {
                return NanoUsd(0);
            };
            taken += price.cost(next);
            taken += price.cost(last);
            NanoUsd(max.0.saturating_sub(taken.0) / u64::from(at_once))
        });
        rondo_types::RemainingLimits {
            steps: Some(steps.saturating_sub(held_back) / at_once),
            calls,
            tokens,
            cost,
            time: None,
        }
    }

    /// Returns whether no further request fits the tokens.
    pub(super) fn is_out_of_tokens(&self) -> bool {
        matches!(self.tokens_allowance(), NextRequest::Nothing(_))
    }

    /// Returns whether one more request at this price fits the money. One whose price is not known
    /// fits no budget.
    pub(super) fn is_affordable(&self, price: Option<Price>) -> bool {
        let Some(max) = self.config.profile.limits.max_cost else {
            return true;
        };
        let (Some(price), Some(mut total)) = (price, self.spent.all_known_cost()) else {
            return false;
        };
        total += price.cost(self.spent.forecast().0);
        total <= max
    }

    fn grade(&self, nothing_left: bool, only_final_left: bool, reason: StopReason) -> NextRequest {
        if nothing_left {
            NextRequest::Nothing(reason)
        } else if only_final_left && self.config.profile.limits.reserve_final {
            NextRequest::FinalOnly(reason)
        } else {
            NextRequest::Step
        }
    }

    /// Returns the turn's deadline, which moves on by the time that people were waited for.
    pub(crate) fn deadline(&self) -> Option<TimeMs> {
        let limit = self.config.profile.limits.turn_timeout?;
        Some(self.started_at.after(limit).after(self.waited()))
    }

    /// Returns when ordinary work must end: the deadline, less what is held back.
    pub(crate) fn work_deadline(&self) -> Option<TimeMs> {
        let held_back = match self.finalising {
            Some(_) => Duration::ZERO,
            None => self.final_slice(),
        };
        Some(self.deadline()?.before(held_back))
    }

    pub(super) fn is_out_of_time(&self, at: TimeMs) -> bool {
        self.work_deadline().is_some_and(|deadline| at >= deadline)
    }

    fn final_slice(&self) -> Duration {
        let limits = &self.config.profile.limits;
        match limits.turn_timeout {
            Some(whole) if limits.reserve_final => (whole / FINAL_SLICE_SHARE)
                .min(FINAL_SLICE_MAX)
                .min(limits.step_timeout.unwrap_or(FINAL_SLICE_MAX)),
            _ => Duration::ZERO,
        }
    }

    /// Returns when a step that begins now must be over.
    pub(super) fn step_end(&self, at: TimeMs) -> Option<StepEnd> {
        let by_step = self
            .config
            .profile
            .limits
            .step_timeout
            .map(|timeout| at.after(timeout));
        match (by_step, self.work_deadline()) {
            (Some(step), Some(deadline)) if deadline < step => Some(StepEnd {
                at: deadline,
                is_deadline: true,
            }),
            (Some(step), _) => Some(StepEnd {
                at: step,
                is_deadline: false,
            }),
            (None, Some(deadline)) => Some(StepEnd {
                at: deadline,
                is_deadline: true,
            }),
            (None, None) => None,
        }
    }

    /// Returns how long a tool call that starts now may run. If a final answer is reserved, the call is
    /// stopped early enough to have ended before the time that is held back for it.
    pub(super) fn call_time_left(&self, at: TimeMs) -> Option<Duration> {
        let deadline = self.work_deadline()?;
        Some(deadline.before(self.time_to_end_calls()).since(at))
    }

    /// Returns the time in which calls that are stopped must have ended.
    fn time_to_end_calls(&self) -> Duration {
        let grace = self.config.profile.limits.cancel_grace;
        grace.min(self.final_slice() / 2)
    }

    /// Bounds generated tokens if the budget runs low.
    pub(super) fn output_cap(&self, wanted: Option<u32>) -> Option<u32> {
        let Some(left) = self.output_tokens_left() else {
            return wanted;
        };
        if left >= OUTPUT_CAP_BELOW && self.finalising.is_none() {
            return wanted;
        }
        let cap = u32::try_from(left.min(OUTPUT_CAP_MAX))
            .unwrap_or(u32::MAX)
            .max(1);
        Some(wanted.map_or(cap, |wanted| wanted.min(cap)))
    }

    fn output_tokens_left(&self) -> Option<u64> {
        let limits = &self.config.profile.limits;
        let (next, last) = self.spent.forecast();
        let hold_back = limits.reserve_final && self.finalising.is_none();
        let held_tokens = if hold_back { last.total() } else { 0 };
        let by_tokens = limits.max_tokens_total.map(|max| {
            max.saturating_sub(self.spent.all_tokens())
                .saturating_sub(next.input)
                .saturating_sub(held_tokens)
        });
        let by_cost = match (limits.max_cost, self.model().price, self.spent.all_cost()) {
            (Some(max), Some(price), Some(used)) if price.output > 0 => {
                let held = if hold_back { price.cost(last).0 } else { 0 };
                let input = price.cost(Usage { output: 0, ..next }).0;
                let left = max
                    .0
                    .saturating_sub(used.0)
                    .saturating_sub(held)
                    .saturating_sub(input);
                Some(left / price.output)
            }
            _ => None,
        };
        match (by_tokens, by_cost) {
            (Some(tokens), Some(cost)) => Some(tokens.min(cost)),
            (tokens, cost) => tokens.or(cost),
        }
    }
}
