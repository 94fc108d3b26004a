//! A session that this process owns, with its history and its interrupted turn, if any.

use super::{WatchedJournal, directory_name};
use crate::error::SetupErrorKind;
use crate::error::{Result, SetupError};
use crate::ids::new_session;
use crate::notices::Notices;
use crate::parking;
use crate::todo::TodoList;
use rondo_core::Journal as _;
use rondo_core::OutsideText;
use rondo_core::clock::Clock;
use rondo_core::history::History;
use rondo_core::ports::{
    Append, Commit, Entry, Fence, MailId, MemoryJournal, Record, RecordBody, Seq,
};
use rondo_core::session_store::{NewSession, SessionInfo};
use rondo_core::storage::Store;
use rondo_policy::Grants;
use rondo_types::{Answer, Outcome, Profile, Question, SessionId, TimeMs, Transcript, TurnId};
use std::path::Path;
use std::sync::Arc;

/// The kind of the record of an answer.
const ANSWERED: &str = "answered";

/// A session that this process owns: a new one, or one that it continues.
pub struct Conversation {
    /// Id of the session.
    pub session: SessionId,
    /// Journal of its turns.
    pub journal: Arc<WatchedJournal>,
    /// The messages of all turns, without those of an interrupted last turn.
    pub history: Transcript,
    /// When it began.
    pub(crate) began: TimeMs,
    /// The messages of all turns, the interrupted one included.
    with_open_turn: Transcript,
    /// The number of its latest turn; 0 before the first.
    pub turns: u32,
    /// Set if records after the last one were lost.
    lost_end: bool,
    /// The latest turn, if it was interrupted.
    pub cut_off: Option<Arc<CutOff>>,
    /// Set if that turn was imported and the user has not yet agreed to resume it.
    pub needs_consent: bool,
    /// Its to-do list.
    pub todo: TodoList,
    /// The answers that were given to it while it was parked, with their rows of the mailbox; none if the session itself
    /// answered.
    pub(crate) answers: Vec<(Answer, Option<MailId>)>,
    /// What the user allowed for the rest of the session.
    pub grants: Grants,
    /// Mark of text from outside.
    pub(crate) outside_text: OutsideText,
    /// Open question about its folder, when it was taken.
    pub(crate) folder_question: Option<Question>,
}

/// A turn that was interrupted.
pub struct CutOff {
    /// Records of the turn.
    pub records: Vec<Record>,
    /// Profile of the turn.
    pub profile: Profile,
    /// Its models as `provider/model`, in order; never empty.
    pub models: Vec<String>,
    /// Their addresses, in the same order, as far as recorded; empty for a model that ran in the process.
    pub addresses: Vec<String>,
    /// Set if its records were imported.
    pub is_imported: bool,
    /// Open questions, if it is parked.
    pub questions: Vec<Question>,
    /// Set if it was ever parked, even if a process has run it since.
    pub was_parked: bool,
}

impl Conversation {
    /// Begins a session that is not recorded, under an id or a new one.
    pub fn ephemeral(id: Option<SessionId>) -> Self {
        let journal = Arc::new(WatchedJournal::new(Arc::new(MemoryJournal::default())));
        let id = id.unwrap_or_else(|| new_session(Clock::system().now()));
        Self::new(id, journal)
    }

