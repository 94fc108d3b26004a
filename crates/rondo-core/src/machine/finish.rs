//! Builds the outcome of a turn, and the answer if the model gave none.
//!
//! The answer's texts are the profile's `[texts]` (`crates/rondo-core/profiles`); `limit_text` words what
//! they call `{limit}`.

use super::io::Action;
use super::turn::{Cx, Phase, TurnMachine};
use crate::machine::io::{Arguments, PreparedCall};
use crate::ports::{Record, RecordBody};
use rondo_types::units::seconds;
use rondo_types::{
    CallId, ErrorClass, Finding, FinishReason, ModelError, Outcome, StopReason, TimeMs, Transcript,
};

/// The bound on findings that a built answer lists; the outcome has all of them.
const FINDINGS_SHOWN_MAX: usize = 20;

/// How a turn ends.
pub(super) struct Ending {
    reason: StopReason,
    /// The model's answer; if `None`, the runtime builds one.
    answer: Option<String>,
    degraded: bool,
    error: Option<ModelError>,
    /// Limit that stopped the turn, if that says more than the reason.
    limit: Option<String>,
    /// Why the last answer was refused. The outcome's error says so; the text that is built and recorded never did.
    problem: Option<String>,
}

impl Ending {
    pub(super) fn complete(text: String) -> Self {
        Self {
            reason: StopReason::Complete,
            answer: Some(text),
            degraded: false,
            error: None,
            limit: None,
            problem: None,
        }
    }

    pub(super) fn final_answer(reason: StopReason, text: String) -> Self {
        Self {
            reason,
            answer: Some(text),
            degraded: true,
            error: None,
            limit: None,
            problem: None,
        }
    }

    pub(super) fn refused(text: String) -> Self {
        Self {
            reason: StopReason::Refused,
            answer: Some(text),
            degraded: true,
            error: None,
            limit: None,
            problem: None,
        }
    }

    pub(super) fn stopped(reason: StopReason) -> Self {
        Self {
            reason,
            answer: None,
            degraded: true,
            error: None,
            limit: None,
            problem: None,
        }
    }

    pub(super) fn failed(error: ModelError) -> Self {
        Self::stopped(StopReason::Error).because(error)
    }

    /// Ends a turn for a reason in words of its own.
    pub(super) fn worded(reason: StopReason, limit: String) -> Self {
        Self {
            limit: Some(limit),
            ..Self::stopped(reason)
        }
    }

    pub(super) fn because(mut self, error: ModelError) -> Self {
        self.error = Some(error);
        self
    }

    /// Ends a turn whose answers were refused, the last one for this reason.
    pub(super) fn refusing(mut self, problem: String) -> Self {
        self.problem = Some(problem);
        self
    }
}

impl TurnMachine {
    /// Ends a turn that this machine was not driven through: it knows the turn's records, and what they leave in the
    /// transcript.
    pub(crate) fn closed(
        mut self,
        at: TimeMs,
        records: &[Record],
        transcript: Transcript,
        error: ModelError,
    ) -> Option<Outcome> {
        self.started_at = records.first().map_or(at, |it| it.at_ms);
        self.spent.steps = records.last().map_or(0, |it| it.step);
        for record in records {
            match &record.body {
                RecordBody::ModelReplied { reply } => {
                    let usage = self.spent.counted_usage(reply);
                    self.spent.note_usage(usage);
                }
                RecordBody::ToolStarted { .. } => self.spent.calls += 1,
                RecordBody::ToolFinished {
                    call_id, outcome, ..
                } => {
                    let used = outcome.used();
                    self.spent.note_delegated(used.unwrap_or_default());
                    if outcome.is_ok() {
                        self.find(&transcript, call_id);
                    }
                }
                _ => {}
            }
        }
        self.transcript = transcript;
        let mut cx = Cx {
            at,
            arguments: &NoArguments,
            out: Vec::new(),
        };
        self.finish(&mut cx, Ending::failed(error));
        cx.out.into_iter().find_map(|action| match action {
            Action::Done(outcome) => Some(*outcome),
            _ => None,
        })
    }

    /// Adds the result of a call, as the model read it.
    fn find(&mut self, transcript: &Transcript, call_id: &CallId) {
        let mut calls = transcript.iter().flat_map(|it| it.tool_calls());
        let mut results = transcript.iter().flat_map(|it| it.results());
        let call = calls.find(|it| it.id == *call_id);
        let result = results.find(|it| it.call_id == *call_id);
        if let (Some(call), Some(result)) = (call, result) {
            let (id, tool) = (call.id.clone(), call.name.clone());
            let finding = Finding::new(id, tool, &call.arguments, &result.content);
            self.findings.push(finding);
        }
    }

    /// Ends the turn. Pending calls get their results first.
    pub(super) fn finish(&mut self, cx: &mut Cx<'_>, ending: Ending) {
        self.close_batch(cx, ending.reason);
        self.step_finished(cx);
        self.phase = Phase::Done;
        let answered = ending.answer.is_some();
        let cut_off = answered && self.last_finish == Some(FinishReason::Length);
        let text = match &ending.answer {
            Some(text) => text.clone(),
            None => self.built_answer(&ending),
        };
        let outcome = Outcome {
            text,
            stop_reason: ending.reason,
            model: Some(self.model().full_name()),
            degraded: ending.degraded || cut_off,
            answered,
            findings: self.findings.clone(),
            usage: self.spent.usage,
            cost: self.spent.cost,
            delegated: Some(self.spent.delegated).filter(|it| !it.is_nothing()),
            steps: self.spent.steps,
            tool_calls: self.spent.calls,
            elapsed_ms: u64::try_from(cx.at.since(self.started_at).as_millis()).unwrap_or(u64::MAX),
            finish_reason: self.last_finish,
            error: ending.error.or_else(|| ending.problem.map(refused_answer)),
            undelivered_steering: std::mem::take(&mut self.steering),
            transcript: self.transcript.clone(),
        };
        cx.out.push(Action::Done(Box::new(outcome)));
    }

