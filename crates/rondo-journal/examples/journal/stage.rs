//! Turns under the driver with a model that says what it is told to, tools that do what their
//! arguments say, and a gate and a person who judge by the arguments too. The tests over the fixtures
//! carry the turns on with it.

use async_trait::async_trait;
use futures_util::stream;
use rondo_core::catalog::AnswerCheck;
use rondo_core::ports::{InterruptedCall, ProcessEnd, Reconciled, Record, ToolSource};
use rondo_core::profile::{self, Layer};
use rondo_core::{
    Approver, Budgets, Gate, GateRequest, Interceptor, Journal, Model, ModelStream, QuestionReply,
    Tool, ToolInvocation, Toolbox, TurnHandle, TurnSetup, Verdict, control, events, resume_turn,
    run_turn,
};
use rondo_types::{
    AnswerValue, Concurrency, Effects, ErrorClass, FinishReason, Media, MediaKind, MediaSource,
    Message, ModelError, ModelEvent, ModelInfo, ModelRequest, Origin, Outcome, Price, Profile,
    Question, Recovery, SessionId, TimeMs, ToolError, ToolErrorCode, ToolOutcome, ToolOutput,
    ToolSpec, Transcript, TurnId,
};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::future::pending;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::sleep;

type Failure = Box<dyn std::error::Error>;

/// One thing that a model does on its way through a reply.
#[derive(Debug, Clone)]
pub(crate) enum Beat {
    Event(ModelEvent),
    Wait(Duration),
    Fail(ModelError),
    /// Says no more: the process ends here.
    Hang,
}

/// A turn to play.
pub(crate) struct Play {
    pub(crate) number: u32,
    pub(crate) history: Transcript,
    pub(crate) message: Message,
    /// Replies of the model to each request.
    pub(crate) replies: Vec<Vec<Beat>>,
    /// Replies of another model, if there is one.
    pub(crate) fallback: Option<Vec<Vec<Beat>>>,
    pub(crate) context_tokens: Option<u64>,
    /// Fields of the profile that differ from the default.
    pub(crate) profile: Value,
    pub(crate) response_schema: Option<Value>,
    pub(crate) answer_check: Option<AnswerCheck>,
    pub(crate) process: Option<ProcessEnd>,
    pub(crate) tool_sources: Vec<Arc<dyn ToolSource>>,
    pub(crate) interceptors: Vec<Arc<dyn Interceptor>>,
    pub(crate) budgets: Vec<Arc<dyn Budgets>>,
    /// Set if calls that are told to hang do so, and the process ends.
    pub(crate) hangs: bool,
}

impl Play {
    pub(crate) fn new(number: u32, replies: Vec<Vec<Beat>>) -> Self {
        Self {
            number,
            history: Transcript::new(),
            message: Message::user(format!("Question {number}?")),
            replies,
            fallback: None,
            context_tokens: None,
            profile: json!({}),
            response_schema: None,
            answer_check: None,
            process: None,
            tool_sources: Vec::new(),
            interceptors: Vec::new(),
            budgets: Vec::new(),
            hangs: true,
        }
    }
}

/// Outcome of a turn.
pub(crate) struct Played {
    /// None if the process ended first.
    pub(crate) outcome: Option<Outcome>,
    /// The calls that ran, as their tools and arguments.
    pub(crate) ran: Vec<String>,
}

/// Runs a turn, or carries it on if there are records of it, until it ends or its process does.
pub(crate) async fn play(
    journal: Arc<dyn Journal>,
    session: &SessionId,
    play: Play,
    records: Option<&[Record]>,
) -> Result<Played, Failure> {
    let (handle, mut controls) = control();
    if let Some(process) = play.process.clone() {
        controls = controls.noting_end(move |_| process);
    }
    let stage = Arc::new(Stage {
        hangs: play.hangs,
        is_resumed: records.is_some(),
        end: Notify::new(),
        handle: OnceLock::new(),
        ran: Mutex::default(),
    });
    stage.handle.get_or_init(|| handle);
    let (message, history) = (play.message.clone(), play.history.clone());
    let offered = match records {
        None => called(&play),
        Some(_) => TOOLS.map(|(name, _)| name.to_owned()).to_vec(),
    };
    let setup = setup(journal, session, play, (&stage, &offered))?;
    let (sender, mut listener) = events::channel(setup.session.clone(), setup.turn.clone());
    let turn = async {
        match records {
            Some(records) => resume_turn(setup, history, records, sender, controls).await,
            None => Ok(run_turn(setup, history, message, sender, controls).await),
        }
    };
    let listen = async { while listener.next().await.is_some() {} };
    let both = async { tokio::join!(turn, listen).0 };
    let outcome = tokio::select! {
        biased;
        () = stage.end.notified() => None,
        end = both => end?.outcome(),
    };
    let ran = stage.ran.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(Played {
        outcome,
        ran: ran.clone(),
    })
}

