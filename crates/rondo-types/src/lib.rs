//! The vocabulary of Rondo: messages, parts, tools, requests, model events, limits, outcomes and
//! turn events.
//!
//! Everything here is plain serializable data; nothing awaits, reads a clock or does I/O. The terms
//! are those of ARCHITECTURE.md: a *turn* is one user input to one outcome, a *step* is one model
//! request with its response and its tool results.
#![warn(missing_docs)]

mod ask_reason;
mod commit;
mod error;
mod grant;
mod ids;
mod limits;
mod media;
mod message;
mod model_event;
mod outbox;
mod outcome;
mod profile;
mod question;
mod reply;
mod request;
pub mod text;
mod time;
mod tool;
mod tool_kind;
mod tool_names;
mod turn_event;
pub mod units;
mod usage;

pub use ask_reason::AskReason;
pub use commit::{Commit, MailId};
pub use error::{ErrorClass, ModelError};
pub use grant::{Grant, GrantScope};
pub use ids::{BadSessionId, CallId, JobId, SessionId, TurnId};
pub use limits::{Limits, Overflow, RetryPolicy};
pub use media::{BlockInfo, MediaInfo};
pub use message::{
    ContentBlock, Media, MediaKind, MediaSource, Message, Opaque, Origin, Part, ReasoningPart,
    Role, TextPart, ToolCall, ToolContent, ToolResult, Transcript,
};
pub use model_event::ModelEvent;
pub use outbox::{HostRow, OutboxEntry, OutboxId, OutboxKind};
pub use outcome::{Finding, Outcome, StopReason};
pub use profile::{CompactionPolicy, EmptyReply, LoopGuard, Profile, ResultRendering, StopTexts};
pub use question::{Answer, AnswerValue, Question, QuestionId, QuestionKind, QuestionSubject};
pub use reply::{Candidate, FinishReason, Reply, ResponseName};
pub use request::{Effort, ModelInfo, ModelRequest, Sampling, ServerAddress, ToolChoice};
pub use time::TimeMs;
pub use tool::{
    ChangedFile, Concurrency, Effects, FileVersion, InDoubtDecision, Recovery, RemainingLimits,
    Spend, TodoItem, TodoStatus, ToolError, ToolErrorCode, ToolHints, ToolOutcome, ToolOutput,
    ToolProgress, ToolSpec,
};
pub use tool_kind::ToolKind;
pub use tool_names::ToolNames;
pub use turn_event::{
    CompactionKind, EVENT_SCHEMA_VERSION, EventBody, EventDecodeError, InitEvent, ResultEvent,
    TurnEvent,
};
pub use usage::{NanoUsd, Price, Usage};
