//! Builds a turn of a session, and runs it.

use crate::agents::Agents;
use crate::budgets;
use crate::commits::{CommitSource, SendingJournal};
use crate::confined;
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::extensions::Extensions;
use crate::fallbacks;
use crate::ids::new_turn;
use crate::look_first::FirstLook;
use crate::mcp::HeldTools;
use crate::memory::{self, SEARCH_MEMORY, WRITE_MEMORY};
use crate::parking::{MailApprover, SessionApprover};
use crate::review::{Review, ReviewGate, ReviewWarnings};
use crate::runtime::Runtime;
use crate::sandboxed::{SandboxApprover, SandboxGate, SandboxOffer};
use crate::sessions::{Conversation, CutOff, WatchedJournal};
use crate::settings::Settings;
use crate::spec::{ConnectedModel, TurnSpec};
use crate::subagent::{self, BuiltParts, ParentTurn, Places, SubagentTool};
use crate::system_prompt;
use crate::terminal::{ShowTerminal, TerminalContext};
use crate::todo::TodoTool;
use crate::tools::{self, Offering, Toolset, ToolsetOptions};
use crate::unchecked::{UncheckedApprover, UncheckedGate};
use crate::unmatched::UnmatchedGate;
use crate::values::ApprovalMode;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rondo_core::clock::Clock;
use rondo_core::observe::Observer;
use rondo_core::ports::{Commit, MailId, OneAtATime, ProcessEnd};
use rondo_core::redact::Secrets;
use rondo_core::storage::Store;
use rondo_core::{
    Approver, EventSender, Gate, Interceptor, Model, OutsideText, ResumeError, Tool, TurnControl,
    TurnEnd, TurnSetup, control, events, resume_turn, run_turn,
};
use rondo_memory::{Memories, Outside};
pub use rondo_policy::Answers;
use rondo_policy::Workdir;
use rondo_sandbox::SandboxMode;
use rondo_types::{Message, Outcome, SessionId, Transcript, TurnEvent, TurnId};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

/// How a turn starts.
pub enum TurnStart {
    /// With a message.
    Message {
        /// What it says.
        message: Arc<Message>,
        /// Its row of the session's mailbox and the revision that it was read with; none if it is in no mailbox. The row is
        /// removed with the turn's first records unless it was edited since.
        row: Option<(MailId, u64)>,
    },
    /// From the records of a turn that was interrupted.
    CutOff(Arc<CutOff>),
}

