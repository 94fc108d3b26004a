//! A conversation: the messages of its turns, sent with the next one.

use crate::cut_off::CutOff;
use crate::ledger::Ledger;
use crate::run::{PutBack, RunStart};
use crate::schema::AnswerSchema;
use crate::typed::{Expected, Typed, TypedError, decoded};
use crate::{Agent, Run, TurnError, parts};
use rondo_core::Journal;
use rondo_core::history::History;
use rondo_core::history::last_turn;
use rondo_core::ports::{NoJournal, Record};
use rondo_types::{Message, Outcome, SessionId, Transcript};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError};
use tokio::sync::Mutex;

/// A conversation: it keeps the messages of its turns and sends them with the next one.
///
/// Its turns run one at a time, in the order they are started: each waits for the end of the one
/// before it. A turn that stopped early or failed leaves what there is of it; one whose [`Run`] was
/// dropped leaves nothing. Clones are the same conversation.
///
/// Nothing bounds the history but the model's context: the transcript can be taken, shortened and
/// given to another session.
#[derive(Clone)]
pub struct Session {
    agent: Agent,
    id: SessionId,
    journal: Option<Arc<Ledger>>,
    history: Arc<Mutex<Transcript>>,
    turns: Arc<AtomicU32>,
    cut_off: Arc<std::sync::Mutex<Option<CutOff>>>,
}

impl Session {
    pub(crate) fn new(agent: Agent, id: SessionId) -> Self {
        Self {
            agent,
            id,
            journal: None,
            history: Arc::default(),
            turns: Arc::default(),
            cut_off: Arc::default(),
        }
    }

    /// Begins with messages of before, in place of none.
    #[must_use]
    pub fn with_history(self, history: Transcript) -> Self {
        Self {
            turns: Arc::new(AtomicU32::new(parts::turns_of(&history))),
            history: Arc::new(Mutex::new(history)),
            cut_off: Arc::default(),
            ..self
        }
    }

    /// Begins with what a journal recorded of this session, from its first record on.
    ///
    /// Where the last turn was cut off, [`Session::resume`] carries it on.
    #[must_use]
    pub fn with_records(self, records: &[Record]) -> Self {
        let history = History::of(records);
        let cut_off = history.open_turn().map(|open| {
            let before = usize::try_from(open.first.0.saturating_sub(1)).unwrap_or(usize::MAX);
            let own = records.iter().skip(before).cloned().collect();
            CutOff::new(&history, open, own)
        });
        self.recorded(&history, cut_off)
    }

    pub(crate) fn recorded(self, history: &History, cut_off: Option<CutOff>) -> Self {
        let transcript = history.transcript();
        // The records count their turns; the ids tell of turns before the first record.
        let turns = history.turns().max(last_turn(&transcript));
        Self {
            turns: Arc::new(AtomicU32::new(turns)),
            history: Arc::new(Mutex::new(transcript)),
            cut_off: Arc::new(std::sync::Mutex::new(cut_off)),
            ..self
        }
    }

    /// Records every turn in a journal, which is this session's alone.
    ///
    /// Without one, each turn is recorded in memory until it ends.
    #[must_use]
    pub fn with_journal(self, journal: Arc<dyn Journal>) -> Self {
        Self {
            journal: Some(Arc::new(Ledger::new(journal))),
            ..self
        }
    }

