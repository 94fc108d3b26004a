//! Questions that wait: who answers them, what was answered elsewhere, and when they expire.

use crate::env::Env;
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::service::{ChangeNotice, LOOK_EVERY};
use crate::sessions;
use crate::settings::Settings;
use crate::values::ApprovalMode;
use async_trait::async_trait;
use rondo_core::clock::Clock;
use rondo_core::history::History;
use rondo_core::ports::{Mail, MailBody, MailId, MailboxError, NewMail, Pushed};
use rondo_core::storage::Store;
use rondo_core::{Approver, QuestionReply};
use rondo_types::{Answer, AnswerValue, CallId, Question, SessionId, TimeMs};
use serde_json::Value;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How long a question waits if no setting says so.
pub const QUESTION_EXPIRY: Duration = Duration::from_hours(7 * 24);

/// How long a question is waited for in place if no setting says so; then its turn is parked.
pub const PARK_AFTER: Duration = Duration::from_mins(10);

/// How often it is looked whether an answer was taken, with [`LOOK_EVERY`] in between.
const TAKEN_LOOKS: u32 = 30;

/// The actor of a denial because no answer came in time.
const EXPIRY: &str = "expiry";

/// Returns the approver of a turn's questions by the setting `approval`: the host's own approver, for as long as the
/// setting `park_after` says, a refusal, or a reply that the answer comes later.
#[must_use]
pub fn approver(settings: &Settings, host: Arc<dyn Approver>) -> Arc<dyn Approver> {
    let values = &settings.values;
    match values.approval.unwrap_or(ApprovalMode::Ask) {
        ApprovalMode::Ask | ApprovalMode::Auto => Arc::new(InPlaceFirst {
            in_place: host,
            park_after: park_after(settings),
            then: parking(settings),
        }),
        ApprovalMode::Deny => Arc::new(Refusing),
        ApprovalMode::Park => parking(settings),
    }
}

/// Returns how long a question is waited for in place.
pub(crate) fn park_after(settings: &Settings) -> Duration {
    let chosen = settings.values.park_after.map(|it| it.0);
    chosen.unwrap_or(PARK_AFTER)
}

/// Returns an approver that parks each question, until the setting `question_expiry`.
#[must_use]
pub fn parking(settings: &Settings) -> Arc<dyn Approver> {
    let expiry = settings.values.question_expiry.map(|it| it.0);
    Arc::new(Parking(expiry.unwrap_or(QUESTION_EXPIRY)))
}

/// Asks in place, for so long at most, and then does as another approver does. What a running call asks is waited for as
/// long as that runs.
pub(crate) struct InPlaceFirst {
    pub(crate) in_place: Arc<dyn Approver>,
    pub(crate) park_after: Duration,
    pub(crate) then: Arc<dyn Approver>,
}

#[async_trait]
impl Approver for InPlaceFirst {
    async fn ask(&self, question: &Question) -> QuestionReply {
        let in_place = self.in_place.ask(question);
        let reply = match question.is_of_running_call() {
            true => Some(in_place.await),
            false => timeout(self.park_after, in_place).await.ok(),
        };
        match reply {
            None | Some(QuestionReply::Later { expires: None }) => self.then.ask(question).await,
            Some(reply) => reply,
        }
    }
}

struct Refusing;

#[async_trait]
impl Approver for Refusing {
    async fn ask(&self, question: &Question) -> QuestionReply {
        let reason = "it needs approval, and the setting `approval` is `deny`";
        QuestionReply::denied(question, "settings", reason)
    }
}

/// Parks the turn with each question, which expires after this time.
struct Parking(Duration);

#[async_trait]
impl Approver for Parking {
    async fn ask(&self, _: &Question) -> QuestionReply {
        let millis = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        QuestionReply::Later {
            expires: Some(TimeMs(Clock::system().now().0.saturating_add(millis))),
        }
    }
}

/// Keeps answers that are given in place in the session's mailbox, as all others are, and takes those that other processes
/// put there while a question is open.
pub(crate) struct MailApprover {
    pub(crate) host: Arc<dyn Approver>,
    pub(crate) store: Store,
    pub(crate) session: SessionId,
}

