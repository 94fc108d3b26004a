//! A session of a host: found, opened, and asked.

use crate::calls;
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::plan::{ConnectedModel, TurnPlan, go_on_with};
use crate::runtime::Runtime;
use crate::sessions::{self, Conversation, LastAsked};
use crate::settings::Settings;
use crate::turn::{Turn, TurnContext, TurnHost, TurnStart};
use rondo_core::{control, events};
use rondo_journal::{SessionInfo, Store};
use rondo_types::{Message, Outcome, TurnEvent};
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

/// Which session is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionSource {
    /// A new one; where the settings keep nothing, one in memory.
    New,
    /// The one that was written last: of the directory, or else of all.
    Latest,
    /// The one of that id, of which the beginning is enough; or `latest` of all.
    Id(String),
}

/// How a session is opened.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// Where it works, and whose project's settings count.
    pub directory: PathBuf,
    /// Whether a person named that directory: otherwise a session that is kept works in its own.
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
    /// Looks for a session, or begins to make one.
    ///
    /// # Errors
    /// When the settings make no sense, or there is no such session.
    pub fn find(&self, source: &SessionSource, options: &SessionOptions) -> Result<FoundSession> {
        FoundSession::find(self, source, options)
    }

    /// Opens a session, which asks the model that it asked before unless a person named another.
    ///
    /// # Errors
    /// As [`find`](Self::find), and when another process works on the session, or the disk fails.
    pub fn session(&self, source: &SessionSource, options: &SessionOptions) -> Result<Session> {
        let mut found = self.find(source, options)?;
        found.keep_model()?;
        found.open(String::new())
    }
}

/// A session that was found, and nobody has taken yet.
pub struct FoundSession {
    /// What is in force in it.
    pub settings: Settings,
    runtime: Runtime,
    store: SessionStore,
}

/// Where a session is, before it is taken.
enum SessionStore {
    Memory,
    /// A new one, in a journal that is being opened: that takes a moment, in which other things are read.
    New(JoinHandle<Result<Store>>),
    Known(Store, Box<SessionInfo>),
}

impl FoundSession {
    fn find(runtime: &Runtime, source: &SessionSource, options: &SessionOptions) -> Result<Self> {
        let mut settings = runtime.settings(options.directory.clone())?;
        let store = SessionStore::find(source, &settings)?;
        if let SessionStore::Known(_, info) = &store
            && !options.is_directory_named
            && let Some(own) = sessions::own_directory(info, &settings.directory)?
        {
            settings = runtime.settings(own)?;
        }
        Ok(Self {
            settings,
            runtime: runtime.clone(),
            store,
        })
    }

    /// Has the settings name the model that the session's latest turn asked, at its address, unless a person
    /// named one for this run. A file that was imported chooses nobody.
    ///
    /// # Errors
    /// When that model is not known here, or the session's records cannot be read.
    pub fn keep_model(&mut self) -> Result<()> {
        let SessionStore::Known(store, info) = &self.store else {
            return Ok(());
        };
        match LastAsked::last(store, info)? {
            Some(last) => go_on_with(&last, &mut self.settings, self.runtime.notices()),
            None => Ok(()),
        }
    }

    /// Takes the session, or begins it under a title.
    ///
    /// # Errors
    /// When another process works on it, when its records are damaged, or the disk fails.
    pub fn open(self, title: String) -> Result<Session> {
        let conversation = self.store.open(&self.settings, title)?;
        Ok(Session {
            settings: self.settings,
            conversation,
            runtime: self.runtime,
        })
    }
}

impl SessionStore {
    fn find(source: &SessionSource, settings: &Settings) -> Result<Self> {
        let is_ephemeral = settings.values.ephemeral == Some(true);
        match source {
            SessionSource::New if is_ephemeral => Ok(Self::Memory),
            SessionSource::New => {
                let settings = settings.clone();
                let opening = thread::Builder::new()
                    .name("journal".to_owned())
                    .spawn(move || sessions::open(&settings));
                opening.map(Self::New).map_err(no_thread)
            }
            SessionSource::Latest | SessionSource::Id(_) if is_ephemeral => {
                let message = "a session that goes on cannot be ephemeral";
                Err(SetupError::new(SetupErrorKind::Usage, message))
            }
            SessionSource::Latest => Self::known(settings, |store| {
                sessions::latest(store, &settings.directory)
            }),
            SessionSource::Id(id) => Self::known(settings, |store| sessions::find(store, id)),
        }
    }

