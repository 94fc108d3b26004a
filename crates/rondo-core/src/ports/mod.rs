//! Ports of a turn to the outside. All traits are object-safe; all data are plain Rust types.

mod ask;
mod budget;
mod budget_store;
mod cell;
mod embedder;
mod entry;
mod gate;
mod interceptor;
mod journal;
mod mailbox;
mod memory_journal;
mod model;
mod outbox;
mod process;
mod script;
mod tool;
mod tool_source;
mod wrapped_journal;

pub(crate) use ask::question_of_running_call;
pub use ask::{Asker, NotAnswered, QUESTION_BYTES_MAX, QUESTIONS_MAX};
pub use budget::{
    Amount, BUDGET_TIMEOUT, Budgets, HELD_MAX, MemoryBudget, Reservation, ReservationRequest,
    Reserved, question_about_budget,
};
pub use budget_store::{BudgetClaim, BudgetLimit, BudgetPlace, BudgetScope, BudgetStore};
pub use cell::{CellEnding, CodeChange};
pub use embedder::{Embedder, EmbeddingUse};
pub use entry::{Body, Entry, HashedFields, RECORD_VERSION};
pub use gate::{
    Approval, Approver, Gate, GateRequest, OneAtATime, QuestionReply, Terms, Verdict,
    question_about_call,
};
pub use interceptor::{
    CallDecision, FinishedCall, INTERCEPT_TIMEOUT, Interception, Interceptor, NOTE_BYTES_MAX, Note,
    REASON_BYTES_MAX, REWRITTEN_BYTES_MAX, ResultDecision, StepContext, StepDecision,
};
pub use journal::{
    Append, AppendError, ChainHash, Fence, Head, Journal, Purpose, Record, RecordBody,
    RequestParts, Seq, settled,
};
pub use mailbox::{
    BODY_BYTES_MAX, CONTROLS_MAX, KEYS_REMEMBERED, MESSAGES_MAX, Mail, MailBody, Mailbox,
    MailboxError, MailboxLoad, NAME_BYTES_MAX, NewMail, Pushed, WAITING_BYTES_MAX,
};
pub use memory_journal::{MemoryJournal, NoJournal};
pub use model::{Model, ModelStream};
pub use outbox::{
    Attempt, HostCommit, HostStore, OPEN_ROWS_MAX, Outbox, OutboxCounts, OutboxRow, OutboxState,
    SENT_REMEMBERED,
};
pub use process::{ProcessEnd, StoppedBy};
pub use rondo_types::{Commit, HostRow, MailId, OutboxEntry, OutboxId, OutboxKind};
pub use script::{ScriptCall, ScriptRun};
pub use tool::{
    CHILD_QUESTIONS_MAX, CallEnd, InterruptedCall, OutputSink, ProgressSink, Reconciled, Tool,
    ToolInvocation,
};
pub use tool_source::{ToolScope, ToolSource};
pub use wrapped_journal::WrappedJournal;
