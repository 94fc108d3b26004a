use async_trait::async_trait;
use futures_util::future::BoxFuture;
use rondo::types::{Concurrency, Effects, ErrorClass, Recovery, ToolError};
use rondo::{
    Approver, Endpoint, EventBody, Gate, GateRequest, HttpModel, Limits, Message, ModelCard,
    Outcome, Profile, Question, QuestionReply, SessionId, Tool, ToolErrorCode, ToolInvocation,
    ToolOutcome, ToolSpec, Toolbox, Transcript, TurnEvent, TurnHandle, TurnId, TurnSetup, Verdict,
    control, events, profiles, run_turn,
};
use rondo_testkit::{Response, Server, assert_paired};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::watch;

/// Everything a turn of a test runs with.
pub(crate) struct Bench {
    pub(crate) profile: Profile,
    pub(crate) endpoint: Endpoint,
    pub(crate) system: Vec<String>,
    pub(crate) history: Transcript,
    pub(crate) turn_number: u32,
    pub(crate) response_schema: Option<Value>,
    pub(crate) verdict: Verdict,
    tools: Vec<Arc<dyn Tool>>,
}

/// Outcome of a turn.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) outcome: Outcome,
    pub(crate) events: Vec<EventBody>,
}

/// A person beside the turn, who sees its events and may stop it.
pub(crate) struct User {
    pub(crate) handle: TurnHandle,
    seen: watch::Receiver<Vec<EventBody>>,
}

impl Bench {
    /// Speaks Gemini, by the `python` profile.
    pub(crate) fn gemini(server: &Server) -> Self {
        Self::new("python", Endpoint::new("google", "gemini", server.url("")))
    }

    /// Speaks OpenAI Chat Completions, by the profile of that name.
    pub(crate) fn chat(profile: &str, server: &Server) -> Self {
        Self::new(
            profile,
            Endpoint::new("local", "openai-chat", server.url("/v1")),
        )
    }

    /// Speaks Anthropic Messages, by the profile of that name.
    pub(crate) fn anthropic(profile: &str, server: &Server) -> Self {
        Self::new(profile, Endpoint::new("local", "anthropic", server.url("")))
    }

    fn new(profile: &str, mut endpoint: Endpoint) -> Self {
        let profile = profiles::builtin(profile).unwrap();
        endpoint.streaming = profile.streaming;
        Self {
            system: profile.system_prompt.clone().into_iter().collect(),
            profile,
            endpoint,
            history: Transcript::new(),
            turn_number: 1,
            response_schema: None,
            verdict: Verdict::Allow,
            tools: Vec::new(),
        }
    }

    pub(crate) fn streaming(mut self) -> Self {
        self.endpoint.streaming = true;
        self
    }

    pub(crate) fn system(mut self, blocks: &[&str]) -> Self {
        self.system = blocks.iter().map(ToString::to_string).collect();
        self
    }

    pub(crate) fn after(mut self, history: Transcript) -> Self {
        self.history = history;
        self.turn_number += 1;
        self
    }

    pub(crate) fn tool(mut self, tool: FnTool) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    pub(crate) fn tools(self, tools: impl IntoIterator<Item = FnTool>) -> Self {
        tools.into_iter().fold(self, Self::tool)
    }