impl TurnStart {
    /// Returns the message that begins the turn; `None` if it continues.
    pub(crate) fn message(&self) -> Option<&Arc<Message>> {
        match self {
            Self::Message { message, .. } => Some(message),
            Self::CutOff(_) => None,
        }
    }
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

/// Says how the process ends by an outcome.
pub type EndNote = Box<dyn FnOnce(&Outcome) -> ProcessEnd + Send + Sync>;

/// A turn that is not built yet: what it runs with, how it starts, and what its host contributes. [`Session::turn`](crate::Session::turn) builds
/// it; there is no other way to a [`Turn`].
pub struct TurnBuilder {
    /// The models, profile and tools.
    pub spec: TurnSpec,
    pub(crate) start: TurnStart,
    pub(crate) connected: ConnectedModel,
    /// Decides on calls that the gate does not decide, usually by asking the user.
    pub approver: Arc<dyn Approver>,
    /// Judges the calls, in place of the gate of the settings.
    pub gate: Option<Arc<dyn Gate>>,
    /// Test for calls of the host's tools that only address the readers of the turn's answer.
    pub answers: Answers,
    /// Tools of the host that are offered whether or not the profile names them.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Tools of the host that are offered if the profile names them, such as the functions of a live Python session.
    pub live: Vec<Arc<dyn Tool>>,
    /// Which of the settings' tools the turn may use. The host's own are not affected.
    pub tool_filter: ToolFilter,
    /// Added to the turn, after what the runtime adds to all.
    pub extensions: Extensions,
    /// The system prompt, in place of the one of the settings.
    pub system: Option<Vec<String>>,
    /// The directory of this person's memories, in place of the user's of this machine and the project's. The tool that
    /// saves them is `write_memory` then.
    pub memory: Option<PathBuf>,
    /// Source of the changes that become durable together with the turn's records.
    pub commits: Option<Arc<dyn CommitSource>>,
    /// Sees what happens in the turn.
    pub observer: Option<Arc<dyn Observer>>,
    /// Says how the process ends by the turn's outcome, for the record of its end.
    pub end_note: Option<EndNote>,
    /// Set if the host shows no text before the turn is over, so that a reply that is cut in its middle is requested
    /// again.
    pub text_is_unseen: bool,
    /// Set if the turn must be stopped as soon as it continues, so that its end is recorded.
    pub is_stopped: bool,
    /// The JSON Schema that the answer must fit.
    pub schema: Option<Value>,
    /// Values that are redacted from everything that is sent, shown or recorded; the key of the model and the tokens of
    /// servers are added when the turn is built.
    pub secrets: Secrets,
    /// The directory and environment of the user's shell, if the host has one.
    pub workdir: Option<Workdir>,
    /// The commands and the screen of the user's terminal, if the host shows one.
    pub terminal: TerminalContext,
    /// Notes text from outside that the turn reads, in place of what the session notes; text counts in both.
    pub outside_text: Option<OutsideText>,
    /// The turn that started this one; only a subagent's has one.
    pub(crate) parent: Option<Arc<ParentTurn>>,
}

/// A turn that is ready to run.
pub struct Turn {
    setup: TurnSetup,
    start: TurnStart,
    history: Transcript,
    toolset: Toolset,
    secrets: Secrets,
    observer: Option<Arc<dyn Observer>>,
    end_note: Option<EndNote>,
    text_is_unseen: bool,
    /// Set if it must be cancelled as soon as it runs.
    pub(crate) is_stopped: bool,
    /// Review that the user must do in its directories.
    review: Review,
    /// How far its commands are confined; `None` if they are not.
    sandbox: Option<SandboxMode>,
    /// The journal of its session.
    journal: Arc<WatchedJournal>,
}

/// The session that a turn is built for.
#[derive(Clone, Copy)]
pub(crate) struct TurnSession<'a> {
    pub(crate) runtime: &'a Runtime,
    pub(crate) settings: &'a Settings,
    /// The conversation before the turn, and its journal.
    pub(crate) conversation: &'a Conversation,
    /// The journal of all sessions; `None` if this one is not kept.
    pub(crate) store: Option<&'a Store>,
}

impl TurnBuilder {
    /// Starts with a connected model, an approver and these secrets, and nothing else of a host's.
    #[must_use]
    pub fn new(
        spec: TurnSpec,
        start: TurnStart,
        connected: ConnectedModel,
        approver: Arc<dyn Approver>,
        secrets: Secrets,
    ) -> Self {
        Self {
            spec,
            start,
            connected,
            approver,
            gate: None,
            answers: Answers::default(),
            tools: Vec::new(),
            live: Vec::new(),
            tool_filter: ToolFilter::All,
            extensions: Extensions::default(),
            system: None,
            memory: None,
            commits: None,
            observer: None,
            end_note: None,
            text_is_unseen: false,
            is_stopped: false,
            schema: None,
            secrets,
            workdir: None,
            terminal: TerminalContext::default(),
            outside_text: None,
            parent: None,
        }
    }

    /// Redacts all secrets of the turn from its message. The model's key is known only since the model is connected, which
    /// is later than the host builds the message.
    pub(crate) fn redacted(mut self, runtime: &Runtime, settings: &Settings) -> Self {
        let secrets = self.secrets.with(self.connected.key.clone());
        let secrets = secrets.with(settings.mcp.secrets(&crate::mcp::tokens(settings)));
        self.secrets = runtime.values().secrets.share(secrets);
        if let TurnStart::Message { message, .. } = &mut self.start {
            *message = Arc::new(self.secrets.message(Message::clone(message)));
        }
        self
    }