fn setup(
    journal: Arc<dyn Journal>,
    session: &SessionId,
    play: Play,
    (stage, offered): (&Arc<Stage>, &[String]),
) -> Result<TurnSetup, Failure> {
    let layer = Layer {
        source: "the fixture".to_owned(),
        table: play.profile.as_object().cloned().unwrap_or_default(),
    };
    let model = |name: &str, replies, has_more: bool| Scripted {
        info: info(name, play.context_tokens, has_more),
        replies: Mutex::new(VecDeque::from(replies)),
        stage: Arc::clone(stage),
    };
    let has_two = play.fallback.is_some();
    let fallback = play.fallback.map(|replies| model("m2", replies, true));
    Ok(TurnSetup {
        turn_number: play.number,
        fallbacks: fallback
            .map(|it| Arc::new(it) as Arc<dyn Model>)
            .into_iter()
            .collect(),
        tools: tools(stage, offered)?,
        gate: Arc::new(ByArguments(Arc::clone(stage))),
        approver: Arc::new(ByArguments(Arc::clone(stage))),
        journal,
        system: vec!["Be brief.".to_owned()].into(),
        response_schema: play.response_schema,
        answer_check: play.answer_check,
        tool_sources: play.tool_sources,
        interceptors: play.interceptors,
        budgets: play.budgets,
        ..TurnSetup::new(
            session.clone(),
            TurnId::new(format!("t-{}", play.number)),
            Arc::new(model("m", play.replies, has_two)),
            Arc::new(profile(layer)?),
        )
    })
}

fn profile(layer: Layer) -> Result<Profile, Failure> {
    // Short, so that a store of many turns is small.
    let own = json!({
        "description": "",
        "system_prompt": null,
        "context": false,
        "tools": [],
        "limits": { "max_tokens": null, "step_timeout_ms": null, "idle_timeout_ms": null },
        "texts": {
            "stopped": "Stopped: {limit}.",
            "findings": "Found:",
            "corrective": "No: {problem}.",
            "finalise": "End: {limit}.",
        },
    });
    let base = Layer {
        source: "all fixtures".to_owned(),
        table: own.as_object().cloned().unwrap_or_default(),
    };
    Ok(profile::resolve("default", &[base, layer])?.profile)
}

/// State that the models and the tools of a turn share.
struct Stage {
    hangs: bool,
    is_resumed: bool,
    end: Notify,
    handle: OnceLock<TurnHandle>,
    ran: Mutex<Vec<String>>,
}

impl Stage {
    fn note_ran(&self, call: String) {
        let mut ran = self.ran.lock().unwrap_or_else(PoisonError::into_inner);
        ran.push(call);
    }

    /// Ends the process, or returns if nothing hangs.
    async fn hang(&self) {
        if self.hangs {
            self.end.notify_one();
            pending::<()>().await;
        }
    }
}

fn info(model: &str, context_tokens: Option<u64>, is_priced: bool) -> ModelInfo {
    ModelInfo {
        origin: origin(model),
        streaming: true,
        price: is_priced.then_some(Price {
            input: 1000,
            output: 4000,
            cache_read: 100,
            cache_write: 1250,
        }),
        context_tokens,
    }
}

pub(crate) fn origin(model: &str) -> Origin {
    Origin {
        dialect: "none".to_owned(),
        provider: "p".to_owned(),
        model: model.to_owned(),
    }
}

struct Scripted {
    info: ModelInfo,
    replies: Mutex<VecDeque<Vec<Beat>>>,
    stage: Arc<Stage>,
}

impl Model for Scripted {
    fn info(&self) -> ModelInfo {
        self.info.clone()
    }

    fn base_url(&self) -> Option<String> {
        let has_server = self.info.price.is_some();
        has_server.then(|| format!("https://{}.example/v1", self.info.origin.model))
    }