    pub(crate) fn real_tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    pub(crate) fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.profile.limits);
        self
    }

    /// Returns the model by itself.
    pub(crate) fn model(&self) -> HttpModel {
        HttpModel::new(&self.endpoint, ModelCard::new("m")).unwrap()
    }

    pub(crate) async fn ask(self, question: &str) -> Ran {
        self.ask_beside(question, async |_| {}).await
    }

    /// Runs the turn beside what a user does.
    pub(crate) async fn ask_beside(self, question: &str, user: impl AsyncFnOnce(&mut User)) -> Ran {
        crate::log::start_logging();
        let (handle, turn_control) = control();
        let model = Arc::new(self.model());
        let setup = TurnSetup {
            turn_number: self.turn_number,
            tools: Toolbox::new(self.tools).unwrap(),
            gate: Arc::new(Always(self.verdict)),
            approver: Arc::new(Willing),
            system: self.system.into(),
            response_schema: self.response_schema,
            ..TurnSetup::new(
                SessionId::new("s"),
                TurnId::new("t"),
                model,
                self.profile.into(),
            )
        };
        let (tx, mut rx) = events::channel(setup.session.clone(), setup.turn.clone());
        let (see, seen) = watch::channel(Vec::new());
        let listen = async move {
            let mut all = Vec::new();
            while let Some(event) = rx.next().await {
                see.send_modify(|bodies| bodies.push(event.body.clone()));
                all.push(event);
            }
            all
        };
        let turn = run_turn(
            setup,
            self.history,
            Message::user(question),
            tx,
            turn_control,
        );
        let mut beside = User { handle, seen };
        let (end, events, ()) = tokio::join!(turn, listen, user(&mut beside));
        let outcome = end.outcome().unwrap();
        check_stream(&outcome, &events);
        Ran {
            outcome,
            events: events.into_iter().map(|event| event.body).collect(),
        }
    }
}

/// Asserts what holds of every turn, whatever happened in it.
fn check_stream(outcome: &Outcome, events: &[TurnEvent]) {
    let first = events.first().map(|event| &event.body);
    assert!(matches!(first, Some(EventBody::Init(_))));
    let expected = rondo::types::ResultEvent::from_outcome(outcome);
    let last = events.last().map(|event| &event.body);
    assert_eq!(last, Some(&EventBody::Result(Box::new(expected))));
    let places: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert!(places.iter().copied().eq(0..places.len() as u64));
    assert!(rondo::rondo_core::pairing::is_paired(&outcome.transcript));
}

impl User {
    /// Waits until the turn has sent such an event.
    pub(crate) async fn sees(&mut self, is: impl Fn(&EventBody) -> bool) {
        self.seen
            .wait_for(|events| events.iter().any(&is))
            .await
            .unwrap();
    }

    /// Waits until a call is under way, by such an event, then lets time jump until it has ended.
    pub(crate) async fn skips_the_call(&mut self, is_under_way: impl Fn(&EventBody) -> bool) {
        self.sees(is_under_way).await;
        tokio::time::pause();
        self.sees(|event| matches!(event, EventBody::ToolCallFinished { .. }))
            .await;
        tokio::time::resume();
    }

    /// Waits until the turn has sent so many events, or is over.
    pub(crate) async fn sees_many(&mut self, count: usize) {
        let enough = |events: &Vec<EventBody>| events.len() >= count;
        // A turn that is over before has sent all it will.
        let _ = self.seen.wait_for(enough).await;
    }

    /// Waits for text of the answer.
    pub(crate) async fn reads(&mut self, text: &str) {
        self.seen
            .wait_for(|events| shown(events).contains(text))
            .await
            .unwrap();
    }
}

impl Ran {
    /// Returns the code and the text of each result in the transcript.
    pub(crate) fn results(&self) -> Vec<(Option<ToolErrorCode>, String)> {
        let results = self.outcome.transcript.iter().flat_map(|it| it.results());
        results.map(|it| (it.error, it.content.to_text())).collect()
    }

    pub(crate) fn codes(&self) -> Vec<Option<ToolErrorCode>> {
        self.results().into_iter().map(|(code, _)| code).collect()
    }

    pub(crate) fn error_class(&self) -> Option<ErrorClass> {
        self.outcome.error.as_ref().map(|error| error.class)
    }

    /// Returns the text that a listener was shown.
    pub(crate) fn shown(&self) -> String {
        shown(&self.events)
    }

    /// Returns how often the events hold such a one.
    pub(crate) fn count(&self, is: impl Fn(&EventBody) -> bool) -> usize {
        self.events.iter().filter(|event| is(event)).count()
    }
}

fn shown(events: &[EventBody]) -> String {
    let deltas = events.iter().filter_map(|event| match event {
        EventBody::TextDelta { text } => Some(text.as_str()),
        _ => None,
    });
    deltas.collect()
}

