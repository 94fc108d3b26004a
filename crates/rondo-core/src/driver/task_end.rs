//! How work beside the loop ends, and how running calls reach it.

use super::ask::{CallAsk, RunningAsk};
use super::budgets::{BudgetReply, Funding};
use super::tool_work::WaitingCall;
use crate::machine::Input;
use crate::ports::{Interception, MailId, NotAnswered};
use rondo_types::{Answer, AnswerValue, Question};
use tokio::sync::{mpsc, oneshot};

/// The way of the questions of running calls to the loop.
pub(super) type RunningAsks = (
    mpsc::Sender<Box<RunningAsk>>,
    mpsc::Receiver<Box<RunningAsk>>,
);

/// Waits for the next question of a running call.
pub(super) async fn next_ask(asks: &mut Option<RunningAsks>) -> Box<RunningAsk> {
    if let Some((_, asks)) = asks
        && let Some(ask) = asks.recv().await
    {
        return ask;
    }
    std::future::pending().await
}

/// How a piece of work beside the loop ended.
pub(super) enum TaskEnd {
    /// With an input for the machine.
    Input(Input),
    /// The same, by an answer that someone gave elsewhere.
    Given {
        input: Input,
        answer: Answer,
        mail: Option<MailId>,
    },
    /// A call ended whose result reads otherwise.
    Rewritten { what: Interception, input: Input },
    /// Decision of the budgets about the request that is held.
    Funded(BudgetReply),
    /// A call waits for a session that it started.
    Waiting(WaitingCall),
    /// The budgets know what a request used.
    Settled,
    /// A question about a call is void, since what it is about changed: it is put again.
    AskAgain(Box<CallAsk>),
    /// A budget is spent, for that reason: a person must be asked.
    AskBudget(Box<Funding>, Question, String),
    /// A running call asks.
    AskRunning(Box<RunningAsk>),
    /// A question of a running call was answered.
    AnsweredRunning {
        answer: Answer,
        mail: Option<MailId>,
        reply: oneshot::Sender<Result<AnswerValue, NotAnswered>>,
    },
    /// A question will be answered later.
    Later(Question),
}