#[async_trait]
impl Approver for MailApprover {
    async fn ask(&self, question: &Question) -> QuestionReply {
        let in_place = async {
            match self.host.ask(question).await {
                // It is waited for within the call's time.
                QuestionReply::Later { .. } if question.is_of_running_call() => pending().await,
                reply => reply,
            }
        };
        let reply = tokio::select! {
            biased;
            mail = submitted(&self.store, &self.session, question) => return self.taken(question, mail).await,
            reply = in_place => reply,
        };
        match reply {
            QuestionReply::Answered(answer, None) if self.is_own(question) => {
                let mail = self.keep(question, &answer).await;
                QuestionReply::Answered(answer, mail)
            }
            reply => reply,
        }
    }
}

impl MailApprover {
    /// Returns whether the session itself asks, and not one that a call of it started.
    fn is_own(&self, question: &Question) -> bool {
        question.subject.session == self.session
    }

    async fn taken(&self, question: &Question, (answer, mail): (Answer, Mail)) -> QuestionReply {
        if self.is_own(question) {
            return QuestionReply::Answered(answer, Some(mail.id));
        }
        // The records of another session remove no row of this one.
        self.store.withdraw(&self.session, &mail.key).await.ok();
        QuestionReply::Answered(answer, None)
    }

    /// Keeps an answer, so that no crash loses it; `None` if that fails, and the answer counts all the same.
    async fn keep(&self, question: &Question, answer: &Answer) -> Option<MailId> {
        let mail = mail_of(&self.session, question, answer.clone());
        self.store.push(mail).await.ok().map(Pushed::id)
    }
}

/// Waits for an answer in a session's mailbox.
pub(crate) async fn submitted(
    store: &Store,
    session: &SessionId,
    question: &Question,
) -> (Answer, Mail) {
    let mut changed = store.changed();
    let mut news = ChangeNotice::of(store);
    let mut is_news = false;
    loop {
        // An answer that cannot be read now is read the next time.
        let rows = store.list(session).await.unwrap_or_default();
        for mail in rows {
            if let MailBody::Answer { answer } = &mail.body
                && answer.hash == question.hash
            {
                return (answer.clone(), mail);
            }
        }
        sleep(LOOK_EVERY).await;
        // The system reports a write a moment before what was written can be read: it is looked once more.
        if std::mem::take(&mut is_news) {
            continue;
        }
        tokio::select! {
            _ = changed.changed() => {}
            () = news.next() => is_news = true,
        }
    }
}

/// Returns an answer as it is submitted: once for each time that the question is asked.
fn mail_of(session: &SessionId, question: &Question, answer: Answer) -> NewMail {
    NewMail {
        session: session.clone(),
        key: format!("answer-{}-{}", question.subject.record, question.id),
        actor: answer.actor.clone(),
        at_ms: Clock::system().now(),
        body: MailBody::Answer { answer },
    }
}

/// Answers for a session: with what was answered while its turn was parked, and otherwise as the host does.
pub(crate) struct SessionApprover {
    pub(crate) host: Arc<dyn Approver>,
    /// Questions of the parked turn.
    pub(crate) questions: Vec<Question>,
    /// What was answered meanwhile.
    pub(crate) answers: Vec<(Answer, Option<MailId>)>,
    /// Whether the session is kept, so that it can be parked.
    pub(crate) is_kept: bool,
}

#[async_trait]
impl Approver for SessionApprover {
    async fn ask(&self, question: &Question) -> QuestionReply {
        match self.answered(question) {
            Some(reply) => reply,
            None => self.unanswered(question, self.host.ask(question).await),
        }
    }
}

impl SessionApprover {
    /// Returns the answer that came while the turn was parked, or that no answer counts any more.
    fn answered(&self, question: &Question) -> Option<QuestionReply> {
        let hash = &question.hash;
        if let Some((answer, mail)) = self.answers.iter().find(|it| it.0.hash == *hash) {
            return Some(QuestionReply::Answered(answer.clone(), *mail));
        }
        let asked_before = self.questions.iter().find(|it| it.hash == *hash);
        let question = asked_before.filter(|it| has_expired(it))?;
        Some(QuestionReply::Answered(expired(question), None))
    }

