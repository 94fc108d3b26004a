//! Builds the context of a message: the seven layers, within a number of tokens.

use super::error::AgentError;
use super::session::Session;
use super::translate;
use super::types::{InboundMessage, LlmMessage, LlmRole};
use async_trait::async_trait;
use rondo_context::{Audience, ContextLayers, LayerKind, ListedSkill, TokenBudget, TokenEstimate};
use rondo_core::compaction::group_bytes;
use rondo_tools::context_files::ContextFiles;
use rondo_types::{Message, Role, Transcript};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Input of a model before its first step: the layers in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct Context {
    pub(super) system: Vec<String>,
    pub(super) history: Transcript,
    pub(super) message: Message,
    cut: Vec<LayerKind>,
}

impl Context {
    /// Builds the context of a message that continues a session, without a system prompt.
    #[must_use]
    pub fn new(session: &Session, message: &InboundMessage) -> Self {
        Self {
            system: Vec::new(),
            history: session.transcript(),
            message: Message::user(message.content.clone()),
            cut: Vec::new(),
        }
    }

    /// Adds a layer to the system prompt, after those that are there.
    #[must_use]
    pub fn with_layer(mut self, text: impl Into<String>) -> Self {
        self.system.push(text.into());
        self
    }

    /// Sets the history, which is the session's otherwise. Results that answer no call are left out, and so are system
    /// messages, which are layers.
    #[must_use]
    pub fn with_history(mut self, messages: &[LlmMessage]) -> Self {
        let (_, history) = translate::messages(messages, &translate::origin("context"));
        self.history = history;
        self
    }

    /// Sets the text of the message that is answered.
    #[must_use]
    pub fn with_message(mut self, text: impl Into<String>) -> Self {
        self.message = Message::user(text.into());
        self
    }

    /// Returns it as messages: the layers that precede the history in one system message, the history, and the
    /// message that is answered, once.
    #[must_use]
    pub fn messages(&self) -> Vec<LlmMessage> {
        let system = self.system.join("\n\n");
        let system = (!system.is_empty()).then(|| LlmMessage::new(LlmRole::System, system));
        let history = translate::llm_messages(&self.history);
        let message = LlmMessage::new(LlmRole::User, self.message.text());
        system.into_iter().chain(history).chain([message]).collect()
    }

    /// Returns the names of the layers that were cut to fit.
    pub fn cut(&self) -> impl Iterator<Item = &'static str> {
        self.cut.iter().map(|layer| layer.as_str())
    }
}

/// Builds the context of each message. [`SevenLayers`] is the design's own.
///
/// ```
/// use rondo::async_trait;
/// use rondo::design::hub::{AgentError, Context, ContextBuilder, InboundMessage, Session};
///
/// /// Names the channel.
/// struct Channel;
///
/// #[async_trait]
/// impl ContextBuilder for Channel {
///     async fn build(&self, session: &Session, message: &InboundMessage) -> Result<Context, AgentError> {
///         let layer = format!("You are asked on {}.", message.channel);
///         Ok(Context::new(session, message).with_layer(layer))
///     }
/// }
/// ```
#[async_trait]
pub trait ContextBuilder: Send + Sync {
    /// Builds the context of a message that continues a session.
    ///
    /// # Errors
    /// When the message is not to be answered, such as [`AgentError::EmptyMessage`] for one without text.
    ///
    /// # Cancel safety
    /// Dropped when the message's turn is.
    async fn build(
        &self,
        session: &Session,
        message: &InboundMessage,
    ) -> Result<Context, AgentError>;
}

/// Builds contexts from a workspace.
///
/// The layers: the system prompt (`SOUL.md`, `AGENTS.md`), the bootstrap (`BOOTSTRAP.md`, and `USER.md` for the owner),
/// long-term memory (`MEMORY.md`, in every session unless the owner's are named), skills (`skills/NAME/SKILL.md`), tool documentation (`TOOLS.md`), the
/// history, and the message. A file that is missing has no layer. Files are read again for each message.
#[derive(Debug, Clone)]
pub struct SevenLayers {
    workspace: Option<PathBuf>,
    tokens: u64,
    owner_sessions: BTreeSet<String>,
}

