//! Decides before each request whether it would fit, and otherwise summarizes, drops or shortens older
//! messages. Which ones is decided in [`crate::compaction`].

use super::budget::NextRequest;
use super::finish::Ending;
use super::io::{ModelCall, StepEnd};
use super::judge::{UsableReply, judge};
use super::turn::{Cx, TurnMachine};
use crate::compaction::{
    Change, Compaction, ContextBudget, HistoryBound, SUMMARISER, SUMMARY_ASKED, drop_groups,
    first_kept_by_size, limit_count, shorten_last_group, size, summary_input, summary_message,
    transcript_bytes,
};
use crate::ports::{Purpose, RecordBody};
use rondo_types::{
    Candidate, CompactionKind, Effort, EmptyReply, ErrorClass, EventBody, FinishReason, Message,
    ModelError, ModelRequest, Reply, TimeMs, ToolChoice, Transcript,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Tokens kept free for the reply if the profile does not bound it; never more than a quarter of the
/// context.
const OUTPUT_TOKENS: u64 = 8192;
/// Requests in a row that may be refused for their length.
const OVERFLOWS_MAX: u32 = 4;
/// The bound on a summary's size, in bytes for each token that it may have.
const SUMMARY_BYTES_PER_TOKEN: u64 = 6;
/// Bytes of a summary request's own prompts.
const SUMMARY_ASKED_BYTES: usize = SUMMARISER.len() + SUMMARY_ASKED.len();

/// Bounds on the number of tokens that fit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct ContextPressure {
    /// Tokens that fit, learnt from refusals.
    fits: Option<u64>,
    /// Requests in a row that were refused for their length.
    overflows: u32,
    /// While a summary is requested: the end of the messages that it replaces.
    summarising: Option<usize>,
}

impl TurnMachine {
    /// Returns whether the reply that is waited for is a summary.
    pub(super) fn is_summarising(&self) -> bool {
        self.pressure.summarising.is_some()
    }

    /// Records that the model accepted a request.
    pub(super) fn note_fit(&mut self) {
        self.pressure.overflows = 0;
    }

    /// Forgets what the former model accepted.
    pub(super) fn forget_fits(&mut self) {
        self.pressure.fits = None;
        self.pressure.overflows = 0;
    }

    /// Drops the oldest groups when the turn begins, down to the profile's `compaction.max_messages`.
    pub(super) fn limit_history(&mut self, cx: &mut Cx<'_>) {
        let policy = &self.config.profile.compaction;
        let Some(max) = policy.max_messages else {
            return;
        };
        let count = |messages: u32| usize::try_from(messages).unwrap_or(usize::MAX);
        let bound = HistoryBound {
            max: count(max),
            keep: policy.keep_messages.map(count),
        };
        for change in limit_count(&self.transcript, bound) {
            self.compact(cx, change);
        }
    }

    /// Makes room if the next request would hardly fit. Returns whether a summary was requested; the turn
    /// then continues with its reply.
    pub(super) fn make_room(&mut self, cx: &mut Cx<'_>) -> bool {
        let Some(tokens) = self.room_tokens() else {
            return false;
        };
        self.tell_fixed(cx, tokens);
        if self.spent.fixed_tokens() >= tokens {
            return false;
        }
        let policy = &self.config.profile.compaction;
        let (next, at) = (self.spent.next_input(), self.room_threshold(tokens));
        let may_summarise = self.may_summarise(cx.at);
        // A profile with summaries drops messages without one only once they no longer fit.
        let is_early = next <= tokens && policy.summary_tokens > 0 && !may_summarise;
        if next < at || is_early {
            return false;
        }
        let budget = self.context_budget(tokens);
        if let Some(keep) = first_kept_by_size(&self.transcript, budget.target) {
            if may_summarise && self.begin_summary(cx, keep) {
                return true;
            }
            let reason = "no summary could be requested".to_owned();
            self.drop_groups_before(cx, keep, reason);
        }
        self.shorten_last_group(cx);
        false
    }

    /// Summarizes the whole conversation, in a turn that does nothing else (`compaction.only`).
    pub(super) fn compact_only(&mut self, cx: &mut Cx<'_>) {
        let has_room = self.allowance(cx.at) == NextRequest::Step;
        if !has_room || !self.begin_summary(cx, self.transcript.len()) {
            self.compact_only_failed(cx, "no summary could be requested");
        }
    }

