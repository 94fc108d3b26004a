//! The hub as host of its sessions: tools by the role of the sender, the reply as a row of the outbox, and
//! handling of failures.

use crate::calibration::Calibration;
use crate::channel::{ChatKey, ChatKind};
use crate::chats::{self, Chat};
use crate::cron::HeartbeatConfig;
use crate::cron::heartbeat;
use crate::cron::job::{self, RUNS, RunHistory};
use crate::hub::Core;
use crate::outgoing::{self, Details};
use crate::questions::{self, ChatQuestion};
use crate::suspects::{SuspectWatch, Suspicion};
use crate::tools::{self, Scope};
use crate::users::{Actor, Role};
use async_trait::async_trait;
use rondo_core::clock::Clock;
use rondo_core::ports::{
    HostCommit, HostRow, HostStore, MailboxError, OutboxEntry, OutboxKind, Record, RecordBody,
};
use rondo_core::{Approver, QuestionReply};
use rondo_memory::{SAVE_MEMORY, TOOL_NAMES};
use rondo_runtime::TurnBuilder;
use rondo_runtime::commits::CommitSource;
use rondo_runtime::error::{Result, SetupError, SetupErrorKind};
use rondo_runtime::service::{AskedTurn, SessionHost, ToolFilter};
use rondo_types::{Commit, Question, QuestionKind, SessionId, StopReason, TimeMs};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

/// The table of the users who began the unfinished turns, by session.
const TURNS: &str = "turn";
/// The table of the private chats of owners, by their names.
pub(crate) const OWNER_CHATS: &str = "owner_chat";
/// Messages to guests about a turn that failed, and one that could not begin.
const FAILED: &str = "Something failed here, so I could not answer. Please try again later.";
const WAITS: &str = "Your message is waiting because something failed here. It will be retried.";
/// Owners that are asked at the most.
const OWNERS_MAX: usize = 64;
/// The tools of guests: they reach nothing of this machine.
const OF_GUESTS: [&str; 2] = ["web_fetch", "web_search"];
/// A tool over all sessions, which the owner alone has.
const OVER_SESSIONS: &str = "search_sessions";

/// From this pause on between two tries a chat is told that another process has its session: most let go of it at once.
const IN_USE_TOLD: Duration = Duration::from_secs(4);

/// The hub as the host of its sessions.
pub(crate) struct HubHost(pub(crate) Arc<OnceLock<Weak<Core>>>);

/// Beginning of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TurnStarter {
    /// Sender, as `channel:id`.
    pub(crate) actor: String,
    /// The key of the message.
    pub(crate) key: String,
}

/// Returns the user who began the unfinished turn of a session.
pub(crate) async fn begun(
    store: &dyn HostStore,
    session: &SessionId,
) -> Result<Option<TurnStarter>, MailboxError> {
    chats::read(store, TURNS, session.as_str()).await
}

impl HubHost {
    fn core(&self) -> Result<Arc<Core>> {
        let core = self.0.get().and_then(Weak::upgrade);
        core.ok_or_else(|| SetupError::new(SetupErrorKind::Other, "the hub is closed"))
    }
}

#[async_trait]
impl SessionHost for HubHost {
    async fn turn(&self, turn: &AskedTurn<'_>, builder: &mut TurnBuilder) -> Result<()> {
        let core = self.core()?;
        core.contribute(turn, builder).await
    }

    async fn ask_about_folder(&self, turn: &AskedTurn<'_>, question: &Question) -> Result<()> {
        let core = self.core()?;
        core.ask_owner(turn.session, question)
            .await
            .map_err(unreadable)
    }

    fn failed(&self, session: &SessionId, key: Option<&str>, error: &SetupError) {
        if let Ok(core) = self.core() {
            let pause = core.retries.later(session);
            if error.kind == SetupErrorKind::SessionInUse && pause < IN_USE_TOLD {
                return;
            }
            let (session, key) = (session.clone(), key.map(str::to_owned));
            let text = error.line();
            tokio::spawn(async move { core.tell_failed(&session, key, text).await });
        }
    }
}

