//! Additions of a host to turns: sources of tools, interceptors and budgets.

use crate::service::{World, approve, event, is_parked, is_result, text, until};
use async_trait::async_trait;
use rondo_core::ports::{
    CallDecision, GateRequest, MemoryBudget, ToolInvocation, ToolScope, ToolSource,
};
use rondo_core::session::Delivery;
use rondo_core::{Interceptor, Tool};
use rondo_runtime::error::Result;
use rondo_runtime::service::{AskedTurn, Cursor, SessionHost, SessionService, Update};
use rondo_runtime::{Extensions, Layer, NoNotices, Runtime, TurnBuilder};
use rondo_testkit::{CallScript, ReplyScript, Response, openai};
use rondo_types::{Effects, EventBody, Message, QuestionKind, ToolOutcome, ToolSpec};
use serde_json::json;
use std::sync::Arc;

/// A tool that looks and changes nothing.
struct Look(&'static str);

#[async_trait]
impl Tool for Look {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.0.to_owned(),
            effects: Effects::ReadOnly,
            ..ToolSpec::default()
        }
    }

    async fn call(&self, _: ToolInvocation) -> ToolOutcome {
        ToolOutcome::text(format!("{} was here", self.0))
    }
}

struct Source(&'static str);

impl ToolSource for Source {
    fn tools(&self, _: &ToolScope) -> Vec<Arc<dyn Tool>> {
        vec![Arc::new(Look(self.0))]
    }

    fn generation(&self) -> u64 {
        1
    }
}

/// Denies one tool.
struct Never(&'static str);

#[async_trait]
impl Interceptor for Never {
    fn name(&self) -> &str {
        "never"
    }

    async fn before_tool(&self, call: &GateRequest) -> CallDecision {
        match call.spec.name == self.0 {
            true => CallDecision::Deny {
                reason: "not today".to_owned(),
            },
            false => CallDecision::Allow,
        }
    }
}

/// Offers a tool to its own sessions.
struct Host;

#[async_trait]
impl SessionHost for Host {
    async fn turn(&self, _: &AskedTurn<'_>, builder: &mut TurnBuilder) -> Result<()> {
        builder.extensions.tool_sources = vec![Arc::new(Source("of_host"))];
        Ok(())
    }
}

fn calls(names: &[&str]) -> Response {
    let calls = names.iter().map(|it| CallScript::new(it, it, &json!({})));
    openai::streamed(&ReplyScript::calls(calls.collect::<Vec<_>>()).usage(1, 1))
}

fn service(world: &World, extensions: Extensions) -> SessionService {
    let env = crate::env(&world.home, &world.server);
    let runtime = Runtime::new(env, Layer::default(), Arc::new(NoNotices));
    runtime.extend(extensions);
    SessionService::open(runtime, world.project.path().to_owned(), Host).unwrap()
}

fn outcomes(updates: &[Update]) -> Vec<String> {
    let events = updates.iter().filter_map(|it| event(&it.body));
    let results = events.filter_map(|it| match it {
        EventBody::ToolCallFinished { result, .. } => Some(result.to_string()),
        _ => None,
    });
    results.collect()
}

#[tokio::test]
async fn tools_of_the_runtime_and_of_the_host_are_on_offer_and_interceptors_judge_them() {
    let world = World::new([calls(&["of_runtime", "of_host"]), text(&["Done."])]).await;
    let service = service(
        &world,
        Extensions {
            tool_sources: vec![Arc::new(Source("of_runtime"))],
            interceptors: vec![Arc::new(Never("of_host"))],
            ..Extensions::default()
        },
    );
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    let message = Message::user("Look.");
    session.submit(message, Delivery::Queue).await.unwrap();
    let told = until(&mut listener, is_result).await;
    let outcomes = outcomes(&told);
    assert!(outcomes[0].contains("of_runtime was here"), "{outcomes:?}");
    assert!(outcomes[1].contains("not today"), "{outcomes:?}");
}

#[tokio::test]
async fn a_budget_that_is_spent_parks_the_turn_and_an_answer_lets_it_go_on() {
    let world = World::new([text(&["Done."])]).await;
    let budget = Arc::new(MemoryBudget::new(Some(1), None));
    let service = service(
        &world,
        Extensions {
            budgets: vec![Arc::clone(&budget) as _],
            ..Extensions::default()
        },
    );
    let session = service.new_session(world.options());
    let mut listener = session.subscribe(Cursor::START);
    let message = Message::user("Answer.");
    session.submit(message, Delivery::Queue).await.unwrap();
    until(&mut listener, is_parked).await;
    assert_eq!(world.server.requests().len(), 0);
    let question = session.questions().await.unwrap().remove(0);
    assert_eq!(question.kind, QuestionKind::Budget);
    session.answer(approve(&question)).await.unwrap();
    until(&mut listener, is_result).await;
    assert_eq!(world.server.requests().len(), 1);
    service.close().await;
    assert_eq!(budget.used().tokens, 2);
}
