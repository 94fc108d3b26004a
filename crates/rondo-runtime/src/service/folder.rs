//! Questions of a session about its folder before a turn. The message waits meanwhile, as long as a person attends.

use super::actor::Actor;
use super::host::AskedTurn;
use super::running::MachineRun;
use super::taking::read_again;
use super::update::UpdateBody;
use crate::cells::words;
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::parking;
use crate::secrets;
use crate::session::Session;
use crate::values::ApprovalMode;
use rondo_core::clock::Clock;
use rondo_core::ports::{Mail, MailBody};
use rondo_core::session::{Delivery, Input, QueuedMessage, Run};
use rondo_core::session_store::title;
use rondo_types::{Answer, AnswerValue, EventBody, Question, TimeMs, TurnEvent, TurnId};
use std::sync::Arc;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Questions about the folder, and the message that waits for the answer.
#[derive(Default)]
pub(super) struct FolderAsk {
    /// The question that is open.
    question: Option<Question>,
    /// It cannot be changed any more in this process.
    waiting: Option<QueuedMessage>,
    /// The hash of the question that the message does not wait for any more.
    passed: Option<String>,
}

impl Actor {
    /// Returns whether a row of the mailbox answers the open question about the folder.
    pub(super) fn answers_folder_question(&self, row: &Mail) -> bool {
        let hash = self.folder.question.as_ref().map(|it| &it.hash);
        matches!(&row.body, MailBody::Answer { answer } if Some(&answer.hash) == hash)
    }

    /// Asks about the folder if there is something to ask, and otherwise plans the turn of a message.
    pub(super) async fn ask_or_plan(&mut self, run: Run, begun: QueuedMessage) {
        self.folder.passed = None;
        self.ask_next(run, begun).await;
    }

    async fn ask_next(&mut self, run: Run, begun: QueuedMessage) {
        let asked = self.ask_about_folder(&begun).await;
        match asked {
            Ok(Some(question)) => self.wait_for_answer(run, begun, question),
            Ok(None) => self.plan_message(run, begun).await,
            Err(error) => self.not_started(run, &error),
        }
    }

    /// Records and tells the next question about the folder; `None` if there is none, or no person to ask.
    async fn ask_about_folder(&mut self, begun: &QueuedMessage) -> Result<Option<Question>> {
        let Some(session) = &mut self.session else {
            return Ok(None);
        };
        let next = session.settings.folder_questions.first().cloned();
        let next = next.filter(|it| self.folder.passed.as_ref() != Some(&it.hash));
        let is_asked = session.settings.values.approval != Some(ApprovalMode::Deny);
        let is_turn = begun.delivery != Delivery::Compact;
        let next = next.filter(|_| is_asked && is_turn && !session.is_ephemeral());
        forget(session, next.as_ref()).await?;
        let Some(question) = next else {
            return Ok(None);
        };
        let secrets = secrets::of_env(&session.settings);
        let secrets = self.entry.with_shells(secrets);
        session.begin_turn(title(&secrets.text(words(&begun.message))))?;
        let Some(conversation) = session.conversation_mut() else {
            return Ok(None);
        };
        let question = conversation.record_folder_question(&question).await?;
        conversation.folder_question = Some(question.clone());
        let conversation = session.conversation();
        let asked = self.asked.as_ref();
        let turn = AskedTurn {
            session: &self.entry.id,
            begins: asked.map(|(key, actor)| (key.as_str(), actor.as_str())),
            is_of_host: false,
            settings: &session.settings,
            began: conversation.map_or(TimeMs(0), |it| it.began),
            history: conversation.map_or(&[], |it| &it.history),
        };
        let host = &self.entry.service.host;
        host.ask_about_folder(&turn, &question).await?;
        self.tell_event(EventBody::QuestionAsked {
            question: Box::new(question.clone()),
        });
        Ok(Some(question))
    }

    /// Waits for the answer as long as a person attends, and for `park_after` at most.
    fn wait_for_answer(&mut self, run: Run, begun: QueuedMessage, question: Question) {
        let Some(session) = &self.session else {
            return self.not_started(run, &super::actor::let_go());
        };
        let entry = Arc::clone(&self.entry);
        let park_after = parking::park_after(&session.settings);
        self.folder.question = Some(question.clone());
        let key = begun.ticket.0.clone();
        self.folder.waiting = Some(begun);
        let answered = async move {
            let (store, id) = (entry.store(), &entry.id);
            tokio::select! {
                biased;
                answered = parking::submitted(store, id, &question) => Some(answered),
                _ = timeout(park_after, entry.unattended()) => None,
            }
        };
        self.running = Some(MachineRun::asking(run, key, answered));
    }

    /// Continues with the message: with other settings if the question was answered.
    pub(super) async fn folder_asked(&mut self, run: Run, answered: Option<(Answer, Mail)>) {
        self.running = None;
        let question = self.folder.question.take();
        let (Some(begun), Some(question)) = (self.folder.waiting.take(), question) else {
            return self.not_started(run, &super::actor::let_go());
        };
        match answered {
            // The message waits in the mailbox.
            None if self.entry.drains() => {
                return self.inputs.push_back(Input::NotStarted { run });
            }
            None => self.folder.passed = Some(question.hash),
            Some((answer, mail)) => {
                if let Err(error) = self.take_answer(answer.clone(), mail).await {
                    return self.not_started(run, &error);
                }
                let (question, actor) = (question.id, answer.actor);
                self.tell_event(EventBody::QuestionAnswered { question, actor });
            }
        }
        self.ask_next(run, begun).await;
    }

    /// Records an answer, and reads the settings again with it.
    async fn take_answer(&mut self, answer: Answer, mail: Mail) -> Result<()> {
        let session = self.session.as_mut().ok_or_else(super::actor::let_go)?;
        if let Some(conversation) = session.conversation_mut() {
            let mail = Some(mail.id);
            conversation
                .record_folder_answer(answer.clone(), mail)
                .await?;
            conversation.folder_question = None;
        }
        let entry = Arc::clone(&self.entry);
        let read = spawn_blocking(move || read_again(&entry, answer)).await;
        let read = read.map_err(|err| {
            let context = "the thread that reads the settings failed";
            SetupError::because(SetupErrorKind::Other, context, err)
        });
        session.settings = read.flatten()?;
        Ok(())
    }

    /// Tells listeners what belongs to no turn yet.
    fn tell_event(&self, body: EventBody) {
        let event = TurnEvent {
            session: self.entry.id.clone(),
            turn: TurnId::new(""),
            seq: 0,
            at: Clock::system().now(),
            body,
        };
        self.tell(UpdateBody::Turn {
            event: Box::new(event),
        });
    }
}

/// Records that a question about the folder is not asked any more, such as since it was answered elsewhere.
async fn forget(session: &mut Session, next: Option<&Question>) -> Result<()> {
    let is_asked = |it: &Question, next: &Question| it.hash == next.hash;
    let still = session.settings.folder_questions.clone();
    let Some(conversation) = session.conversation_mut() else {
        return Ok(());
    };
    let stale = conversation.folder_question.take_if(|it| {
        let is_open = next.is_some_and(|next| is_asked(it, next));
        !is_open && still.iter().all(|next| !is_asked(it, next))
    });
    if let Some(question) = stale {
        let reason = "it is no longer open".to_owned();
        let answer = question.answered("settings", AnswerValue::Deny { reason });
        conversation.record_folder_answer(answer, None).await?;
    }
    Ok(())
}