impl Core {
    async fn contribute(
        self: &Arc<Self>,
        turn: &AskedTurn<'_>,
        builder: &mut TurnBuilder,
    ) -> Result<()> {
        let session = turn.session;
        // A draft is replaced when the next reply begins.
        builder.text_is_unseen = true;
        self.trial.admits(session).await;
        let chat = self.chats.of_session(session).await.map_err(unreadable)?;
        let chat = chat.ok_or_else(|| {
            SetupError::new(
                SetupErrorKind::Other,
                "the session does not belong to a chat",
            )
        })?;
        let asked = match turn.begins {
            Some((key, actor)) => Some(TurnStarter {
                actor: actor.to_owned(),
                key: key.to_owned(),
            }),
            None => begun(&*self.store, session).await.map_err(unreadable)?,
        };
        let actor = match &asked {
            Some(begun) => self.users.actor(&begun.actor).await.map_err(unreadable)?,
            None => None,
        };
        let guest = || self.guest(&chat, asked.as_ref());
        let Some(actor) = actor.or_else(guest) else {
            return self.of_nobody(turn, &chat, builder).await;
        };
        let known = match turn.begins {
            // That its message was taken up is past.
            Some(_) => Suspicion::default(),
            None => self.suspicion(session).await.map_err(unreadable)?,
        };
        self.retries.began(session);
        let owners = self.asked_owners(&actor, &chat).await.map_err(unreadable)?;
        if let Some(refusal) = refusal(&actor, &chat, !owners.is_empty()) {
            builder.approver = Arc::new(Refusing(refusal.to_owned()));
        }
        let model = turn.settings.values.model.as_deref();
        let calibration = Calibration::of(&*self.store, session, model, turn.history).await;
        let calibration = calibration.map_err(unreadable)?;
        let counted = (turn.began, calibration.estimate());
        let system = self.system(&actor, &chat, turn.settings, counted).await;
        builder.tools = tools::of(Scope {
            core: Arc::downgrade(self),
            session: session.clone(),
            chat: chat.clone(),
            actor: actor.clone(),
        });
        let source = TurnSource {
            begun: asked,
            asker: Some(Asker::of(&actor, owners)),
            known,
            calibration: Some(calibration),
        };
        builder.commits = Some(self.source(session, &chat, source).await?);
        builder.extensions = self.own_extensions(&actor).await?;
        builder.system = Some(system);
        if let Some(kept) = self.keep_messages {
            let compaction = &mut Arc::make_mut(&mut builder.spec.profile).compaction;
            compaction.keep_messages = Some(kept);
        }
        builder.answers = tools::answers(&chat);
        builder.memory = self.memory_of(&actor, &chat);
        builder.tool_filter = tools_of(&actor, &chat);
        let is_shown = actor.role != Role::Guest;
        builder.observer = Some(self.shown.watch(session, &chat.key, is_shown));
        builder.is_stopped = known.is_enough();
        Ok(())
    }

    /// Asks owners about the folder of a session, in their private chats. Without any owner no question is asked.
    async fn ask_owner(
        &self,
        session: &SessionId,
        question: &Question,
    ) -> Result<(), MailboxError> {
        let owners = owner_chats(&*self.store).await?;
        if owners.is_empty() {
            return Ok(());
        }
        let open = questions::of_session(&*self.store, session).await?;
        if open.iter().any(|it| it.hash == question.hash) {
            return Ok(());
        }
        let asking = questions::ask_owners(&owners, session, &open, question);
        let commit = HostCommit {
            outbox: asking.outbox,
            rows: asking.rows,
            ..HostCommit::default()
        };
        self.store.commit(commit).await.map(drop)
    }