    /// Ends such a turn without a summary: the conversation stays as it was.
    fn compact_only_failed(&mut self, cx: &mut Cx<'_>, reason: &str) {
        let (from, to) = (
            self.transcript.len().saturating_sub(1),
            self.transcript.len(),
        );
        let index = |place| u32::try_from(place).unwrap_or(u32::MAX);
        let change = Change::Dropped {
            note: None,
            reason: reason.to_owned(),
        };
        // Only the message that asked for the summary is dropped.
        self.compact_untold(
            cx,
            Compaction {
                from: index(from),
                to: index(to),
                change,
            },
        );
        let error = ModelError::new(ErrorClass::Internal, reason.to_owned());
        self.finish(cx, Ending::failed(error));
    }

    /// Makes room after the provider refused a request for its length. Returns whether there was anything
    /// to drop or shorten.
    pub(super) fn make_room_after_refusal(&mut self, class: ErrorClass) -> bool {
        let is_off = self.config.profile.compaction.at_percent == 0;
        if class != ErrorClass::ContextTooLong || is_off || self.pressure.overflows >= OVERFLOWS_MAX
        {
            return false;
        }
        // A refused request was estimated too low, or its bound is not known.
        let sent = self.spent.next_input();
        let tokens = match self.pressure.overflows {
            0 => sent / 4 * 3,
            _ => sent / 2,
        };
        let budget = self.context_budget(tokens);
        let helps = first_kept_by_size(&self.transcript, budget.target).is_some()
            || !shorten_last_group(&self.transcript, budget).is_empty();
        if helps {
            self.pressure.overflows += 1;
            self.pressure.fits = Some(tokens);
        }
        helps
    }

    /// Returns how many tokens a request may have; `None` if that is unknown or compaction is off.
    fn room_tokens(&self) -> Option<u64> {
        if self.config.profile.compaction.at_percent == 0 {
            return None;
        }
        let known = self.model().context_tokens.map(|context| {
            let wanted = self.config.profile.sampling.max_output_tokens;
            let output = wanted.map_or(OUTPUT_TOKENS, u64::from).min(context / 4);
            context - output
        });
        match (known, self.pressure.fits) {
            (Some(known), Some(fits)) => Some(known.min(fits)),
            (known, fits) => known.or(fits),
        }
    }

    /// Returns the tokens of a request from which on room is made. If the part that every request carries takes so many
    /// by itself, messages have their share of what it leaves: to make room before each request would not help.
    fn room_threshold(&self, tokens: u64) -> u64 {
        let share = self.config.profile.compaction.at_percent;
        let (at, fixed) = (percent(tokens, share), self.spent.fixed_tokens());
        match fixed < at {
            true => at,
            false => fixed.saturating_add(percent(tokens.saturating_sub(fixed), share)),
        }
    }

    /// Warns that the part which every request carries fills the context, once for each model.
    fn tell_fixed(&mut self, cx: &mut Cx<'_>, tokens: u64) {
        let fixed = self.spent.fixed_tokens();
        let at = percent(tokens, self.config.profile.compaction.at_percent);
        if fixed < at || self.spent.steps > 0 || self.first_unread() > 0 {
            return;
        }
        let model = self.model().full_name();
        let context = self.model().context_tokens.unwrap_or(tokens);
        let text = format!(
            "the system prompt and the tools alone take about {fixed} of the {context} tokens that `{model}` reads; offer fewer tools, or set `context_tokens` if it reads more"
        );
        cx.emit(EventBody::Warning { text });
    }

    /// Returns how large the messages of a request of so many tokens may be.
    fn context_budget(&self, tokens: u64) -> ContextBudget {
        let policy = &self.config.profile.compaction;
        let bytes = self.spent.bytes_of(tokens);
        let fixed = self.spent.fixed_bytes();
        let left = bytes.saturating_sub(fixed);
        let limit = percent(bytes, policy.at_percent).saturating_sub(fixed);
        ContextBudget {
            limit: match limit {
                0 => percent(left, policy.at_percent),
                limit => limit,
            },
            target: percent(left, policy.keep_percent),
        }
    }