    /// Returns the message that begins the turn; `None` if it continues.
    #[must_use]
    pub fn message(&self) -> Option<&Message> {
        self.start.message().map(|it| &**it)
    }

    /// Replaces the message that begins the turn, such as by one with files that it names. A turn that continues has
    /// none.
    pub fn set_message(&mut self, message: Message) {
        if let TurnStart::Message {
            message: before, ..
        } = &mut self.start
        {
            *before = Arc::new(message);
        }
    }

    /// Returns the host's tools.
    fn host_tools(&self) -> Vec<Arc<dyn Tool>> {
        [&*self.tools, &*self.live].concat()
    }

    fn depth(&self) -> u32 {
        self.parent.as_ref().map_or(0, |it| it.depth + 1)
    }

    /// Returns the built parts of the turn above this one.
    fn above(&self) -> Option<&BuiltParts> {
        self.parent.as_ref()?.built.get()
    }

    /// Builds the turn: its tools, gate, prompt and models.
    ///
    /// # Errors
    /// When its tools or its models cannot be built.
    pub(crate) fn build(mut self, session: TurnSession<'_>) -> Result<Turn> {
        self.prepare(session);
        let (settings, conversation) = (session.settings, session.conversation);
        let outside_text = self.outside_text.clone().unwrap_or_default();
        let parent = self.parent_turn(session);
        let live = self.live(session, parent.as_ref(), &outside_text)?;
        let toolset = self.toolset(session, &live)?;
        tracing::info!(
            session = conversation.session.as_str(),
            model = self.spec.target.full_name(),
            base_url = self.spec.target.shown_url(),
            profile = self.spec.profile.name,
            tools = toolset.tools.specs().len(),
            "asking"
        );
        let mut extensions = self.all_extensions(session)?;
        let review = Review::of(settings);
        let gate = self.gate(session, &toolset)?;
        let gate: Arc<dyn Gate> = Arc::new(ReviewGate::new(gate, review.clone()));
        if let Some(parent) = parent {
            // It was made above, and nothing else fills it in.
            let _ = parent.built.set(BuiltParts::of(&toolset, &gate));
        }
        let interceptors = &mut extensions.interceptors;
        interceptors.extend(self.look_first(settings, &toolset, &gate));
        interceptors.extend(self.show_terminal(settings));
        let now = Clock::system().now();
        let setup = TurnSetup {
            session: conversation.session.clone(),
            turn: new_turn(now),
            turn_number: conversation.turns.saturating_add(1),
            fallbacks: self.fallbacks(session)?,
            gate,
            system: (session.runtime.values().systems).share(Arc::new(self.system(session)?)),
            tools: toolset.tools.clone().redacted(&self.secrets),
            approver: self.approver(session, &toolset),
            model: self.connected.model,
            tool_sources: extensions.tool_sources,
            interceptors: extensions.interceptors,
            budgets: extensions.budgets,
            profile: (session.runtime.values().profiles).share(self.spec.profile),
            journal: match self.commits {
                Some(source) => Arc::new(SendingJournal::new(conversation.journal.clone(), source)),
                None => conversation.journal.clone(),
            },
            response_schema: self.schema,
            answer_check: None,
            opening: match &self.start {
                TurnStart::Message {
                    row: Some((mail, revision)),
                    ..
                } => Commit::of_unedited(*mail, *revision),
                TurnStart::Message { row: None, .. } | TurnStart::CutOff(_) => Commit::default(),
            },
            seed: now.0,
            outside_text,
        };
        Ok(Turn {
            setup,
            start: self.start,
            history: conversation.history.clone(),
            sandbox: match confined::mode(settings)? {
                // It can be chosen while the turn runs.
                None if toolset.offer.is_some() => Some(SandboxMode::WorkspaceWrite),
                mode => mode,
            },
            toolset,
            secrets: self.secrets,
            observer: self.observer,
            end_note: self.end_note,
            text_is_unseen: self.text_is_unseen,
            is_stopped: self.is_stopped,
            review,
            journal: conversation.journal.clone(),
        })
    }