    async fn source(
        self: &Arc<Self>,
        session: &SessionId,
        chat: &Chat,
        of: TurnSource,
    ) -> Result<Arc<dyn CommitSource>> {
        let open = questions::of_session(&*self.store, session).await;
        let is_of_folder = |it: &ChatQuestion| it.kind == QuestionKind::Trust;
        let (of_folder, open) = open
            .map_err(unreadable)?
            .into_iter()
            .partition(is_of_folder);
        Ok(Arc::new(TurnCommits {
            core: Arc::downgrade(self),
            session: session.clone(),
            chat: chat.key.clone(),
            asker: Mutex::new(of.asker.unwrap_or_default()),
            timed: self.timed(of.begun.as_ref()).await.map_err(unreadable)?,
            begun: of.begun,
            open,
            asked: Mutex::new(of_folder),
            failure: Mutex::default(),
            tokens: AtomicU64::default(),
            requested: Mutex::default(),
            at_stake: SuspectWatch::after(of.known),
            calibration: of.calibration,
        }))
    }

    /// Returns what is committed with the records of a turn of which only the end is left.
    pub(crate) async fn source_of(
        self: &Arc<Self>,
        session: &SessionId,
        chat: &Chat,
        begun: TurnStarter,
    ) -> Result<Arc<dyn CommitSource>> {
        let actor = self.users.actor(&begun.actor).await.map_err(unreadable)?;
        let actor = actor.or_else(|| self.guest(chat, Some(&begun)));
        let source = TurnSource {
            asker: actor.map(|it| Asker::of(&it, Vec::new())),
            begun: Some(begun),
            ..TurnSource::default()
        };
        self.source(session, chat, source).await
    }

    /// Returns the timed work that a turn is a run of.
    async fn timed(&self, begun: Option<&TurnStarter>) -> Result<Option<Timed>, MailboxError> {
        let key = begun.map(|it| it.key.as_str()).unwrap_or_default();
        if let Some(id) = job::job_of_key(key) {
            // One that was removed meanwhile leaves nothing behind.
            let runs = RunHistory::of(&*self.store, id).await?;
            return Ok(runs.map(|runs| Timed::Job(id.to_owned(), runs)));
        }
        let Some(chat) = self.heartbeat.as_ref().and_then(HeartbeatConfig::chat) else {
            return Ok(None);
        };
        if !heartbeat::is_heartbeat(key) {
            return Ok(None);
        }
        let runs = chats::read(&*self.store, heartbeat::TABLE, &chat.text()).await?;
        Ok(Some(Timed::Heartbeat(chat, runs.unwrap_or_default())))
    }

    /// Returns the private chats of owners, where the questions of a turn are put: those of every owner, or the chat itself
    /// if it is an owner's own.
    async fn asked_owners(&self, actor: &Actor, chat: &Chat) -> Result<Vec<ChatKey>, MailboxError> {
        if actor.role == Role::Owner && chat.kind == ChatKind::Private {
            return Ok(vec![chat.key.clone()]);
        }
        owner_chats(&*self.store).await
    }

    /// Reads which models chats have named.
    pub(crate) async fn load_models(&self) -> Result<()> {
        self.models.load(&*self.store).await.map_err(unreadable)
    }

    /// Forgets the private chats of those who are no owners any more by the configuration.
    pub(crate) async fn forget_former_owners(&self) -> Result<()> {
        let known = self.store.rows(OWNER_CHATS, "", OWNERS_MAX).await;
        let mut gone = Vec::new();
        for (name, _) in known.map_err(unreadable)? {
            let user = self.users.user(&name).await.map_err(unreadable)?;
            if user.is_none_or(|it| it.role != Role::Owner) {
                gone.push(HostRow::removed(OWNER_CHATS, name));
            }
        }
        let commit = HostCommit {
            rows: gone,
            ..HostCommit::default()
        };
        self.store.commit(commit).await.map_err(unreadable)?;
        Ok(())
    }

