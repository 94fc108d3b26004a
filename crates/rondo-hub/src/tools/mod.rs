//! The hub's own tools: they know the chat of their turn, and who speaks in it.
//!
//! Settings, users and policy are not tools: no turn can change what binds it.
//!
//! # Layout
//! - [`message`]: sends something to a chat in the middle of a turn. [`spawn`]: has work done beside the conversation.
//! - [`cron`]: scheduled jobs. [`skills`]: makes, lists, reads and deletes skills.

mod cron;
mod message;
mod skills;
mod spawn;

pub(crate) use skills::skills_command;

use crate::channel::ChatKind;
use crate::chats::Chat;
use crate::hub::Core;
use crate::users::{Actor, Role};
use rondo_core::Tool;
use rondo_runtime::service::Answers;
use rondo_types::{SessionId, ToolErrorCode, ToolOutcome};
use std::sync::{Arc, Weak};

/// State that the tools of a turn share.
pub(crate) struct Scope {
    pub(crate) core: Weak<Core>,
    pub(crate) session: SessionId,
    pub(crate) chat: Chat,
    pub(crate) actor: Actor,
}

impl Scope {
    fn core(&self) -> Result<Arc<Core>, Failure> {
        let closed = || Failure(ToolErrorCode::Internal, "the hub is closed".to_owned());
        self.core.upgrade().ok_or_else(closed)
    }

    /// Returns whether the conversation holds text from outside, which what it starts then has, too.
    async fn has_outside_text(&self, core: &Core) -> Result<bool, Failure> {
        let found = core.service.has_outside_text(&self.session).await;
        found.map_err(failed)
    }
}

/// Returns the tools that the sender of the message has in its chat. Guests have none, since what they ask for reaches
/// nothing of this machine; members have those that stay in their chat.
pub(crate) fn of(scope: Scope) -> Vec<Arc<dyn Tool>> {
    let scope = Arc::new(scope);
    let is_spawned = scope.session.parent().is_some();
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    if scope.actor.role == Role::Guest {
        return tools;
    }
    tools.push(Arc::new(message::SendMessage(Arc::clone(&scope))));
    tools.push(Arc::new(skills::ListSkills(Arc::clone(&scope))));
    tools.push(Arc::new(skills::ReadSkill(Arc::clone(&scope))));
    if !is_spawned {
        tools.push(Arc::new(spawn::Spawn(Arc::clone(&scope))));
    }
    // In a group others could have the owner's turn do it.
    if scope.chat.kind == ChatKind::Private {
        tools.push(Arc::new(cron::Cron(Arc::clone(&scope))));
    }
    if scope.actor.role == Role::Owner && scope.chat.kind == ChatKind::Private {
        tools.push(Arc::new(skills::CreateSkill(Arc::clone(&scope))));
        tools.push(Arc::new(skills::DeleteSkill(Arc::clone(&scope))));
    }
    tools
}

/// Returns the test for calls that only write in the chat itself.
pub(crate) fn answers(chat: &Chat) -> Answers {
    let chat = chat.key.clone();
    Answers::new(move |tool, arguments| {
        tool == message::NAME && message::is_for_chat(arguments, &chat)
    })
}

/// Why a call failed.
struct Failure(ToolErrorCode, String);

impl From<Failure> for ToolOutcome {
    fn from(Failure(code, why): Failure) -> Self {
        Self::error(code, why)
    }
}

fn outcome(result: Result<ToolOutcome, Failure>) -> ToolOutcome {
    result.unwrap_or_else(ToolOutcome::from)
}

fn invalid(why: impl Into<String>) -> Failure {
    Failure(ToolErrorCode::InvalidArgs, why.into())
}

fn failed(why: impl std::fmt::Display) -> Failure {
    Failure(ToolErrorCode::Failed, why.to_string())
}

/// Reads arguments that fit the schema.
fn arguments<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> Result<T, Failure> {
    serde_json::from_value(value).map_err(|error| invalid(error.to_string()))
}
