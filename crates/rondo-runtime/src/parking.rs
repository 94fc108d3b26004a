//! Questions that wait: who answers them, what was answered elsewhere, and when they expire.

use crate::env::Env;
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::sessions;
use crate::settings::Settings;
use crate::values::ApprovalMode;
use async_trait::async_trait;
use rondo_core::clock::Clock;
use rondo_core::history::History;
use rondo_core::ports::{
    BudgetQuestion, CallQuestionRequest, MailBody, MailId, Mailbox as _, MailboxError, NewMail,
    Pushed,
};
use rondo_core::{Approval, ApprovalReply, ApprovalRequest, Approver};
use rondo_journal::Store;
use rondo_types::{Answer, AnswerValue, CallId, Question, SessionId, TimeMs};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// How long a question waits where no setting says so.
pub const QUESTION_EXPIRY: Duration = Duration::from_hours(7 * 24);

/// The actor of a denial because no answer came in time.
const EXPIRY: &str = "expiry";

/// Returns what answers a turn's questions by the setting `approval`: the host's own approver, a refusal, or a
/// reply that the answer comes later. A turn waits where a budget is spent, unless the setting is `deny` or
/// nothing of the session is kept.
#[must_use]
pub fn approver(settings: &Settings, host: Arc<dyn Approver>) -> Arc<dyn Approver> {
    let values = &settings.values;
    match values.approval.unwrap_or(ApprovalMode::Ask) {
        ApprovalMode::Ask | ApprovalMode::Auto => Arc::new(SpentParks {
            host,
            parking: parking(settings),
        }),
        ApprovalMode::Deny => Arc::new(Refusing),
        ApprovalMode::Park => parking(settings),
    }
}

/// Returns what has each question wait, until the setting `question_expiry`.
#[must_use]
pub fn parking(settings: &Settings) -> Arc<dyn Approver> {
    let expiry = settings.values.question_expiry.map(|it| it.0);
    Arc::new(Parking(expiry.unwrap_or(QUESTION_EXPIRY)))
}

/// Leaves questions about calls to the host, and has the turn wait where a budget is spent.
struct SpentParks {
    host: Arc<dyn Approver>,
    parking: Arc<dyn Approver>,
}

#[async_trait]
impl Approver for SpentParks {
    async fn ask(&self, request: &ApprovalRequest) -> ApprovalReply {
        self.host.ask(request).await
    }

    async fn ask_budget(&self, question: &BudgetQuestion) -> ApprovalReply {
        self.parking.ask_budget(question).await
    }

    async fn ask_within(&self, request: &CallQuestionRequest) -> AnswerValue {
        self.host.ask_within(request).await
    }
}

struct Refusing;

#[async_trait]
impl Approver for Refusing {
    async fn ask(&self, _: &ApprovalRequest) -> ApprovalReply {
        let reason = "it needs approval, and the setting `approval` is `deny`".to_owned();
        Approval::Denied { reason }.into()
    }
}

/// Parks the turn with each question, which expires after this time.
struct Parking(Duration);

impl Parking {
    fn later(&self) -> ApprovalReply {
        let millis = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        ApprovalReply::Later {
            expires: Some(TimeMs(Clock::system().now().0.saturating_add(millis))),
        }
    }
}

#[async_trait]
impl Approver for Parking {
    async fn ask(&self, _: &ApprovalRequest) -> ApprovalReply {
        self.later()
    }

    async fn ask_budget(&self, _: &BudgetQuestion) -> ApprovalReply {
        self.later()
    }
}

/// Answers for a session: with what was answered while its turn was parked, and otherwise as the host does.
pub(crate) struct SessionApprover {
    pub(crate) host: Arc<dyn Approver>,
    /// What the parked turn asked.
    pub(crate) questions: Vec<Question>,
    /// What was answered meanwhile.
    pub(crate) answers: Vec<GivenAnswer>,
    /// Whether the session is kept, so that it can be parked.
    pub(crate) is_kept: bool,
}

#[async_trait]
impl Approver for SessionApprover {
    async fn ask(&self, request: &ApprovalRequest) -> ApprovalReply {
        let hash = request.hash();
        match self.answered(&hash) {
            Some(reply) => reply,
            None => self.unanswered(&hash, self.host.ask(request).await),
        }
    }

    async fn ask_budget(&self, question: &BudgetQuestion) -> ApprovalReply {
        let hash = question.hash();
        match self.answered(&hash) {
            Some(reply) => reply,
            None => self.unanswered(&hash, self.host.ask_budget(question).await),
        }
    }

    async fn ask_within(&self, request: &CallQuestionRequest) -> AnswerValue {
        self.host.ask_within(request).await
    }
}

impl SessionApprover {
    /// Returns what was answered while the turn was parked, or that no answer counts any more.
    fn answered(&self, hash: &str) -> Option<ApprovalReply> {
        if let Some(given) = self.answers.iter().find(|it| it.answer.hash == hash) {
            return Some(ApprovalReply::Given {
                answer: given.answer.clone(),
                mail: given.mail,
            });
        }
        let asked_before = self.questions.iter().find(|it| it.hash == hash);
        let question = asked_before.filter(|it| has_expired(it))?;
        Some(ApprovalReply::Given {
            answer: expired(question),
            mail: None,
        })
    }

