//! What a host brings to the turns of its sessions.

use crate::commits::CommitSource;
use crate::error::{Result, SetupError};
use crate::extensions::Extensions;
use crate::memory::{SEARCH_MEMORY, WRITE_MEMORY};
use crate::parking;
use crate::settings::Settings;
use async_trait::async_trait;
use rondo_core::observe::Observer;
use rondo_core::{Approver, Tool};
pub use rondo_policy::Answers;
use rondo_types::{Message, SessionId, TimeMs};
use std::path::PathBuf;
use std::sync::Arc;

/// A turn that is about to begin, or to go on.
pub struct AskedTurn<'a> {
    /// Its session.
    pub session: &'a SessionId,
    /// The key of the message that begins it, and who submitted that; none where the turn goes on that was parked or cut
    /// off.
    pub begins: Option<(&'a str, &'a str)>,
    /// What is in force in the session.
    pub settings: &'a Settings,
    /// When the session began.
    pub began: TimeMs,
    /// What was said before, in order.
    pub history: &'a [Arc<Message>],
}

/// Which of the tools that the settings name a turn may use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ToolFilter {
    /// All of them.
    #[default]
    All,
    /// All but these.
    Without(Vec<String>),
    /// These alone, and none of any server.
    Only(Vec<String>),
}

impl ToolFilter {
    /// Returns whether a tool may be used.
    #[must_use]
    pub fn allows(&self, tool: &str) -> bool {
        match self {
            Self::All => true,
            Self::Without(names) => !names.iter().any(|it| it == tool),
            Self::Only(names) => names.iter().any(|it| it == tool),
        }
    }

    /// Returns whether the tools of servers may be used.
    #[must_use]
    pub fn allows_servers(&self) -> bool {
        !matches!(self, Self::Only(_))
    }
}

/// What a host brings to one turn.
pub struct HostTurn {
    /// Answers what the turn asks.
    pub approver: Arc<dyn Approver>,
    /// Tools of the host: those that the turn may use, whether or not its profile names them.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Which of the settings' tools the turn may use.
    pub tool_filter: ToolFilter,
    /// What is added to the turn, after what the runtime adds to all.
    pub extensions: Extensions,
    /// The system prompt in place of the one of the settings.
    pub system: Option<Vec<String>>,
    /// How many messages of the past stay once there are more than the profile's `compaction.max_messages`: fewer than
    /// that, so that the beginning of requests stays equal for several turns. What the profile says where it is `None`.
    pub keep_messages: Option<u32>,
    /// Where the memories of this person are, in place of the user's of this machine and the project's. The tool that
    /// saves them is `write_memory` then.
    pub memory: Option<PathBuf>,
    /// Tells which calls of the host's tools only say something to the readers of the turn's answer.
    pub answers: Answers,
    /// Says what becomes durable together with the turn's records.
    pub commits: Option<Arc<dyn CommitSource>>,
    /// Sees what happens in the turn.
    pub observer: Option<Arc<dyn Observer>>,
    /// Whether it is stopped as soon as it goes on, so that its end is recorded.
    pub is_stopped: bool,
}

impl HostTurn {
    /// One with an approver, and nothing else of the host's own.
    #[must_use]
    pub fn new(approver: Arc<dyn Approver>) -> Self {
        Self {
            approver,
            tools: Vec::new(),
            tool_filter: ToolFilter::All,
            extensions: Extensions::default(),
            system: None,
            keep_messages: None,
            memory: None,
            answers: Answers::default(),
            commits: None,
            observer: None,
            is_stopped: false,
        }
    }
}

impl HostTurn {
    /// Adds the names of the host's tools to those that a turn uses, and has memories saved under their own name.
    pub(crate) fn name_tools(&self, names: &mut Vec<String>) {
        let own = self.tools.iter().map(|tool| tool.spec().name);
        let of_memory = [WRITE_MEMORY, SEARCH_MEMORY].map(str::to_owned);
        let of_memory = of_memory.into_iter().filter(|_| self.memory.is_some());
        for name in own.chain(of_memory) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
}

/// What a host brings to the turns of its sessions.
#[async_trait]
pub trait SessionHost: Send + Sync + 'static {
    /// Returns who answers what a turn asks. By the setting `approval`, where that is `ask`: the turn is parked, and
    /// anyone who listens may answer.
    fn approver(&self, _session: &SessionId, settings: &Settings) -> Arc<dyn Approver> {
        parking::approver(settings, parking::parking(settings))
    }

    /// Returns tools that the host brings.
    fn tools(&self, _session: &SessionId) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    /// Returns what the host adds to the turns of a session, after what its runtime adds to all.
    fn extensions(&self, _session: &SessionId) -> Extensions {
        Extensions::default()
    }

    /// Returns all that the host brings to a turn; by default what the functions above say.
    ///
    /// # Errors
    /// When the turn is not to begin, or not now: the message stays in its mailbox, unless the host took it back.
    async fn turn(&self, turn: &AskedTurn<'_>) -> Result<HostTurn> {
        let session = turn.session;
        Ok(HostTurn {
            tools: self.tools(session),
            extensions: self.extensions(session),
            ..HostTurn::new(self.approver(session, turn.settings))
        })
    }

    /// Is told that a session could not be taken, or its turn not begun. `key` names the message of that turn, where it is
    /// known.
    fn failed(&self, session: &SessionId, key: Option<&str>, error: &SetupError) {
        let _ = (session, key, error);
    }
}

/// A host that brings nothing of its own.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHost;

impl SessionHost for NoHost {}
