//! Compaction: changes that make a transcript shorter or readable, as data that is recorded and applied again.
//!
//! Messages are *summarized* or *dropped* in whole groups (a user message and everything that followed from
//! it), so that no call is separated from its result. Within the last group, results are *shortened* to
//! their beginning and end, and old steps are dropped. The same changes applied to the same messages give
//! the same messages, which is how a session's transcript is rebuilt from its records.
//!
//! # Layout
//! - `plan`: the messages that a change covers; `size`: the sizes it uses.
//! - `refused`: the parts that a provider refuses to read, and the message without them.
//! - `shorten`: a long text, reduced to its beginning and end.
//! - `words`: the texts that the model reads.

mod plan;
mod refused;
mod shorten;
mod size;
mod words;

#[cfg(test)]
mod tests;

pub(crate) use plan::{
    ContextBudget, HistoryBound, drop_groups, first_kept_by_size, limit_count, shorten_last_group,
    summary_input,
};
pub(crate) use refused::{has_media, is_sealed};
pub(crate) use shorten::shorten_text;
pub(crate) use size::{BYTES_PER_TOKEN, message_bytes, part_bytes, size, transcript_bytes};
pub(crate) use words::{SUMMARISER, SUMMARY_ASKED, summary_message};

use refused::{describe_media, unseal};
use rondo_types::{ContentBlock, Message, Part, ToolContent, ToolResult, Transcript};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::sync::Arc;

/// One change of a transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compaction {
    /// The index of the first message that changes, from 0, in the transcript before the change.
    pub from: u32,
    /// The index after the last message that changes.
    pub to: u32,
    /// Change of these messages.
    pub change: Change,
}

/// Change of the messages of a [`Compaction`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// A model's summary replaces them.
    Summarised {
        /// The summary.
        message: Message,
        /// The model that wrote it, as `provider/model`.
        model: String,
    },
    /// They are removed.
    Dropped {
        /// The message that replaces them, if any.
        note: Option<Message>,
        /// Why there is no summary.
        reason: String,
    },
    /// They stay, and their tool results are shortened to a beginning and an end.
    Cut {
        /// The bytes that each result keeps.
        bytes: u32,
    },
    /// They stay, and their images and files become texts that describe them.
    Described {
        /// The provider's error when it refused them.
        reason: String,
    },
    /// They stay without signatures, sealed reasoning and whatever else only their provider can read, as messages
    /// from elsewhere do.
    Unsealed {
        /// The provider's error when it refused them.
        reason: String,
    },
}

impl Compaction {
    /// Returns how many messages change.
    #[must_use]
    pub fn messages(&self) -> u32 {
        self.to.saturating_sub(self.from)
    }

    /// Applies the change. Indices beyond the transcript's end are ignored.
    pub fn apply(&self, transcript: &mut Transcript) {
        let to = index(self.to).min(transcript.len());
        let from = index(self.from).min(to);
        match &self.change {
            Change::Summarised { message, .. } => replace(transcript, from, to, Some(message)),
            Change::Dropped { note, .. } => replace(transcript, from, to, note.as_ref()),
            Change::Cut { bytes } => {
                let messages = transcript.iter_mut().take(to).skip(from);
                messages.for_each(|message| shorten_results(message, index(*bytes)));
            }
            Change::Described { .. } => {
                let messages = transcript.iter_mut().take(to).skip(from);
                messages.for_each(describe_media);
            }
            Change::Unsealed { .. } => {
                let messages = transcript.iter_mut().take(to).skip(from);
                messages.for_each(unseal);
            }
        }
    }
}

/// Leaves at most `max` messages, the latest, in whole groups: a user's message and all that followed from it. Of a
/// single group that is longer, the user's message and the latest steps stay.
pub fn keep_latest(transcript: &mut Transcript, max: u32) {
    let bound = HistoryBound {
        max: index(max),
        keep: Some(index(max)),
    };
    for change in limit_count(transcript, bound) {
        change.apply(transcript);
    }
}

/// Returns the sizes of a transcript's groups in bytes of text as they count towards a context, the oldest first.
#[must_use]
pub fn group_bytes(transcript: &Transcript) -> Vec<u64> {
    plan::group_bytes(transcript)
}

fn replace(transcript: &mut Transcript, from: usize, to: usize, message: Option<&Message>) {
    let message = message.cloned().map(Arc::new);
    transcript.splice(from..to, message);
}

/// Shortens the results of a message. Without a longer result, the message stays the same allocation.
fn shorten_results(message: &mut Arc<Message>, bytes: usize) {
    let is_long = |part: &Part| match part {
        Part::ToolResult(result) => {
            result.media().next().is_some() || text_of(result).len() > bytes
        }
        _ => false,
    };
    if !message.parts.iter().any(is_long) {
        return;
    }
    for part in &mut Arc::make_mut(message).parts {
        if let Part::ToolResult(result) = part {
            let mut text = text_of(result);
            let media = result.media().count();
            if text.len() > bytes {
                text = shorten_text(&text, bytes);
            } else if media == 0 {
                continue;
            }
            if media > 0 {
                let _ = write!(text, "\n[attachments left out: {media}]");
            }
            result.blocks.clear();
            result.content = ToolContent::Text(text);
        }
    }
}

/// The texts of a result in one, without its media.
fn text_of(result: &ToolResult) -> String {
    let mut text = result.content.to_text();
    for block in &result.blocks {
        if let ContentBlock::Text { text: more } = block {
            text.push('\n');
            text.push_str(more);
        }
    }
    text
}

fn index(place: u32) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
}