/// Returns the bodies of all requests, in each of which every call has its result.
pub(crate) fn bodies(server: &Server) -> Vec<Value> {
    let bodies: Vec<Value> = server.requests().iter().map(|it| it.json()).collect();
    bodies.iter().for_each(assert_paired);
    bodies
}

type ToolFn = dyn Fn(ToolInvocation) -> BoxFuture<'static, ToolOutcome> + Send + Sync;

/// A tool that is a function.
pub(crate) struct FnTool {
    spec: ToolSpec,
    work: Box<ToolFn>,
}

impl FnTool {
    pub(crate) fn running(
        name: &str,
        parameters: Value,
        work: impl Fn(ToolInvocation) -> BoxFuture<'static, ToolOutcome> + Send + Sync + 'static,
    ) -> Self {
        let spec = ToolSpec {
            name: name.to_owned(),
            description: format!("Does {name}."),
            parameters,
            effects: Effects::Writes,
            concurrency: Concurrency::Exclusive,
            recovery: Recovery::AtMostOnce,
            ..ToolSpec::default()
        };
        Self {
            spec,
            work: Box::new(work),
        }
    }

    /// Allows calls of it to overlap.
    pub(crate) fn shared(mut self) -> Self {
        self.spec.effects = Effects::ReadOnly;
        self.spec.concurrency = Concurrency::Shared;
        self
    }

    /// Does not say whether calls of it may overlap.
    pub(crate) fn undeclared(mut self) -> Self {
        self.spec.concurrency = Concurrency::Undeclared;
        self
    }

    pub(crate) fn described(mut self, description: &str) -> Self {
        self.spec.description = description.to_owned();
        self
    }
}

#[async_trait]
impl Tool for FnTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        (self.work)(invocation).await
    }
}

/// A tool that returns at once.
pub(crate) fn tool(
    name: &str,
    parameters: Value,
    work: impl Fn(&Value) -> ToolOutcome + Send + Sync + 'static,
) -> FnTool {
    FnTool::running(name, parameters, move |call| {
        let outcome = work(&call.arguments);
        Box::pin(async move { outcome })
    })
}

/// A tool that takes any object and says what it was called with.
pub(crate) fn echo(name: &'static str) -> FnTool {
    tool(name, json!({"type": "object"}), move |arguments| {
        ToolOutcome::text(format!("{name} did {arguments}"))
    })
}

/// A tool that ends only when it is told to.
pub(crate) fn endless(name: &str) -> FnTool {
    FnTool::running(name, json!({"type": "object"}), |call| {
        Box::pin(async move {
            call.output.push("half of it".to_owned());
            call.cancel.cancelled().await;
            ToolOutcome::error(ToolErrorCode::Cancelled, "ended early")
        })
    })
}

pub(crate) fn failure(code: ToolErrorCode, message: &str, details: Value) -> ToolOutcome {
    ToolOutcome::Error(ToolError {
        code,
        message: message.to_owned(),
        details,
        used: None,
    })
}

struct Always(Verdict);

#[async_trait]
impl Gate for Always {
    async fn check(&self, _request: &GateRequest) -> Verdict {
        self.0.clone()
    }
}

struct Willing;

#[async_trait]
impl Approver for Willing {
    async fn ask(&self, question: &Question) -> QuestionReply {
        QuestionReply::approved(question, "ada")
    }
}

/// A streamed OpenAI Chat response of these chunks, each `(delta, finish reason)`.
pub(crate) fn chunks<'a>(chunks: impl IntoIterator<Item = (Value, Option<&'a str>)>) -> Response {
    let frames = chunks.into_iter().map(|(delta, finish)| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        format!("data: {}\n\n", json!({"choices": [choice]}))
    });
    Response::sse(frames).send("data: [DONE]\n\n")
}

/// The tools of a request as OpenAI Chat Completions has them.
pub(crate) fn functions(specs: &[ToolSpec]) -> Value {
    let function = |spec: &ToolSpec| {
        json!({"type": "function", "function": {
            "name": spec.name,
            "description": spec.description,
            "parameters": spec.parameters,
        }})
    };
    specs.iter().map(function).collect()
}