    /// Builds the answer of a turn without one: why it stopped, the model's last text, and what the tools
    /// returned.
    fn built_answer(&self, ending: &Ending) -> String {
        let texts = &self.config.profile.texts;
        let error = ending.error.as_ref();
        let silent = error.filter(|error| is_silence(error.class));
        let limit = ending.limit.as_ref().or(silent.map(|error| &error.message));
        let stopped = match limit {
            Some(limit) => texts.stopped.replace("{limit}", limit),
            None => self.text_with_limit(&texts.stopped, ending.reason),
        };
        let mut paragraphs = vec![stopped];
        if let Some(error) = error.filter(|_| silent.is_none()) {
            paragraphs.push(format!("Reason: {}.", error.message));
        }
        if !self.last_text.trim().is_empty() {
            paragraphs.push(self.last_text.trim().to_owned());
        }
        if !self.findings.is_empty() {
            let skipped = self.findings.len().saturating_sub(FINDINGS_SHOWN_MAX);
            let mut list = vec![texts.findings.clone()];
            if skipped > 0 {
                list.push(format!("- ({skipped} earlier ones are left out)"));
            }
            list.extend(self.findings.iter().skip(skipped).map(finding_line));
            paragraphs.push(list.join("\n"));
        }
        paragraphs.join("\n\n")
    }

    /// Fills in `{limit}`: the profile's text for the stop reason, or else [`Self::limit_text`].
    pub(super) fn text_with_limit(&self, template: &str, reason: StopReason) -> String {
        let own = self
            .config
            .profile
            .texts
            .limits
            .get(reason.as_str())
            .cloned();
        template.replace("{limit}", &own.unwrap_or_else(|| self.limit_text(reason)))
    }

    fn limit_text(&self, reason: StopReason) -> String {
        let limits = &self.config.profile.limits;
        let of = |name: &str, value: Option<String>| match value {
            Some(value) => format!("the limit of {value} {name} was reached"),
            None => format!("the limit on {name} was reached"),
        };
        match reason {
            StopReason::Complete => "the answer is complete".to_owned(),
            StopReason::MaxSteps => of("steps", Some(limits.max_steps.to_string())),
            StopReason::MaxToolCalls => {
                let max = limits.max_tool_calls.or(limits.max_tool_calls_per_step);
                of("tool calls", max.map(|max| max.to_string()))
            }
            StopReason::MaxTokens => {
                of("tokens", limits.max_tokens_total.map(|max| max.to_string()))
            }
            StopReason::MaxCost => of("dollars", limits.max_cost.map(|max| max.usd().to_string())),
            StopReason::StepTimeout => {
                let shown = limits.step_timeout.map(seconds);
                match shown {
                    Some(shown) => format!("the model did not reply within {shown}"),
                    None => "the model did not reply in time".to_owned(),
                }
            }
            StopReason::Deadline => match limits.turn_timeout.map(seconds) {
                Some(shown) => format!("the time limit of {shown} was reached"),
                None => "the time limit was reached".to_owned(),
            },
            StopReason::InvalidResponse => "the model's replies could not be used".to_owned(),
            StopReason::NoProgress => "the same calls kept returning the same results".to_owned(),
            StopReason::Refused => "the request was refused".to_owned(),
            StopReason::BudgetSpent => "a budget is spent".to_owned(),
            StopReason::Intercepted => "an interceptor stopped the turn".to_owned(),
            StopReason::Cancelled => "the turn was cancelled".to_owned(),
            StopReason::Error => "a model request failed".to_owned(),
        }
    }
}

/// Returns the error of a turn whose last answer was refused.
fn refused_answer(problem: String) -> ModelError {
    ModelError {
        retryable: false,
        ..ModelError::new(ErrorClass::Protocol, problem)
    }
}

/// Returns whether the error's message is more precise than the step's limit about what took too long.
fn is_silence(class: ErrorClass) -> bool {
    matches!(
        class,
        ErrorClass::FirstByteTimeout | ErrorClass::IdleTimeout
    )
}

fn finding_line(finding: &Finding) -> String {
    let digest = finding.digest.replace('\n', "\n  ");
    let arguments = if finding.arguments == "{}" {
        ""
    } else {
        finding.arguments.as_str()
    };
    if digest.is_empty() {
        format!("- {}({arguments}) succeeded without output", finding.tool)
    } else {
        format!("- {}({arguments}): {digest}", finding.tool)
    }
}

/// Prepares nothing: a turn that is closed begins no call.
struct NoArguments;

impl Arguments for NoArguments {
    fn prepare(&self, _: &str, _: &str) -> PreparedCall {
        PreparedCall::Invalid {
            message: String::new(),
            details: serde_json::Value::Null,
        }
    }

    fn check_answer(&self, text: String) -> Result<String, String> {
        Ok(text)
    }
}
