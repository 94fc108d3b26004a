//! Keeps every call of a transcript paired with exactly one result.

use rondo_types::{Message, Role, ToolCall, ToolContent, ToolErrorCode, ToolResult, Transcript};
use std::collections::HashSet;
use std::sync::Arc;

/// Returns the transcript with every call answered exactly once, right after its message and in
/// call order: lost results are filled in as `in_doubt`, results without a call are left out.
///
/// A history without such gaps is returned unchanged. Providers refuse any other.
#[must_use]
pub fn paired(history: Transcript) -> Transcript {
    if is_paired(&history) {
        return history;
    }
    repaired(history)
}

/// Returns the history and the message that follows it, paired as one transcript: results in the
/// message are the results of the calls that the history ends with, and only calls without one are
/// filled in. Results in the message that answer none of those calls are left out.
///
/// Pairing is idempotent.
#[must_use]
pub fn paired_with(history: Transcript, message: Arc<Message>) -> (Transcript, Arc<Message>) {
    if message.role != Role::Tool {
        return (paired(history), message);
    }
    let end = history
        .iter()
        .rposition(|message| message.role != Role::Tool)
        .map_or(0, |last| last + 1);
    let (before, answered) = history.split_at(end);
    let mut before = before.to_vec();
    let Some(asking) = before.pop() else {
        return (
            Transcript::new(),
            Arc::new(Message::tool_results(Vec::new())),
        );
    };
    let mut results: Vec<ToolResult> = message.results().cloned().collect();
    results.extend(answered.iter().flat_map(|it| it.results().cloned()));
    before = paired(before);
    let tail = vec![asking, Arc::new(Message::tool_results(results))];
    let mut tail = repaired(tail).into_iter();
    before.extend(tail.next());
    let message = tail.next();
    (
        before,
        message.unwrap_or_else(|| Arc::new(Message::tool_results(Vec::new()))),
    )
}

fn repaired(history: Transcript) -> Transcript {
    let mut repaired = Transcript::with_capacity(history.len() + 1);
    let mut messages = history.into_iter().peekable();
    while let Some(message) = messages.next() {
        if message.role == Role::Tool {
            continue;
        }
        let calls: Vec<ToolCall> = message.tool_calls().cloned().collect();
        repaired.push(message);
        if calls.is_empty() {
            continue;
        }
        let mut found: Vec<ToolResult> = Vec::new();
        while let Some(results) = messages.next_if(|next| next.role == Role::Tool) {
            found.extend(results.results().cloned());
        }
        let results = calls.iter().map(|call| {
            let mut of_call = found.iter().filter(|result| result.call_id == call.id);
            let first = of_call.clone().next();
            // A result from outside stands in place of one that was made up before it came.
            let real = of_call.find(|result| !result.synthetic);
            real.or(first).cloned().unwrap_or_else(|| in_doubt(call))
        });
        repaired.push(Arc::new(Message::tool_results(results.collect())));
    }
    repaired
}

/// Returns whether every call is answered exactly once, right after its message and in call order,
/// and no call id occurs twice.
#[must_use]
pub fn is_paired(transcript: &Transcript) -> bool {
    let mut ids = HashSet::new();
    let mut messages = transcript.iter().peekable();
    while let Some(message) = messages.next() {
        if message.role == Role::Tool || message.results().next().is_some() {
            return false;
        }
        let calls: Vec<_> = message.tool_calls().map(|call| &call.id).collect();
        if calls.is_empty() {
            continue;
        }
        if !calls.iter().all(|id| ids.insert((*id).clone())) {
            return false;
        }
        let Some(results) = messages.next_if(|next| next.role == Role::Tool) else {
            return false;
        };
        if !results.results().map(|result| &result.call_id).eq(calls) {
            return false;
        }
    }
    true
}

fn in_doubt(call: &ToolCall) -> ToolResult {
    let text = "error (in_doubt): the call was started and its end was not recorded; check before \
                doing it again";
    ToolResult {
        call_id: call.id.clone(),
        wire_id: call.wire_id.clone(),
        name: call.name.clone(),
        error: Some(ToolErrorCode::InDoubt),
        content: ToolContent::Text(text.to_owned()),
        blocks: Vec::new(),
        synthetic: true,
    }
}