    /// A summary is a step, so one must be left after it, and the last answer if that is held in
    /// reserve. After a second refusal in a row there is no more trying.
    fn may_summarise(&self, at: TimeMs) -> bool {
        let limits = &self.config.profile.limits;
        let left = limits.max_steps.saturating_sub(self.spent.all_steps());
        self.config.profile.compaction.summary_tokens > 0
            && self.pressure.overflows < 2
            && left >= 2 + u32::from(limits.reserve_final)
            && self.finalising.is_none()
            && self.allowance(at) == NextRequest::Step
    }

    fn begin_summary(&mut self, cx: &mut Cx<'_>, to: usize) -> bool {
        if self.summary_request(to).is_none() {
            return false;
        }
        self.spent.steps += 1;
        self.attempt = 0;
        self.last_finish = None;
        self.step_open = true;
        let step = self.spent.steps;
        cx.emit(EventBody::StepStarted { step });
        cx.emit(EventBody::CompactionStarted {
            messages: self.older_messages(to),
            tokens: self.spent.next_input(),
        });
        self.pressure.summarising = Some(to);
        self.send_summary_request(cx);
        true
    }

    /// Returns how many messages a summary of the first `to` replaces, without the one that asks for it.
    fn older_messages(&self, to: usize) -> u32 {
        let asking = usize::from(self.config.profile.compaction.only);
        u32::try_from(to.saturating_sub(asking)).unwrap_or(u32::MAX)
    }

    /// Asks for the summary, or asks again after a failure that may pass.
    pub(super) fn send_summary_request(&mut self, cx: &mut Cx<'_>) {
        let request = self
            .pressure
            .summarising
            .and_then(|to| self.summary_request(to));
        let Some(request) = request else {
            return self.summary_failed(cx, "it would not fit either");
        };
        let end = self.summary_end(cx.at);
        let whole = Some(end.at.since(cx.at));
        let limits = &self.config.profile.limits;
        let streaming = self.model().streaming;
        let call = ModelCall {
            request: Arc::new(request),
            model: self.model_index,
            step: self.spent.steps,
            attempt: self.attempt,
            purpose: Purpose::Summary,
            first_byte_timeout: limits.first_byte_timeout.filter(|_| streaming).or(whole),
            idle_timeout: limits.idle_timeout.filter(|_| streaming).or(whole),
            end: Some(end),
        };
        self.hold(cx, call);
    }

    fn summary_request(&self, to: usize) -> Option<ModelRequest> {
        let room = match self.room_tokens() {
            Some(tokens) => self.spent.bytes_of(tokens),
            None if self.config.profile.compaction.only => u64::MAX,
            None => return None,
        };
        let limit = room.saturating_sub(size(SUMMARY_ASKED_BYTES));
        let mut messages = summary_input(&self.transcript, to, limit)?;
        messages.push(Arc::new(Message::synthetic_user(SUMMARY_ASKED)));
        let mut sampling = self.config.profile.sampling.clone();
        sampling.max_output_tokens = self.output_cap(Some(self.summary_tokens()));
        sampling.effort = sampling.effort.map(|_| Effort::Low);
        Some(ModelRequest {
            model: self.model().origin.model.clone(),
            system: vec![SUMMARISER.to_owned()].into(),
            messages,
            tools: Arc::default(),
            tool_choice: ToolChoice::None,
            sampling,
            response_schema: None,
        })
    }

    fn summary_tokens(&self) -> u32 {
        let wanted = self.config.profile.compaction.summary_tokens;
        let quarter = self.room_tokens().map_or(u64::MAX, |room| room / 4);
        wanted
            .min(u32::try_from(quarter).unwrap_or(u32::MAX))
            .max(1)
    }

    /// At most half of what is left, so that the turn has time to continue.
    fn summary_end(&self, at: TimeMs) -> StepEnd {
        let own = at.after(self.config.profile.compaction.timeout);
        let step = self.step_end(at);
        let half = self.work_deadline().map(|end| at.after(end.since(at) / 2));
        let bounds = [step.map(|end| end.at), half];
        StepEnd {
            at: bounds.into_iter().flatten().fold(own, TimeMs::min),
            is_deadline: false,
        }
    }

    /// Takes the reply to the request for a summary.
    pub(super) fn summary_replied(&mut self, cx: &mut Cx<'_>, reply: Reply) {
        self.count_usage(cx, &reply);
        match judge(reply, EmptyReply::Invalid, false) {
            UsableReply::Answer(candidate) => self.summarised(cx, &candidate),
            UsableReply::Refused(_) => self.summary_failed(cx, "the model refused to summarize"),
            UsableReply::Unusable(problem) => {
                self.summary_failed(cx, &format!("the summary cannot be used: {}", problem.text));
            }
            UsableReply::Calls(_) | UsableReply::Paused(_) => {
                self.summary_failed(cx, "the model called tools instead of summarizing");
            }
        }
    }

