//! The session of a script: its records, and what it does outside of its conversations.

use crate::error::{Result, SetupError, SetupErrorKind};
use crate::ids::new_session;
use crate::runtime::Runtime;
use crate::session::Session;
use crate::sessions;
use crate::settings::Settings;
use crate::{secrets, tools, web};
use data_encoding::HEXLOWER;
use rondo_core::clock::Clock;
use rondo_core::ports::{
    Asker, CallEnd, Entry, InterruptedCall, OutputSink, ProgressSink, Reconciled, RecordBody, Seq,
    ToolInvocation,
};
use rondo_core::redact::Secrets;
use rondo_core::storage::Store;
use rondo_core::{OutsideText, Tool};
use rondo_types::{
    CallId, RemainingLimits, SessionId, Spend, ToolErrorCode, ToolKind, ToolOutcome, TurnId,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex as AsyncMutex;
use tokio_util::sync::CancellationToken;

/// Bytes of a command's output that a script gets.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// Bytes of the hash that names a call.
const CALL_BYTES: usize = 10;

/// The session of a script. Its record begins with its first call, so a script that makes none leaves nothing behind.
pub struct ScriptSession {
    runtime: Runtime,
    settings: Settings,
    secrets: Secrets,
    id: SessionId,
    session: AsyncMutex<Session>,
    store: OnceLock<Store>,
    used: Mutex<Spend>,
    outside_text: OutsideText,
    commands: OnceLock<Arc<dyn Tool>>,
    pages: OnceLock<Arc<dyn Tool>>,
}

/// State of a call that was begun before a crash.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "it is read at once")]
pub enum Interrupted {
    /// It ended so.
    Done(ToolOutcome),
    /// It had no effect, or continues: it is made with the same key.
    Again,
    /// It cannot be found out.
    Unknown,
}

impl ScriptSession {
    /// A new one, in the directory of these settings. Nothing is opened yet.
    #[must_use]
    pub fn new(runtime: Runtime, settings: Settings) -> Self {
        let id = new_session(Clock::system().now());
        Self::of(runtime, settings, id)
    }

    /// Takes a recorded one, with its records.
    ///
    /// # Errors
    /// When there is no such session, it has no script or was imported, another process is running it, or the disk fails.
    pub async fn resume(
        runtime: Runtime,
        settings: Settings,
        id: &str,
    ) -> Result<(Self, Vec<RecordBody>)> {
        let store = sessions::open(&settings)?;
        let info = sessions::find(&store, id)?;
        let failed = |message: String| Err(SetupError::new(SetupErrorKind::NoSession, message));
        if info.imported {
            let id = &info.id;
            let message = format!(
                "session `{id}` was imported: a script continues only from its own records"
            );
            return failed(message);
        }
        let script = Self::of(runtime, settings, info.id.clone());
        script.session.lock().await.take(&info)?;
        let records = bodies(&store, &info.id)?;
        if !matches!(records.first(), Some(RecordBody::ScriptStarted(_))) {
            return failed(format!("session `{}` does not belong to a script", info.id));
        }
        // Another thread cannot have set it: nothing else has this value yet.
        let _ = script.store.set(store);
        Ok((script, records))
    }

    /// Returns the id of the session that was written last among those of scripts in the directory of these settings.
    ///
    /// # Errors
    /// When there is none, or the journal cannot be read.
    pub fn latest(settings: &Settings, name: &str) -> Result<String> {
        let store = sessions::open(settings)?;
        for info in store
            .sessions(sessions::LOOKED_AT_MAX)
            .map_err(sessions::failed)?
        {
            if info.imported {
                continue;
            }
            if sessions::script_of(&store, &info.id)?.as_deref() == Some(name) {
                return Ok(info.id.to_string());
            }
        }
        let message = format!("`{name}` has no session to continue");
        Err(SetupError::new(SetupErrorKind::NoSession, message)
            .hint("`rondo session list` shows the sessions that are there"))
    }

    fn of(runtime: Runtime, settings: Settings, id: SessionId) -> Self {
        let session = Session::new_as(id.clone(), runtime.clone(), settings.clone(), None);
        Self {
            secrets: secrets::of_env(&settings),
            session: AsyncMutex::new(session),
            runtime,
            settings,
            id,
            store: OnceLock::new(),
            used: Mutex::default(),
            outside_text: OutsideText::default(),
            commands: OnceLock::new(),
            pages: OnceLock::new(),
        }
    }

    /// Returns its id.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns the settings in force.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the runtime that all sessions of the host share.
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Returns the secrets that are kept out of its records and requests.
    #[must_use]
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Returns whether nothing of it is kept.
    #[must_use]
    pub fn is_ephemeral(&self) -> bool {
        self.settings.values.ephemeral == Some(true)
    }

    /// Returns the usage of its conversations so far, also before it was resumed.
    #[must_use]
    pub fn used(&self) -> Spend {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what a turn used.
    pub fn count(&self, used: Spend) {
        let mut all = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        *all = all.plus(used);
    }

    /// Returns whether the script holds text from outside, which all its conversations share: a message may be made of
    /// whatever the script read before.
    #[must_use]
    pub fn outside_text(&self) -> &OutsideText {
        &self.outside_text
    }

    /// Returns the allowance that its settings leave to a turn that begins now.
    pub(super) fn left(&self) -> RemainingLimits {
        let (values, used) = (&self.settings.values, self.used());
        let usd = values.max_budget_usd.map(rondo_types::NanoUsd::from_usd);
        RemainingLimits {
            tokens: values
                .max_tokens_total
                .map(|it| it.saturating_sub(used.tokens)),
            cost: usd.map(|it| {
                let spent = used.cost.map_or(0, |it| it.0);
                rondo_types::NanoUsd(it.0.saturating_sub(spent))
            }),
            ..RemainingLimits::default()
        }
    }

    /// Records facts of the script, at once or not at all. The first ones begin its session.
    ///
    /// # Errors
    /// When they cannot be recorded; then what they announce must not happen.
    ///
    /// # Cancel safety
    /// Not cancel safe: they may or may not be recorded.
    pub async fn record(&self, title: &str, bodies: Vec<RecordBody>) -> Result<()> {
        if self.is_ephemeral() {
            return Ok(());
        }
        let mut session = self.session.lock().await;
        let title = self.secrets.text(title.to_owned());
        let conversation = session.begin(title)?;
        conversation.record_all(bodies).await.map(drop)?;
        let store = session.store()?.clone();
        self.store.get_or_init(|| store);
        Ok(())
    }

    /// Returns the journal of all sessions; `None` if nothing is kept.
    pub(super) async fn store(&self) -> Result<Option<Store>> {
        if self.is_ephemeral() {
            return Ok(None);
        }
        if let Some(store) = self.store.get() {
            return Ok(Some(store.clone()));
        }
        let store = self.session.lock().await.store()?.clone();
        Ok(Some(self.store.get_or_init(|| store).clone()))
    }

    /// Returns the name of a call by its place: the same in each run, and no other call of the session has it.
    #[must_use]
    pub fn call_id(branch: &str, place: u32) -> CallId {
        let digest = Sha256::digest(format!("{branch}/{place}"));
        let digits = HEXLOWER.encode(digest.get(..CALL_BYTES).unwrap_or_default());
        CallId::new(format!("r{digits}"))
    }

    /// Runs a command of the script's own, which no gate judges. Its output is bounded to a megabyte.
    ///
    /// # Errors
    /// When its status cannot be kept.
    ///
    /// # Cancel safety
    /// Not cancel safe: the command continues until it is found again, for as long as commands outlive their agent.
    pub async fn command(
        &self,
        call: &CallId,
        arguments: Value,
        live: OutputSink,
        cancel: CancellationToken,
    ) -> Result<ToolOutcome> {
        let tool = self.commands()?;
        let invocation = self.invocation(call, arguments, live, cancel);
        let outcome = ended(tool.run(invocation).await);
        self.outside_text.note_result(&outcome);
        Ok(outcome)
    }

    /// Finds out the state of a command that was begun before a crash.
    ///
    /// # Errors
    /// When its status cannot be read.
    pub async fn command_after_crash(
        &self,
        call: &CallId,
        arguments: Value,
        evidence: Option<Value>,
    ) -> Result<Interrupted> {
        let interrupted = InterruptedCall {
            idempotency_key: self.key(call),
            arguments,
            evidence,
        };
        Ok(match self.commands()?.reconcile(&interrupted).await {
            Reconciled::Done(outcome) => {
                self.outside_text.note_result(&outcome);
                Interrupted::Done(outcome)
            }
            Reconciled::NotDone | Reconciled::Running => Interrupted::Again,
            Reconciled::Unknown => Interrupted::Unknown,
        })
    }

    /// Returns the evidence that shows, after a crash, the state of a command that begins next.
    ///
    /// # Errors
    /// When its status cannot be kept.
    pub async fn command_evidence(
        &self,
        call: &CallId,
        arguments: &Value,
    ) -> Result<Option<Value>> {
        let tool = self.commands()?;
        Ok(tool.evidence_of(&self.key(call), arguments).await)
    }

    /// Reads a page of the web as text, at public addresses only.
    ///
    /// # Errors
    /// When this build reads no pages, or the settings of the network cannot be used.
    ///
    /// # Cancel safety
    /// Cancel safe: the request is withdrawn.
    pub async fn page(
        &self,
        call: &CallId,
        url: &str,
        cancel: CancellationToken,
    ) -> Result<ToolOutcome> {
        let tool = self.pages()?;
        // The words of a server that refuses come from outside, too.
        self.outside_text.note();
        let invocation = self.invocation(call, json!({"url": url}), OutputSink::discard(), cancel);
        Ok(ended(tool.run(invocation).await))
    }

    fn key(&self, call: &CallId) -> String {
        format!("{}-{call}", self.id)
    }

    fn invocation(
        &self,
        call: &CallId,
        arguments: Value,
        output: OutputSink,
        cancel: CancellationToken,
    ) -> ToolInvocation {
        ToolInvocation {
            session: self.id.clone(),
            turn: TurnId::new(""),
            call_id: call.clone(),
            idempotency_key: self.key(call),
            arguments,
            timeout: Some(COMMAND_TIMEOUT),
            cancel,
            output,
            progress: ProgressSink::discard(),
            allowance: RemainingLimits::default(),
            asker: Asker::nobody(),
        }
    }

    fn commands(&self) -> Result<Arc<dyn Tool>> {
        if let Some(tool) = self.commands.get() {
            return Ok(Arc::clone(tool));
        }
        let tool = tools::own_commands(&self.settings, &self.id, &self.secrets, OUTPUT_BYTES_MAX)?;
        Ok(Arc::clone(self.commands.get_or_init(|| tool)))
    }

    fn pages(&self) -> Result<Arc<dyn Tool>> {
        if let Some(tool) = self.pages.get() {
            return Ok(Arc::clone(tool));
        }
        let found = web::tools(&self.settings)?;
        let tool = found
            .into_iter()
            .find(|it| it.spec().kind == ToolKind::Fetch)
            .ok_or_else(|| {
                SetupError::new(SetupErrorKind::Other, "this build cannot read the web")
            })?;
        Ok(Arc::clone(self.pages.get_or_init(|| tool)))
    }
}

/// How long a command of a script may run if the script says nothing.
const COMMAND_TIMEOUT: Duration = Duration::from_hours(24);

fn ended(end: CallEnd) -> ToolOutcome {
    match end {
        CallEnd::Done(outcome) => outcome,
        CallEnd::Waiting { .. } => {
            ToolOutcome::error(ToolErrorCode::Internal, "the call waits for a session")
        }
    }
}

/// Reads the records of a script.
fn bodies(store: &Store, id: &SessionId) -> Result<Vec<RecordBody>> {
    let entries = store
        .read(id, Seq(1), usize::MAX)
        .map_err(sessions::failed)?;
    let records = entries.into_iter().filter_map(Entry::into_record);
    Ok(records
        .map(|it| it.body)
        .filter(|it| !it.is_of_turn())
        .collect())
}
