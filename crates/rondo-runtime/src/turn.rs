//! Puts a turn of a session together, and runs it.

use crate::agents::Agents;
use crate::budgets;
use crate::commits::{CommitSource, SendingJournal};
use crate::confined;
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::extensions::Extensions;
use crate::fallbacks;
use crate::ids::new_turn;
use crate::look_first::LookFirst;
use crate::memory;
use crate::parking::{MailApprover, SessionApprover};
use crate::plan::{ConnectedModel, TurnPlan};
use crate::review::{Review, ReviewGate, ReviewWarnings};
use crate::runtime::Runtime;
use crate::sandboxed::{SandboxApprover, SandboxGate, SandboxOffer};
use crate::sessions::{Conversation, CutOff};
use crate::settings::Settings;
use crate::subagent::{self, Built, ParentTurn, Places, SubagentTool};
use crate::system_prompt;
use crate::terminal::{ShowTerminal, TerminalContext};
use crate::todo::TodoTool;
use crate::tools::{self, Offering, Toolset, ToolsetOptions};
use crate::unchecked::{UncheckedApprover, UncheckedGate};
use crate::values::ApprovalMode;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rondo_agent::{NewTurn, TurnParts};
use rondo_core::clock::Clock;
use rondo_core::ports::{Commit, MailId, OneAtATime};
use rondo_core::redact::Secrets;
use rondo_core::{
    Approver, EventSender, Gate, Interceptor, Journal, OutsideText, ResumeError, Tool, TurnControl,
    TurnEnd, TurnSetup, control, events, resume_turn, run_turn,
};
use rondo_journal::Store;
use rondo_memory::{Memories, Outside};
use rondo_policy::{GateOptions, LookingCalls, Workdir};
use rondo_sandbox::SandboxMode;
use rondo_types::{Message, Profile, SessionId, Transcript, TurnEvent, TurnId};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

/// How a turn starts.
pub enum TurnStart {
    /// With a new message.
    Message(Arc<Message>),
    /// With a message from the session's mailbox. Its row is removed with the turn's first records.
    Queued(MailId, Arc<Message>),
    /// From the records of a turn that was interrupted.
    CutOff(Arc<CutOff>),
}

impl TurnStart {
    /// Redacts these secrets from the message. The model's key is known only once the model is connected,
    /// which is later than the host builds the message.
    #[must_use]
    pub(crate) fn without(self, secrets: &Secrets) -> Self {
        match self {
            Self::Message(message) => Self::Message(redacted(message, secrets)),
            Self::Queued(mail, message) => Self::Queued(mail, redacted(message, secrets)),
            Self::CutOff(cut_off) => Self::CutOff(cut_off),
        }
    }
}

/// Returns the same message where there is no secret in it: all who hold it while the turn runs share it.
fn redacted(message: Arc<Message>, secrets: &Secrets) -> Arc<Message> {
    let without = secrets.message((*message).clone());
    match without == *message {
        true => message,
        false => Arc::new(without),
    }
}

/// Builds the gate of a turn from its options.
pub type MakeGate<'a> = &'a (dyn Fn(GateOptions) -> Arc<dyn Gate> + Sync);

/// What the host provides for a turn.
pub struct TurnHost<'a> {
    /// Decides on calls that the gate does not decide, usually by asking the user.
    pub approver: Arc<dyn Approver>,
    /// Builds the gate: [`standard_gate`](crate::tools::standard_gate), unless the host has one that
    /// remembers the user's answers.
    pub gate: MakeGate<'a>,
    /// The system prompt in place of the one of the settings; none where that counts.
    pub system: Option<Vec<String>>,
    /// Where this person's memories are; none where they are the user's and the project's.
    pub memory: Option<PathBuf>,
    /// Whether tools of servers are offered.
    pub has_servers: bool,
    /// Says what becomes durable together with the turn's records.
    pub commits: Option<Arc<dyn CommitSource>>,
    /// The JSON Schema that the answer must fit.
    pub schema: Option<Value>,
    /// Tools that the host brings, such as the functions of a live Python session.
    pub live: Vec<Arc<dyn Tool>>,
    /// What it adds to the turn, after what its runtime adds to all.
    pub extensions: Extensions,
    /// Values that are redacted from everything that is sent, shown or recorded.
    pub secrets: Secrets,
    /// The directory and environment of the user's shell, if the host has one.
    pub workdir: Option<&'a Workdir>,
    /// The commands and the screen of the user's terminal, if the host shows one.
    pub terminal: TerminalContext,
    /// How many turns stand above this one: 0 unless a call of another turn started its session.
    pub depth: u32,
    /// What the conversation above this one knows of text from outside; none unless a call of another turn started its
    /// session. Such text counts in both, wherever it was read.
    pub outside_text: Option<OutsideText>,
    /// The sandbox that the questions of the turn above this one offer; none unless a call of another turn started its
    /// session.
    pub offer: Option<SandboxOffer>,
    /// Where the gate of the turn above this one notes the calls that only look; none unless a call of another turn started
    /// its session.
    pub looking: Option<LookingCalls>,
}

