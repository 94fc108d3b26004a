//! The tool `spawn`: has an agent of its own do something beside the conversation, and report to the chat.

use super::{Failure, Scope, arguments, failed, invalid, outcome};
use crate::chats;
use crate::cron::runner::mail;
use async_trait::async_trait;
use rondo_core::clock::Clock;
use rondo_core::ports::HostCommit;
use rondo_core::{Tool, ToolInvocation};
use rondo_types::{Concurrency, Effects, Recovery, ToolHints, ToolKind, ToolOutcome, ToolSpec};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// Bytes of a task.
const TASK_BYTES_MAX: usize = 16 << 10;
/// Agents that may work beside one conversation at once.
const AT_ONCE_MAX: usize = 4;
/// The key of the mail that begins the work.
const KEY: &str = "spawned";

/// Begins work beside the conversation: `spawn {task}`.
pub(super) struct Spawn(pub(super) Arc<Scope>);

#[derive(Deserialize)]
struct Args {
    task: String,
}

#[async_trait]
impl Tool for Spawn {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "spawn".to_owned(),
            description: "Has another agent work on a task while this conversation goes on. It knows nothing of this \
                          conversation, works in the same directory, and its answer is sent to this chat when it is done."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "task": {"type": "string", "description": "Everything it needs to know: what to do, with what, and what to report."},
                },
                "required": ["task"],
            }),
            effects: Effects::Writes,
            concurrency: Concurrency::Shared,
            recovery: Recovery::Idempotent,
            kind: ToolKind::Other,
            hints: ToolHints::default(),
            ..ToolSpec::default()
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        outcome(self.begin(invocation).await)
    }
}

impl Spawn {
    async fn begin(&self, invocation: ToolInvocation) -> Result<ToolOutcome, Failure> {
        let args: Args = arguments(invocation.arguments)?;
        if args.task.trim().is_empty() || args.task.len() > TASK_BYTES_MAX {
            return Err(invalid(format!("a task has 1 to {TASK_BYTES_MAX} bytes")));
        }
        let core = self.0.core()?;
        let child = self.0.session.child(&invocation.call_id);
        let child = child.ok_or_else(|| failed("the id of its session would be too long"))?;
        if core.shown.running_below(&self.0.session) >= AT_ONCE_MAX {
            return Err(failed(format!(
                "{AT_ONCE_MAX} agents work beside this conversation already"
            )));
        }
        let now = Clock::system().now();
        let at = rondo_runtime::service::local_time(now);
        let text = format!(
            "[{at}, task of a conversation; your answer is sent to its chat]\n{}",
            args.task
        );
        let text = (text, self.0.has_outside_text(&core).await?);
        let commit = HostCommit {
            event: Some(format!("spawn:{}", invocation.idempotency_key)),
            mail: vec![mail(&child, KEY.to_owned(), &self.0.actor.id, text, now)],
            rows: vec![chats::session_row(&child, &self.0.chat.key)],
            ..HostCommit::default()
        };
        core.store.commit(commit).await.map_err(failed)?;
        core.wake(&child);
        Ok(ToolOutcome::text(format!(
            "It works as session `{child}`, and its answer is sent to this chat by itself. Do not wait for it."
        )))
    }
}
