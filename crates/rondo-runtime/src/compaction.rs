//! Turns that only sum up what was said.

use crate::spec::TurnSpec;
use rondo_types::{CompactionPolicy, Message, Part};
use std::sync::Arc;

/// Bytes of a conversation that a summary can be shorter than.
const BYTES_MIN: usize = 400;

impl TurnSpec {
    /// Limits the turn to a summary of the conversation.
    pub fn only_sum_up(&mut self) {
        let policy = &mut Arc::make_mut(&mut self.profile).compaction;
        policy.only = true;
        policy.max_messages = None;
        if policy.summary_tokens == 0 {
            policy.summary_tokens = CompactionPolicy::default().summary_tokens;
        }
    }
}

/// Returns the message that asks for a summary, with an eye on what the user names; that may be nothing.
#[must_use]
pub fn question(focus: &str) -> Message {
    Message::user(match focus {
        "" => "Sum up what was said.".to_owned(),
        focus => format!("Sum up what was said, above all of: {focus}"),
    })
}

/// Returns why a summary would save nothing, if that is so.
#[must_use]
pub fn too_early(history: &[Arc<Message>]) -> Option<&'static str> {
    if history.is_empty() {
        return Some("the conversation is empty");
    }
    let said: usize = history.iter().map(|it| it.text().len()).sum();
    (said < BYTES_MIN && !has_calls(history))
        .then_some("the conversation is shorter than a summary")
}

/// Returns whether there are calls, results or files, which are part of what is summed up and no text.
fn has_calls(history: &[Arc<Message>]) -> bool {
    let mut parts = history.iter().flat_map(|it| &it.parts);
    parts.any(|part| match part {
        Part::ToolCall(_) | Part::ToolResult(_) | Part::Media(_) => true,
        Part::Text(_) | Part::Reasoning(_) | Part::Refusal(_) | Part::Opaque(_) => false,
    })
}
