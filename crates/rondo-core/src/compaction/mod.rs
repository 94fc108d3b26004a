//! What makes a transcript shorter, as facts that can be applied again.
//!
//! A transcript is made shorter in whole groups: a message of the user and all that followed from
//! it, so that no call is parted from its result. The same facts applied to the same messages give
//! the same messages, which is how a session's transcript comes out of its records.

mod cut;
mod plan;
mod size;
mod words;

#[cfg(test)]
mod tests;

pub(crate) use cut::cut_text;
pub(crate) use plan::{ContextBudget, drop_groups, keep_from, past_from, summary_input, trim};
pub(crate) use size::{BYTES_PER_TOKEN, message_bytes, part_bytes, size, transcript_bytes};
pub(crate) use words::{SUMMARISER, SUMMARY_ASKED, summary_message};

use rondo_types::{Message, Part, ToolContent, Transcript};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::sync::Arc;

/// One change that makes a transcript shorter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compaction {
    /// The first message that changes: its place in the transcript as it stood before, from 0.
    pub from: u32,
    /// The place behind the last one.
    pub to: u32,
    /// What becomes of them.
    pub change: Change,
}

/// What becomes of the messages of a [`Compaction`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// A model's summary stands in their place.
    Summarised {
        /// The summary.
        message: Message,
        /// Who wrote it, `provider/model`.
        model: String,
    },
    /// They are left out.
    Dropped {
        /// What stands in their place, if anything does.
        note: Option<Message>,
        /// Why there is no summary.
        reason: String,
    },
    /// They stay, and the tool results in them keep a beginning and an end.
    Cut {
        /// Bytes that are kept of each result.
        bytes: u32,
    },
}

impl Compaction {
    /// Returns how many messages change.
    #[must_use]
    pub fn messages(&self) -> u32 {
        self.to.saturating_sub(self.from)
    }

    /// Makes the change. Places that a transcript does not have are left alone.
    pub fn apply(&self, transcript: &mut Transcript) {
        let to = index(self.to).min(transcript.len());
        let from = index(self.from).min(to);
        match &self.change {
            Change::Summarised { message, .. } => replace(transcript, from, to, Some(message)),
            Change::Dropped { note, .. } => replace(transcript, from, to, note.as_ref()),
            Change::Cut { bytes } => {
                let messages = transcript.iter_mut().take(to).skip(from);
                messages.for_each(|message| cut_results(message, index(*bytes)));
            }
        }
    }
}

fn replace(transcript: &mut Transcript, from: usize, to: usize, message: Option<&Message>) {
    let message = message.cloned().map(Arc::new);
    transcript.splice(from..to, message);
}

/// Shortens the results of a message; one that holds no longer ones stays the very same.
fn cut_results(message: &mut Arc<Message>, bytes: usize) {
    let is_long = |part: &Part| match part {
        Part::ToolResult(result) => {
            !result.media.is_empty() || result.content.to_text().len() > bytes
        }
        _ => false,
    };
    if !message.parts.iter().any(is_long) {
        return;
    }
    for part in &mut Arc::make_mut(message).parts {
        if let Part::ToolResult(result) = part {
            let mut text = result.content.to_text();
            if text.len() > bytes {
                text = cut_text(&text, bytes);
                result.content = ToolContent::Text(text.clone());
            }
            if !result.media.is_empty() {
                let _ = write!(text, "\n[attachments left out: {}]", result.media.len());
                result.media.clear();
                result.content = ToolContent::Text(text);
            }
        }
    }
}

fn index(place: u32) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
}