impl TurnHost<'_> {
    /// Builds a host with an approver, these secrets, and nothing else of its own.
    #[must_use]
    pub fn new(approver: Arc<dyn Approver>, secrets: Secrets) -> Self {
        Self {
            approver,
            gate: &tools::standard_gate,
            system: None,
            memory: None,
            has_servers: true,
            commits: None,
            schema: None,
            live: Vec::new(),
            extensions: Extensions::default(),
            secrets,
            workdir: None,
            terminal: TerminalContext::default(),
            depth: 0,
            outside_text: None,
            offer: None,
            looking: None,
        }
    }
}

/// The session and settings that a turn belongs to.
pub(crate) struct TurnContext<'a> {
    /// The host's runtime.
    pub(crate) runtime: &'a Runtime,
    /// The effective settings.
    pub(crate) settings: &'a Settings,
    /// The conversation before the turn, and its journal.
    pub(crate) conversation: &'a Conversation,
    /// The journal of all sessions; none where this one is not kept.
    pub(crate) store: Option<&'a Store>,
    /// Whether its records outlive the turn, so that it can be parked.
    pub(crate) is_kept: bool,
}

/// A turn that is ready to run.
pub struct Turn {
    setup: TurnSetup,
    start: TurnStart,
    history: Transcript,
    toolset: Toolset,
    /// What a person must review of its directories.
    review: Review,
    /// How far its commands are confined; none where they are not.
    sandbox: Option<SandboxMode>,
}

/// Returns who offers the sandbox to the turn: its parent, if it is a subagent's.
fn offering<'a>(host: &'a TurnHost<'_>) -> Offering<'a> {
    match &host.looking {
        None => Offering::BySettings,
        Some(looking) => Offering::OfParent(host.offer.as_ref(), looking),
    }
}

