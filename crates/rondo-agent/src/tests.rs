//! Tests: how agents are built, and what their gates allow.

use super::*;
use crate::approval::{FnApprover, Nobody};
use crate::{BuildError, FnTool, NoArgs, ToolContext};
use rondo_core::ports::{ToolScope, ToolSource};
use rondo_core::{
    Approver, EventReceiver, GateRequest, ModelStream, QuestionReply, TurnHandle, TurnSetup,
    Verdict,
};
use rondo_core::{Model, Tool};
use rondo_exec::{ExecOptions, SupervisorCommand};
use rondo_types::{AnswerValue, CallId, ModelInfo, ModelRequest, Profile, Question, QuestionKind};
use rondo_types::{Effects, Origin, ToolKind};
use serde_json::json;
use std::sync::Arc;

/// A model that receives no request.
struct Mute;

impl Model for Mute {
    fn info(&self) -> ModelInfo {
        let origin = Origin {
            dialect: "none".into(),
            provider: "none".into(),
            model: "mute".into(),
        };
        ModelInfo {
            origin,
            streaming: true,
            price: None,
            context_tokens: None,
        }
    }

    fn stream(&self, _request: Arc<ModelRequest>) -> ModelStream {
        Box::pin(futures_util::stream::pending())
    }
}

fn named(name: &str) -> FnTool {
    crate::tool(name, "Does it.", |_: NoArgs, _cx| async {
        Ok::<_, String>(())
    })
}

async fn judged(agent: &Agent, name: &str, effects: Effects) -> Verdict {
    let known = agent.tools().iter().find(|it| it.name == name).cloned();
    let mut spec = known.unwrap_or_else(|| named(name).spec().clone());
    spec.effects = effects;
    let request = GateRequest::new(
        spec,
        json!({"command": "rm -rf x", "path": "x", "content": ""}),
    );
    agent.parts.gate.check(&request).await
}

#[test]
fn everything_of_an_agent_may_move_between_threads() {
    fn check<T: Send + Sync>() {}
    fn check_future<T: Send>(_: impl FnOnce() -> T) {}
    check::<(Agent, AgentBuilder, BuildError, Run, Session)>();
    check::<(TypedAnswer<String>, TypedError, TurnError)>();
    check::<(
        PendingQuestion,
        PendingQuestions,
        Question,
        QuestionReply,
        AnswerValue,
    )>();
    check::<(
        FnTool,
        NoArgs,
        ToolContext,
        TurnSetup,
        TurnHandle,
        EventReceiver,
    )>();
    check_future(|| async {
        let agent = Agent::builder(Mute).build()?;
        let session = agent.session();
        session.run("q").await?;
        agent.run_typed::<String>("q").await?;
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
    });
}

#[tokio::test]
async fn the_programs_own_tools_run_and_others_are_asked_about() {
    let agent = Agent::builder(Mute)
        .tool(named("mine"))
        .judged_tools([Arc::new(named("theirs")) as Arc<dyn Tool>])
        .build()
        .unwrap();
    assert_eq!(
        judged(&agent, "mine", Effects::Writes).await,
        Verdict::Allow
    );
    assert_eq!(
        judged(&agent, "theirs", Effects::ReadOnly).await,
        Verdict::Allow
    );
    let verdict = judged(&agent, "theirs", Effects::Writes).await;
    assert!(matches!(verdict, Verdict::Ask { .. }), "{verdict:?}");
}

#[tokio::test]
async fn a_tool_that_runs_commands_or_changes_files_is_judged_whoever_adds_it() {
    for (kind, is_asked) in [
        (ToolKind::Execute, true),
        (ToolKind::Edit, true),
        (ToolKind::Delete, true),
        (ToolKind::Move, true),
        (ToolKind::Read, false),
        (ToolKind::Search, false),
        (ToolKind::Think, false),
        (ToolKind::Fetch, false),
        (ToolKind::Other, false),
    ] {
        let own = named("mine").kind(kind);
        let agent = Agent::builder(Mute).tool(own).build().unwrap();
        let verdict = judged(&agent, "mine", Effects::Writes).await;
        assert_eq!(matches!(verdict, Verdict::Ask { .. }), is_asked, "{kind}");
    }
}