    /// Returns a stranger as a guest, if those may speak.
    fn guest(&self, chat: &Chat, begun: Option<&TurnStarter>) -> Option<Actor> {
        let begun = begun?;
        self.lets_guests_in(chat.kind).then(|| Actor {
            id: begun.actor.clone(),
            user: begun.actor.clone(),
            role: Role::Guest,
        })
    }

    pub(crate) fn lets_guests_in(&self, kind: ChatKind) -> bool {
        kind == ChatKind::Group && self.strangers == crate::config::StrangerPolicy::GuestsInGroups
    }

    /// Handles a message whose sender is no longer a user, and their turn.
    async fn of_nobody(
        self: &Arc<Self>,
        turn: &AskedTurn<'_>,
        chat: &Chat,
        builder: &mut TurnBuilder,
    ) -> Result<()> {
        let session = turn.session;
        let refused = "you are no longer a user of this hub";
        let Some((key, _)) = turn.begins else {
            builder.approver = Arc::new(Refusing(refused.to_owned()));
            builder.tool_filter = ToolFilter::Only(Vec::new());
            builder.commits = Some(self.source(session, chat, TurnSource::default()).await?);
            builder.is_stopped = true;
            return Ok(());
        };
        let commit = HostCommit {
            withdrawn: vec![(session.clone(), key.to_owned())],
            ..HostCommit::default()
        };
        self.store.commit(commit).await.map_err(unreadable)?;
        Err(SetupError::new(SetupErrorKind::Usage, refused))
    }

    /// Returns whether who reads a chat may know paths and addresses of the operator: those who are members at least. In a
    /// group all members may read.
    async fn is_told_reasons(&self, chat: &Chat) -> bool {
        let id = format!("{}:{}", chat.key.channel, chat.key.chat_id);
        let actor = self.users.actor(&id).await.ok().flatten();
        chat.kind == ChatKind::Private && actor.is_none_or(|it| it.role != Role::Guest)
    }

    /// Tells a chat, once for each message and reason, that its turn could not begin.
    async fn tell_failed(&self, session: &SessionId, key: Option<String>, text: String) {
        let chat = match self.chats.of_session(session).await {
            Ok(Some(chat)) => chat,
            Ok(None) => return,
            Err(error) => return tracing::error!(%error, "a failure was not told"),
        };
        let reason = Sha256::digest(text.as_bytes());
        let reason = data_encoding::HEXLOWER.encode(reason.get(..8).unwrap_or_default());
        let name = format!("failed:{session}:{}:{reason}", key.unwrap_or_default());
        let text = match self.is_told_reasons(&chat).await {
            true => format!("Your message is waiting: {text}. It will be retried."),
            false => WAITS.to_owned(),
        };
        let commit = HostCommit {
            outbox: vec![outgoing::notice(name, &chat.key, text.clone())],
            ..HostCommit::default()
        };
        if let Err(error) = self.store.commit(commit).await {
            tracing::error!(%error, "a failure was not noted");
            self.tell_unnoted(&chat.key, text);
        }
    }
}

/// Returns the private chats of owners that take messages.
async fn owner_chats(store: &dyn HostStore) -> Result<Vec<ChatKey>, MailboxError> {
    let mut reached = Vec::new();
    for (_, key) in store.rows(OWNER_CHATS, "", OWNERS_MAX).await? {
        if let Some(chat) = ChatKey::of_text(&key)
            && chats::missed(store, &chat).await? == 0
        {
            reached.push(chat);
        }
    }
    Ok(reached)
}

/// Returns the tools that a person may use in a chat.
fn tools_of(actor: &Actor, chat: &Chat) -> ToolFilter {
    let owned = |names: &[&str]| -> Vec<String> { names.iter().map(|it| (*it).into()).collect() };
    match (actor.role, chat.kind) {
        (Role::Guest, _) => ToolFilter::Only(owned(&OF_GUESTS)),
        (Role::Owner, ChatKind::Private) => ToolFilter::All,
        (Role::Member, ChatKind::Private) => {
            ToolFilter::Without(owned(&[SAVE_MEMORY, OVER_SESSIONS]))
        }
        (Role::Member | Role::Owner, ChatKind::Group) => {
            let mut without = owned(&TOOL_NAMES);
            without.push(OVER_SESSIONS.to_owned());
            ToolFilter::Without(without)
        }
    }
}