    fn stream(&self, _request: Arc<ModelRequest>) -> ModelStream {
        let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        let beats = replies.pop_front().unwrap_or_else(|| {
            let message = "nothing more was to be asked";
            vec![Beat::Fail(ModelError::new(ErrorClass::Auth, message))]
        });
        let state = (VecDeque::from(beats), Arc::clone(&self.stage));
        Box::pin(stream::unfold(state, |(mut beats, stage)| async move {
            loop {
                match beats.pop_front()? {
                    Beat::Event(event) => return Some((Ok(event), (beats, stage))),
                    Beat::Fail(error) => return Some((Err(error), (VecDeque::new(), stage))),
                    Beat::Wait(time) => sleep(time).await,
                    Beat::Hang => stage.hang().await,
                }
            }
        }))
    }
}

pub(crate) fn text(text: &str) -> Beat {
    let (candidate, text) = (0, text.to_owned());
    Beat::Event(ModelEvent::TextDelta { candidate, text })
}

pub(crate) fn finished(reason: FinishReason) -> Beat {
    Beat::Event(ModelEvent::Finished {
        candidate: 0,
        reason,
        raw: reason.as_str().to_owned(),
    })
}

pub(crate) fn says(said: &str) -> Vec<Beat> {
    vec![text(said), finished(FinishReason::Stop)]
}

/// Calls tools, each with its arguments.
pub(crate) fn calls(calls: &[(&str, Value)]) -> Vec<Beat> {
    let mut beats = Vec::new();
    for (call, (name, arguments)) in (0..).zip(calls) {
        beats.extend(call_beats(call, name, &arguments.to_string()));
    }
    beats.push(finished(FinishReason::ToolCalls));
    beats
}

pub(crate) fn call_beats(call: u32, name: &str, arguments: &str) -> [Beat; 3] {
    [
        ModelEvent::ToolCallStarted {
            candidate: 0,
            call,
            wire_id: Some(format!("w{call}")),
            name: name.to_owned(),
        },
        ModelEvent::ToolCallDelta {
            call,
            arguments: arguments.to_owned(),
        },
        ModelEvent::ToolCallFinished { call, opaque: None },
    ]
    .map(Beat::Event)
}

/// The tools, one of each recovery, and one that polls.
pub(crate) const TOOLS: [(&str, Recovery); 6] = [
    ("look", Recovery::ReadOnly),
    ("watch", Recovery::ReadOnly),
    ("put", Recovery::Idempotent),
    ("move", Recovery::Checkable),
    ("send", Recovery::AtMostOnce),
    ("wipe", Recovery::Confirm),
];

/// The names that a turn calls, which are all that it is offered: the records of it stay small.
fn called(play: &Play) -> Vec<String> {
    let replies = play.replies.iter().chain(play.fallback.iter().flatten());
    let named = replies.flatten().filter_map(|beat| match beat {
        Beat::Event(ModelEvent::ToolCallStarted { name, .. }) => Some(name.clone()),
        _ => None,
    });
    named.collect()
}

fn tools(stage: &Arc<Stage>, offered: &[String]) -> Result<Toolbox, Failure> {
    let is_offered = |it: &(&str, Recovery)| offered.iter().any(|name| name == it.0);
    let tool = |(name, recovery): (&str, Recovery)| {
        let reads = recovery == Recovery::ReadOnly;
        let spec = ToolSpec {
            name: name.to_owned(),
            description: "Does what it is told.".to_owned(),
            parameters: match name {
                "look" => json!({
                    "type": "object",
                    "properties": { "n": { "type": "integer" } },
                }),
                _ => json!({ "type": "object" }),
            },
            effects: if reads {
                Effects::ReadOnly
            } else {
                Effects::Writes
            },
            concurrency: match recovery {
                Recovery::AtMostOnce => Concurrency::Exclusive,
                _ => Concurrency::Shared,
            },
            recovery,
            polls: name == "watch",
            ..ToolSpec::default()
        };
        let stage = Arc::clone(stage);
        Arc::new(Prop { spec, stage }) as Arc<dyn Tool>
    };
    Ok(Toolbox::new(
        TOOLS.into_iter().filter(is_offered).map(tool),
    )?)
}

/// Does what the `do` of its arguments says.
struct Prop {
    spec: ToolSpec,
    stage: Arc<Stage>,
}

fn word<'a>(arguments: &'a Value, key: &str) -> &'a str {
    arguments.get(key).and_then(Value::as_str).unwrap_or("")
}