    fn unanswered(&self, question: &Question, reply: QuestionReply) -> QuestionReply {
        match reply {
            QuestionReply::Later { .. } if !self.is_kept => {
                let reason = "it needs approval, and this session is not recorded, so it cannot wait for an answer";
                QuestionReply::denied(question, "settings", reason)
            }
            // A question that is asked again does not wait longer for that.
            QuestionReply::Later { expires } => {
                let asked_before = self.questions.iter().find(|it| it.hash == question.hash);
                QuestionReply::Later {
                    expires: asked_before.and_then(|it| it.expires).or(expires),
                }
            }
            reply @ QuestionReply::Answered(..) => reply,
        }
    }
}

/// Returns whether no answer to a question counts any more.
#[must_use]
pub fn has_expired(question: &Question) -> bool {
    let now = Clock::system().now();
    question.expires.is_some_and(|at| at <= now)
}

fn expired(question: &Question) -> Answer {
    let reason = "the question expired without an answer".to_owned();
    question.answered(EXPIRY, AnswerValue::Deny { reason })
}

/// A session whose turn waits for answers.
pub struct ParkedSession {
    /// The session.
    pub session: SessionId,
    /// Questions that were neither answered nor have expired, in the order in which they were
    /// asked.
    pub open: Vec<Question>,
    /// Set if all questions were answered: the turn can continue, though no process has taken the answers yet.
    pub is_answered: bool,
    store: Store,
    history: History,
}

impl ParkedSession {
    /// Finds a session by its id, a prefix of it, or `latest`, and what it waits for.
    ///
    /// # Errors
    /// When there is no such session, or it waits for nothing.
    pub fn find(settings: &Settings, name: &str) -> Result<Self> {
        let store = sessions::open(settings)?;
        let session = sessions::find(&store, name)?.id;
        let history = store.history(&session).map_err(sessions::failed)?;
        let mut parked = Self {
            session,
            open: Vec::new(),
            is_answered: false,
            store,
            history,
        };
        parked.look()?;
        match parked.open.is_empty() && !parked.is_answered {
            true => Err(parked.nothing_open()),
            false => Ok(parked),
        }
    }

    fn nothing_open(&self) -> SetupError {
        let session = &self.session;
        let (message, hint) = match self.questions().is_empty() {
            true => (
                format!("session `{session}` has no open question"),
                format!("`rondo session show {session}` shows its state"),
            ),
            false => (
                format!("the question of session `{session}` has expired"),
                format!("`rondo resume {session}` lets the model answer without the call"),
            ),
        };
        SetupError::new(SetupErrorKind::NoSession, message).hint(hint)
    }

    /// Returns the journal that the session is in.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the arguments of the call that a question is about; null where they are not known.
    #[must_use]
    pub fn arguments(&self, question: &Question) -> Value {
        let Some(child) = &question.child else {
            let call = question.call.as_ref().map(CallId::as_str);
            return arguments_of(&self.history, call.unwrap_or_default());
        };
        // The question is about a call of the child, by whose name it goes there.
        let own = question.id.0.strip_prefix(child.as_str());
        let own = own.and_then(|it| it.strip_prefix(':'));
        match (own, self.store.history(child)) {
            (Some(own), Ok(history)) => arguments_of(&history, own),
            _ => Value::Null,
        }
    }

    /// Keeps an answer until the turn takes it; once this returns, no crash loses it. The open questions are in
    /// [`open`](Self::open).
    ///
    /// # Errors
    /// When the question was answered meanwhile, or the journal cannot be written.
    ///
    /// # Cancel safety
    /// Not cancel safe: the answer may or may not be kept.
    pub async fn answer(&mut self, answer: Answer) -> Result<()> {
        self.forget_stale().await?;
        let questions = self.questions();
        let question = questions.iter().find(|it| it.hash == answer.hash);
        let question = question.ok_or_else(|| self.nothing_open())?;
        let mail = mail_of(&self.session, question, answer);
        match self.store.push(mail).await.map_err(unkept)? {
            Pushed::Accepted(_) => self.look(),
            Pushed::Duplicate(_) => {
                let message = "the question was answered meanwhile";
                Err(SetupError::new(SetupErrorKind::NoSession, message))
            }
        }
    }

