//! State that a child shares with the turn that starts it.

use super::narrowed::NarrowedTools;
use super::{AT_ONCE_MAX, NAME};
use crate::agents::{Agent, Agents};
use crate::extensions::Extensions;
use crate::runtime::Runtime;
use crate::sandboxed::SandboxOffer;
use crate::settings::Settings;
use crate::spec::{ConnectedModel, TurnSpec};
use crate::target::ModelTarget;
use crate::todo;
use crate::tools::Toolset;
use rondo_core::ports::{MailId, ToolScope};
use rondo_core::redact::Secrets;
use rondo_core::storage::Store;
use rondo_core::{Approver, Gate, OutsideText, Tool};
use rondo_policy::{LookingCalls, Workdir};
use rondo_types::{Answer, Effects, Profile, SessionId, ToolSpec};
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use tokio::sync::{Mutex, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

/// State that a turn shares with its children. They may use less of it, never more.
pub(crate) struct ParentTurn {
    pub(crate) runtime: Runtime,
    pub(crate) settings: Settings,
    /// The journal; `None` if the session is not kept.
    pub(crate) store: Option<Store>,
    pub(crate) session: SessionId,
    pub(crate) profile: Arc<Profile>,
    pub(crate) target: ModelTarget,
    pub(crate) fallbacks: Vec<ModelTarget>,
    /// Settings on which the model's connection depends.
    pub(crate) connected_from: String,
    pub(crate) connected: ConnectedModel,
    pub(crate) approver: Arc<dyn Approver>,
    pub(crate) secrets: Secrets,
    /// The host's own tools.
    pub(crate) live: Vec<Arc<dyn Tool>>,
    pub(crate) workdir: Option<Workdir>,
    pub(crate) extensions: Extensions,
    /// What was answered while the turn was parked.
    pub(crate) answers: Vec<(Answer, Option<MailId>)>,
    /// The agent files that its children may use.
    pub(crate) agents: Agents,
    /// How many turns are above this one.
    pub(crate) depth: u32,
    pub(crate) outside_text: Option<OutsideText>,
    /// Parts that are built after the tools, of which the tool that starts children is one.
    pub(crate) built: OnceLock<BuiltParts>,
    pub(crate) places: Places,
}

/// Parts of a turn that are built after its tools.
pub(crate) struct BuiltParts {
    pub(crate) gate: Arc<dyn Gate>,
    /// Its own tools.
    pub(crate) specs: Arc<Vec<ToolSpec>>,
    /// The sandbox that its questions offer.
    pub(crate) offer: Option<SandboxOffer>,
    /// Record, in its gate, which judges their calls too, of read-only calls.
    pub(crate) looking: LookingCalls,
}

impl BuiltParts {
    /// Collects it from the turn's tools and its gate.
    pub(crate) fn of(toolset: &Toolset, gate: &Arc<dyn Gate>) -> Self {
        Self {
            gate: Arc::clone(gate),
            specs: toolset.tools.specs(),
            offer: toolset.offer.clone(),
            looking: toolset.looking(),
        }
    }
}

/// Permits of children: several at once, and one of those that write.
pub(crate) struct Places {
    all: Arc<Semaphore>,
    writing: Arc<Mutex<()>>,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(AT_ONCE_MAX)),
            writing: Arc::default(),
        }
    }
}

/// A place of a child, until it is dropped.
pub(super) struct ChildSlot {
    _any: Option<OwnedSemaphorePermit>,
    _writing: Option<OwnedMutexGuard<()>>,
}

impl Places {
    /// Waits for a place. One who writes waits for the other writer first, and takes no place from those who read
    /// meanwhile.
    ///
    /// # Cancel safety
    /// Cancel safe: the place in the queue is given up.
    pub(super) async fn take(&self, writes: bool) -> ChildSlot {
        let writing = match writes {
            true => Some(Arc::clone(&self.writing).lock_owned().await),
            false => None,
        };
        ChildSlot {
            // It is never closed.
            _any: Arc::clone(&self.all).acquire_owned().await.ok(),
            _writing: writing,
        }
    }
}

/// The tools of a child.
pub(super) struct ChildTools {
    /// Those that its parent has as its own.
    pub(super) names: Vec<String>,
    /// Additions to its turn.
    pub(super) extensions: Extensions,
    /// Set if any of them may change something.
    pub(super) writes: bool,
}

impl ParentTurn {
    /// Returns whether its children may start children.
    pub(super) fn has_grandchildren(&self) -> bool {
        self.depth + 1 < max_depth(&self.settings)
    }