#[tokio::test]
async fn the_built_in_tools_come_with_the_gate_that_knows_them() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().to_owned();
    let commands = ExecOptions::new(
        SupervisorCommand::CurrentExe,
        folder.clone(),
        folder.join("state"),
    );
    let agent = Agent::builder(Mute)
        .tool(named("mine"))
        .commands(commands)
        .files(&folder)
        .build()
        .unwrap();
    let names: Vec<String> = agent.tools().iter().map(|it| it.name.clone()).collect();
    assert_eq!(names[..3], ["mine", "exec", "read_file"]);
    assert!(folder.join("state").is_dir());
    let verdict = judged(&agent, "exec", Effects::Writes).await;
    assert!(matches!(verdict, Verdict::Ask { .. }), "{verdict:?}");
    let verdict = judged(&agent, "write_file", Effects::Writes).await;
    assert!(matches!(verdict, Verdict::Ask { .. }), "{verdict:?}");
    assert_eq!(
        judged(&agent, "read_file", Effects::ReadOnly).await,
        Verdict::Allow
    );
}

/// A profile with rules about calls.
fn ruled(change: impl FnOnce(&mut Profile)) -> Profile {
    let mut profile = rondo_core::profile::builtin("default").unwrap();
    change(&mut profile);
    profile
}

#[tokio::test]
async fn the_rules_of_a_profile_hold_for_the_built_in_tools() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().to_owned();
    let commands = || {
        let state = folder.join("state");
        ExecOptions::new(SupervisorCommand::CurrentExe, folder.clone(), state)
    };
    let forbidding = ruled(|it| it.forbidden_programs = vec!["rm".to_owned()]);
    let build = |profile| Agent::builder(Mute).profile(profile);
    let agent = build(forbidding.clone())
        .commands(commands())
        .build()
        .unwrap();
    let verdict = judged(&agent, "exec", Effects::Writes).await;
    assert!(matches!(verdict, Verdict::Deny { .. }), "{verdict:?}");
    let allowing = ruled(|it| it.allowed_tools = vec!["exec(rm *)".to_owned()]);
    let agent = build(allowing).commands(commands()).build().unwrap();
    assert_eq!(
        judged(&agent, "exec", Effects::Writes).await,
        Verdict::Allow
    );
    let dangerous = ruled(|it| it.rule_sets = vec!["dangerous-programs".to_owned()]);
    let agent = build(dangerous.clone())
        .commands(commands())
        .build()
        .unwrap();
    let verdict = judged(&agent, "exec", Effects::Writes).await;
    assert!(matches!(verdict, Verdict::Deny { .. }), "{verdict:?}");

    let unknown = ruled(|it| it.rule_sets = vec!["nowhere".to_owned()]);
    let refused = build(unknown).commands(commands()).build().unwrap_err();
    let refused = refused.to_string();
    assert!(
        refused.contains("`nowhere`, which is not defined"),
        "{refused}"
    );
    let own = || named("mine").kind(ToolKind::Execute);
    for (built, setting) in [
        (
            build(forbidding.clone())
                .commands(commands())
                .gate(Nods)
                .build(),
            "`forbidden_programs` of profile `default` would not be enforced",
        ),
        (
            build(dangerous).tool(own()).build(),
            "`rule_sets` of profile `default` would not be enforced",
        ),
    ] {
        let refused = built.unwrap_err().to_string();
        assert!(refused.starts_with(setting), "{refused}");
    }
    // Nothing here runs a program.
    assert!(build(forbidding).tool(named("mine")).build().is_ok());
}

