//! Sends the questions of a running turn to the task that reads the keyboard.

use crate::changes::{Changes, Look};
use crate::screen::Screen;
use async_trait::async_trait;
use rondo_core::ports::{BudgetQuestion, CallQuestion, CallQuestionRequest, Terms};
use rondo_core::{Approval, ApprovalReply, ApprovalRequest, Approver};
use rondo_runtime::form::Form;
use rondo_runtime::granting::approved_with;
use rondo_types::{AnswerValue, CallId, Grant, ToolKind};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// Questions that wait; a turn asks one at a time.
const QUESTIONS: usize = 1;

/// What a question about a budget is called in place of a tool.
const BUDGET: &str = "budget";

/// Hands questions to the keyboard.
#[derive(Debug)]
pub(super) struct PromptApprover {
    questions: mpsc::Sender<Question>,
    screen: Screen,
    changes: Changes,
    /// The user's name, for the record of what they allow from then on.
    user: String,
}

/// A question, and where its answer is waited for.
#[derive(Debug)]
pub(super) struct Question {
    /// The call.
    pub(super) request: ApprovalRequest,
    /// What the call would make of its file.
    pub(super) look: Look,
    /// Whether the call runs and asks: what is answered says nothing about other calls.
    pub(super) is_inside: bool,
    /// What is asked for in place of a yes: its value is the answer, as arguments that were edited.
    pub(super) form: Option<Form>,
    /// Takes the answer, and what is allowed with a yes from then on; closed once the turn no longer waits for it.
    pub(super) answer: oneshot::Sender<(Approval, Option<Grant>)>,
}

/// Builds the two ends.
pub(super) fn channel(
    screen: Screen,
    changes: Changes,
    user: String,
) -> (PromptApprover, mpsc::Receiver<Question>) {
    let (questions, asked) = mpsc::channel(QUESTIONS);
    let approver = PromptApprover {
        questions,
        screen,
        changes,
        user,
    };
    (approver, asked)
}

#[async_trait]
impl Approver for PromptApprover {
    async fn ask(&self, request: &ApprovalRequest) -> ApprovalReply {
        let look = self.changes.look(request).await;
        match self.put(request.clone(), look, false, None).await {
            (Approval::Approved, Some(grant)) => approved_with(request, &self.user, grant),
            (approval, _) => approval.into(),
        }
    }

    async fn ask_budget(&self, question: &BudgetQuestion) -> ApprovalReply {
        let request = ApprovalRequest {
            session: question.session.clone(),
            turn: question.turn.clone(),
            step: question.step,
            call_id: CallId::new(&question.id),
            tool: BUDGET.to_owned(),
            kind: ToolKind::Other,
            arguments: Value::Null,
            prompt: question.question(None).prompt,
            can_edit: false,
            terms: Terms::default(),
        };
        self.put(request, None, true, None).await.0.into()
    }

    async fn ask_within(&self, request: &CallQuestionRequest) -> AnswerValue {
        let form = match &request.question {
            CallQuestion::Approval { .. } => None,
            CallQuestion::Input { schema, .. } => match Form::of(schema) {
                Some(form) => Some(form),
                None => {
                    let reason = "it asks for too much at once".to_owned();
                    return AnswerValue::Deny { reason };
                }
            },
        };
        match self.put(request.as_approval(), None, true, form).await.0 {
            Approval::Approved => AnswerValue::Approve,
            Approval::Denied { reason } => AnswerValue::Deny { reason },
            Approval::Edited {
                arguments: value,
                left_out,
            } => AnswerValue::Value { value, left_out },
        }
    }
}

impl PromptApprover {
    async fn put(
        &self,
        request: ApprovalRequest,
        look: Look,
        is_inside: bool,
        form: Option<Form>,
    ) -> (Approval, Option<Grant>) {
        let _held = match is_inside {
            true => Some(self.screen.hold().await),
            false => None,
        };
        self.screen.aside().await;
        let (answer, answered) = oneshot::channel();
        let question = Question {
            request,
            look,
            is_inside,
            form,
            answer,
        };
        let sent = self.questions.send(question).await;
        match answered.await {
            Ok(answer) if sent.is_ok() => answer,
            _ => (denied("nobody is there to ask"), None),
        }
    }
}

/// Builds a denial.
pub(super) fn denied(reason: &str) -> Approval {
    Approval::Denied {
        reason: reason.to_owned(),
    }
}
