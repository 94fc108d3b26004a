//! Decision after a failed request: a retry after a wait, a fallback model, a shorter request, or the end.

use super::finish::Ending;
use super::io::Action;
use super::judge::Problem;
use super::render;
use super::turn::{Cx, Phase, TurnMachine};
use rondo_types::{
    ErrorClass, EventBody, Message, ModelError, ModelInfo, ResponseName, StopReason, TimeMs,
};
use std::time::Duration;

/// Sent to a fallback model after a paused reply, which only the former model could continue.
const GO_ON: &str = "Go on from there.";

impl TurnMachine {
    /// Decides how the turn continues after a failed request.
    pub(super) fn reply_failed(
        &mut self,
        cx: &mut Cx<'_>,
        error: ModelError,
        partial: &str,
        was_shown: bool,
    ) {
        self.last_finish = None;
        self.last_response = ResponseName::default();
        if !self.cancelled && !was_shown && self.ask_without_refused(cx, &error) {
            return;
        }
        if !self.cancelled
            && let Some(until) = self.retry_at(cx.at, &error, was_shown)
        {
            return self.schedule_retry(cx, &error, until);
        }
        if self.is_summarising() && !self.cancelled {
            return self.summary_request_failed(cx, &error);
        }
        if !self.cancelled && !was_shown && self.retry_shorter(cx, error.class) {
            return;
        }
        if !self.cancelled
            && !was_shown
            && let Some(next) = self.fallback_after(cx.at, error.class)
        {
            return self.fall_back(cx, next, error);
        }
        if !partial.is_empty() && !self.is_summarising() {
            self.keep_partial(cx, partial);
        }
        if self.cancelled {
            return self.finish(cx, Ending::stopped(StopReason::Cancelled));
        }
        // If the first request was already the final one, its own failure ends the turn.
        if let Some(reason) = self.finalising.filter(|_| self.spent.steps > 1) {
            let reason = match error.class {
                ErrorClass::Deadline => StopReason::Deadline,
                _ => reason,
            };
            return self.finish(cx, Ending::stopped(reason).because(error));
        }
        match error.class {
            ErrorClass::InvalidToolCall => {
                let problem = format!("its tool call could not be read ({})", error.message);
                self.unusable(cx, Problem::new(problem));
            }
            // An unreadable reply cannot be used, as one without content cannot.
            ErrorClass::Protocol => self.unusable(cx, Problem::of_error(error)),
            ErrorClass::Deadline => self.stop_early(cx, StopReason::Deadline),
            ErrorClass::StepTimeout => self.stop_early(cx, StopReason::StepTimeout),
            // A provider that sends nothing would not send a final answer either.
            ErrorClass::FirstByteTimeout | ErrorClass::IdleTimeout => {
                self.finish(cx, Ending::stopped(StopReason::StepTimeout).because(error));
            }
            ErrorClass::ContentFilter => {
                self.finish(cx, Ending::stopped(StopReason::Refused).because(error));
            }
            _ => self.finish(cx, Ending::failed(error)),
        }
    }

    /// Shortens the conversation and starts another step, unless a fallback model is known to have a larger
    /// context. Returns whether it did.
    fn retry_shorter(&mut self, cx: &mut Cx<'_>, class: ErrorClass) -> bool {
        let next = self.fallback_after(cx.at, class);
        let next = next.and_then(|next| self.config.fallbacks.get(next - 1));
        let known = next.and_then(|next| next.context_tokens.zip(self.model().context_tokens));
        let holds_more = known.is_some_and(|(next, own)| next > own);
        if holds_more || !self.make_room_after_refusal(class) {
            return false;
        }
        self.next_step(cx);
        true
    }

    /// Returns the index of the next fallback model that may succeed and that the budget allows.
    fn fallback_after(&self, at: TimeMs, class: ErrorClass) -> Option<usize> {
        if !may_go_elsewhere(class) || self.is_out_of_time(at) || self.is_out_of_tokens() {
            return None;
        }
        let following = self
            .config
            .fallbacks
            .iter()
            .enumerate()
            .skip(self.model_index);
        following
            .filter(|(_, model)| self.is_affordable(model.price))
            .find(|(_, model)| class != ErrorClass::ContextTooLong || self.may_hold_more(model))
            .map(|(index, _)| index + 1)
    }

    /// Returns whether a conversation that was too long for this model may fit the other.
    fn may_hold_more(&self, other: &ModelInfo) -> bool {
        match (self.model().context_tokens, other.context_tokens) {
            (Some(own), Some(other)) => other > own,
            _ => true,
        }
    }

