//! A conversation: it keeps the messages of its turns and sends them with the next one.

use crate::cut_off::CutOff;
use crate::ledger::Ledger;
use crate::run::{ReturnOnDrop, RunStart};
use crate::schema::AnswerSchema;
use crate::typed::{Expected, TypedAnswer, TypedError, decoded};
use crate::{Agent, Run, TurnError, parts};
use rondo_core::history::History;
use rondo_core::history::last_turn;
use rondo_core::ports::{NoJournal, Record};
use rondo_core::{Journal, OutsideText};
use rondo_types::{Message, Outcome, SessionId, Transcript};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError};
use tokio::sync::Mutex;

/// A conversation: it keeps the messages of its turns and sends them with the next one.
///
/// Its turns run one at a time, in the order in which they are started. A turn that stopped early or
/// failed leaves its messages until then, and so does one that is parked or whose [`Run`] was dropped if the session has a
/// journal; without one it leaves none. Clones are the
/// same conversation.
///
/// The profile's [`CompactionPolicy`](rondo_types::CompactionPolicy) shortens a history that would
/// not fit the model. To shorten it yourself, take [`Session::transcript`] and give it to another
/// session with [`Session::with_history`].
#[derive(Clone)]
pub struct Session {
    agent: Agent,
    id: SessionId,
    journal: Option<Arc<Ledger>>,
    history: Arc<Mutex<Transcript>>,
    turns: Arc<AtomicU32>,
    cut_off: Arc<std::sync::Mutex<Option<CutOff>>>,
    outside_text: OutsideText,
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
            outside_text: OutsideText::default(),
        }
    }

    /// Starts from an existing history.
    #[must_use]
    pub fn with_history(self, history: Transcript) -> Self {
        Self {
            turns: Arc::new(AtomicU32::new(parts::turns_of(&history))),
            history: Arc::new(Mutex::new(history)),
            cut_off: Arc::default(),
            ..self
        }
    }

    /// Starts from all records that a journal has of this session, the first one included.
    ///
    /// If the last turn was interrupted, [`Session::resume`] continues it.
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
        // The records count their own turns; call ids show turns from before the first record.
        let turns = history.turns().max(last_turn(&transcript));
        Self {
            turns: Arc::new(AtomicU32::new(turns)),
            history: Arc::new(Mutex::new(transcript)),
            cut_off: Arc::new(std::sync::Mutex::new(cut_off)),
            outside_text: OutsideText::new(history.has_outside_text()),
            ..self
        }
    }

    /// Records every turn in a journal, which no other session may use.
    ///
    /// Without a journal, turns are not recorded.
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

    /// Waits for the running turn, if any, and returns the messages so far.
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
    /// Dropping the future ends the turn. The session keeps its messages if it has a journal.
    pub async fn run(&self, message: impl Into<Message>) -> Result<Outcome, TurnError> {
        self.start(message).outcome().await
    }

    /// Answers a message with a value of a type, as [`Agent::run_typed`] does.
    ///
    /// # Errors
    /// When the turn failed, or ended without such a value. The outcome is in the error.
    ///
    /// # Cancel safety
    /// Dropping the future ends the turn. The session keeps its messages if it has a journal.
    pub async fn run_typed<T: DeserializeOwned + JsonSchema>(
        &self,
        message: impl Into<Message>,
    ) -> Result<TypedAnswer<T>, TypedError> {
        let answer = Arc::new(AnswerSchema::of::<T>());
        let run = self.start_turn(message.into(), Some(Expected::of::<T>(&answer)));
        decoded(&answer, run.outcome().await)
    }

    /// Starts a turn and returns its handle. The session has its messages once it has an outcome.
    ///
    /// If another turn of the session runs, this one waits for it. A cancel or a steering message
    /// takes effect once it has begun.
    pub fn start(&self, message: impl Into<Message>) -> Run {
        self.start_turn(message.into(), None)
    }

    /// Resumes the turn that was interrupted before the session was opened, that was parked, or whose [`Run`] was dropped.
    /// Returns `None` when there is no such turn, or another turn was started since. Parked and dropped turns need a
    /// journal.
    ///
    /// Recorded replies are not requested again, and finished calls do not run again. The turn keeps
    /// the limits, the prompt and the tool specifications that it began with; its calls run this
    /// agent's tools. It fails with [`TurnError::Resume`] if the agent's models are not the turn's,
    /// and with [`TurnError::Imported`] if the session was imported from a file: use
    /// [`Session::resume_imported`] then. After either error the turn can still be resumed.
    ///
    /// A session that starts another turn instead keeps the recorded messages of the interrupted
    /// one, and each of its calls has a result.
    pub fn resume(&self) -> Option<Run> {
        if let Some(cut_off) = self.take_cut_off() {
            return Some(self.carry_on(cut_off));
        }
        let is_left = self.journal.as_ref().is_some_and(|it| it.has_left_turn());
        is_left.then(|| {
            let task = self.task(self.turns.load(Ordering::Relaxed), None);
            self.begin(task, RunStart::CarryOnLeft(self.put_back()))
        })
    }

    /// Resumes the interrupted turn as [`Session::resume`] does, even in an imported session. The
    /// author of the file chose the messages, the model's replies, the calls that are yet to run and
    /// the turn's limits; this agent's gate judges those calls.
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

    /// Returns a function that makes a turn resumable again, unless another one was started since.
    fn put_back(&self) -> ReturnOnDrop {
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
        // A dropped turn uses up its number too, since its calls may have run.
        let number = self.turns.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        // After the number is taken: a resume that fails meanwhile must see that another turn began.
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
            outside_text: self.outside_text.clone(),
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