/// Returns why a turn's questions cannot be answered; `None` if they can, such as by an owner who sees them.
fn refusal(actor: &Actor, chat: &Chat, reaches_owner: bool) -> Option<&'static str> {
    let may_be_seen = reaches_owner || (actor.role == Role::Owner && chat.kind == ChatKind::Group);
    match actor.role {
        Role::Guest => Some("guests may not run it"),
        Role::Member | Role::Owner if !may_be_seen => {
            Some("no owner can be asked: one must write to the hub in a private chat first")
        }
        Role::Member | Role::Owner => None,
    }
}

/// Denies whatever is asked.
struct Refusing(String);

#[async_trait]
impl Approver for Refusing {
    async fn ask(&self, question: &Question) -> QuestionReply {
        QuestionReply::denied(question, "hub", self.0.clone())
    }
}

/// Changes committed together with a turn's records: its reply, its questions, and its sender.
struct TurnCommits {
    core: Weak<Core>,
    session: SessionId,
    chat: ChatKey,
    /// Sender of the questions, and the chats that are asked.
    asker: Mutex<Asker>,
    begun: Option<TurnStarter>,
    /// Questions when it was parked.
    open: Vec<ChatQuestion>,
    /// Open questions of the turn and about its folder.
    asked: Mutex<Vec<ChatQuestion>>,
    /// Why the latest request failed.
    failure: Mutex<Option<String>>,
    /// Scheduled job that it is a run of.
    timed: Option<Timed>,
    /// Tokens of its requests, as far as they were recorded here.
    tokens: AtomicU64,
    /// When the latest request to a model was begun here.
    requested: Mutex<Option<TimeMs>>,
    at_stake: SuspectWatch,
    /// Learns how the provider counts; `None` if no model is asked.
    calibration: Option<Calibration>,
}

/// Differences in the commits of a turn, by its sender and progress.
#[derive(Default)]
struct TurnSource {
    begun: Option<TurnStarter>,
    asker: Option<Asker>,
    /// Suspicion against the session after processes ended.
    known: Suspicion,
    calibration: Option<Calibration>,
}

/// Sender of a turn's questions, and the owners' chats to which they are sent.
#[derive(Default)]
struct Asker {
    name: String,
    owners: Vec<ChatKey>,
    /// Set if these are the owners of the hub, who may change while the turn runs.
    are_all: bool,
    /// Set for a guest's turn, whose sender is told no reasons.
    is_guest: bool,
}

impl Asker {
    fn of(actor: &Actor, owners: Vec<ChatKey>) -> Self {
        let who = match actor.user == actor.id {
            true => format!("`{}`", actor.id),
            false => format!("{} (`{}`)", actor.user, actor.id),
        };
        Self {
            name: format!("{who}, {},", actor.role),
            are_all: actor.role != Role::Owner,
            is_guest: actor.role == Role::Guest,
            owners,
        }
    }
}

/// Scheduled job, and the results of its runs.
enum Timed {
    Job(String, RunHistory),
    Heartbeat(ChatKey, RunHistory),
}

impl Timed {
    /// Returns the row that says how a run of it ended.
    fn ended(&self, stop: StopReason, tokens: u64) -> HostRow {
        let now = Clock::system().now();
        match self {
            Self::Job(id, runs) => runs.ended(stop, tokens, now).row(RUNS, id),
            Self::Heartbeat(chat, runs) => heartbeat::ended(chat, &runs.ended(stop, tokens, now)),
        }
    }
}