    /// Begins a session that exists on disk from its first record on, under an id or a new one.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn begin(
        store: &Store,
        directory: &Path,
        title: String,
        id: Option<SessionId>,
    ) -> Result<Self> {
        let at = Clock::system().now();
        let session = id.unwrap_or_else(|| new_session(at));
        let new = NewSession {
            id: session.clone(),
            at,
            title,
            directory: directory_name(directory),
        };
        let owned = store.begin(new)?;
        Ok(Self::new(session, Arc::new(WatchedJournal::new(owned))))
    }

    /// Takes ownership of an existing session.
    ///
    /// # Errors
    /// At once when another process owns it; when its records are damaged, or the disk fails.
    pub fn take(store: &Store, info: &SessionInfo) -> Result<Self> {
        let owned = store.take(&info.id)?;
        let history = store.history(&info.id)?;
        let journal = Arc::new(WatchedJournal::new(owned));
        let mut taken = Self::new(info.id.clone(), journal);
        taken.history = history.before_open_turn();
        taken.todo = TodoList::new(history.todo().to_vec());
        taken.turns = history.turns();
        taken.began = info.created;
        taken.lost_end = info.lost_end;
        taken.grants = grants(store, info, &history)?;
        taken.outside_text = OutsideText::new(history.has_outside_text());
        taken.folder_question = history.folder_question();
        taken.with_open_turn = history.transcript();
        if let Some(open) = history.open_turn() {
            let entries = store.read(&info.id, open.first, usize::MAX);
            let entries = entries?.into_iter();
            let records = entries.filter_map(Entry::into_record);
            let records = records.filter(|it| it.body.is_of_turn()).collect();
            let parked = match open.is_parked {
                true => open.questions,
                false => Vec::new(),
            };
            let cut_off = CutOff::of(records, parked, info.imported)?;
            taken.cut_off = Some(Arc::new(cut_off));
            taken.needs_consent = info.imported;
            taken.answers = parking::answers(store, &info.id)?;
            // It has its number already.
            taken.turns = open.number.saturating_sub(1);
        }
        Ok(taken)
    }

    /// Tells the user if the end of the session was lost.
    pub fn note_lost_end(&self, notices: &dyn Notices) {
        if self.lost_end {
            note_lost(&self.session, notices);
        }
    }

    /// Gives up the interrupted turn, but keeps its messages in the history.
    pub(crate) fn leave_open_turn(&mut self) {
        if self.cut_off.take().is_some() {
            self.history = std::mem::take(&mut self.with_open_turn);
            self.turns = self.turns.saturating_add(1);
        }
    }

    /// Returns whether anything is recorded yet.
    pub fn has_records(&self) -> bool {
        self.journal.at() > Seq(0)
    }

    /// Appends a record that belongs to no turn, and returns its number once it is durable.
    ///
    /// # Errors
    /// When it cannot be recorded; the action that it announces must not be taken then.
    pub async fn record(&self, body: RecordBody) -> Result<Seq> {
        self.record_all(vec![body]).await
    }

    /// Appends several such records at once or none of them, and returns the number of the last.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub async fn record_all(&self, bodies: Vec<RecordBody>) -> Result<Seq> {
        self.record_with(bodies, Commit::default()).await
    }

    /// Records a question about the session's folder, and returns it with its place. One that is open already keeps its
    /// record.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub(crate) async fn record_folder_question(&self, question: &Question) -> Result<Question> {
        let mut asked = question.clone();
        let known = self.folder_question.as_ref();
        asked.subject.record = match known.filter(|it| it.hash == question.hash) {
            Some(known) => known.subject.record,
            None => {
                let question = question.clone();
                self.record(RecordBody::FolderAsked { question }).await?.0
            }
        };
        asked.subject.session = self.session.clone();
        Ok(asked)
    }

    /// Records the answer to such a question, and removes its row of the mailbox.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub(crate) async fn record_folder_answer(
        &self,
        answer: Answer,
        mail: Option<MailId>,
    ) -> Result<()> {
        let commit = mail.map_or_else(Commit::default, Commit::of);
        let body = RecordBody::FolderAnswered { answer };
        self.record_with(vec![body], commit).await.map(drop)
    }

    async fn record_with(&self, bodies: Vec<RecordBody>, commit: Commit) -> Result<Seq> {
        let fence = Fence {
            session: self.session.clone(),
            epoch: self.journal.epoch(),
        };
        let at_ms = Clock::system().now();
        let records = bodies.into_iter().map(|body| Record {
            turn: TurnId::new(""),
            step: 0,
            at_ms,
            body,
        });
        let appended = self.journal.append(
            &fence,
            Append {
                expected: self.journal.at(),
                batch: records.collect(),
                commit,
            },
        );
        appended.await.map_err(|err| {
            let context = "failed to write to the journal";
            SetupError::because(SetupErrorKind::Journal, context, err)
        })
    }

    /// Takes over the outcome of a turn: its transcript and number.
    pub(crate) fn took(&mut self, outcome: &Outcome) {
        self.history.clone_from(&outcome.transcript);
        self.turns = self.turns.saturating_add(1);
        self.cut_off = None;
        self.answers.clear();
    }

    fn new(session: SessionId, journal: Arc<WatchedJournal>) -> Self {
        Self {
            session,
            journal,
            history: Transcript::new(),
            began: Clock::system().now(),
            with_open_turn: Transcript::new(),
            turns: 0,
            lost_end: false,
            cut_off: None,
            needs_consent: false,
            todo: TodoList::default(),
            answers: Vec::new(),
            grants: Grants::default(),
            outside_text: OutsideText::default(),
            folder_question: None,
        }
    }
}

/// Tells the user if the end of a session was lost.
pub fn note_lost_end(info: &SessionInfo, notices: &dyn Notices) {
    if info.lost_end {
        note_lost(&info.id, notices);
    }
}

fn note_lost(session: &SessionId, notices: &dyn Notices) {
    notices.note(&format!(
        "the end of session `{session}` is missing: it continues from its last remaining record, and what was done after that is not known"
    ));
}

/// Returns the permissions of the user in a session: none if its records came from a file, whose author may have
/// written anything, and in a fork only those that were given there.
pub(crate) fn grants(store: &Store, info: &SessionInfo, history: &History) -> Result<Grants> {
    if info.imported {
        return Ok(Grants::default());
    }
    let Some((_, shared)) = &info.parent else {
        return Ok(Grants::new(history.grants().iter().cloned()));
    };
    let grants = Grants::default();
    store.each::<SetupError>(&info.id, Seq(shared.0 + 1), |entry| {
        if entry.kind() == ANSWERED
            && let Some(RecordBody::Answered { answer }) = entry.into_record().map(|it| it.body)
        {
            answer.remember.into_iter().for_each(|it| grants.add(it));
        }
        Ok(())
    })?;
    Ok(grants)
}

impl CutOff {
    /// Returns the turn's id.
    pub fn turn(&self) -> TurnId {
        let first = self.records.first();
        first.map_or_else(|| TurnId::new(""), |record| record.turn.clone())
    }

    fn of(records: Vec<Record>, questions: Vec<Question>, is_imported: bool) -> Result<Self> {
        let began = records.iter().find_map(|record| match &record.body {
            RecordBody::TurnStarted {
                profile,
                models,
                addresses,
                ..
            } if !models.is_empty() => {
                Some(((**profile).clone(), models.clone(), addresses.clone()))
            }
            _ => None,
        });
        let Some((profile, models, addresses)) = began else {
            let message = "the beginning of the turn that was cut off is not recorded";
            return Err(SetupError::new(SetupErrorKind::Journal, message));
        };
        let is_parked = |it: &Record| matches!(it.body, RecordBody::Parked { .. });
        Ok(Self {
            was_parked: records.iter().any(is_parked),
            records,
            profile,
            models,
            addresses,
            is_imported,
            questions,
        })
    }
}
