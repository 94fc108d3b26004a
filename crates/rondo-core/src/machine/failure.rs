use super::finish::Ending;
use super::io::Action;
use super::judge::Problem;
use super::render;
use super::turn::{Cx, Phase, TurnMachine};
use rondo_types::{ErrorClass, EventBody, Message, ModelError, StopReason, TimeMs};
use std::time::Duration;

impl TurnMachine {
    /// Decides what a failed request leads to.
    pub(super) fn reply_failed(
        &mut self,
        cx: &mut Cx<'_>,
        error: ModelError,
        partial: &str,
        committed: bool,
    ) {
        self.last_finish = None;
        if !self.cancelled
            && let Some(until) = self.retry_at(cx.at, &error, committed)
        {
            return self.schedule_retry(cx, &error, until);
        }
        if !partial.is_empty() {
            self.keep_partial(partial);
        }
        if self.cancelled {
            return self.finish(cx, Ending::stopped(StopReason::Cancelled));
        }
        if let Some(reason) = self.finalising {
            return self.finish(cx, Ending::stopped(reason).because(error));
        }
        match error.class {
            ErrorClass::InvalidToolCall => {
                let problem = format!("its tool call could not be read ({})", error.message);
                self.unusable(cx, &Problem::new(problem));
            }
            ErrorClass::Deadline => self.stop_early(cx, StopReason::Deadline),
            ErrorClass::StepTimeout => self.stop_early(cx, StopReason::StepTimeout),
            // A provider that sends nothing would not send a last answer either.
            ErrorClass::FirstByteTimeout | ErrorClass::IdleTimeout => {
                self.finish(cx, Ending::stopped(StopReason::StepTimeout).because(error));
            }
            ErrorClass::ContentFilter => {
                self.finish(cx, Ending::stopped(StopReason::Refused).because(error));
            }
            _ => self.finish(cx, Ending::failed(error)),
        }
    }

    /// What was shown stays in the transcript, as text only: a call of a broken reply is no call.
    fn keep_partial(&mut self, partial: &str) {
        let kept = render::bounded_text(partial);
        self.last_text.clone_from(&kept);
        let origin = Some(self.config.model.origin.clone());
        self.push(Message {
            origin,
            ..Message::assistant(kept)
        });
    }

    /// Returns when to repeat the request, if it may be repeated: only a failure that may pass,
    /// only before anything was shown, only within the turn's time.
    fn retry_at(&self, at: TimeMs, error: &ModelError, committed: bool) -> Option<TimeMs> {
        let policy = &self.config.profile.limits.retry;
        if !error.retryable || committed || self.attempt >= policy.max_retries {
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
        if self
            .work_deadline()
            .is_some_and(|deadline| cx.at >= deadline)
        {
            return self.stop_early(cx, StopReason::Deadline);
        }
        self.send_request(cx);
    }

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
            attempt: self.attempt,
            delay_ms,
        });
        self.phase = Phase::AwaitingRetry;
        cx.out.push(Action::Wait { until });
    }
}

/// The finaliser of SplitMix64: turns neighbouring seeds into unrelated numbers.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
