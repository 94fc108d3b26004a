//! A session of a host: found, opened, and asked.

use crate::calls;
use crate::cells::words;
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::ids;
use crate::parking::{self, has_expired};
use crate::runtime::Runtime;
use crate::sandboxed::SandboxOffer;
use crate::sessions::{self, Conversation, LatestModels};
use crate::settings::Settings;
use crate::spec::{ConnectedModel, TurnSpec, go_on_with};
use crate::trust_question::AskingSession;
use crate::turn::{Turn, TurnBuilder, TurnSession, TurnStart};
use crate::values::ApprovalMode;
use rondo_core::clock::Clock;
use rondo_core::ports::{Mail, MailBody, MailId, NewMail, RecordBody, Seq};
use rondo_core::session::Delivery;
use rondo_core::session_store::{SessionInfo, title};
use rondo_core::storage::Store;
use rondo_types::{Answer, Message, Outcome, Question, SessionId, Transcript};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

/// Which session is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionSource {
    /// A new one; if the settings keep nothing, one in memory.
    New,
    /// The one that was written last: of the directory, or else of all.
    Latest,
    /// The one of that id, of which the beginning is enough; or `latest` of all.
    Id(String),
}

/// How a session is opened.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// Working directory, which selects the project's settings.
    pub directory: PathBuf,
    /// Set if a person named that directory: otherwise a recorded session uses its own.
    pub is_directory_named: bool,
}

impl SessionOptions {
    /// Works in a directory, unless the session has its own.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            is_directory_named: false,
        }
    }
}

impl Runtime {
    /// Looks for a session, or begins to make one. [`Session::open`] takes it.
    ///
    /// # Errors
    /// When the settings make no sense, or there is no such session.
    pub fn find(&self, source: &SessionSource, options: &SessionOptions) -> Result<Session> {
        if *source == SessionSource::New {
            let settings = self.settings(options.directory.clone())?;
            let mut session = Session::new(self.clone(), settings);
            session.begin_opening()?;
            return Ok(session);
        }
        // What is asked about the folder is recorded in the session, which has to be known before.
        let settings = self.settings_unasked(options.directory.clone())?;
        check_goes_on(&settings)?;
        let store = sessions::open(&settings)?;
        let info = match source {
            SessionSource::Id(id) => sessions::find_conversation(&store, id)?,
            SessionSource::Latest | SessionSource::New => {
                sessions::latest(&store, &settings.directory)?
            }
        };
        let found = Session::stored(self, options, store, info, None)?;
        check_goes_on(&found.settings)?;
        Ok(found)
    }

    /// Opens a session, which asks the model that it asked before unless a person named another.
    ///
    /// # Errors
    /// As [`find`](Self::find), and when another process works on the session, or the disk fails.
    pub fn session(&self, source: &SessionSource, options: &SessionOptions) -> Result<Session> {
        let mut found = self.find(source, options)?;
        found.keep_model()?;
        found.open(String::new())?;
        Ok(found)
    }
}

/// Checks that the settings let a session continue.
fn check_goes_on(settings: &Settings) -> Result<()> {
    if settings.values.ephemeral != Some(true) {
        return Ok(());
    }
    let message = "a session that goes on cannot be ephemeral";
    Err(SetupError::new(SetupErrorKind::Usage, message))
}

fn opened(opening: JoinHandle<Result<Store>>) -> Result<Store> {
    let lost = |_| SetupError::new(SetupErrorKind::Other, "the journal's thread panicked");
    opening.join().map_err(lost).flatten()
}

fn no_thread(err: std::io::Error) -> SetupError {
    let context = "failed to start a thread";
    SetupError::because(SetupErrorKind::Other, context, err)
}

