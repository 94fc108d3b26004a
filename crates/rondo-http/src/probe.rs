//! Finds out what a provider supports by sending requests, since its metadata does not say.
//!
//! Three requests: the list of models, a short text, and a call of a harmless tool. The last two
//! cost a few tokens, so this runs on request only.

use crate::HttpModel;
use crate::listing::list_models;
use futures_util::StreamExt;
use rondo_core::Model;
use rondo_types::{
    Concurrency, Effects, ErrorClass, Message, ModelError, ModelEvent, ModelRequest, Recovery,
    Sampling, ToolChoice, ToolSpec, Usage,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// The name of the tool that the probe offers.
pub const PROBE_TOOL: &str = "report_value";
/// The bound on tokens that a probe generates; reasoning counts, so it is not tighter.
const OUTPUT_TOKENS_MAX: u32 = 512;
/// The bound on events of one probe.
const EVENTS_MAX: usize = 10_000;

/// Features that a provider supports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// Its list of models has the model.
    pub listed: Check,
    /// It answers in text.
    pub text: Check,
    /// The answer came in more than one piece.
    pub streaming: Check,
    /// It called the tool on offer.
    pub tool_call: Check,
    /// It counts tokens.
    pub usage: Check,
    /// How long the first event of the text took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_event_ms: Option<u64>,
    /// Token usage of the probe.
    pub spent: Usage,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Check {
    /// It works.
    Works {
        /// Observation.
        detail: String,
    },
    /// It answered, but not so.
    Missing {
        /// Observation instead.
        detail: String,
    },
    /// The request failed.
    Failed {
        /// Reason of the failure.
        error: ModelError,
    },
}

/// Asks the provider what it supports; each of the three requests may take `timeout_each`.
///
/// # Cancel safety
/// Dropping it ends the request in flight.
pub async fn probe(model: &HttpModel, timeout_each: Duration) -> ProbeReport {
    let listed = listed(model, timeout_each).await;
    let text = observe(model, text_request(model), timeout_each).await;
    let call = observe(model, call_request(model), timeout_each).await;
    let mut spent = Usage::default();
    for seen in [&text, &call].into_iter().flatten() {
        spent += seen.usage.unwrap_or_default();
    }
    ProbeReport {
        listed,
        streaming: judge(&text, ReplySummary::streaming),
        usage: judge(&text, ReplySummary::usage),
        first_event_ms: text.as_ref().ok().and_then(|seen| seen.first_event_ms),
        text: judge(&text, ReplySummary::text),
        tool_call: judge(&call, ReplySummary::tool_call),
        spent,
    }
}

async fn listed(model: &HttpModel, timeout_each: Duration) -> Check {
    let name = model.info().origin.model;
    let listing = timeout(timeout_each, list_models(model)).await;
    match listing.unwrap_or_else(|_| Err(timed_out(timeout_each))) {
        Err(error) => Check::Failed { error },
        Ok(models) if models.contains(&name) => Check::works(format!("one of {}", models.len())),
        Ok(models) => Check::missing(format!("`{name}` is not one of the {}", models.len())),
    }
}

/// Observations about one request.
#[derive(Debug, Default)]
struct ReplySummary {
    deltas: usize,
    text_bytes: usize,
    calls: Vec<String>,
    usage: Option<Usage>,
    first_event_ms: Option<u64>,
}

impl ReplySummary {
    fn note(&mut self, event: ModelEvent, started: Instant) {
        let elapsed = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.first_event_ms.get_or_insert(elapsed);
        match event {
            ModelEvent::TextDelta { text, .. } => {
                self.deltas += 1;
                self.text_bytes += text.len();
            }
            ModelEvent::ReasoningDelta { .. } => self.deltas += 1,
            ModelEvent::ToolCallStarted { name, .. } => self.calls.push(name),
            ModelEvent::ToolCallNamed {
                name: Some(name), ..
            } => self.calls.push(name),
            ModelEvent::Usage(usage) => self.usage = Some(usage),
            _ => {}
        }
    }

    fn text(&self) -> Check {
        if self.text_bytes > 0 {
            Check::works(format!("{} bytes", self.text_bytes))
        } else {
            Check::missing("an answer without text")
        }
    }

    fn streaming(&self) -> Check {
        if self.deltas > 1 {
            Check::works(format!("{} pieces", self.deltas))
        } else {
            Check::missing("the answer came in one piece")
        }
    }

    fn usage(&self) -> Check {
        match self.usage {
            Some(usage) => Check::works(format!("{} in, {} out", usage.input, usage.output)),
            None => Check::missing("no token counts"),
        }
    }

    fn tool_call(&self) -> Check {
        if self.calls.iter().any(|name| name == PROBE_TOOL) {
            Check::works(format!("called `{PROBE_TOOL}`"))
        } else if self.text_bytes > 0 {
            Check::missing("answered in text instead of calling the tool")
        } else {
            Check::missing("neither called the tool nor answered")
        }
    }
}

impl Check {
    fn works(detail: impl Into<String>) -> Self {
        Self::Works {
            detail: detail.into(),
        }
    }

    fn missing(detail: impl Into<String>) -> Self {
        Self::Missing {
            detail: detail.into(),
        }
    }
}

fn judge(seen: &Result<ReplySummary, ModelError>, check: impl Fn(&ReplySummary) -> Check) -> Check {
    match seen {
        Ok(seen) => check(seen),
        Err(error) if error.class == ErrorClass::Unsupported => Check::missing(&error.message),
        Err(error) => Check::Failed {
            error: error.clone(),
        },
    }
}

async fn observe(
    model: &HttpModel,
    request: ModelRequest,
    timeout_each: Duration,
) -> Result<ReplySummary, ModelError> {
    let started = Instant::now();
    let all = async {
        let mut seen = ReplySummary::default();
        let mut events = model.stream(Arc::new(request)).take(EVENTS_MAX);
        while let Some(event) = events.next().await {
            seen.note(event?, started);
        }
        Ok(seen)
    };
    let outcome = timeout(timeout_each, all).await;
    outcome.unwrap_or_else(|_| Err(timed_out(timeout_each)))
}

fn timed_out(after: Duration) -> ModelError {
    ModelError::new(
        ErrorClass::StepTimeout,
        format!("no whole answer within {after:?}"),
    )
}

fn text_request(model: &HttpModel) -> ModelRequest {
    request(model, "Count from one to five in words.", Vec::new())
}

fn call_request(model: &HttpModel) -> ModelRequest {
    let prompt = format!("Call the tool `{PROBE_TOOL}` with the value 7.");
    request(model, &prompt, vec![probe_tool()])
}

fn request(model: &HttpModel, prompt: &str, tools: Vec<ToolSpec>) -> ModelRequest {
    ModelRequest {
        model: model.info().origin.model,
        system: Vec::new().into(),
        messages: vec![Arc::new(Message::user(prompt))],
        tools: Arc::new(tools),
        tool_choice: ToolChoice::Auto,
        sampling: Sampling {
            max_output_tokens: Some(OUTPUT_TOKENS_MAX),
            ..Sampling::default()
        },
        response_schema: None,
    }
}

fn probe_tool() -> ToolSpec {
    ToolSpec {
        name: PROBE_TOOL.to_owned(),
        description: "Reports a value.".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {"value": {"type": "integer", "description": "The value to report."}},
            "required": ["value"],
        }),
        effects: Effects::ReadOnly,
        concurrency: Concurrency::Shared,
        recovery: Recovery::ReadOnly,
        ..ToolSpec::default()
    }
}
