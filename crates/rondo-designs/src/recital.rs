//! A model that asks for given calls, so that calls are run by the one loop without any model being asked.

use rondo_core::{Model, ModelStream};
use rondo_types::{FinishReason, ModelEvent, ModelInfo, ModelRequest, Origin};
use std::sync::Arc;

/// A call as a provider would send it.
pub(crate) struct RecitedCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

/// A model that says what it was given.
pub(crate) struct Recital {
    pub(crate) calls: Vec<RecitedCall>,
}

impl Model for Recital {
    fn info(&self) -> ModelInfo {
        let none = || "none".to_owned();
        ModelInfo {
            origin: Origin {
                dialect: none(),
                provider: none(),
                model: none(),
            },
            streaming: false,
            price: None,
            context_tokens: None,
        }
    }

    fn stream(&self, _: Arc<ModelRequest>) -> ModelStream {
        let calls = (0..).zip(&self.calls);
        let mut events: Vec<ModelEvent> = calls.flat_map(|(key, call)| whole(key, call)).collect();
        events.push(ModelEvent::Finished {
            candidate: 0,
            reason: FinishReason::ToolCalls,
            raw: String::new(),
        });
        Box::pin(futures_util::stream::iter(events.into_iter().map(Ok)))
    }
}

/// Returns the events of a call that comes whole.
pub(crate) fn whole(key: u32, call: &RecitedCall) -> [ModelEvent; 3] {
    let started = ModelEvent::ToolCallStarted {
        candidate: 0,
        call: key,
        wire_id: Some(call.id.clone()).filter(|id| !id.is_empty()),
        name: call.name.clone(),
    };
    let arguments = ModelEvent::ToolCallDelta {
        call: key,
        arguments: call.arguments.clone(),
    };
    let finished = ModelEvent::ToolCallFinished {
        call: key,
        opaque: None,
    };
    [started, arguments, finished]
}