/// A session that a host works in: found, then taken. Its record begins with its first turn or cell, so that one in
/// which nothing was said leaves nothing behind; it is let go of when this is dropped, or another one takes its place.
pub struct Session {
    /// Effective settings.
    pub settings: Settings,
    conversation: Option<Conversation>,
    store: Option<Store>,
    /// Opens the journal of a new session: that takes a moment, in which other things are read.
    opening: Option<JoinHandle<Result<Store>>>,
    /// The entry of a recorded session that is not taken yet.
    found: Option<Box<SessionInfo>>,
    runtime: Runtime,
    /// The id that its record begins under; `None` if a new one is made.
    id: Option<SessionId>,
    /// Set if the files of older sessions' commands must still be removed.
    is_to_prune: bool,
    /// The sandbox that questions of the latest turn offered.
    offer: Option<SandboxOffer>,
}

impl Session {
    /// Says if it is not known whether the journal's file system keeps its locks.
    fn note_file_system(&self) {
        let kind = self.store.as_ref().map(|it| it.unknown_file_system());
        if let Some(Ok(Some(kind))) = kind {
            self.runtime.notices().note(&format!(
                "the journal is on a file system of the type `{kind}`, where file locks may be unreliable: use it \
                 from one machine only, or set `RONDO_HOME` to a local directory"
            ));
        }
    }

    /// A new session, in the directory of these settings. Nothing is opened yet.
    #[must_use]
    pub fn new(runtime: Runtime, settings: Settings) -> Self {
        Self {
            settings,
            conversation: None,
            store: None,
            opening: None,
            found: None,
            runtime,
            id: None,
            is_to_prune: false,
            offer: None,
        }
    }

    /// A new one, whose record begins under this id, in a journal that is open already if it is kept.
    pub(crate) fn new_as(
        id: SessionId,
        runtime: Runtime,
        settings: Settings,
        store: Option<Store>,
    ) -> Self {
        Self {
            store,
            id: Some(id),
            ..Self::new(runtime, settings)
        }
    }

    /// One that is in a journal already. `taken` is the answer about its folder that its owner has just recorded.
    ///
    /// # Errors
    /// When the settings make no sense.
    pub(crate) fn stored(
        runtime: &Runtime,
        options: &SessionOptions,
        store: Store,
        info: SessionInfo,
        taken: Option<Answer>,
    ) -> Result<Self> {
        let asking = AskingSession {
            store: store.clone(),
            info: info.clone(),
            taken,
        };
        let mut settings = runtime.settings_of(options.directory.clone(), Some(asking.clone()))?;
        if !options.is_directory_named
            && let Some(own) = sessions::own_directory(&info, &settings.directory)?
        {
            settings = runtime.settings_of(own, Some(asking))?;
        }
        Ok(Self::with_settings(runtime, store, info, settings))
    }

    /// One that is in a journal already, with settings that its host has read.
    pub(crate) fn with_settings(
        runtime: &Runtime,
        store: Store,
        info: SessionInfo,
        settings: Settings,
    ) -> Self {
        Self {
            store: Some(store),
            found: Some(Box::new(info)),
            ..Self::new(runtime.clone(), settings)
        }
    }

    /// Returns the id of a recorded session that is not taken yet.
    #[must_use]
    pub fn found_id(&self) -> Option<&SessionId> {
        self.found.as_ref().map(|info| &info.id)
    }

    /// Has the settings name the model that the session's latest turn asked, at its address, unless a person
    /// named one for this run. An imported file chooses no model. A new session has none to keep.
    ///
    /// # Errors
    /// When that model is not known here, or the session's records cannot be read.
    pub fn keep_model(&mut self) -> Result<()> {
        let (Some(store), Some(info)) = (&self.store, &self.found) else {
            return Ok(());
        };
        match LatestModels::last(store, info)? {
            Some(last) => go_on_with(&last, &mut self.settings, self.runtime.notices()),
            None => Ok(()),
        }
    }

    /// Returns the entry of a session that was begun in another directory than this one and is not taken yet.
    #[must_use]
    pub fn from_elsewhere(&self, directory: &Path) -> Option<&SessionInfo> {
        let here = sessions::directory_name(directory);
        let info = self.found.as_deref()?;
        Some(info).filter(|it| !it.directory.is_empty() && it.directory != here)
    }