    fn known(
        settings: &Settings,
        find: impl FnOnce(&Store) -> Result<SessionInfo>,
    ) -> Result<Self> {
        let store = sessions::open(settings)?;
        let info = find(&store)?;
        Ok(Self::Known(store, Box::new(info)))
    }

    fn open(self, settings: &Settings, title: String) -> Result<Conversation> {
        let (store, opened) = match self {
            Self::Memory => return Ok(Conversation::ephemeral()),
            Self::New(opening) => {
                let lost =
                    |_| SetupError::new(SetupErrorKind::Other, "the journal's thread panicked");
                let store = opening.join().map_err(lost).flatten()?;
                let begun = Conversation::begin(&store, &settings.directory, title)?;
                (store, begun)
            }
            Self::Known(store, info) => {
                let taken = Conversation::take(&store, &info)?;
                (store, taken)
            }
        };
        calls::prune(&settings.paths, &opened.session, &store);
        Ok(opened)
    }
}

fn no_thread(err: std::io::Error) -> SetupError {
    let context = "failed to start a thread";
    SetupError::because(SetupErrorKind::Other, context, err)
}

/// A session that this process has taken. It is let go of when this is dropped.
pub struct Session {
    /// What is in force in it.
    pub settings: Settings,
    /// What was said, and where it is recorded.
    pub conversation: Conversation,
    runtime: Runtime,
}

impl Session {
    /// Decides who answers, and under what.
    ///
    /// # Errors
    /// When the settings name nobody, or somebody who cannot do what the profile needs.
    pub fn plan(&self) -> Result<TurnPlan> {
        TurnPlan::of(&self.settings, self.runtime.notices())
    }

    /// Connects the model of a plan.
    ///
    /// # Errors
    /// As [`Runtime::connect`].
    ///
    /// # Cancel safety
    /// As [`Runtime::connect`].
    pub async fn connect(&self, plan: &TurnPlan) -> Result<ConnectedModel> {
        self.runtime.connect(plan, &self.settings).await
    }

    /// Puts a turn together. Once it has run, the session takes its outcome by
    /// [`Conversation::took`].
    ///
    /// # Errors
    /// When its tools or its models cannot be built.
    pub fn turn(
        &self,
        plan: &TurnPlan,
        connected: ConnectedModel,
        start: TurnStart,
        host: TurnHost<'_>,
    ) -> Result<Turn> {
        let context = TurnContext {
            runtime: &self.runtime,
            settings: &self.settings,
            conversation: &self.conversation,
            workdir: None,
        };
        context.turn(plan, connected, start, host)
    }

    /// Asks, and hands over the turn's events as they come.
    ///
    /// A host that stops, steers or shows turns in its own way plans, connects and runs them itself.
    ///
    /// # Errors
    /// When the turn cannot begin. One that began has an outcome, whatever happens.
    ///
    /// # Cancel safety
    /// Dropping the future ends the turn at once; what is recorded of it is carried on by whoever opens the
    /// session next.
    pub async fn ask(
        &mut self,
        message: Message,
        host: TurnHost<'_>,
        mut on_event: impl FnMut(TurnEvent),
    ) -> Result<Outcome> {
        let plan = self.plan()?;
        let connected = self.connect(&plan).await?;
        let start = TurnStart::Message(Box::new(message));
        let turn = self.turn(&plan, connected, start, host)?;
        let (sender, mut listener) = events::channel(turn.session().clone(), turn.id());
        let sender = self.runtime.observe(sender).await;
        let (_handle, control) = control();
        let listen = async {
            while let Some(event) = listener.next().await {
                on_event(event);
            }
        };
        let (outcome, ()) = tokio::join!(turn.run(sender, control), listen);
        let outcome = outcome?;
        self.conversation.took(&outcome);
        Ok(outcome)
    }
}