    /// Adds the runtime's parts of all turns, and selects the tools.
    fn prepare(&mut self, session: TurnSession<'_>) {
        let names = &mut self.spec.tool_names;
        names.retain(|it| self.tool_filter.allows(it));
        let own = self.tools.iter().map(|tool| tool.spec().name);
        let of_memory = [WRITE_MEMORY, SEARCH_MEMORY].map(str::to_owned);
        let of_memory = of_memory.into_iter().filter(|_| self.memory.is_some());
        for name in own.chain(of_memory) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        self.outside_text = Some(self.noting_outside_text(session.conversation));
        // Questions of the turn and of those that it starts are put one at a time.
        let approver = Arc::clone(&self.approver);
        self.approver = Arc::new(OneAtATime::new(match session.store {
            // Answers are kept in the session's mailbox, and those of other processes are taken.
            Some(store) => Arc::new(MailApprover {
                host: approver,
                store: store.clone(),
                session: session.conversation.session.clone(),
            }),
            None => approver,
        }));
        // A turn below another one has them from that.
        if self.parent.is_none() {
            let own = std::mem::take(&mut self.extensions);
            self.extensions = session.runtime.extensions().with(own);
        }
    }

    /// Returns the extensions, with the tools of servers and the budgets of the settings.
    fn all_extensions(&self, session: TurnSession<'_>) -> Result<Extensions> {
        let mut extensions = self.extensions.clone();
        if self.tool_filter.allows_servers()
            && !tools::forbids_all(session.settings)
            && let Some(servers) = session.runtime.servers(session.settings)?
        {
            let source = HeldTools {
                source: servers.source(&session.conversation.session),
                _servers: servers,
            };
            extensions.tool_sources.push(Arc::new(source));
        }
        let models: Vec<_> = self.spec.targets().collect();
        let own_budgets = budgets::of(session.settings, session.store, &models)?;
        extensions.budgets.extend(own_budgets);
        Ok(extensions)
    }

    fn fallbacks(&self, session: TurnSession<'_>) -> Result<Vec<Arc<dyn Model>>> {
        fallbacks::models(
            &self.spec.fallbacks,
            &self.spec.profile,
            session.settings,
            session.runtime.request_limits(),
        )
    }

    /// Returns the gate, which asks before the first command in a folder that cannot be checked as a whole.
    fn gate(&self, session: TurnSession<'_>, toolset: &Toolset) -> Result<Arc<dyn Gate>> {
        if self.parent.is_some() {
            let above = self.above().map(|it| Arc::clone(&it.gate));
            return above.ok_or_else(|| {
                SetupError::new(SetupErrorKind::Other, "the parent's gate is not built")
            });
        }
        let inner = self.offering_gate(session, toolset)?;
        let inner = Arc::new(UnmatchedGate::new(inner, &toolset.workspace));
        // `--yolo` asks about nothing at all.
        if session.settings.values.yolo == Some(true) {
            return Ok(inner);
        }
        Ok(Arc::new(UncheckedGate {
            inner,
            folders: toolset.command_folders(session.runtime.values()),
            looking: toolset.looking(),
        }))
    }

