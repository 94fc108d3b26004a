//! Words for what happens beside the answer: the same for every front end.

use crate::words;
use rondo_types::units::{counted, took};
use rondo_types::{CompactionKind, EventBody};

/// A line about what happens beside the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Set if something went wrong.
    pub is_warning: bool,
    /// The line.
    pub text: String,
}

impl Note {
    fn plain(text: String) -> Self {
        Self {
            is_warning: false,
            text,
        }
    }

    pub(super) fn warning(text: String) -> Self {
        Self {
            is_warning: true,
            text,
        }
    }

    /// Returns the line about an event, if it needs one. The model is `provider/model`, and a request of it is sent so often
    /// at most.
    pub(super) fn of(body: &EventBody, model: &str, attempts_max: u32) -> Option<Self> {
        Some(match body {
            EventBody::RetryScheduled {
                class,
                status,
                attempt,
                delay_ms,
            } => {
                let what = words::failed_request(*class, *status);
                let provider = model.split('/').next().unwrap_or_default();
                let (wait, next) = (took(*delay_ms), attempt.saturating_add(1));
                Self::warning(format!(
                    "{what} {provider}; retrying in {wait} (attempt {next} of {attempts_max})"
                ))
            }
            EventBody::ModelFallback {
                from, to, message, ..
            } => Self::warning(format!("{from} failed ({message}): going on with {to}")),
            EventBody::ToolCallRewritten { by, arguments, .. } => {
                let by = by.join(", ");
                Self::plain(format!("{by} changed the arguments to {arguments}"))
            }
            EventBody::ToolCallInDoubt {
                name,
                decision,
                still_running,
                ..
            } => Self::warning(words::in_doubt(name, *decision, *still_running)),
            EventBody::CompactionStarted { messages, .. } => {
                let messages = counted(*messages, "older message");
                Self::plain(format!("compacting {messages}"))
            }
            EventBody::Compacted {
                replaced,
                how,
                reason,
                ..
            } => Self::plain(compacted(*replaced, *how, reason.as_deref())),
            _ => return None,
        })
    }

    /// Returns the line about a reply that could not be used.
    pub(super) fn rejected(reason: &str, is_asked_again: bool) -> Self {
        let again = if is_asked_again { "; asking again" } else { "" };
        let reason = words::refused_answer(reason);
        Self::warning(format!("the reply cannot be used ({reason}){again}"))
    }
}

fn compacted(replaced: u32, how: CompactionKind, reason: Option<&str>) -> String {
    let why = reason
        .map(|reason| format!(": {reason}"))
        .unwrap_or_default();
    let messages = counted(replaced, "older message");
    match how {
        CompactionKind::Summarised => format!("compacted {messages}"),
        CompactionKind::Dropped => format!("dropped {messages}{why}"),
        CompactionKind::Cut => "shortened the results of older calls".to_owned(),
        CompactionKind::Described => {
            format!("described images and files in text and asked again{why}")
        }
        CompactionKind::Unsealed => {
            format!(
                "left out earlier reasoning that only its provider can read and asked again{why}"
            )
        }
    }
}