#[async_trait]
impl CommitSource for TurnCommits {
    fn add(&self, batch: &[Record], commit: &mut Commit) {
        for entry in &mut commit.outbox {
            entry.session = self.session.clone();
            entry.turn = batch.first().map(|it| it.turn.clone());
        }
        for record in batch {
            self.add_one(record, commit);
        }
    }

    async fn before_request(&self) {
        let Some(core) = self.core.upgrade() else {
            return;
        };
        if core.drain.is_cancelled() {
            core.retries.hold();
            pending::<()>().await;
        }
        // Questions of the reply go to those who are owners then.
        if self.asker().are_all
            && let Ok(owners) = owner_chats(&*core.store).await
        {
            self.asker().owners = owners;
        }
    }
}

impl TurnCommits {
    fn add_one(&self, record: &Record, commit: &mut Commit) {
        let session = self.session.as_str();
        let learnt = self.calibration.as_ref();
        let learnt = learnt.and_then(|it| it.take(&record.body));
        commit.rows.extend(learnt);
        self.count(record);
        match &record.body {
            RecordBody::TurnStarted { .. } => {
                if let Some(begun) = &self.begun {
                    let json = serde_json::to_string(begun).unwrap_or_default();
                    commit.rows.push(HostRow::set(TURNS, session, json));
                }
            }
            RecordBody::Resumed { .. } if !self.open.is_empty() => {
                let left = self.asked();
                let rows = questions::forget_some(&self.session, &self.open, &left);
                commit.rows.extend(rows);
            }
            RecordBody::ModelReplied { reply } => {
                let tokens = reply.usage.map_or(0, |it| it.total());
                self.tokens.fetch_add(tokens, Ordering::Relaxed);
                commit.rows.push(self.at_stake.is_over(&self.session));
            }
            RecordBody::ModelRequested { .. } | RecordBody::ToolStarted { .. } => {
                commit.rows.push(self.at_stake.begins(&self.session));
            }
            RecordBody::ToolFinished { call_id, .. } => {
                commit.rows.push(self.at_stake.is_over(&self.session));
                let over = self.no_longer_asked(|it| it.is_of_running(call_id));
                commit.rows.extend(over);
            }
            // Others are asked when the turn is parked.
            RecordBody::Asked { question } if question.is_of_running_call() => {
                self.ask(std::slice::from_ref(question), record, commit);
            }
            RecordBody::Answered { answer } => {
                let over = self.no_longer_asked(|it| it.hash == answer.hash);
                commit.rows.extend(over);
            }
            RecordBody::ModelFailed { error, .. } => {
                *self.failure() = Some(error.to_string());
                commit.rows.push(self.at_stake.is_over(&self.session));
            }
            RecordBody::Parked { questions } => {
                self.ask(questions, record, commit);
                if let Some(core) = self.core.upgrade() {
                    core.waiting.begins(core.session(&self.session));
                }
                commit.rows.push(self.at_stake.is_over(&self.session));
            }
            RecordBody::Final {
                stop_reason, text, ..
            } => {
                if let Some(timed) = &self.timed {
                    let tokens = self.tokens.load(Ordering::Relaxed);
                    commit.rows.push(timed.ended(*stop_reason, tokens));
                }
                commit.outbox.extend(self.last(record, *stop_reason, text));
                commit.rows.push(HostRow::removed(TURNS, session));
                commit.rows.push(self.at_stake.is_over(&self.session));
            }
            _ => {}
        }
    }

    /// Counts what is asked of models.
    fn count(&self, record: &Record) {
        let Some(core) = self.core.upgrade() else {
            return;
        };
        let mut requested = self
            .requested
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match &record.body {
            RecordBody::ModelRequested { .. } => *requested = Some(record.at_ms),
            RecordBody::ModelReplied { reply } => {
                let took = requested.take().map(|it| record.at_ms.since(it));
                core.metrics.replied(took, reply.usage.unwrap_or_default());
            }
            RecordBody::ModelFailed { error, .. } => {
                *requested = None;
                core.metrics.request_failed(error.class);
            }
            _ => {}
        }
    }

