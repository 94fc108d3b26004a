use futures_util::StreamExt;
use rondo_core::{Model, ModelStream};
use rondo_http::{Endpoint, HttpModel, ModelCard};
use rondo_testkit::Server;
use rondo_types::{
    Concurrency, Effects, ErrorClass, Message, ModelError, ModelEvent, ModelRequest, Recovery,
    Sampling, ToolChoice, ToolSpec,
};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Timers as a driver sets them around a reply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timers {
    pub(crate) first_event: Duration,
    pub(crate) idle: Duration,
    pub(crate) step: Duration,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            first_event: Duration::from_secs(120),
            idle: Duration::from_secs(60),
            step: Duration::from_secs(600),
        }
    }
}

/// Outcome of one request.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) events: Vec<ModelEvent>,
    pub(crate) end: Result<(), ModelError>,
}

impl Run {
    pub(crate) fn text(&self) -> String {
        let text = self.events.iter().filter_map(|event| match event {
            ModelEvent::TextDelta { text, .. } => Some(text.as_str()),
            _ => None,
        });
        text.collect()
    }

    pub(crate) fn finished_calls(&self) -> usize {
        let finished = |event: &&ModelEvent| matches!(event, ModelEvent::ToolCallFinished { .. });
        self.events.iter().filter(finished).count()
    }

    pub(crate) fn error(&self) -> &ModelError {
        self.end.as_ref().unwrap_err()
    }
}

/// Reads a stream to its end under timers.
pub(crate) async fn drive(stream: ModelStream, timers: Timers) -> Run {
    drive_after(Vec::new(), stream, timers).await
}

/// Reads the rest of a stream, of which `events` were read already.
pub(crate) async fn drive_after(
    mut events: Vec<ModelEvent>,
    mut stream: ModelStream,
    timers: Timers,
) -> Run {
    let started = Instant::now();
    let step = started + timers.step;
    let (mut next, mut class) = if events.is_empty() {
        (started + timers.first_event, ErrorClass::FirstByteTimeout)
    } else {
        (started + timers.idle, ErrorClass::IdleTimeout)
    };
    loop {
        let (until, late) = if step <= next {
            (step, ErrorClass::StepTimeout)
        } else {
            (next, class)
        };
        let end = match timeout_at(until, stream.next()).await {
            Ok(Some(Ok(event))) => {
                events.push(event);
                next = Instant::now() + timers.idle;
                class = ErrorClass::IdleTimeout;
                continue;
            }
            Ok(Some(Err(error))) => Err(error),
            Ok(None) => Ok(()),
            Err(_) => Err(ModelError::new(late, "late")),
        };
        return Run { events, end };
    }
}

pub(crate) fn openai(server: &Server) -> Endpoint {
    Endpoint::new("local", "openai-chat", server.url("/v1"))
}

pub(crate) fn gemini(server: &Server) -> Endpoint {
    Endpoint::new("google", "gemini", server.url(""))
}

pub(crate) fn model(endpoint: &Endpoint) -> HttpModel {
    HttpModel::new(endpoint, ModelCard::new("m")).unwrap()
}

pub(crate) fn ask(model: &HttpModel) -> ModelStream {
    model.stream(Arc::new(request()))
}

/// Asks an OpenAI-compatible endpoint once, with the usual timers.
pub(crate) async fn run(server: &Server) -> Run {
    drive(ask(&model(&openai(server))), Timers::default()).await
}

pub(crate) fn request() -> ModelRequest {
    ModelRequest {
        model: "m".to_owned(),
        system: vec!["be brief".to_owned()].into(),
        messages: vec![Arc::new(Message::user("hi"))],
        tools: Arc::new(Vec::new()),
        tool_choice: ToolChoice::Auto,
        sampling: Sampling::default(),
        response_schema: None,
    }
}

pub(crate) fn tool() -> ToolSpec {
    ToolSpec {
        name: "add".to_owned(),
        description: "Adds.".to_owned(),
        parameters: json!({"type": "object", "properties": {"a": {"type": "integer"}}}),
        effects: Effects::ReadOnly,
        concurrency: Concurrency::Shared,
        recovery: Recovery::ReadOnly,
        ..ToolSpec::default()
    }
}