impl TurnContext<'_> {
    /// Builds the turn: its tools, gate, prompt and models.
    ///
    /// # Errors
    /// When its tools or its models cannot be built.
    pub(crate) fn turn(
        &self,
        plan: &TurnPlan,
        connected: ConnectedModel,
        start: TurnStart,
        host: TurnHost<'_>,
    ) -> Result<Turn> {
        let (settings, conversation, profile) = (self.settings, self.conversation, &plan.profile);
        let mut host = self.extended(host);
        let secrets = host.secrets.with(connected.key.clone());
        let secrets = secrets.with(settings.mcp.secrets(&crate::mcp::tokens(settings)));
        let secrets = self.runtime.values().secrets.share(secrets);
        let outside_text = host.outside_text.clone().unwrap_or_default();
        let parent = self.parent_turn(plan, &connected, &host, &secrets);
        let live = self.live(plan, &host, parent.as_ref(), &secrets, &outside_text)?;
        let toolset = self.toolset(plan, &live, host.workdir, &secrets, offering(&host))?;
        tracing::info!(
            session = conversation.session.as_str(),
            model = plan.target.full_name(),
            base_url = plan.target.shown_url(),
            profile = profile.name,
            tools = toolset.tools.specs().len(),
            "asking"
        );
        let approver = self.approver(&start, Arc::clone(&host.approver), &toolset);
        let mut extensions = match host.has_servers {
            true => self.with_servers(std::mem::take(&mut host.extensions))?,
            false => std::mem::take(&mut host.extensions),
        };
        let models: Vec<_> = plan.targets().collect();
        let own_budgets = budgets::of(settings, self.store, &models)?;
        extensions.budgets.extend(own_budgets);
        let review = Review::of(settings);
        let gate = self.gate(&toolset, profile, &host)?;
        let gate: Arc<dyn Gate> = Arc::new(ReviewGate::new(gate, review.clone()));
        if let Some(parent) = parent {
            let specs = toolset.tools.specs();
            // It was built above, and nothing else fills it in.
            let _ = parent.built.set(Built {
                gate: Arc::clone(&gate),
                specs,
                offer: toolset.offer.clone(),
                looking: toolset.looking(),
            });
        }
        let interceptors = &mut extensions.interceptors;
        interceptors.extend(self.look_first(profile, &toolset, &gate, &secrets));
        interceptors.extend(self.show_terminal(profile, &mut host, &secrets));
        let parts = TurnParts {
            model: connected.model,
            fallbacks: fallbacks::models(
                &plan.fallbacks,
                profile,
                settings,
                self.runtime.request_limits(),
            )?,
            gate,
            system: self.system(plan, host.system, &secrets)?,
            tools: toolset.tools.clone().redacted(&secrets),
            approver,
            tool_sources: extensions.tool_sources,
            interceptors: extensions.interceptors,
            budgets: extensions.budgets,
            profile: self.runtime.values().profiles.share(Arc::clone(profile)),
        };
        let has_offer = toolset.offer.is_some();
        let new = self.new_turn(&start, host.commits, host.schema, outside_text);
        Ok(Turn {
            setup: parts.turn(new),
            start,
            history: conversation.history.clone(),
            toolset,
            review,
            sandbox: match confined::mode(settings)? {
                // It can be chosen while the turn runs.
                None if has_offer => Some(SandboxMode::WorkspaceWrite),
                mode => mode,
            },
        })
    }

    /// Returns the parts that belong to this turn alone.
    fn new_turn(
        &self,
        start: &TurnStart,
        commits: Option<Arc<dyn CommitSource>>,
        schema: Option<Value>,
        outside_text: OutsideText,
    ) -> NewTurn {
        let now = Clock::system().now();
        let journal: Arc<dyn Journal> = Arc::clone(&self.conversation.journal) as _;
        NewTurn {
            session: self.conversation.session.clone(),
            turn: new_turn(now),
            turn_number: self.conversation.turns.saturating_add(1),
            journal: match commits {
                Some(source) => Arc::new(SendingJournal::new(journal, source)),
                None => journal,
            },
            response_schema: schema,
            answer_check: None,
            opening: match start {
                TurnStart::Queued(mail, _) => Commit::of(*mail),
                TurnStart::Message(_) | TurnStart::CutOff(_) => Commit::default(),
            },
            seed: now.0,
            outside_text,
        }
    }

    /// Returns the host with what the runtime adds to all turns.
    fn extended<'a>(&self, host: TurnHost<'a>) -> TurnHost<'a> {
        let extensions = host.extensions;
        let outside_text = self.outside_text(host.outside_text.as_ref());
        TurnHost {
            outside_text: Some(outside_text),
            // Questions of the turn and of those that it starts are put one at a time.
            approver: Arc::new(OneAtATime::new(self.with_mailbox(host.approver))),
            extensions: match host.depth {
                0 => self.runtime.extensions().with(extensions),
                // It has them from its parent.
                _ => extensions,
            },
            ..host
        }
    }

    /// Returns an approver that keeps answers in the session's mailbox and takes those of other processes, if the session
    /// is kept.
    fn with_mailbox(&self, host: Arc<dyn Approver>) -> Arc<dyn Approver> {
        match self.store {
            Some(store) => Arc::new(MailApprover {
                host,
                store: store.clone(),
                session: self.conversation.session.clone(),
            }),
            None => host,
        }
    }

    /// Returns the gate, which asks before the first command in a folder that cannot be checked as a whole.
    fn gate(
        &self,
        toolset: &Toolset,
        profile: &Profile,
        host: &TurnHost<'_>,
    ) -> Result<Arc<dyn Gate>> {
        let inner = self.offering_gate(toolset, profile, host)?;
        // `--yolo` asks about nothing at all, and a turn below another one has the gate of that.
        if self.settings.values.yolo == Some(true) || host.depth > 0 {
            return Ok(inner);
        }
        Ok(Arc::new(UncheckedGate {
            inner,
            folders: toolset.command_folders(self.runtime.values()),
            looking: toolset.looking(),
        }))
    }

    /// Returns the gate, whose questions about commands offer the sandbox where the tools have it.
    fn offering_gate(
        &self,
        toolset: &Toolset,
        profile: &Profile,
        host: &TurnHost<'_>,
    ) -> Result<Arc<dyn Gate>> {
        let built = |settings: &Settings| -> Result<Arc<dyn Gate>> {
            let mut gate = tools::gate_options(toolset, profile, settings)?;
            self.runtime.values().share(&mut gate);
            gate.grants = self.conversation.grants.clone();
            Ok((host.gate)(gate))
        };
        let asks = built(self.settings)?;
        // A turn below another one has the gate of that.
        let Some(offer) = toolset.offer.clone().filter(|_| host.depth == 0) else {
            return Ok(asks);
        };
        let mut sandboxed = self.settings.clone();
        sandboxed.values.approval = Some(ApprovalMode::Auto);
        Ok(Arc::new(SandboxGate {
            asks,
            sandboxed: built(&sandboxed)?,
            offer,
            notices: self.runtime.shared_notices(),
        }))
    }

    fn approver(
        &self,
        start: &TurnStart,
        host: Arc<dyn Approver>,
        toolset: &Toolset,
    ) -> Arc<dyn Approver> {
        let cut_off = match start {
            TurnStart::CutOff(cut_off) => Some(cut_off),
            TurnStart::Message(_) | TurnStart::Queued(..) => None,
        };
        let answers = cut_off.map(|_| self.conversation.answers.clone());
        let approver = Arc::new(SessionApprover {
            host,
            questions: cut_off.map_or_else(Vec::new, |it| it.questions.clone()),
            answers: answers.unwrap_or_default(),
            is_kept: self.is_kept,
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
            folders: toolset.command_folders(self.runtime.values()),
        })
    }

    /// Returns what shows the model the directory before the first step, where the profile wants that and not every
    /// tool is forbidden.
    fn look_first(
        &self,
        profile: &Profile,
        toolset: &Toolset,
        gate: &Arc<dyn Gate>,
        secrets: &Secrets,
    ) -> Option<Arc<dyn Interceptor>> {
        let is_wanted = profile.look_first && !tools::forbids_all(self.settings);
        is_wanted.then(|| Arc::new(LookFirst::new(&toolset.workspace, gate, secrets)) as _)
    }

    /// Returns the interceptor that shows the model the context of the user's terminal, if the profile asks for it.
    fn show_terminal(
        &self,
        profile: &Profile,
        host: &mut TurnHost<'_>,
        secrets: &Secrets,
    ) -> Option<Arc<dyn Interceptor>> {
        let directory = match host.workdir {
            Some(workdir) => workdir.directory(),
            None => self.settings.directory.clone(),
        };
        let seen = std::mem::take(&mut host.terminal);
        profile.terminal_context.then(|| {
            Arc::new(ShowTerminal {
                seen,
                directory,
                env: self.settings.env.clone(),
                secrets: secrets.clone(),
            }) as _
        })
    }

    /// Adds the tools of servers, unless every tool is forbidden.
    fn with_servers(&self, mut extensions: Extensions) -> Result<Extensions> {
        if !tools::forbids_all(self.settings)
            && let Some(servers) = self.runtime.servers(self.settings)?
        {
            let source = servers.source(&self.conversation.session);
            extensions.tool_sources.push(source);
        }
        Ok(extensions)
    }

    /// Returns what the conversation knows of text from outside, and the one above it where there is one.
    fn outside_text(&self, above: Option<&OutsideText>) -> OutsideText {
        let own = &self.conversation.outside_text;
        let shared = above.unwrap_or(own).clone();
        if own.is_present() {
            shared.note();
        }
        shared
    }

    /// Returns the system prompt, with what the session is shown of its memories.
    fn system(
        &self,
        plan: &TurnPlan,
        of_host: Option<Vec<String>>,
        secrets: &Secrets,
    ) -> Result<Vec<String>> {
        if let Some(blocks) = of_host {
            return Ok(blocks.into_iter().map(|it| secrets.text(it)).collect());
        }
        let (profile, settings) = (&plan.profile, self.settings);
        let mut files = Vec::new();
        if profile.context && memory::is_on(settings) {
            let memories = self.memories(plan, secrets)?;
            let (found, problems) = memory::at_start(&memories, self.conversation.began);
            files = found;
            for problem in problems {
                self.runtime.notices().note(&problem);
            }
        }
        Ok(system_prompt::build(profile, settings, secrets, files))
    }

    fn memories(&self, plan: &TurnPlan, secrets: &Secrets) -> Result<Memories> {
        let session = Some(&self.conversation.session);
        memory::memories_of_turn(self.settings, secrets, session, Some(&plan.target))
    }

    /// Returns what children of the turn have of it; none where it has no tool to start them.
    fn parent_turn(
        &self,
        plan: &TurnPlan,
        connected: &ConnectedModel,
        host: &TurnHost<'_>,
        secrets: &Secrets,
    ) -> Option<Arc<ParentTurn>> {
        let is_wanted = plan.tool_names.iter().any(|it| it == subagent::NAME);
        let may_start = host.depth < subagent::max_depth(self.settings);
        (is_wanted && may_start).then(|| {
            Arc::new(ParentTurn {
                runtime: self.runtime.clone(),
                settings: self.settings.clone(),
                store: self.store.cloned(),
                session: self.conversation.session.clone(),
                profile: Arc::clone(&plan.profile),
                target: plan.target.clone(),
                fallbacks: plan.fallbacks.clone(),
                connected_from: plan.connected_from(self.settings),
                connected: connected.clone(),
                approver: Arc::clone(&host.approver),
                secrets: secrets.clone(),
                live: host.live.clone(),
                workdir: host.workdir.cloned(),
                extensions: host.extensions.clone(),
                answers: self.conversation.answers.clone(),
                agents: Agents::find(self.settings),
                depth: host.depth,
                outside_text: host.outside_text.clone(),
                built: OnceLock::new(),
                places: Places::default(),
            })
        })
    }

    /// Returns the tools that belong to this turn alone: the host's, and those that know its session.
    fn live(
        &self,
        plan: &TurnPlan,
        host: &TurnHost<'_>,
        parent: Option<&Arc<ParentTurn>>,
        secrets: &Secrets,
        outside_text: &OutsideText,
    ) -> Result<Vec<Arc<dyn Tool>>> {
        let mut live = host.live.clone();
        live.push(Arc::new(TodoTool(self.conversation.todo.clone())));
        if let Some(parent) = parent {
            let parent = Some(Arc::clone(parent));
            live.push(Arc::new(SubagentTool { parent }));
        }
        let outside = outside_text.clone();
        let outside = Outside::new(move || outside.is_present());
        live.extend(match &host.memory {
            Some(directory) => {
                let session = &self.conversation.session;
                let (settings, asked) = (self.settings, &plan.target);
                let memories = memory::of_workspace(directory, settings, secrets, session, asked)?;
                memory::tools_of_workspace(&memories, outside)
            }
            None => memory::tools(&self.memories(plan, secrets)?, outside).to_vec(),
        });
        Ok(live)
    }

    fn toolset(
        &self,
        plan: &TurnPlan,
        live: &[Arc<dyn Tool>],
        workdir: Option<&Workdir>,
        secrets: &Secrets,
        offering: Offering<'_>,
    ) -> Result<Toolset> {
        let keys = plan.key_variables();
        let toolset = tools::toolset(ToolsetOptions {
            names: &plan.tool_names,
            keys: &keys,
            profile: &plan.profile,
            settings: self.settings,
            session: &self.conversation.session,
            live,
            secrets,
            workdir,
            python: self.runtime.python(),
            values: self.runtime.values(),
            offering: Some(offering),
        })?;
        if !toolset.missing.is_empty() {
            self.runtime.notices().note(&format!(
                "profile `{}` names tools that this version does not have: {}",
                plan.profile.name,
                toolset.missing.join(", ")
            ));
        }
        if let Some(shortfall) = &toolset.shortfall {
            self.runtime.note_shortfall(shortfall);
        }
        Ok(toolset)
    }
}

impl Turn {
    /// Returns the turn's id: a new one, or that of the interrupted turn that it resumes.
    #[must_use]
    pub fn id(&self) -> TurnId {
        match &self.start {
            TurnStart::Message(_) | TurnStart::Queued(..) => self.setup.turn.clone(),
            TurnStart::CutOff(cut_off) => cut_off.turn(),
        }
    }

    /// Returns the sandbox that its questions about commands offer.
    pub(crate) fn offer(&self) -> Option<&SandboxOffer> {
        self.toolset.offer.as_ref()
    }

    /// Returns the session.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.setup.session
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
        let events = ReviewWarnings::attach(events, self.review, self.sandbox);
        let (setup, history) = (self.setup, self.history);
        match self.start {
            TurnStart::Message(message) | TurnStart::Queued(_, message) => {
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
            "give the models of the turn their keys and addresses again, as they were when it began"
        }
        ResumeError::Finished | ResumeError::Redrive(_) => {
            "`rondo fork SESSION --at STEP` goes on from an earlier step"
        }
    };
    let context = "the turn that was cut off cannot be carried on";
    SetupError::because(SetupErrorKind::Journal, context, error).hint(hint)
}