#[tokio::test]
async fn a_tool_that_the_profile_allows_runs_without_built_in_tools_too() {
    let allowing = ruled(|it| it.allowed_tools = vec!["theirs".to_owned()]);
    let agent = Agent::builder(Mute)
        .profile(allowing)
        .judged_tools([Arc::new(named("theirs")) as Arc<dyn Tool>])
        .build()
        .unwrap();
    assert_eq!(
        judged(&agent, "theirs", Effects::Writes).await,
        Verdict::Allow
    );
    let verdict = judged(&agent, "others", Effects::Writes).await;
    assert!(matches!(verdict, Verdict::Ask { .. }), "{verdict:?}");
}

/// Allows everything.
struct Nods;

#[async_trait::async_trait]
impl rondo_core::Gate for Nods {
    async fn check(&self, _: &GateRequest) -> Verdict {
        Verdict::Allow
    }
}

struct Offers(Vec<Arc<dyn Tool>>);

impl ToolSource for Offers {
    fn tools(&self, _: &ToolScope) -> Vec<Arc<dyn Tool>> {
        self.0.clone()
    }

    fn generation(&self) -> u64 {
        1
    }
}

#[test]
fn a_source_offers_only_tools_that_every_provider_accepts() {
    let number = crate::tool("number", "Takes one.", |_: u32, _cx| async {
        Ok::<_, String>(())
    });
    let tools = [named("good"), named("two words"), named(""), number];
    let tools = tools.map(|it| Arc::new(it) as Arc<dyn Tool>);
    let agent = Agent::builder(Mute).tool_source(Arc::new(Offers(tools.into())));
    let agent = agent.build().unwrap();
    let scope = ToolScope {
        session: rondo_types::SessionId::new("s"),
        turn: rondo_types::TurnId::new("s-1"),
        step: 1,
    };
    let offered = agent.parts.tool_sources[0].tools(&scope);
    let names: Vec<String> = offered.iter().map(|it| it.spec().name).collect();
    assert_eq!(names, ["good"]);
}

