//! The tool that has a task done in a session of its own.

use super::child::Child;
use super::parent::ParentTurn;
use super::task::{Task, schema};
use crate::error::SetupError;
use async_trait::async_trait;
use rondo_core::Tool;
use rondo_core::ports::{CallEnd, InterruptedCall, Reconciled, ToolInvocation};
use rondo_types::{CallId, Concurrency, Effects, Recovery, ToolErrorCode, ToolOutcome, ToolSpec};
use std::sync::Arc;

/// The name of the tool.
pub(crate) const NAME: &str = "subagent";

/// Description for the model.
const DESCRIPTION: &str = "Has another agent do a task within your budget and permissions, and returns its answer. Use \
it for work whose details you do not need, such as a search through many files. Calls in one reply run at once if their \
tools only read.";

/// Starts a child with each call.
pub(crate) struct SubagentTool {
    /// None if it can only be described, as for a replay.
    pub(crate) parent: Option<Arc<ParentTurn>>,
}

#[async_trait]
impl Tool for SubagentTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: match self.parent.as_ref().map(|it| it.agents.listed()) {
                Some(agents) if !agents.is_empty() => {
                    format!("{DESCRIPTION}\n\nAgents that it can be done by:{agents}")
                }
                _ => DESCRIPTION.to_owned(),
            },
            parameters: schema(),
            // It has no effects but those of its child's calls, which the gate judges one by one.
            effects: Effects::ReadOnly,
            // Those that write wait for one another, and reading ones for nothing.
            concurrency: Concurrency::Shared,
            recovery: Recovery::Checkable,
            runs_turns: true,
            ..ToolSpec::default()
        }
    }

    async fn call(&self, _: ToolInvocation) -> ToolOutcome {
        failed("a subagent runs within a turn only")
    }

    async fn run(&self, invocation: ToolInvocation) -> CallEnd {
        let Some(parent) = &self.parent else {
            return CallEnd::Done(self.call(invocation).await);
        };
        match started(parent, invocation).await {
            Ok(end) => end,
            Err(outcome) => CallEnd::Done(*outcome),
        }
    }

    async fn reconcile(&self, call: &InterruptedCall) -> Reconciled {
        let Some(parent) = &self.parent else {
            return Reconciled::Unknown;
        };
        // The key ends with the call, in which there is no dash if it is one that an engine made.
        let call_id = call.idempotency_key.strip_prefix(parent.session.as_str());
        let call_id = call_id.and_then(|it| it.strip_prefix('-'));
        let call_id = call_id.or_else(|| Some(call.idempotency_key.rsplit_once('-')?.1));
        let id = call_id.and_then(|it| parent.session.child(&CallId::new(it)));
        let Some(id) = id else {
            return Reconciled::Unknown;
        };
        let child = Child {
            parent,
            id,
            agent: None,
        };
        match (child.has_begun(), child.recorded_end()) {
            (Ok(false), _) => Reconciled::NotDone,
            (Ok(true), Ok(Some(outcome))) => Reconciled::Done(outcome),
            (Ok(true), Ok(None)) => Reconciled::Running,
            (Err(_), _) | (_, Err(_)) => Reconciled::Unknown,
        }
    }
}

async fn started(
    parent: &Arc<ParentTurn>,
    mut invocation: ToolInvocation,
) -> Result<CallEnd, Box<ToolOutcome>> {
    let invalid = |why: String| ToolOutcome::error(ToolErrorCode::InvalidArgs, why);
    let task = Task::read(&invocation.arguments).map_err(invalid)?;
    let agent = match &task.agent {
        Some(name) => Some(parent.agents.named(name).map_err(|error| {
            let hint = error.hint.clone().unwrap_or_default();
            invalid(format!("{}; {hint}", error.line()))
        })?),
        None => None,
    };
    let tools = parent.tools(agent, task.tools.as_deref());
    let tools = tools.map_err(invalid)?;
    let id = parent.session.child(&invocation.call_id);
    let id = id.ok_or_else(|| failed("the session's id is too long for one of a subagent"))?;
    let child = Child { parent, id, agent };
    invocation.allowance = task.within(invocation.allowance);
    let has_begun = child.has_begun().map_err(|err| not_run(&err))?;
    if invocation.allowance.is_spent() && !has_begun {
        let none = "there is no budget left for a subagent";
        return Err(ToolOutcome::error(ToolErrorCode::NotRun, none).into());
    }
    let place = tokio::select! {
        biased;
        () = invocation.cancel.cancelled() => {
            let stopped = "it was stopped before it began";
            return Err(ToolOutcome::error(ToolErrorCode::Cancelled, stopped).into());
        }
        place = parent.places.take(tools.writes) => place,
    };
    let end = child.run(&task, tools, invocation).await;
    drop(place);
    end.map_err(|err| not_run(&err))
}

fn failed(why: impl Into<String>) -> ToolOutcome {
    ToolOutcome::error(ToolErrorCode::Failed, why)
}

fn not_run(error: &SetupError) -> Box<ToolOutcome> {
    let why = format!("the subagent could not work: {}", error.line());
    Box::new(failed(why))
}