    /// Returns the gate, whose questions about commands offer the sandbox if the tools have it.
    fn offering_gate(&self, session: TurnSession<'_>, toolset: &Toolset) -> Result<Arc<dyn Gate>> {
        let offer = toolset.offer.clone();
        let (asks, sandboxed) = match &self.gate {
            Some(gate) => (Arc::clone(gate), Some(Arc::clone(gate))),
            None => {
                let mut options =
                    tools::gate_options(toolset, &self.spec.profile, session.settings)?;
                session.runtime.values().share(&mut options);
                options.grants = session.conversation.grants.clone();
                options.answers = self.answers.clone();
                let sandboxed = offer.is_some().then(|| options.clone());
                let sandboxed = sandboxed.map(|it| {
                    let mut settings = session.settings.clone();
                    settings.values.approval = Some(ApprovalMode::Auto);
                    tools::standard_gate(tools::confined_by(it, toolset, &settings))
                });
                (tools::standard_gate(options), sandboxed)
            }
        };
        let Some((offer, sandboxed)) = offer.zip(sandboxed) else {
            return Ok(asks);
        };
        Ok(Arc::new(SandboxGate {
            asks,
            sandboxed,
            offer,
            notices: session.runtime.shared_notices(),
        }))
    }

    fn approver(&self, session: TurnSession<'_>, toolset: &Toolset) -> Arc<dyn Approver> {
        let cut_off = match &self.start {
            TurnStart::CutOff(cut_off) => Some(cut_off),
            TurnStart::Message { .. } => None,
        };
        let answers = cut_off.map(|_| session.conversation.answers.clone());
        let approver = Arc::new(SessionApprover {
            host: Arc::clone(&self.approver),
            questions: cut_off.map_or_else(Vec::new, |it| it.questions.clone()),
            answers: answers.unwrap_or_default(),
            is_kept: session.store.is_some(),
        });
        let approver: Arc<dyn Approver> = match toolset.offer.clone() {
            Some(offer) => Arc::new(SandboxApprover {
                inner: approver,
                offer,
            }),
            None => approver,
        };
        Arc::new(UncheckedApprover {
            inner: approver,
            folders: toolset.command_folders(session.runtime.values()),
        })
    }

    /// Returns the interceptor that shows the model the directory before the first step, if the profile wants that and
    /// not every tool is forbidden.
    fn look_first(
        &self,
        settings: &Settings,
        toolset: &Toolset,
        gate: &Arc<dyn Gate>,
    ) -> Option<Arc<dyn Interceptor>> {
        let is_wanted = self.spec.profile.look_first && !tools::forbids_all(settings);
        is_wanted.then(|| Arc::new(FirstLook::new(&toolset.workspace, gate, &self.secrets)) as _)
    }

    /// Returns the interceptor that shows the model the context of the user's terminal, if the profile asks for it.
    fn show_terminal(&mut self, settings: &Settings) -> Option<Arc<dyn Interceptor>> {
        let directory = match &self.workdir {
            Some(workdir) => workdir.directory(),
            None => settings.directory.clone(),
        };
        let seen = std::mem::take(&mut self.terminal);
        self.spec.profile.terminal_context.then(|| {
            Arc::new(ShowTerminal {
                seen,
                directory,
                env: settings.env.clone(),
                secrets: self.secrets.clone(),
            }) as _
        })
    }

    /// Returns the marks for text from outside: of the conversation, and of the one above it if there is one.
    fn noting_outside_text(&self, conversation: &Conversation) -> OutsideText {
        let own = &conversation.outside_text;
        let shared = self.outside_text.as_ref().unwrap_or(own).clone();
        if own.is_present() {
            shared.note();
        }
        shared
    }

    /// Returns the system prompt, with what the session is shown of its memories.
    fn system(&self, session: TurnSession<'_>) -> Result<Vec<String>> {
        if let Some(blocks) = &self.system {
            let blocks = blocks.iter().cloned();
            return Ok(blocks.map(|it| self.secrets.text(it)).collect());
        }
        let (profile, settings) = (&self.spec.profile, session.settings);
        let mut files = Vec::new();
        if profile.context && memory::is_on(settings) {
            let memories = self.memories(session)?;
            let (found, problems) = memory::at_start(&memories, session.conversation.began);
            files = found;
            for problem in problems {
                session.runtime.notices().note(&problem);
            }
        }
        Ok(system_prompt::build(
            profile,
            settings,
            &self.secrets,
            files,
        ))
    }