    /// Takes a session that was found, or begins a new one under a title.
    ///
    /// # Errors
    /// When another process works on it, when its records are damaged, or the disk fails.
    pub fn open(&mut self, title: String) -> Result<()> {
        match self.found.take() {
            Some(info) => {
                self.take(&info)?;
                self.is_to_prune = true;
            }
            None => self.begin(title).map(drop)?,
        }
        self.note_file_system();
        Ok(())
    }

    /// Begins to open the journal, if the settings keep the session.
    fn begin_opening(&mut self) -> Result<()> {
        if self.settings.values.ephemeral == Some(true) {
            return Ok(());
        }
        let settings = self.settings.clone();
        let opening = thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || sessions::open(&settings));
        self.opening = Some(opening.map_err(no_thread)?);
        Ok(())
    }

    /// Has its first turn begin after these messages, where nothing was said in it yet.
    ///
    /// # Errors
    /// When the journal cannot be used.
    pub(crate) fn begin_after(&mut self, messages: Transcript, title: String) -> Result<()> {
        self.begin(title)?;
        if let Some(conversation) = &mut self.conversation
            && conversation.turns == 0
            && conversation.history.is_empty()
        {
            conversation.history = messages;
        }
        Ok(())
    }

    /// Has the turn that waits for answers be given these, in place of those of the mailbox.
    pub(crate) fn give(&mut self, answers: Vec<(Answer, Option<MailId>)>) {
        if let Some(conversation) = &mut self.conversation {
            conversation.answers = answers;
        }
    }

    /// Returns the runtime that all sessions of the host share.
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Returns the conversation and its records, once there is a record.
    #[must_use]
    pub fn conversation(&self) -> Option<&Conversation> {
        self.conversation.as_ref()
    }

    /// Returns the same, to note what was recorded.
    pub(crate) fn conversation_mut(&mut self) -> Option<&mut Conversation> {
        self.conversation.as_mut()
    }

    /// Returns whether something of it could not be recorded.
    #[must_use]
    pub fn has_journal_failed(&self) -> bool {
        self.conversation()
            .is_some_and(|it| it.journal.has_failed())
    }

    /// Returns whether nothing is kept: no journal has it, not even one in memory.
    #[must_use]
    pub fn is_ephemeral(&self) -> bool {
        let is_in_memory = self.store.as_ref().is_some_and(|it| it.is_in_memory());
        self.settings.values.ephemeral == Some(true) && !is_in_memory
    }

    /// Returns the journal of all sessions, which the first call opens.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn store(&mut self) -> Result<&Store> {
        let store = match (self.store.take(), self.opening.take()) {
            (Some(store), _) => store,
            (None, Some(opening)) => opened(opening)?,
            (None, None) => sessions::open(&self.settings)?,
        };
        Ok(self.store.insert(store))
    }

    /// Returns the journal that it is in; `None` if none is opened for it.
    pub(crate) fn opened_store(&self) -> Option<&Store> {
        self.store.as_ref()
    }

    /// Returns its entry in the list of sessions.
    ///
    /// # Errors
    /// When it has no record yet, or keeps none.
    pub fn info(&mut self) -> Result<SessionInfo> {
        let none = |message| Err(SetupError::new(SetupErrorKind::NoSession, message));
        let Some(id) = self.conversation().map(|it| it.session.clone()) else {
            return none("there is no message yet");
        };
        if self.is_ephemeral() {
            return none("this session is not recorded");
        }
        self.store()?.session(&id).map_err(sessions::failed)
    }

    /// Begins its record under a title, if it has none yet.
    ///
    /// # Errors
    /// When the journal cannot be used.
    pub fn begin(&mut self, title: String) -> Result<&Conversation> {
        let conversation = match self.conversation.take() {
            Some(conversation) => conversation,
            None if self.is_ephemeral() => Conversation::ephemeral(self.id.take()),
            None => {
                let directory = self.settings.directory.clone();
                let store = self.store()?.clone();
                let begun = Conversation::begin(&store, &directory, title, self.id.take())?;
                self.is_to_prune = true;
                begun
            }
        };
        Ok(self.conversation.insert(conversation))
    }

    /// Continues a recorded session in place of the one before, which is released first: a process owns
    /// a session once. If that fails, the next turn begins a session of its own.
    ///
    /// # Errors
    /// When another process is running it, when its records are damaged, or the disk fails.
    pub fn take(&mut self, info: &SessionInfo) -> Result<&Conversation> {
        self.conversation = None;
        let taken = Conversation::take(self.store()?, info)?;
        Ok(self.conversation.insert(taken))
    }

    /// Records something that belongs to no turn, and returns the record's place; `None` if the session has no record
    /// yet.
    ///
    /// # Errors
    /// When it cannot be recorded; then what it announces must not happen.
    pub async fn record(&self, body: RecordBody) -> Result<Option<Seq>> {
        match &self.conversation {
            Some(conversation) => conversation.record(body).await.map(Some),
            None => Ok(None),
        }
    }

    /// Builds the specification of the turn: the model that answers, and its limits.
    ///
    /// # Errors
    /// When the settings name no model, or one that cannot do what the profile needs.
    pub fn spec(&self) -> Result<TurnSpec> {
        TurnSpec::of(&self.settings, self.runtime.notices())
    }

    /// Decides the same for the model that the session's latest turn asked, unless a person named one for this run.
    ///
    /// # Errors
    /// When that model is not known here or cannot do what the profile needs, or the records cannot be read.
    pub(crate) fn spec_as_before(&mut self) -> Result<TurnSpec> {
        let info = self.info()?;
        let last = LatestModels::last(self.store()?, &info)?;
        let mut settings = self.settings.clone();
        let notices = self.runtime.notices();
        if let Some(last) = last {
            go_on_with(&last, &mut settings, notices)?;
        }
        TurnSpec::of(&settings, notices)
    }

    /// Returns the turn that was cut off and what it continues under, if there is one. It stays cut off until
    /// [`finished`](Self::finished) takes its outcome.
    ///
    /// # Errors
    /// When its models are not known here, or it was imported and the user has not agreed that it continues.
    pub fn cut_off(&self) -> Result<Option<(TurnSpec, TurnStart)>> {
        let Some(conversation) = self.conversation() else {
            return Ok(None);
        };
        let Some(cut_off) = conversation.cut_off.clone() else {
            return Ok(None);
        };
        if conversation.needs_consent {
            return Err(no_consent());
        }
        let spec = TurnSpec::of_cut_off(&cut_off, &self.settings, self.runtime.notices())?;
        Ok(Some((spec, TurnStart::CutOff(cut_off))))
    }

    /// Allows that a turn which came from a file is resumed.
    pub fn allow_cut_off(&mut self) {
        if let Some(conversation) = &mut self.conversation {
            conversation.needs_consent = false;
        }
    }

    /// Continues from the messages of the turn that was cut off, as they are, instead of resuming it.
    pub fn leave_cut_off(&mut self) {
        if let Some(conversation) = &mut self.conversation {
            conversation.leave_open_turn();
        }
    }

    /// Connects the model of a spec.
    ///
    /// # Errors
    /// As [`Runtime::connect`].
    ///
    /// # Cancel safety
    /// As [`Runtime::connect`].
    pub async fn connect(&self, spec: &TurnSpec) -> Result<ConnectedModel> {
        // They start while the key or the weights of the model are found.
        self.runtime.servers(&self.settings)?;
        self.runtime.connect(spec, &self.settings).await
    }

    /// Puts a turn together. The first one begins the session's record, with its message as the title. Once
    /// it has run, [`finished`](Self::finished) takes its outcome.
    ///
    /// # Errors
    /// When its tools or its models cannot be built, or the journal cannot be used.
    pub fn turn(&mut self, builder: TurnBuilder) -> Result<Turn> {
        let builder = builder.redacted(&self.runtime, &self.settings);
        if let Some(message) = builder.start.message() {
            self.begin_turn(title(&words(message)))?;
        }
        let Some(conversation) = &self.conversation else {
            let message = "there is no turn to resume";
            return Err(SetupError::new(SetupErrorKind::NoSession, message));
        };
        let turn = builder.build(TurnSession {
            runtime: &self.runtime,
            settings: &self.settings,
            conversation,
            store: self.store.as_ref().filter(|_| !self.is_ephemeral()),
        })?;
        self.offer = turn.offer().cloned();
        if let Some(store) = &self.store
            && std::mem::take(&mut self.is_to_prune)
        {
            let (paths, store) = (self.settings.paths.clone(), store.clone());
            let current = conversation.session.clone();
            self.runtime
                .beside(move || calls::prune(&paths, &current, &store));
        }
        Ok(turn)
    }

    /// Takes the outcome of a turn: the next one knows its messages, and runs commands in the sandbox if the user chose
    /// that.
    pub fn finished(&mut self, outcome: &Outcome) {
        if self.offer.take().is_some_and(|it| it.is_chosen()) {
            self.settings.values.approval = Some(ApprovalMode::Auto);
        }
        if let Some(conversation) = &mut self.conversation {
            conversation.took(outcome);
        }
    }

    /// Submits a message, which waits in the session's mailbox until a process begins a turn with it. Once this
    /// returns, no crash loses it.
    ///
    /// # Errors
    /// When nothing is kept of the session, too much waits in it, or the journal cannot be written.
    ///
    /// # Cancel safety
    /// Not cancel safe: the message may or may not be submitted.
    pub async fn submit(&mut self, message: Message) -> Result<()> {
        let session = self.info()?.id;
        let at_ms = Clock::system().now();
        let mail = NewMail {
            session,
            key: ids::new_key("message", at_ms),
            actor: parking::user(&self.settings.env),
            at_ms,
            body: MailBody::Message {
                message,
                delivery: Delivery::Queue,
            },
        };
        let pushed = self.store()?.push(mail).await;
        pushed.map(drop).map_err(parking::unkept)
    }

    /// Returns the rows of its mailbox, the oldest first.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn mail(&mut self) -> Result<Vec<Mail>> {
        let known = self.conversation().filter(|it| it.has_records());
        let session = known.map(|it| it.session.clone());
        match session.filter(|_| !self.is_ephemeral()) {
            Some(session) => self.store()?.mail(&session).map_err(parking::unkept),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the questions that the parked turn waits for; empty if no turn is parked. Questions that were answered
    /// or have expired are left out: the turn does not wait for them.
    #[must_use]
    pub fn open_questions(&self) -> Vec<Question> {
        let Some(conversation) = self.conversation() else {
            return Vec::new();
        };
        let questions = conversation.cut_off.iter().flat_map(|it| &it.questions);
        let answers = &conversation.answers;
        let is_answered = |it: &Question| answers.iter().any(|(given, _)| given.hash == it.hash);
        let open = questions.filter(|it| !is_answered(it) && !has_expired(it));
        open.cloned().collect()
    }

    /// Begins the record with a first question, whose words become the title even if a cell began it.
    pub(crate) fn begin_turn(&mut self, title: String) -> Result<()> {
        let of_cells = self
            .conversation()
            .filter(|it| it.turns == 0 && it.has_records());
        if let Some(session) = of_cells.map(|it| it.session.clone())
            && !self.is_ephemeral()
        {
            self.store()?.set_title(&session, &title)?;
        }
        self.begin(title).map(drop)
    }
}

fn no_consent() -> SetupError {
    let message = "the turn that was cut off was imported: its file may be from anyone";
    let hint = "`rondo resume SESSION` at a terminal asks whether to resume it; `rondo fork SESSION --at STEP --message TEXT` leaves it";
    SetupError::new(SetupErrorKind::ApprovalNeeded, message).hint(hint)
}
