//! Parts of a message that a provider may refuse to read, and the message without them.

use rondo_types::{ContentBlock, Message, Part, TextPart};
use std::sync::Arc;

/// Returns whether a message holds images or files, also in the results of calls.
pub(crate) fn has_media(message: &Message) -> bool {
    message.parts.iter().any(|part| match part {
        Part::Media(_) => true,
        Part::ToolResult(result) => result.media().next().is_some(),
        _ => false,
    })
}

/// Returns whether a message holds what only its provider can read.
pub(crate) fn is_sealed(message: &Message) -> bool {
    message.parts.iter().any(|part| match part {
        Part::Opaque(_) => true,
        Part::Text(text) | Part::Refusal(text) => text.opaque.is_some(),
        Part::Reasoning(reasoning) => reasoning.opaque.is_some(),
        Part::ToolCall(call) => call.opaque.is_some(),
        Part::Media(_) | Part::ToolResult(_) => false,
    })
}

/// Puts a text in the place of each image and file. A message without any stays the same allocation.
pub(super) fn describe_media(message: &mut Arc<Message>) {
    if !has_media(message) {
        return;
    }
    for part in &mut Arc::make_mut(message).parts {
        match part {
            Part::Media(media) => {
                *part = Part::Text(TextPart {
                    text: media.placeholder(),
                    opaque: None,
                });
            }
            Part::ToolResult(result) => {
                for block in &mut result.blocks {
                    if let ContentBlock::Media(media) = block {
                        *block = ContentBlock::text(media.placeholder());
                    }
                }
            }
            _ => {}
        }
    }
}

/// Takes away what only the provider can read, and with it the message's origin: from then on it is encoded like a
/// message that came from elsewhere. A message without anything of that kind stays the same allocation.
pub(super) fn unseal(message: &mut Arc<Message>) {
    if !is_sealed(message) {
        return;
    }
    let message = Arc::make_mut(message);
    message.origin = None;
    message
        .parts
        .retain(|part| !matches!(part, Part::Opaque(_)));
    for part in &mut message.parts {
        match part {
            Part::Text(text) | Part::Refusal(text) => text.opaque = None,
            Part::Reasoning(reasoning) => reasoning.opaque = None,
            Part::ToolCall(call) => call.opaque = None,
            Part::Opaque(_) | Part::Media(_) | Part::ToolResult(_) => {}
        }
    }
}
