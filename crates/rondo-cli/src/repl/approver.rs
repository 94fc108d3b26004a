//! Sends the questions of a running turn to the task that reads the keyboard.

use crate::asking::{Asker, Said, WrittenQuestion};
use crate::changes::Changes;
use crate::output::Output;
use crate::screen::Screen;
use async_trait::async_trait;
use rondo_core::{Approver, QuestionReply};
use rondo_runtime::settings::Settings;
use rondo_tui::question::Editing;
use rondo_types::Question;
use std::io;
use tokio::sync::{mpsc, oneshot};

/// Questions that wait; a turn asks one at a time.
const QUESTIONS: usize = 1;

/// Hands questions to the keyboard.
#[derive(Debug)]
pub(super) struct PromptApprover {
    questions: mpsc::Sender<PromptQuestion>,
    asker: Asker,
    editing: Editing,
}

/// A question, and where its answer goes.
#[derive(Debug)]
pub(super) struct PromptQuestion {
    pub(super) written: WrittenQuestion,
    /// Takes the answer; closed once the turn no longer waits for it.
    pub(super) answer: oneshot::Sender<Said>,
}

/// Builds the two ends.
pub(super) fn channel(
    screen: Screen,
    changes: Changes,
    output: Output,
    settings: &Settings,
) -> (PromptApprover, mpsc::Receiver<PromptQuestion>) {
    let (questions, asked) = mpsc::channel(QUESTIONS);
    let approver = PromptApprover {
        questions,
        asker: Asker::new((&settings.env, &settings.paths), output, screen, changes),
        editing: match output.stderr_erases {
            true => Editing::OnRow,
            false => Editing::Anew,
        },
    };
    (approver, asked)
}

#[async_trait]
impl Approver for PromptApprover {
    async fn ask(&self, question: &Question) -> QuestionReply {
        let converse = async |written| {
            let (answer, answered) = oneshot::channel();
            let put = PromptQuestion { written, answer };
            // If nobody takes it, it is dropped, and `answer` with it.
            let _ = self.questions.send(put).await;
            answered
                .await
                .map_err(|_| io::Error::other("nobody is there to ask"))
        };
        self.asker.ask(question, self.editing, converse).await
    }
}