    /// Returns the session's name.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns the messages so far, once the turn that runs has ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn transcript(&self) -> Transcript {
        self.history.lock().await.clone()
    }

    /// Answers a message.
    ///
    /// # Errors
    /// When the turn failed: see [`Agent`].
    ///
    /// # Cancel safety
    /// Dropping the future ends the turn, and the session goes on as if it had not been.
    pub async fn run(&self, message: impl Into<Message>) -> Result<Outcome, TurnError> {
        self.start(message).outcome().await
    }

    /// Answers a message with a value of a type, as [`Agent::run_typed`] does.
    ///
    /// # Errors
    /// When the turn failed, or ended without such a value. The outcome is in the error.
    ///
    /// # Cancel safety
    /// Dropping the future ends the turn, and the session goes on as if it had not been.
    pub async fn run_typed<T: DeserializeOwned + JsonSchema>(
        &self,
        message: impl Into<Message>,
    ) -> Result<Typed<T>, TypedError> {
        let answer = Arc::new(AnswerSchema::of::<T>());
        let run = self.start_turn(message.into(), Some(Expected::of::<T>(&answer)));
        decoded(&answer, run.outcome().await)
    }

    /// Starts a turn and returns its handle. The session has its messages when the outcome is there.
    ///
    /// Where another turn runs, this one begins after it, and so does whatever the handle is told.
    pub fn start(&self, message: impl Into<Message>) -> Run {
        self.start_turn(message.into(), None)
    }

    /// Carries on the turn that was cut off before the session was opened; none where none was, or
    /// something else was said since.
    ///
    /// No recorded reply is asked for again, and no finished call runs again. The turn has the
    /// limits, prompt and tools that it began with, and what this agent's tools do. It fails with
    /// [`TurnError::Resume`] where the agent's models are not the turn's; the turn then stays cut off,
    /// and this may be called again. So it does with [`TurnError::Imported`] where the session came from
    /// a file: [`Session::resume_imported`] is for that.
    ///
    /// A session that goes on without it has its messages as far as they were recorded, each call
    /// with a result.
    ///
    /// A turn whose [`Run`] was dropped is no such turn to the session it was dropped in, which goes
    /// on as if it had not been. Its records are there: drop the session with its clones and open it
    /// again, and this carries it on.
    pub fn resume(&self) -> Option<Run> {
        Some(self.carry_on(self.take_cut_off()?))
    }

    /// Carries on the turn that was cut off as [`Session::resume`] does, also where the session was
    /// imported. Whoever wrote the file chose what was said, what the model answered, the calls that are
    /// yet to run and the turn's limits; this agent's gate judges those calls.
    pub fn resume_imported(&self) -> Option<Run> {
        let cut_off = CutOff {
            needs_consent: false,
            ..self.take_cut_off()?
        };
        Some(self.carry_on(cut_off))
    }

    fn carry_on(&self, cut_off: CutOff) -> Run {
        let task = self.task(cut_off.number, None);
        let put_back = self.put_back();
        self.begin(task, RunStart::CarryOn(cut_off, put_back))
    }

    /// Returns what makes a turn resumable again, unless another one was started since.
    fn put_back(&self) -> PutBack {
        let (slot, turns) = (Arc::clone(&self.cut_off), Arc::clone(&self.turns));
        let started = turns.load(Ordering::Relaxed);
        Box::new(move |cut_off| {
            let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            if turns.load(Ordering::Relaxed) == started {
                *slot = Some(cut_off);
            }
        })
    }

    fn start_turn(&self, message: Message, answer: Option<Expected>) -> Run {
        // A turn that is dropped has used its number too, since its calls may have run.
        let number = self.turns.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        // After the number: a resume that fails meanwhile must see that another turn began.
        drop(self.take_cut_off());
        self.begin(self.task(number, answer), RunStart::Ask(message))
    }

    fn begin(&self, task: parts::Task, start: RunStart) -> Run {
        let setup = self.agent.parts.setup(task);
        Run::start(
            setup,
            start,
            Arc::clone(&self.history),
            self.journal.clone(),
        )
    }

    fn task(&self, turn_number: u32, answer: Option<Expected>) -> parts::Task {
        parts::Task {
            session: self.id.clone(),
            turn_number,
            journal: match &self.journal {
                Some(journal) => Arc::clone(journal) as _,
                None => Arc::new(NoJournal::default()),
            },
            answer,
        }
    }

    fn take_cut_off(&self) -> Option<CutOff> {
        let cut_off = self.cut_off.lock();
        cut_off.unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.id)
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}