    fn summarised(&mut self, cx: &mut Cx<'_>, candidate: &Candidate) {
        self.last_finish = candidate.finish_reason;
        let Some(to) = self.pressure.summarising else {
            return;
        };
        let message = summary_message(&candidate.text());
        let replaced: Transcript = self.transcript.iter().take(to).cloned().collect();
        let bytes = transcript_bytes(&vec![Arc::new(message.clone())]);
        let max = u64::from(self.summary_tokens()).saturating_mul(SUMMARY_BYTES_PER_TOKEN);
        let is_cut_off = candidate.finish_reason == Some(FinishReason::Length);
        if is_cut_off || bytes > max || bytes >= transcript_bytes(&replaced) {
            return self.summary_failed(cx, "the summary was too long");
        }
        self.pressure.summarising = None;
        let change = Change::Summarised {
            message,
            model: self.model().full_name(),
        };
        let (from, to) = (0, u32::try_from(to).unwrap_or(u32::MAX));
        self.compact(cx, Compaction { from, to, change });
        if self.config.profile.compaction.only {
            return self.finish(cx, Ending::complete(candidate.text()));
        }
        self.shorten_last_group(cx);
        self.next_step(cx);
    }

    /// Takes the failure of the request for a summary.
    pub(super) fn summary_request_failed(&mut self, cx: &mut Cx<'_>, error: &ModelError) {
        let reason = format!("they could not be summed up: {}", error.message);
        self.summary_failed(cx, &reason);
    }

    /// Continues without the messages that could not be summarized.
    pub(super) fn summary_failed(&mut self, cx: &mut Cx<'_>, reason: &str) {
        let summarising = self.pressure.summarising.take();
        if self.config.profile.compaction.only {
            return self.compact_only_failed(cx, reason);
        }
        if let Some(to) = summarising {
            self.drop_groups_before(cx, to, reason.to_owned());
        }
        self.shorten_last_group(cx);
        self.next_step(cx);
    }

    fn drop_groups_before(&mut self, cx: &mut Cx<'_>, keep: usize, reason: String) {
        let target = self
            .room_tokens()
            .map_or(u64::MAX, |tokens| self.context_budget(tokens).target);
        let compaction = drop_groups(&self.transcript, keep, target, reason);
        self.compact(cx, compaction);
    }

    /// Shortens results and drops steps of the last group if the rest is still too large.
    fn shorten_last_group(&mut self, cx: &mut Cx<'_>) {
        let Some(budget) = self.room_tokens().map(|tokens| self.context_budget(tokens)) else {
            return;
        };
        for compaction in shorten_last_group(&self.transcript, budget) {
            self.compact(cx, compaction);
        }
    }

    /// Applies a change, records it and emits its event.
    pub(super) fn compact(&mut self, cx: &mut Cx<'_>, compaction: Compaction) {
        cx.emit(told(&compaction));
        self.compact_untold(cx, compaction);
    }

    /// Applies a change and records it. Messages leave the transcript only here.
    fn compact_untold(&mut self, cx: &mut Cx<'_>, compaction: Compaction) {
        compaction.apply(&mut self.transcript);
        self.spent.recount(&self.transcript);
        cx.record(RecordBody::Compacted(compaction));
    }
}

fn told(compaction: &Compaction) -> EventBody {
    let (how, model, reason) = match &compaction.change {
        Change::Summarised { model, .. } => (CompactionKind::Summarised, Some(model.clone()), None),
        Change::Dropped { reason, .. } => (CompactionKind::Dropped, None, Some(reason.clone())),
        Change::Cut { .. } => (CompactionKind::Cut, None, None),
        Change::Described { reason } => (CompactionKind::Described, None, Some(reason.clone())),
        Change::Unsealed { reason } => (CompactionKind::Unsealed, None, Some(reason.clone())),
    };
    EventBody::Compacted {
        replaced: compaction.messages(),
        how,
        model,
        reason,
    }
}

fn percent(of: u64, share: u32) -> u64 {
    let share = u128::from(of) * u128::from(share) / 100;
    u64::try_from(share).unwrap_or(u64::MAX)
}