#[test]
fn what_cannot_be_built_says_why() {
    let build = |tool| Agent::builder(Mute).tool(tool).build();
    let wrong = crate::tool("number", "Takes one.", |_: u32, _cx| async {
        Ok::<_, String>(())
    });
    let cases = [
        (
            build(named("two words")),
            "`two words` cannot be a tool's name",
        ),
        (build(named(&"x".repeat(65))), "cannot be a tool's name"),
        (
            build(wrong),
            "the arguments of tool `number` are not an object",
        ),
        (
            Agent::builder(Mute)
                .tool(named("a"))
                .tool(named("a"))
                .build(),
            "there are two tools named `a`",
        ),
        (
            Agent::builder(Mute).files("/nowhere/at/all").build(),
            "failed to open directory `/nowhere/at/all`",
        ),
        (
            Agent::builder(Mute)
                .response_schema(json!({"type": 5}))
                .build(),
            "the schema of the answer cannot be used: not a usable JSON Schema",
        ),
        (
            Agent::builder(Mute)
                .response_schema(json!({"type": "array"}))
                .build(),
            "the schema of the answer cannot be used: its type is not `object`",
        ),
    ];
    for (built, expected) in cases {
        let message = built.unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
    assert!(build(named(&"x".repeat(64))).is_ok());
}

#[tokio::test]
async fn nobody_allows_nothing() {
    assert!(is_no(&Nobody.ask(&question()).await));
    let yes = FnApprover(async |_| AnswerValue::Approve);
    let budget = Question {
        kind: QuestionKind::Budget,
        ..question()
    };
    assert!(is_no(&yes.ask(&budget).await));
    assert!(!is_no(&yes.ask(&question()).await));
}

#[tokio::test]
async fn a_question_that_is_dropped_or_that_nobody_takes_is_denied() {
    let (approver, mut questions) = approvals();
    let request = question();
    let (approval, ()) = tokio::join!(approver.ask(&request), async {
        drop(questions.next().await);
    });
    assert!(is_no(&approval));
    drop(questions);
    let approval = approver.ask(&request).await;
    assert!(is_no(&approval));
}

#[tokio::test]
async fn a_question_whose_turn_has_ended_is_withdrawn_and_not_put() {
    let (approver, mut questions) = approvals();
    let request = question();
    let asks = approver.ask(&request);
    let mut shown = tokio::select! {
        biased;
        _ = asks => unreachable!("nobody answers"),
        shown = questions.next() => shown.unwrap(),
    };
    shown.withdrawn().await;
    assert!(futures_util::FutureExt::now_or_never(approver.ask(&request)).is_none());
    let later = Question {
        prompt: "and now?".to_owned(),
        ..question()
    };
    let (approval, ()) = tokio::join!(approver.ask(&later), async {
        let question = questions.next().await.unwrap();
        assert_eq!(question.question().prompt, "and now?");
        question.approve();
    });
    assert_eq!(approval, QuestionReply::approved(&later, "user"));
    let arguments = json!({"n": 2});
    let (approval, ()) = tokio::join!(approver.ask(&later), async {
        questions.next().await.unwrap().give(arguments.clone());
    });
    let edited = AnswerValue::value(arguments);
    assert_eq!(approval, QuestionReply::answered(&later, "user", edited));
}

#[test]
fn without_a_runtime_a_turn_fails_instead_of_panicking() {
    let agent = Agent::builder(Mute).build().unwrap();
    let ended = futures_util::FutureExt::now_or_never(agent.run("q"));
    assert!(matches!(ended, Some(Err(TurnError::NoRuntime))));
}

#[test]
fn a_model_that_is_shared_fits_the_builder() {
    let shared: Arc<dyn Model> = Arc::new(Mute);
    let agent = Agent::builder(Arc::clone(&shared)).fallback(shared).build();
    assert_eq!(agent.unwrap().parts.model.info().full_name(), "none/mute");
}

/// Notes the name of each span with that of its parent.
#[derive(Clone, Default)]
struct Parents(Arc<std::sync::Mutex<Vec<SpanAndParent>>>);

/// The name of a span and that of its parent.
type SpanAndParent = (String, Option<String>);

impl<S> tracing_subscriber::Layer<S> for Parents
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    fn on_new_span(
        &self,
        _: &tracing::span::Attributes<'_>,
        id: &tracing::span::Id,
        context: tracing_subscriber::layer::Context<'_, S>,
    ) {
        let span = context.span(id).unwrap();
        let parent = span.parent().map(|it| it.name().to_owned());
        self.0
            .lock()
            .unwrap()
            .push((span.name().to_owned(), parent));
    }
}

#[tokio::test]
async fn the_span_of_the_caller_is_the_parent_of_the_turns() {
    use tracing_subscriber::layer::SubscriberExt as _;
    let parents = Parents::default();
    let subscriber = tracing_subscriber::registry().with(parents.clone());
    let _default = tracing::subscriber::set_default(subscriber);
    let agent = Agent::builder(Mute).build().unwrap();
    let caller = tracing::info_span!("caller");
    let mut run = caller.in_scope(|| agent.start("q"));
    run.next().await;
    let of_turn =
        |(name, parent): &SpanAndParent| name != "caller" && parent.as_deref() == Some("caller");
    loop {
        if parents.0.lock().unwrap().iter().any(of_turn) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[test]
fn sessions_have_names_of_their_own() {
    let agent = Agent::builder(Mute).build().unwrap();
    assert_ne!(agent.session().id(), agent.session().id());
    assert_eq!(agent.session_named("mine").id().as_str(), "mine");
}

fn is_no(reply: &QuestionReply) -> bool {
    matches!(reply, QuestionReply::Answered(answer, None) if matches!(answer.value, AnswerValue::Deny { .. }))
}

fn question() -> Question {
    let subject = rondo_types::QuestionSubject {
        step: 1,
        tool: "t".to_owned(),
        ..rondo_types::QuestionSubject::default()
    };
    let terms = rondo_core::ports::Terms::default();
    let (call, words) = (CallId::new("c"), "may it?".to_owned());
    rondo_core::ports::question_about_call(subject, &call, QuestionKind::Approval, words, &terms)
}