    /// Waits until the process that runs the session has taken the answer to a question, or that cannot be waited for: it
    /// is taken once the process asks this question. Returns `false` if no process runs the session.
    ///
    /// # Errors
    /// When the journal cannot be read.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn is_taken(&mut self, question: &Question) -> Result<bool> {
        for _ in 0..TAKEN_LOOKS {
            let is_held = self.store.is_in_use(&self.session);
            // Read after that: a process that lets go of the session has recorded the answer before.
            let history = self.store.history(&self.session);
            self.history = history.map_err(sessions::failed)?;
            if self.questions().iter().all(|it| it.hash != question.hash) {
                return Ok(true);
            }
            if !is_held {
                return Ok(false);
            }
            sleep(LOOK_EVERY).await;
        }
        Ok(true)
    }

    /// Returns whether there is something to continue with once all is answered: a turn, or a message that waits.
    ///
    /// # Errors
    /// When the mailbox cannot be read.
    pub fn goes_on(&self) -> Result<bool> {
        let mail = self.store.mail(&self.session).map_err(unkept)?;
        let has_message = mail.iter().any(|it| it.body.is_message());
        Ok(has_message || self.history.open_turn().is_some())
    }

    /// Drops answers to questions that are not asked any more.
    async fn forget_stale(&self) -> Result<()> {
        for mail in self.store.mail(&self.session).map_err(unkept)? {
            let questions = self.questions();
            let is_stale = match &mail.body {
                MailBody::Answer { answer } => questions.iter().all(|it| it.hash != answer.hash),
                MailBody::Message { .. } | MailBody::Cancel => false,
            };
            if is_stale {
                let withdrawn = self.store.withdraw(&self.session, &mail.key).await;
                withdrawn.map_err(unkept)?;
            }
        }
        Ok(())
    }

    fn questions(&self) -> Vec<Question> {
        self.history.questions()
    }

    /// Looks which questions are open now.
    fn look(&mut self) -> Result<()> {
        let answers = answers(&self.store, &self.session)?;
        let mut open = self.questions();
        let was_asked = !open.is_empty();
        open.retain(|it| answers.iter().all(|(answer, _)| answer.hash != it.hash));
        self.is_answered = was_asked && open.is_empty();
        open.retain(|it| !has_expired(it));
        self.open = open;
        Ok(())
    }
}

/// Returns the arguments of a call; null if it is not known.
fn arguments_of(history: &History, call: &str) -> Value {
    let transcript = history.transcript();
    let mut calls = transcript.iter().flat_map(|it| it.tool_calls());
    let call = calls.find(|it| it.id.as_str() == call);
    call.and_then(|it| serde_json::from_str(&it.arguments).ok())
        .unwrap_or_default()
}

/// Returns the answers that wait for a session's turn, oldest first, with their rows.
///
/// # Errors
/// When they cannot be read.
pub(crate) fn answers(store: &Store, session: &SessionId) -> Result<Vec<(Answer, Option<MailId>)>> {
    let mail = store.mail(session).map_err(unkept)?.into_iter();
    let answers = mail.filter_map(|mail| match mail.body {
        MailBody::Answer { answer } => Some((answer, Some(mail.id))),
        MailBody::Message { .. } | MailBody::Cancel => None,
    });
    Ok(answers.collect())
}

/// Returns the sender of messages and answers: the user's name.
#[must_use]
pub fn user(env: &Env) -> String {
    env.get("USER").unwrap_or("user").to_owned()
}

pub(crate) fn unkept(err: MailboxError) -> SetupError {
    let context = "failed to use the session's mailbox";
    SetupError::because(SetupErrorKind::Journal, context, err)
}
