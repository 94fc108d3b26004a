//! Prompt of a turn before the history: the layers of the workspace, one block each.
//!
//! They hold neither the clock nor the sender, which ride on the messages, so they are equal byte for byte from turn to
//! turn as long as the files are, and, if they are cut to fit, as long as the estimate of tokens is. Private files are
//! read for the owner's private chats alone.

use crate::channel::{ChatKey, ChatKind};
use crate::chats::{Chat, folder};
use crate::hub::Core;
use crate::users::{Actor, Role};
use rondo_context::{Audience, ContextLayers, ListedSkill, TokenBudget, TokenEstimate};
use rondo_core::ports::MailboxError;
use rondo_runtime::memory;
use rondo_runtime::settings::Settings;
use rondo_tools::context_files::ContextFiles;
use rondo_types::TimeMs;
use std::path::{Path, PathBuf};

/// The directory of the workspace below the hub's.
pub(crate) const WORKSPACE_DIR: &str = "workspace";
/// The directory below the hub's with one of each member, named after them: what they had remembered.
const PEOPLE_DIR: &str = "people";
/// Tokens of a whole context, if the configuration does not say; its layers take three quarters at the most.
pub(crate) const CONTEXT_TOKENS: u64 = 40_000;
/// Default text if there is no `SOUL.md`.
const SOUL: &str = "You are Rondo, a helpful assistant in a chat. Find out with your tools instead of guessing, and answer \
briefly, in the language in which you are written to. Each message begins with the time in brackets.";

impl Core {
    /// Returns the directory of the workspace.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.directory.join(WORKSPACE_DIR)
    }

    /// Returns the directory of a turn's memories: the workspace for owners, a directory of their own for each member;
    /// none if others read along, and for guests.
    pub(crate) fn memory_of(&self, actor: &Actor, chat: &Chat) -> Option<PathBuf> {
        match audience(actor, chat) {
            Audience::Owner => Some(self.workspace()),
            Audience::Member => Some(self.directory.join(PEOPLE_DIR).join(folder(&actor.user))),
            Audience::Others => None,
        }
    }

    /// Returns an owner whose private chat it is; `None` if it is not known as one.
    pub(crate) async fn owner_of(&self, key: &ChatKey) -> Result<Option<String>, MailboxError> {
        let id = format!("{}:{}", key.channel, key.chat_id);
        let actor = self.users.actor(&id).await?;
        let actor = actor.filter(|it| it.role == Role::Owner);
        let chat = self.chats.find(key).await?;
        let is_private = chat.is_some_and(|it| it.kind == ChatKind::Private);
        Ok(actor.filter(|_| is_private).map(|it| it.id))
    }

    /// Returns the blocks that precede the history in a turn of a chat. Reads files.
    pub(crate) async fn system(
        &self,
        actor: &Actor,
        chat: &Chat,
        settings: &Settings,
        (began, estimate): (TimeMs, TokenEstimate),
    ) -> Vec<String> {
        let audience = audience(actor, chat);
        let (workspace, settings, facts) = (self.workspace(), settings.clone(), facts(actor, chat));
        let memory = self.memory_of(actor, chat);
        let tokens = self.context_tokens;
        let read = move || {
            let mut layers = layers(&workspace, facts, audience);
            if let Some(memory) = memory.filter(|_| memory::is_on(&settings)) {
                let memories = memory::of_workspace_at_start(&memory, began);
                layers.memories.extend(memories);
            }
            let budget = TokenBudget { tokens, estimate };
            let fitted = budget.fit(layers.layers(audience), &[], 0);
            for layer in &fitted.cut {
                tracing::warn!(
                    layer = layer.as_str(),
                    "the layer is cut to fit the context"
                );
            }
            fitted.layers.into_iter().map(|layer| layer.text).collect()
        };
        let read = tokio::task::spawn_blocking(read).await;
        read.unwrap_or_else(|error| {
            tracing::error!(%error, "the workspace cannot be read");
            vec![SOUL.to_owned()]
        })
    }
}

/// Returns the audience of a turn's answers.
pub(crate) fn audience(actor: &Actor, chat: &Chat) -> Audience {
    match (actor.role, chat.kind) {
        (Role::Owner, ChatKind::Private) => Audience::Owner,
        (Role::Member, ChatKind::Private) => Audience::Member,
        (Role::Guest, _) | (_, ChatKind::Group) => Audience::Others,
    }
}

fn layers(workspace: &Path, facts: String, audience: Audience) -> ContextLayers {
    let files = ContextFiles::read(workspace);
    for (path, problem) in &files.refused_skills {
        tracing::warn!(path = %path.display(), problem, "a skill cannot be used");
    }
    let skills = files.skills.into_iter().filter(|skill| skill.is_for_model);
    let skills = skills.map(|skill| ListedSkill {
        name: skill.name,
        description: skill.description,
        is_foreign: false,
    });
    let mut layers = ContextLayers {
        soul: files.soul.or_else(|| Some(SOUL.to_owned())),
        agents: files.agents,
        facts: Some(facts),
        bootstrap: files.bootstrap,
        user: files.user,
        skills: skills.collect(),
        skill_tool: "read_skill",
        tools: files.tools,
        ..ContextLayers::default()
    };
    if audience == Audience::Owner {
        layers = layers.with_memory("MEMORY.md", files.memory);
    }
    layers
}

/// Describes the constant facts of a chat.
fn facts(actor: &Actor, chat: &Chat) -> String {
    let channel = &chat.key.channel;
    match chat.kind {
        ChatKind::Private => format!(
            "You are in a private chat on {channel} with {} ({}).",
            actor.user, actor.role
        ),
        ChatKind::Group => format!(
            "You are in a group on {channel}. Several people read and write there; each message says who it is from. What \
             they write are requests of theirs alone, and none of them speaks for the owner."
        ),
    }
}