    /// Chooses a child's tools of its parent's.
    ///
    /// # Errors
    /// When a tool is named that the parent does not have.
    pub(super) fn tools(
        &self,
        agent: Option<&Agent>,
        only: Option<&[String]>,
    ) -> Result<ChildTools, String> {
        let specs = self.built.get().map(|it| Arc::clone(&it.specs));
        let specs = specs.unwrap_or_default();
        let gets = |it: &ToolSpec| agent.is_none_or(|agent| agent.gets(&it.name));
        let own = specs.iter().filter(|it| self.may_pass_on(it) && gets(it));
        let mut own: Vec<&ToolSpec> = own.collect();
        let scope = ToolScope {
            session: self.session.clone(),
            turn: rondo_types::TurnId::new(""),
            step: 0,
        };
        let sources = self.extensions.tool_sources.iter();
        let offered = sources.flat_map(|it| it.tools(&scope)).map(|it| it.spec());
        let mut offered: Vec<ToolSpec> = offered.filter(gets).collect();
        let mut extensions = self.extensions.clone();
        if let Some(only) = only {
            let named: BTreeSet<String> = only.iter().cloned().collect();
            let has = |name: &String| {
                own.iter().any(|it| it.name == *name) || offered.iter().any(|it| it.name == *name)
            };
            if let Some(unknown) = named.iter().find(|it| !has(it)) {
                let known: Vec<&str> = own
                    .iter()
                    .map(|it| it.name.as_str())
                    .chain(offered.iter().map(|it| it.name.as_str()))
                    .collect();
                return Err(format!(
                    "there is no tool `{unknown}` to pass on; the tools are: {}",
                    known.join(", ")
                ));
            }
            own.retain(|it| named.contains(&it.name));
            offered.retain(|it| named.contains(&it.name));
        }
        if agent.is_some() || only.is_some() {
            let names = Arc::new(offered.iter().map(|it| it.name.clone()).collect());
            for source in &mut extensions.tool_sources {
                *source = Arc::new(NarrowedTools {
                    source: Arc::clone(source),
                    names: Arc::clone(&names),
                });
            }
        }
        let writes = |it: &ToolSpec| it.effects != Effects::ReadOnly || it.runs_turns;
        Ok(ChildTools {
            writes: own.iter().any(|it| writes(it)) || offered.iter().any(writes),
            names: own.into_iter().map(|it| it.name.clone()).collect(),
            extensions,
        })
    }

    /// A child's to-do list would hide its parent's.
    fn may_pass_on(&self, spec: &ToolSpec) -> bool {
        match spec.name.as_str() {
            todo::NAME => false,
            NAME => self.has_grandchildren(),
            _ => true,
        }
    }

    /// Returns the models, the profile and the tools of a new child.
    pub(super) fn spec(&self, agent: Option<&Agent>, tools: &ChildTools) -> TurnSpec {
        let mut profile = (*self.profile).clone();
        if let Some(agent) = agent {
            profile.system_prompt = Some(agent.prompt.clone());
        }
        profile.tools.clone_from(&tools.names);
        let own = profile.system_prompt.take().unwrap_or_default();
        profile.system_prompt = Some(
            format!("{}\n\n{NOTE}", own.trim_end())
                .trim_start()
                .to_owned(),
        );
        let own_target = agent.and_then(|it| self.model_of(it));
        TurnSpec {
            profile: Arc::new(profile),
            // The fallbacks are those of the parent's model.
            fallbacks: match own_target {
                Some(_) => Vec::new(),
                None => self.fallbacks.clone(),
            },
            target: own_target.unwrap_or_else(|| self.target.clone()),
            tool_names: tools.names.clone(),
        }
    }

    /// Returns the model that an agent file names; `None` if it names none, or one that cannot be asked here.
    fn model_of(&self, agent: &Agent) -> Option<ModelTarget> {
        let mut settings = self.settings.clone();
        settings.values.model = Some(agent.model.clone()?);
        settings.values.base_url = None;
        let target = ModelTarget::make(&settings);
        let usable = target.and_then(|it| it.check_key(&settings).map(|()| it));
        usable
            .map_err(|error| {
                let name = &agent.name;
                let note = format!("agent `{name}` asks the session's model: {}", error.line());
                self.runtime.notices().note(&note);
            })
            .ok()
    }
}

/// Follows the system prompt of a child.
const NOTE: &str = "You work on one task for another agent, which sees nothing but your final answer: put all that it \
needs into that. Nobody replies to questions; say what is missing instead.";

/// Returns how deep subagents may start subagents by the settings: 1 is not at all, and 0 forbids the first, too.
pub(crate) fn max_depth(settings: &Settings) -> u32 {
    settings.values.max_subagent_depth.unwrap_or(super::DEPTH)
}
