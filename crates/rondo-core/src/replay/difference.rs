//! Compares a replayed request with the recorded one.

use crate::ports::RequestParts;
use crate::request_hash::{RequestHash, RequestParameters, hashed_tools};
use rondo_types::{Message, ModelRequest, Part};
use serde::Serialize;
use std::sync::Arc;

/// A request that differs from the recorded one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestDifference {
    /// The record's number in the session, from 1.
    pub record: usize,
    /// The step, from 1.
    pub step: u32,
    /// The parts that differ. Empty if the record has no digests of them, and beyond
    /// [`DETAILED_MAX`](super::DETAILED_MAX).
    pub parts: Vec<PartDifference>,
}

/// A part of a request that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartDifference {
    /// The part.
    pub part: RequestPart,
    /// The recorded text; `None` if there was no such part, or its text is not recorded.
    pub recorded: Option<String>,
    /// The text now; `None` if there is no such part any more.
    pub now: Option<String>,
}

/// A part of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestPart {
    /// The system prompt.
    System,
    /// The tools on offer.
    Tools,
    /// The model's name, the choice of tools, the sampling and the answer's schema.
    Settings,
    /// A message, from 1: the first that differs.
    Message(usize),
}

impl std::fmt::Display for RequestPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::System => f.write_str("system prompt"),
            Self::Tools => f.write_str("tools"),
            Self::Settings => f.write_str("settings"),
            Self::Message(number) => write!(f, "message {number}"),
        }
    }
}

/// A request of a replay that is kept whole.
pub(super) struct RetainedRequest {
    pub(super) request: Arc<ModelRequest>,
    hash: RequestHash,
    /// The digests of all its messages.
    messages: Vec<String>,
    /// Recorded request in its place.
    recorded: Option<RequestParts>,
}

impl RetainedRequest {
    pub(super) fn new(
        request: &Arc<ModelRequest>,
        hash: RequestHash,
        messages: Vec<String>,
        recorded: Option<RequestParts>,
    ) -> Self {
        Self {
            request: Arc::clone(request),
            hash,
            messages,
            recorded,
        }
    }

    /// Returns the differences. `before` is the recorded request, if it could be made again.
    pub(super) fn differing(&self, before: Option<&ModelRequest>) -> Vec<PartDifference> {
        match (before, &self.recorded) {
            (Some(before), _) => differing(before, &self.request),
            (None, Some(recorded)) => self.by_digest(recorded),
            (None, None) => Vec::new(),
        }
    }

    /// The recorded text is not there, but its digests are.
    fn by_digest(&self, recorded: &RequestParts) -> Vec<PartDifference> {
        let own = &self.hash.parts;
        let part = |part, text| PartDifference {
            part,
            recorded: None,
            now: text,
        };
        let mut parts = Vec::new();
        if recorded.system != own.system {
            parts.push(part(RequestPart::System, Some(system(&self.request))));
        }
        if recorded.tools != own.tools {
            parts.push(part(RequestPart::Tools, Some(tools(&self.request))));
        }
        if recorded.rest != own.rest {
            parts.push(part(RequestPart::Settings, Some(settings(&self.request))));
        }
        if let Some(index) = self.differing_message(recorded) {
            let message = self.request.messages.get(index).map(|it| message(it));
            parts.push(part(RequestPart::Message(index + 1), message));
        }
        parts
    }

    fn differing_message(&self, recorded: &RequestParts) -> Option<usize> {
        let from = usize::try_from(recorded.from).unwrap_or(usize::MAX);
        let last_before = from.checked_sub(1);
        if let Some(last) = last_before
            && self.messages.get(last) != Some(&recorded.before)
        {
            // One of those before it, which another record lists.
            return Some(last);
        }
        let own = self.messages.get(from..).unwrap_or_default();
        let same = own.iter().zip(&recorded.messages);
        let same = same.take_while(|(own, recorded)| own == recorded).count();
        (same < own.len().max(recorded.messages.len())).then_some(from + same)
    }
}

fn differing(before: &ModelRequest, now: &ModelRequest) -> Vec<PartDifference> {
    let texts = [
        (RequestPart::System, system(before), system(now)),
        (RequestPart::Tools, tools(before), tools(now)),
        (RequestPart::Settings, settings(before), settings(now)),
    ];
    let differing = texts.into_iter().filter(|(_, before, now)| before != now);
    let mut parts: Vec<_> = differing
        .map(|(part, before, now)| PartDifference {
            part,
            recorded: Some(before),
            now: Some(now),
        })
        .collect();
    let pairs = before.messages.iter().zip(&now.messages);
    let same = pairs.take_while(|(before, now)| before == now).count();
    if same < before.messages.len().max(now.messages.len()) {
        let (before, now) = (before.messages.get(same), now.messages.get(same));
        let (recorded, now) = texts_of(before.map(AsRef::as_ref), now.map(AsRef::as_ref));
        parts.push(PartDifference {
            part: RequestPart::Message(same + 1),
            recorded,
            now,
        });
    }
    parts
}

type Texts = (Option<String>, Option<String>);

/// Two messages that read the same and differ all the same are shown as JSON.
fn texts_of(before: Option<&Message>, now: Option<&Message>) -> Texts {
    let texts = |show: fn(&Message) -> String| (before.map(show), now.map(show));
    let (before, now) = texts(message);
    if before == now {
        texts(pretty)
    } else {
        (before, now)
    }
}

fn system(request: &ModelRequest) -> String {
    request.system.join("\n\n")
}

fn tools(request: &ModelRequest) -> String {
    pretty(&hashed_tools(&request.tools))
}

fn settings(request: &ModelRequest) -> String {
    pretty(&RequestParameters::of(request))
}

/// Renders a message for people, a line for each thing in it.
fn message(message: &Message) -> String {
    let mut lines = vec![format!("{}:", role(message))];
    for part in &message.parts {
        lines.push(match part {
            Part::Text(part) | Part::Refusal(part) => part.text.clone(),
            Part::Reasoning(part) => format!("(reasoning) {}", part.text),
            Part::ToolCall(call) => format!("(call {}) {} {}", call.id, call.name, call.arguments),
            Part::ToolResult(result) => {
                format!("(result {}) {}", result.call_id, result.content.to_text())
            }
            Part::Media(media) => format!("({})", media.mime),
            Part::Opaque(_) => "(provider data)".to_owned(),
        });
    }
    lines.join("\n")
}

fn role(message: &Message) -> &'static str {
    match message.role {
        rondo_types::Role::User if message.synthetic => "user (written by the runtime)",
        rondo_types::Role::User => "user",
        rondo_types::Role::Assistant => "assistant",
        rondo_types::Role::Tool => "tool",
    }
}

fn pretty<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
