//! Estimates what messages add to a request, in bytes and tokens.

use rondo_types::{ContentBlock, Message, Part, Transcript};

/// Bytes that make a token, for estimates. English text has about four; code, JSON and other
/// languages have fewer, and an estimate that is too high keeps the bound.
pub(crate) const BYTES_PER_TOKEN: u64 = 3;

/// Estimates what messages add to a request, in bytes of text.
pub(crate) fn transcript_bytes(transcript: &Transcript) -> u64 {
    transcript
        .iter()
        .map(|message| message_bytes(message))
        .sum()
}

/// Estimates what a message adds to a request, in bytes of text.
pub(crate) fn message_bytes(message: &Message) -> u64 {
    message.parts.iter().map(part_bytes).sum()
}

pub(crate) fn part_bytes(part: &Part) -> u64 {
    // An image costs tokens by its area, not by its bytes; this is the most common charge.
    const MEDIA_BYTES: usize = 1500 * 3;
    size(match part {
        Part::Text(text) | Part::Refusal(text) => text.text.len(),
        Part::Reasoning(reasoning) => reasoning.text.len(),
        Part::ToolCall(call) => call.name.len() + call.arguments.len(),
        Part::ToolResult(result) => {
            let blocks = result.blocks.iter().map(|block| match block {
                ContentBlock::Text { text } => text.len(),
                ContentBlock::Media(_) => MEDIA_BYTES,
            });
            result.content.to_text().len() + blocks.sum::<usize>()
        }
        Part::Media(_) => MEDIA_BYTES,
        Part::Opaque(opaque) => opaque.json.len(),
    })
}

pub(crate) fn size(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
