//! Chunks with a single delta, as nearly all are.

use super::chunk::{CallDelta, Choice, Chunk, Delta, Pieces};
use crate::json::{Count, nonempty};
use crate::template::between_quotes;

/// The delta of such a chunk without its text: which candidate and kind of content it continues.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Plain {
    pub(super) candidate: u32,
    pub(super) kind: DeltaKind,
}

/// The kind of content that a delta continues.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum DeltaKind {
    Text,
    Reasoning,
    Refusal,
    /// Arguments of the call with this index.
    Arguments(u32),
}

/// Returns the delta of a chunk and its text, between the quotes; `None` if the chunk has anything else.
pub(super) fn of<'c>(chunk: &'c Chunk<'_>) -> Option<(Plain, &'c str)> {
    let [choice] = chunk.choices.as_deref()? else {
        return None;
    };
    let is_more = chunk.usage.is_some()
        || chunk.x_groq.is_some()
        || chunk.error.is_some()
        || nonempty(chunk.object.as_ref()) == Some("error");
    if is_more {
        return None;
    }
    let (kind, text) = delta(of_choice(choice)?)?;
    let candidate = choice.index.and_then(Count::index).unwrap_or(0);
    Some((Plain { candidate, kind }, text))
}

fn of_choice<'c, 'a>(choice: &'c Choice<'a>) -> Option<&'c Delta<'a>> {
    let is_more = choice.message.is_some()
        || choice.usage.is_some()
        || nonempty(choice.finish_reason.as_ref()).is_some();
    choice.delta.as_ref().filter(|_| !is_more)
}

fn delta<'c>(delta: &'c Delta<'_>) -> Option<(DeltaKind, &'c str)> {
    let is_more = delta.function_call.is_some()
        || delta
            .reasoning_details
            .as_ref()
            .is_some_and(|it| !it.is_empty());
    let content = match delta.content.as_ref().map(|content| &content.pieces) {
        None | Some(Pieces::None) => None,
        Some(Pieces::Text(text)) => Some(text.as_ref()),
        Some(Pieces::List(_)) => return None,
    };
    let call = match delta.tool_calls.as_deref().unwrap_or_default() {
        [] => None,
        [call] => Some(arguments(call)?),
        _ => return None,
    };
    let texts = [
        (DeltaKind::Text, content.filter(|text| !text.is_empty())),
        (DeltaKind::Refusal, nonempty(delta.refusal.as_ref())),
        (
            DeltaKind::Reasoning,
            nonempty(delta.reasoning_content.as_ref()),
        ),
        (DeltaKind::Reasoning, nonempty(delta.reasoning.as_ref())),
    ];
    let texts = texts
        .into_iter()
        .filter_map(|(kind, text)| Some((kind, text?)));
    let mut all = texts.chain(call);
    let one = all.next()?;
    (!is_more && all.next().is_none()).then_some(one)
}

/// Returns the index and the raw arguments, between their quotes, of a delta with nothing else.
fn arguments<'c>(call: &'c CallDelta<'_>) -> Option<(DeltaKind, &'c str)> {
    let function = call.function.as_ref()?;
    let is_more = nonempty(call.id.as_ref()).is_some()
        || nonempty(function.name.as_ref()).is_some()
        || !call.extra.is_empty();
    let text = between_quotes(function.arguments?)?;
    (!is_more).then_some((DeltaKind::Arguments(call.index?), text))
}