    fn memories(&self, session: TurnSession<'_>) -> Result<Memories> {
        let asked = Some(&self.spec.target);
        let id = Some(&session.conversation.session);
        memory::memories_of_turn(session.settings, &self.secrets, id, asked)
    }

    /// Returns the parts of the turn that its children use; `None` if it has no tool to start them.
    fn parent_turn(&self, session: TurnSession<'_>) -> Option<Arc<ParentTurn>> {
        let spec = &self.spec;
        let is_wanted = spec.tool_names.iter().any(|it| it == subagent::NAME);
        let may_start = self.depth() < subagent::max_depth(session.settings);
        (is_wanted && may_start).then(|| {
            Arc::new(ParentTurn {
                runtime: session.runtime.clone(),
                settings: session.settings.clone(),
                store: session.store.cloned(),
                session: session.conversation.session.clone(),
                profile: Arc::clone(&spec.profile),
                target: spec.target.clone(),
                fallbacks: spec.fallbacks.clone(),
                connected_from: spec.connected_from(session.settings),
                connected: self.connected.clone(),
                approver: Arc::clone(&self.approver),
                secrets: self.secrets.clone(),
                live: self.host_tools(),
                workdir: self.workdir.clone(),
                extensions: self.extensions.clone(),
                answers: session.conversation.answers.clone(),
                agents: Agents::find(session.settings),
                depth: self.depth(),
                outside_text: self.outside_text.clone(),
                built: OnceLock::new(),
                places: Places::default(),
            })
        })
    }

    /// Returns the tools that belong to this turn alone: the host's, and those that know its session.
    fn live(
        &self,
        session: TurnSession<'_>,
        parent: Option<&Arc<ParentTurn>>,
        outside_text: &OutsideText,
    ) -> Result<Vec<Arc<dyn Tool>>> {
        let mut live = self.host_tools();
        live.push(Arc::new(TodoTool(session.conversation.todo.clone())));
        if let Some(parent) = parent {
            let parent = Some(Arc::clone(parent));
            live.push(Arc::new(SubagentTool { parent }));
        }
        let outside = outside_text.clone();
        let outside = Outside::new(move || outside.is_present());
        live.extend(match &self.memory {
            Some(directory) => {
                let (id, settings) = (&session.conversation.session, session.settings);
                let (secrets, asked) = (&self.secrets, &self.spec.target);
                let memories = memory::of_workspace(directory, settings, secrets, id, asked)?;
                memory::tools_of_workspace(&memories, outside)
            }
            None => memory::tools(&self.memories(session)?, outside).to_vec(),
        });
        Ok(live)
    }

    fn toolset(&self, session: TurnSession<'_>, live: &[Arc<dyn Tool>]) -> Result<Toolset> {
        let keys = self.spec.key_variables();
        let toolset = tools::toolset(ToolsetOptions {
            names: &self.spec.tool_names,
            keys: &keys,
            profile: &self.spec.profile,
            settings: session.settings,
            session: &session.conversation.session,
            live,
            secrets: &self.secrets,
            workdir: self.workdir.as_ref(),
            python: session.runtime.python(),
            values: session.runtime.values(),
            offering: Some(match self.above() {
                None => Offering::BySettings,
                Some(above) => Offering::OfParent(above.offer.as_ref(), &above.looking),
            }),
        })?;
        if !toolset.missing.is_empty() {
            session.runtime.notices().note(&format!(
                "profile `{}` names tools that this version does not have: {}",
                self.spec.profile.name,
                toolset.missing.join(", ")
            ));
        }
        if let Some(shortfall) = &toolset.shortfall {
            session.runtime.note_shortfall(shortfall);
        }
        Ok(toolset)
    }
}

