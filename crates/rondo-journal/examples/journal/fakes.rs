//! Parts of every turn of this program: a scripted model, a tool that only
//! reads, and an approver that allows everything.

use async_trait::async_trait;
use futures_util::stream;
use rondo_core::{Approver, Gate, GateRequest, ModelStream, QuestionReply, Verdict};
use rondo_types::{
    Concurrency, Effects, FinishReason, ModelEvent, ModelInfo, Origin, Question, Recovery, ToolSpec,
};
use serde_json::json;

pub(crate) fn info(context_tokens: Option<u64>) -> ModelInfo {
    ModelInfo {
        origin: Origin {
            dialect: "none".to_owned(),
            provider: "p".to_owned(),
            model: "m".to_owned(),
        },
        streaming: true,
        price: None,
        context_tokens,
    }
}

pub(crate) fn replied(events: Vec<ModelEvent>) -> ModelStream {
    Box::pin(stream::iter(events.into_iter().map(Ok)))
}

pub(crate) fn says(text: &str) -> Vec<ModelEvent> {
    let text = text.to_owned();
    vec![
        ModelEvent::TextDelta { candidate: 0, text },
        finished(FinishReason::Stop),
    ]
}

/// Calls a tool with a number, so that no two calls are alike.
pub(crate) fn calls(name: &str, wire_id: Option<String>, n: usize) -> Vec<ModelEvent> {
    vec![
        ModelEvent::ToolCallStarted {
            candidate: 0,
            call: 0,
            wire_id,
            name: name.to_owned(),
        },
        ModelEvent::ToolCallDelta {
            call: 0,
            arguments: format!(r#"{{"n":{n}}}"#),
        },
        ModelEvent::ToolCallFinished {
            call: 0,
            opaque: None,
        },
        finished(FinishReason::ToolCalls),
    ]
}

fn finished(reason: FinishReason) -> ModelEvent {
    ModelEvent::Finished {
        candidate: 0,
        reason,
        raw: reason.as_str().to_owned(),
    }
}

pub(crate) fn tool(name: &str, description: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: json!({ "type": "object" }),
        effects: Effects::ReadOnly,
        concurrency: Concurrency::Shared,
        recovery: Recovery::ReadOnly,
        ..ToolSpec::default()
    }
}

/// Allows everything.
pub(crate) struct Everything;

#[async_trait]
impl Gate for Everything {
    async fn check(&self, _request: &GateRequest) -> Verdict {
        Verdict::Allow
    }
}

#[async_trait]
impl Approver for Everything {
    async fn ask(&self, question: &Question) -> QuestionReply {
        QuestionReply::approved(question, "ada")
    }
}