#[async_trait]
impl Tool for Prop {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        let arguments = &invocation.arguments;
        let name = format!("{} {arguments}", self.spec.name);
        self.stage.note_ran(name);
        invocation.output.push("working\n".to_owned());
        let handle = self.stage.handle.get();
        match word(arguments, "do") {
            "hang" => self.stage.hang().await,
            "steer" => {
                for said in ["Be quick.", "And be right."] {
                    let _ = handle.is_some_and(|it| it.steer(said.to_owned()));
                }
            }
            "cancel" if self.stage.hangs => {
                handle.inspect(|it| it.cancel());
                invocation.cancel.cancelled().await;
                return ToolOutcome::error(ToolErrorCode::Cancelled, "it was stopped");
            }
            "cancel and hang" if self.stage.hangs => {
                handle.inspect(|it| it.cancel());
                sleep(Duration::from_secs(1)).await;
                self.stage.hang().await;
            }
            "sleep" => sleep(Duration::from_secs(3600)).await,
            "same" => return ToolOutcome::text("as ever"),
            other => return done(other, &invocation),
        }
        ToolOutcome::json(json!({ "done": self.spec.name, "n": arguments.get("n") }))
    }

    async fn evidence(&self, arguments: &Value) -> Option<Value> {
        Some(json!({ "n_before": arguments.get("n") }))
    }

    async fn reconcile(&self, call: &InterruptedCall) -> Reconciled {
        match (word(&call.arguments, "known"), &call.evidence) {
            (_, None) => Reconciled::Unknown,
            ("done", Some(before)) => {
                Reconciled::Done(ToolOutcome::text(format!("done, after {before}")))
            }
            ("not done", _) => Reconciled::NotDone,
            ("running", _) => Reconciled::Running,
            _ => Reconciled::Unknown,
        }
    }
}

fn done(what: &str, invocation: &ToolInvocation) -> ToolOutcome {
    let media = |kind, mime: &str, name: Option<&str>, source| Media {
        kind,
        mime: mime.to_owned(),
        name: name.map(str::to_owned),
        source,
    };
    match what {
        "fail" => ToolOutcome::Error(ToolError {
            code: ToolErrorCode::Failed,
            message: "it broke".to_owned(),
            details: json!({ "exit_code": 7, "stderr": "no" }),
            used: None,
        }),
        "picture" => ToolOutcome::Ok(ToolOutput {
            value: json!("a picture, and a page"),
            blocks: vec![
                media(MediaKind::Image, "image/gif", Some("dot.gif"), dot()).into(),
                media(
                    MediaKind::File,
                    "text/html",
                    None,
                    MediaSource::Url("https://p.example/page".to_owned()),
                )
                .into(),
            ],
            truncated: true,
            spill: Some("/tmp/whole-output".to_owned()),
            ..ToolOutput::default()
        }),
        "long" => {
            let bytes = invocation.arguments.get("bytes").and_then(Value::as_u64);
            let times = usize::try_from(bytes.unwrap_or_default() / 5).unwrap_or_default();
            ToolOutcome::text(format!("{} {}", invocation.turn, "seen ".repeat(times)))
        }
        _ => ToolOutcome::json(json!({ "seen": invocation.arguments.get("n") })),
    }
}

/// One pixel.
pub(crate) fn dot() -> MediaSource {
    MediaSource::Base64("R0lGODlhAQABAAAAACwAAAAAAQABAAACAkQBADs=".to_owned())
}

/// Judges a call by its `gate`, and answers for a person by its `answer`.
struct ByArguments(Arc<Stage>);

#[async_trait]
impl Gate for ByArguments {
    async fn check(&self, request: &GateRequest) -> Verdict {
        match word(&request.arguments, "gate") {
            "deny" => Verdict::Deny {
                reason: "a rule says no".to_owned(),
            },
            "ask" => Verdict::Ask {
                prompt: format!("Run `{}`?", request.spec.name),
                reasons: Vec::new(),
            },
            _ => Verdict::Allow,
        }
    }
}

#[async_trait]
impl Approver for ByArguments {
    async fn ask(&self, question: &Question) -> QuestionReply {
        sleep(Duration::from_millis(7)).await;
        let arguments = &question.subject.arguments;
        let is_later = arguments.get("later") == Some(&json!(true));
        if is_later && !self.0.is_resumed {
            return QuestionReply::Later {
                expires: Some(TimeMs(4_000_000_000_000)),
            };
        }
        let value = match word(arguments, "answer") {
            "deny" => AnswerValue::Deny {
                reason: "not today".to_owned(),
            },
            "edit" => AnswerValue::value(json!({ "n": 70, "gate": "ask" })),
            "hang" => {
                self.0.hang().await;
                AnswerValue::Approve
            }
            _ => AnswerValue::Approve,
        };
        QuestionReply::answered(question, "ada", value)
    }
}