    /// Sends the request to another model, which is used for the rest of the turn. This is not a new step:
    /// the list is walked only once, so it needs no other bound.
    fn fall_back(&mut self, cx: &mut Cx<'_>, next: usize, error: ModelError) {
        let from = self.model().full_name();
        self.model_index = next;
        self.forget_fits();
        self.omits_temperature = false;
        self.attempt = 0;
        self.spent.reprice(self.model().price);
        // Only the model that paused a reply can continue it.
        if std::mem::take(&mut self.pauses) > 0 {
            self.add(cx, Message::synthetic_user(GO_ON));
        }
        cx.emit(EventBody::ModelFallback {
            from,
            to: self.model().full_name(),
            class: error.class,
            message: error.message,
        });
        self.send_request(cx);
    }

    /// Keeps the text that was shown in the transcript. Calls of a broken reply are dropped.
    fn keep_partial(&mut self, cx: &mut Cx<'_>, partial: &str) {
        let kept = render::bounded_text(partial);
        self.last_text.clone_from(&kept);
        let origin = Some(self.model().origin.clone());
        let message = Message {
            origin,
            ..Message::assistant(kept)
        };
        self.add(cx, message);
    }

    /// Returns when to repeat the request. `None` if the failure is permanent, something was shown already,
    /// the retries are used up, the server asks for a longer wait than the profile's `max_ms`, or the wait
    /// would end after the turn's deadline.
    fn retry_at(&self, at: TimeMs, error: &ModelError, was_shown: bool) -> Option<TimeMs> {
        let policy = &self.config.profile.limits.retry;
        if !error.retryable || was_shown || self.attempt >= policy.max_retries {
            return None;
        }
        let asked = Duration::from_millis(error.retry_after_ms.unwrap_or(0));
        if asked > policy.max {
            return None;
        }
        let until = at.after(self.backoff().max(asked));
        match self.work_deadline() {
            Some(deadline) if until >= deadline => None,
            _ => Some(until),
        }
    }

    /// Sends the request again. The wait may have ended late, as after a suspend.
    pub(super) fn retry(&mut self, cx: &mut Cx<'_>) {
        let is_late = self
            .work_deadline()
            .is_some_and(|deadline| cx.at >= deadline);
        if self.is_summarising() {
            return match is_late {
                true => self.summary_failed(cx, "there was no time left to sum them up"),
                false => self.send_summary_request(cx),
            };
        }
        if is_late {
            return self.stop_early(cx, StopReason::Deadline);
        }
        self.send_request(cx);
    }

    /// Returns the wait before the next retry: `base_ms`, doubled for each attempt, plus jitter, at most
    /// `max_ms`. The numbers are in the profile's `[limits.retry]`.
    fn backoff(&self) -> Duration {
        let policy = &self.config.profile.limits.retry;
        let doubled = policy
            .base
            .saturating_mul(1_u32.checked_shl(self.attempt).unwrap_or(u32::MAX));
        let seed = self.config.seed ^ (u64::from(self.spent.steps) << 32) ^ u64::from(self.attempt);
        let share = u32::try_from(mix(seed) % 1000).unwrap_or(0);
        let jitter = doubled
            .saturating_mul(policy.jitter_percent)
            .saturating_mul(share)
            / 100_000;
        doubled.saturating_add(jitter).min(policy.max)
    }

    fn schedule_retry(&mut self, cx: &mut Cx<'_>, error: &ModelError, until: TimeMs) {
        self.attempt += 1;
        let delay_ms = u64::try_from(until.since(cx.at).as_millis()).unwrap_or(u64::MAX);
        cx.emit(EventBody::RetryScheduled {
            class: error.class,
            status: error.status,
            attempt: self.attempt,
            delay_ms,
        });
        self.phase = Phase::AwaitingRetry;
        cx.out.push(Action::Wait { until });
    }
}

/// Returns whether another model may succeed. A refusal counts as an answer, an unreadable call is corrected
/// in its own way, and the rest ends the turn.
fn may_go_elsewhere(class: ErrorClass) -> bool {
    match class {
        ErrorClass::Auth
        | ErrorClass::Quota
        | ErrorClass::RateLimited
        | ErrorClass::Overloaded
        | ErrorClass::Server
        | ErrorClass::Network
        | ErrorClass::FirstByteTimeout
        | ErrorClass::IdleTimeout
        | ErrorClass::StepTimeout
        | ErrorClass::NotFound
        | ErrorClass::ContextTooLong
        | ErrorClass::BadRequest
        | ErrorClass::Unsupported
        | ErrorClass::Protocol
        | ErrorClass::TooLarge => true,
        ErrorClass::Deadline
        | ErrorClass::ContentFilter
        | ErrorClass::InvalidToolCall
        | ErrorClass::Cancelled
        | ErrorClass::Internal => false,
    }
}

/// The finalizer of SplitMix64: turns neighboring seeds into unrelated numbers.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
