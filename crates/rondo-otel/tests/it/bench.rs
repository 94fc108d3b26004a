use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use rondo_core::{
    Approver, EventSender, Gate, GateRequest, Model, ModelStream, QuestionReply, Tool,
    ToolInvocation, Toolbox, TurnSetup, Verdict, control, events, profile, run_turn,
};
use rondo_http::{Auth, Endpoint, HttpModel, ModelCard, Secret};
use rondo_otel::Telemetry;
use rondo_testkit::Server;
use rondo_types::{
    Concurrency, Effects, Message, ModelEvent, ModelInfo, ModelRequest, Outcome, Profile, Question,
    Recovery, ServerAddress, SessionId, ToolErrorCode, ToolOutcome, ToolSpec, TurnId,
};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// The key that every model is asked with.
pub(crate) const KEY: &str = "sk-secret-0123456789";
/// Milliseconds between the pieces of a reply.
pub(crate) const PIECE_MS: u64 = 100;
/// When all tests happen, in milliseconds since the epoch.
const NOW_MS: u64 = 1_800_000_000_000;

/// Time that passes when it is told to.
#[derive(Clone)]
pub(crate) struct Ticks(Arc<AtomicU64>);

impl Ticks {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicU64::new(NOW_MS)))
    }

    pub(crate) fn pass(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }

    pub(crate) fn follow(&self, telemetry: &Telemetry) -> Telemetry {
        let ms = Arc::clone(&self.0);
        let now = move || SystemTime::UNIX_EPOCH + Duration::from_millis(ms.load(Ordering::SeqCst));
        telemetry.clone().with_clock(now)
    }
}

/// Setup of a test's turn.
pub(crate) struct Bench {
    pub(crate) profile: Profile,
    pub(crate) ticks: Ticks,
    pub(crate) session: &'static str,
    model: Arc<dyn Model>,
    fallbacks: Vec<Arc<dyn Model>>,
    /// Holds each request before it is sent.
    queued: bool,
    tools: Vec<Arc<dyn Tool>>,
}

impl Bench {
    /// Asks an OpenAI-like provider.
    pub(crate) fn chat(server: &Server) -> Self {
        Self::asking(Endpoint::new("openai", "openai-chat", server.url("/v1")))
    }

    /// Asks Gemini.
    pub(crate) fn gemini(server: &Server) -> Self {
        Self::asking(Endpoint::new("google", "gemini", server.url("")))
    }

    pub(crate) fn asking(endpoint: Endpoint) -> Self {
        let ticks = Ticks::new();
        let mut profile = profile::builtin("default").unwrap();
        profile.limits.retry.base = Duration::from_millis(1);
        profile.limits.retry.jitter_percent = 0;
        Self {
            profile,
            session: "s-1",
            model: paced(endpoint, "m-1", &ticks),
            ticks,
            fallbacks: Vec::new(),
            queued: false,
            tools: Vec::new(),
        }
    }

    pub(crate) fn then_gemini(mut self, server: &Server) -> Self {
        let endpoint = Endpoint::new("google", "gemini", server.url(""));
        self.fallbacks.push(paced(endpoint, "m-2", &self.ticks));
        self
    }

    /// Delays each request by a piece's time before it is sent.
    pub(crate) fn queued(mut self) -> Self {
        self.queued = true;
        self
    }

    /// Adds a tool that takes some time; it fails if a code is given.
    pub(crate) fn tool(mut self, name: &'static str, ms: u64, code: Option<ToolErrorCode>) -> Self {
        let ticks = self.ticks.clone();
        self.tools.push(Arc::new(Timed {
            name,
            ms,
            code,
            ticks,
        }));
        self
    }

    pub(crate) async fn ask(self, question: &str, telemetry: &Telemetry) -> Outcome {
        let telemetry = self.ticks.follow(telemetry);
        let (setup, events) = self.setup();
        let (_handle, control) = control();
        let message = Message::user(question);
        run_turn(
            setup,
            Vec::new(),
            message,
            telemetry.observe(events),
            control,
        )
        .await
        .outcome()
        .unwrap()
    }