impl SevenLayers {
    /// The default of [`Self::with_token_limit`].
    pub const TOKENS: u64 = 32_000;

    /// Builds contexts of the history and the message alone.
    #[must_use]
    pub fn new() -> Self {
        Self {
            workspace: None,
            tokens: Self::TOKENS,
            owner_sessions: BTreeSet::new(),
        }
    }

    /// Builds contexts from the files of a directory.
    #[must_use]
    pub fn in_workspace(directory: impl Into<PathBuf>) -> Self {
        Self {
            workspace: Some(directory.into()),
            ..Self::new()
        }
    }

    /// Sets how many tokens a context may take, by four bytes a token. Near it the oldest history goes first; then
    /// `TOOLS.md`, the skills and the memory are cut, in this order. Nothing else is cut.
    #[must_use]
    pub fn with_token_limit(mut self, tokens: u64) -> Self {
        self.tokens = tokens;
        self
    }

    /// Names a session that is a private chat of the owner's: `USER.md` is shown there and nowhere else. Once one is
    /// named, the same is true of `MEMORY.md`.
    #[must_use]
    pub fn with_owner_session(mut self, session_id: impl Into<String>) -> Self {
        self.owner_sessions.insert(session_id.into());
        self
    }

    /// Returns the audience of a session's answers, as far as the program declares it.
    fn audience(&self, session: &Session) -> Audience {
        match self.owner_sessions.contains(&session.session_id) {
            true => Audience::Owner,
            // Memories are shown, and what is the owner's alone is not.
            false if self.owner_sessions.is_empty() => Audience::Member,
            false => Audience::Others,
        }
    }

    async fn layers(&self, message: &InboundMessage) -> Result<ContextLayers, AgentError> {
        let facts = Some(format!("This chat is on {}.", message.channel));
        let Some(workspace) = self.workspace.clone() else {
            return Ok(ContextLayers::default());
        };
        let read = tokio::task::spawn_blocking(move || ContextFiles::read(&workspace)).await;
        let files = read.map_err(|error| AgentError::Config(error.to_string()))?;
        for (path, problem) in &files.refused_skills {
            tracing::warn!(path = %path.display(), problem, "a skill cannot be used");
        }
        let skills = files.skills.into_iter().filter(|skill| skill.is_for_model);
        let layers = ContextLayers {
            soul: files.soul,
            agents: files.agents,
            facts,
            bootstrap: files.bootstrap,
            user: files.user,
            skills: skills
                .map(|skill| ListedSkill {
                    name: skill.name,
                    description: skill.description,
                    is_foreign: false,
                })
                .collect(),
            tools: files.tools,
            ..ContextLayers::default()
        };
        Ok(layers.with_memory("MEMORY.md", files.memory))
    }
}

#[async_trait]
impl ContextBuilder for SevenLayers {
    async fn build(
        &self,
        session: &Session,
        message: &InboundMessage,
    ) -> Result<Context, AgentError> {
        if message.content.trim().is_empty() {
            return Err(AgentError::EmptyMessage);
        }
        let layers = self.layers(message).await?;
        let budget = TokenBudget {
            tokens: self.tokens,
            estimate: TokenEstimate::default(),
        };
        let mut context = Context::new(session, message);
        let groups = group_bytes(&context.history).into_iter();
        let groups: Vec<usize> = groups
            .map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
            .collect();
        let layers = layers.layers(self.audience(session));
        let fitted = budget.fit(layers, &groups, message.content.len());
        leave_out(&mut context.history, fitted.groups_left_out);
        context.system = fitted.layers.into_iter().map(|layer| layer.text).collect();
        context.cut = fitted.cut;
        Ok(context)
    }
}

impl Default for SevenLayers {
    fn default() -> Self {
        Self::new()
    }
}

/// Removes so many of the oldest groups.
fn leave_out(history: &mut Transcript, groups: usize) {
    let begins = history.iter().enumerate();
    let begins = begins.filter(|(_, message)| message.role == Role::User && !message.synthetic);
    let mut begins: Vec<usize> = begins.map(|(at, _)| at).collect();
    if let Some(first) = begins.first_mut() {
        *first = 0;
    }
    let kept_from = begins.get(groups).copied().unwrap_or(history.len());
    if groups > 0 {
        history.drain(..kept_from);
    }
}