    /// Asks in the chat.
    fn ask(&self, questions: &[Question], record: &Record, commit: &mut Commit) {
        let of = (&self.session, &record.turn);
        let mut asked = self.asked();
        let asker = self.asker();
        let of_turn = questions::Asker {
            chat: &self.chat,
            name: &asker.name,
            owners: &asker.owners,
        };
        let asking = questions::ask(&of_turn, of, &asked, questions);
        drop(asker);
        *asked = asking.asked;
        commit.outbox.extend(asking.outbox);
        commit.rows.extend(asking.rows);
    }

    /// Returns the rows that delete those of the questions that are over.
    fn no_longer_asked(&self, is_over: impl FnMut(&mut ChatQuestion) -> bool) -> Vec<HostRow> {
        let mut asked = self.asked();
        let over: Vec<ChatQuestion> = asked.extract_if(.., is_over).collect();
        match over.is_empty() {
            true => Vec::new(),
            false => questions::forget_some(&self.session, &over, &asked),
        }
    }

    fn asker(&self) -> std::sync::MutexGuard<'_, Asker> {
        self.asker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asked(&self) -> std::sync::MutexGuard<'_, Vec<ChatQuestion>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the message that the end of a turn is; `None` if a heartbeat found nothing to tell.
    fn last(&self, record: &Record, stop: StopReason, text: &str) -> Option<OutboxEntry> {
        let is_beat = matches!(self.timed, Some(Timed::Heartbeat(..)));
        if is_beat && (heartbeat::is_nothing(text) || stop != StopReason::Complete) {
            return None;
        }
        let text = self.reply(stop, text);
        let key = format!("final:{}:{}", self.session, record.turn);
        let details = Details {
            reply_to: self.begun.as_ref().and_then(TurnStarter::reply_to),
            ..Details::default()
        };
        let entry = outgoing::entry(key, &self.chat, OutboxKind::Final, text, &details);
        Some(outgoing::of_turn(entry, &self.session, &record.turn))
    }

    /// Returns the text for a person about a turn that failed: why, once, and the text so far.
    fn of_failure(&self, failure: Option<String>, text: &str) -> String {
        // Guests are not told addresses and paths of the operator.
        if self.asker().is_guest {
            return FAILED.to_owned();
        }
        let Some(failure) = failure else {
            return "I could not answer: the turn failed.".to_owned();
        };
        let built = format!("Reason: {failure}.");
        let found = text.split_once(&built).map_or(text, |it| it.1).trim();
        let note = format!("I could not answer: {failure}.");
        match found {
            "" => note,
            found => format!("{note}\n\n{found}"),
        }
    }

    /// Returns the text for a person at the end of a turn, which is never empty.
    fn reply(&self, stop_reason: StopReason, text: &str) -> String {
        let failure = self.failure().clone();
        if stop_reason == StopReason::Error {
            return self.of_failure(failure, text);
        }
        let note = match stop_reason {
            StopReason::Cancelled => Some("Stopped.".to_owned()),
            StopReason::Complete if text.trim().is_empty() => {
                Some("(The answer is empty.)".to_owned())
            }
            _ if text.trim().is_empty() => {
                Some(format!("I could not answer: {}.", stop_reason.as_str()))
            }
            _ => None,
        };
        match note {
            Some(note) if text.trim().is_empty() => note,
            Some(note) if !text.contains(&note) => format!(
                "{text}

{note}"
            ),
            _ => text.to_owned(),
        }
    }

    fn failure(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TurnStarter {
    /// Returns the message that the turn answers, as its channel names it.
    fn reply_to(&self) -> Option<String> {
        crate::receive::message_id(&self.key).map(str::to_owned)
    }
}

fn unreadable(error: MailboxError) -> SetupError {
    let context = "failed to read what the hub notes";
    SetupError::because(SetupErrorKind::Other, context, error)
}