    /// Returns the usage of a turn. Its events have no listener.
    pub(crate) fn setup(self) -> (TurnSetup, EventSender) {
        let setup = TurnSetup {
            fallbacks: self.fallbacks,
            tools: Toolbox::new(self.tools).unwrap(),
            gate: Arc::new(Willing),
            approver: Arc::new(Willing),
            system: vec!["be-terse".to_owned()].into(),
            ..TurnSetup::new(
                SessionId::new(self.session),
                TurnId::new("t-1"),
                if self.queued {
                    Arc::new(Queued(self.model, self.ticks))
                } else {
                    self.model
                },
                self.profile.into(),
            )
        };
        let (events, _) = events::channel(setup.session.clone(), setup.turn.clone());
        (setup, events)
    }
}

/// A real model each piece of whose replies takes [`PIECE_MS`].
struct Paced {
    model: HttpModel,
    ticks: Ticks,
}

fn paced(mut endpoint: Endpoint, name: &str, ticks: &Ticks) -> Arc<dyn Model> {
    endpoint.streaming = true;
    endpoint.auth = Auth::Key(Secret::new(KEY));
    Arc::new(Paced {
        model: HttpModel::new(&endpoint, ModelCard::new(name)).unwrap(),
        ticks: ticks.clone(),
    })
}

impl Model for Paced {
    fn info(&self) -> ModelInfo {
        self.model.info()
    }

    fn server(&self) -> Option<ServerAddress> {
        self.model.server()
    }

    fn stream(&self, request: Arc<ModelRequest>) -> ModelStream {
        let ticks = self.ticks.clone();
        let events = self.model.stream(request);
        Box::pin(events.inspect(move |event| {
            if !matches!(event, Ok(ModelEvent::ResponseNamed(_))) {
                ticks.pass(PIECE_MS);
            }
        }))
    }
}

/// A model whose provider has as many requests as may be.
struct Queued(Arc<dyn Model>, Ticks);

impl Model for Queued {
    fn info(&self) -> ModelInfo {
        self.0.info()
    }

    fn server(&self) -> Option<ServerAddress> {
        self.0.server()
    }

    fn stream(&self, request: Arc<ModelRequest>) -> ModelStream {
        let ticks = self.1.clone();
        let wait = stream::iter([ModelEvent::Queued, ModelEvent::Sent].map(Ok));
        let wait = wait.inspect(move |_| ticks.pass(PIECE_MS));
        Box::pin(wait.chain(self.0.stream(request)))
    }
}

struct Timed {
    name: &'static str,
    ms: u64,
    code: Option<ToolErrorCode>,
    ticks: Ticks,
}

#[async_trait]
impl Tool for Timed {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.to_owned(),
            description: format!("Does {}.", self.name),
            parameters: json!({"type": "object"}),
            effects: Effects::ReadOnly,
            concurrency: Concurrency::Shared,
            recovery: Recovery::ReadOnly,
            ..ToolSpec::default()
        }
    }

    async fn call(&self, _invocation: ToolInvocation) -> ToolOutcome {
        // So that calls which may overlap do.
        tokio::task::yield_now().await;
        self.ticks.pass(self.ms);
        match self.code {
            None => ToolOutcome::text(format!("found-by-{}", self.name)),
            Some(code) => ToolOutcome::error(code, "broken-because"),
        }
    }
}

struct Willing;

#[async_trait]
impl Gate for Willing {
    async fn check(&self, request: &GateRequest) -> Verdict {
        match request.spec.name.as_str() {
            "forbidden" => Verdict::Deny {
                reason: "no".to_owned(),
            },
            _ => Verdict::Allow,
        }
    }
}

#[async_trait]
impl Approver for Willing {
    async fn ask(&self, question: &Question) -> QuestionReply {
        QuestionReply::approved(question, "ada")
    }
}