    fn unanswered(&self, hash: &str, reply: ApprovalReply) -> ApprovalReply {
        match reply {
            ApprovalReply::Later { .. } if !self.is_kept => {
                let reason =
                    "it needs approval, and nothing is kept of this session that could wait for it";
                Approval::Denied {
                    reason: reason.to_owned(),
                }
                .into()
            }
            // A question that is asked again does not wait longer for that.
            ApprovalReply::Later { expires } => {
                let asked_before = self.questions.iter().find(|it| it.hash == hash);
                ApprovalReply::Later {
                    expires: asked_before.and_then(|it| it.expires).or(expires),
                }
            }
            reply => reply,
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
    let reason = "no answer came before the question expired".to_owned();
    question.answered(EXPIRY, AnswerValue::Deny { reason })
}

/// A session whose turn waits for answers.
pub struct Parked {
    /// The session.
    pub session: SessionId,
    /// What it waits for: questions that were neither answered nor have expired, in the order in which they were
    /// asked.
    pub open: Vec<Question>,
    /// Whether all questions were answered: the turn can go on, though no process has taken the answers yet.
    pub is_answered: bool,
    store: Store,
    history: History,
}

impl Parked {
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
                format!("session `{session}` waits for no answer"),
                format!("`rondo session show {session}` shows where it stands"),
            ),
            false => (
                format!("the question of session `{session}` has expired"),
                format!("`rondo resume {session}` lets the model answer without the call"),
            ),
        };
        SetupError::new(SetupErrorKind::NoSession, message).hint(hint)
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

    /// Keeps an answer until the turn takes it; once this returns, no crash loses it. What is left open is in
    /// [`open`](Self::open).
    ///
    /// # Errors
    /// When the question was answered meanwhile, or the journal cannot be written.
    ///
    /// # Cancel safety
    /// Not cancel safe: the answer may or may not be kept.
    pub async fn answer(&mut self, answer: Answer) -> Result<()> {
        self.forget_stale().await?;
        let mail = NewMail {
            session: self.session.clone(),
            // A question that is asked once more, after a crash, has a record of its own.
            key: format!("answer-{}-{}", self.history.head().0, answer.question),
            actor: answer.actor.clone(),
            at_ms: Clock::system().now(),
            body: MailBody::Answer { answer },
        };
        match self.store.push(mail).await.map_err(unkept)? {
            Pushed::Accepted(_) => self.look(),
            Pushed::Duplicate(_) => {
                let message = "the question was answered meanwhile";
                Err(SetupError::new(SetupErrorKind::NoSession, message))
            }
        }
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
        let open = self.history.open_turn();
        open.map_or_else(Vec::new, |it| it.questions)
    }

    /// Looks which questions are open now.
    fn look(&mut self) -> Result<()> {
        let answers = answers(&self.store, &self.session)?;
        let mut open = self.questions();
        let was_asked = !open.is_empty();
        open.retain(|it| !answers.iter().any(|given| given.answers(it)));
        self.is_answered = was_asked && open.is_empty();
        open.retain(|it| !has_expired(it));
        self.open = open;
        Ok(())
    }
}

/// Returns the arguments of a call; null where it is not known.
fn arguments_of(history: &History, call: &str) -> Value {
    let transcript = history.transcript();
    let mut calls = transcript.iter().flat_map(|it| it.tool_calls());
    let call = calls.find(|it| it.id.as_str() == call);
    call.and_then(|it| serde_json::from_str(&it.arguments).ok())
        .unwrap_or_default()
}

/// An answer that waits in a session's mailbox.
#[derive(Debug, Clone)]
pub(crate) struct GivenAnswer {
    pub(crate) answer: Answer,
    /// Its row; none where the session itself answered.
    pub(crate) mail: Option<MailId>,
}

impl GivenAnswer {
    /// Returns whether it answers a question as it is now.
    pub(crate) fn answers(&self, question: &Question) -> bool {
        self.answer.hash == question.hash
    }
}

/// Returns the answers that wait for a session's turn, oldest first.
///
/// # Errors
/// When they cannot be read.
pub(crate) fn answers(store: &Store, session: &SessionId) -> Result<Vec<GivenAnswer>> {
    let mail = store.mail(session).map_err(unkept)?.into_iter();
    let answers = mail.filter_map(|mail| match mail.body {
        MailBody::Answer { answer } => Some(GivenAnswer {
            answer,
            mail: Some(mail.id),
        }),
        MailBody::Message { .. } | MailBody::Cancel => None,
    });
    Ok(answers.collect())
}

/// Returns who submits messages and answers: the user's name.
#[must_use]
pub fn user(env: &Env) -> String {
    env.get("USER").unwrap_or("user").to_owned()
}

pub(crate) fn unkept(err: MailboxError) -> SetupError {
    let context = "failed to use the session's mailbox";
    SetupError::because(SetupErrorKind::Journal, context, err)
}