impl Turn {
    /// Returns the turn's id: a new one, or that of the interrupted turn that it resumes.
    #[must_use]
    pub fn id(&self) -> TurnId {
        match &self.start {
            TurnStart::Message { .. } => self.setup.turn.clone(),
            TurnStart::CutOff(cut_off) => cut_off.turn(),
        }
    }

    /// Returns the journal of its session, which remembers whether it failed.
    #[must_use]
    pub fn journal(&self) -> &Arc<WatchedJournal> {
        &self.journal
    }

    /// Returns the sandbox that its questions about commands offer.
    #[must_use]
    pub fn offer(&self) -> Option<&SandboxOffer> {
        self.toolset.offer.as_ref()
    }

    /// Returns the session.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.setup.session
    }

    /// Returns the secrets that are redacted from everything of the turn.
    #[must_use]
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Returns how the turn starts, with its message as it is recorded.
    pub(crate) fn start(&self) -> &TurnStart {
        &self.start
    }

    /// Returns its tools, with the log of the files that they change.
    #[must_use]
    pub fn toolset(&self) -> &Toolset {
        &self.toolset
    }

    /// Runs the turn as [`run`](Self::run) does, is stopped by `cancel` and hands on every event.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    ///
    /// # Cancel safety
    /// As [`run`](Self::run).
    pub(crate) async fn run_within(
        self,
        runtime: &Runtime,
        cancel: &CancellationToken,
        mut on_event: impl FnMut(TurnEvent),
    ) -> Result<TurnEnd> {
        let (sender, mut listener) = events::channel(self.session().clone(), self.id());
        let sender = runtime.observe(sender).await;
        let (handle, turn_control) = control();
        let mut is_stopped = false;
        let ended = {
            let mut running = Box::pin(self.run(sender, turn_control));
            loop {
                tokio::select! {
                    biased;
                    Some(event) = listener.next() => on_event(event),
                    () = cancel.cancelled(), if !is_stopped => {
                        is_stopped = true;
                        handle.cancel();
                    }
                    ended = &mut running => break ended?,
                }
            }
        };
        while let Some(event) = listener.next().await {
            on_event(event);
        }
        Ok(ended)
    }

    /// Runs the turn until its outcome, or until it is parked, from its beginning or from its records.
    /// `events` must be the sender for [`id`](Self::id) in [`session`](Self::session).
    ///
    /// # Errors
    /// When an interrupted turn cannot be resumed.
    ///
    /// # Cancel safety
    /// As [`run_turn`]: dropping ends everything at once.
    #[must_use]
    pub fn run(
        self,
        events: EventSender,
        control: TurnControl,
    ) -> BoxFuture<'static, Result<TurnEnd>> {
        // Not an `async fn`, which would hold the turn beside what runs it, and the room for both ways.
        let events = match self.observer {
            Some(observer) => EventSender::observed_by(events, observer),
            None => events,
        };
        let events = match self.text_is_unseen {
            true => events.with_unseen_text(),
            false => events,
        };
        let events = ReviewWarnings::attach(events, self.review, self.sandbox);
        let control = match self.end_note {
            Some(note) => control.noting_end(note),
            None => control,
        };
        let (setup, history) = (self.setup, self.history);
        match self.start {
            TurnStart::Message { message, .. } => {
                run_turn(setup, history, message, events, control)
                    .map(Ok)
                    .boxed()
            }
            TurnStart::CutOff(turn) => Box::pin(async move {
                resume_turn(setup, history, &turn.records, events, control)
                    .await
                    .map_err(cannot_go_on)
            }),
        }
    }
}

fn cannot_go_on(error: ResumeError) -> SetupError {
    let hint = match &error {
        ResumeError::OtherModels { .. } => {
            "restore the keys and addresses that the models of the turn had when it started"
        }
        ResumeError::Finished | ResumeError::Redrive(_) => {
            "`rondo fork SESSION --at STEP` continues from an earlier step"
        }
    };
    let context = "the turn that was cut off cannot be resumed";
    SetupError::because(SetupErrorKind::Journal, context, error).hint(hint)
}
