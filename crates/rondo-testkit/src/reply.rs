//! The reply of a scripted model, for any dialect.

use bytes::Bytes;
use rondo_types::Usage;
use serde_json::Value;

/// Reply of a scripted model, in no provider's format; [`openai`](crate::openai) and
/// [`gemini`](crate::gemini) write it in theirs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReplyScript {
    /// The pieces of the reasoning.
    pub reasoning: Vec<String>,
    /// The pieces of the answer, one an event.
    pub text: Vec<String>,
    /// The calls.
    pub calls: Vec<CallScript>,
    /// The token counts.
    pub usage: Option<Usage>,
    /// The provider's finish reason; the usual one when absent.
    pub finish: Option<String>,
}

impl ReplyScript {
    /// Builds a text answer, one piece an event.
    pub fn text<T: Into<String>>(pieces: impl IntoIterator<Item = T>) -> Self {
        Self {
            text: pieces.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Builds a reply of tool calls.
    pub fn calls(calls: impl IntoIterator<Item = CallScript>) -> Self {
        Self {
            calls: calls.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Returns the reply with text before its calls.
    #[must_use]
    pub fn saying(mut self, text: &str) -> Self {
        self.text.push(text.to_owned());
        self
    }

    /// Returns the reply with reasoning before everything.
    #[must_use]
    pub fn thinking(mut self, text: &str) -> Self {
        self.reasoning.push(text.to_owned());
        self
    }

    /// Returns the reply with token counts.
    #[must_use]
    pub fn usage(mut self, input: u64, output: u64) -> Self {
        self.usage = Some(Usage {
            input,
            output,
            ..Usage::default()
        });
        self
    }

    /// Returns the reply with another finish reason, in the provider's words.
    #[must_use]
    pub fn finish(mut self, reason: &str) -> Self {
        self.finish = Some(reason.to_owned());
        self
    }
}

/// One call of a [`ReplyScript`].
#[derive(Debug, Clone, PartialEq)]
pub struct CallScript {
    /// The provider's id; dialects that cannot do without send an empty one.
    pub id: Option<String>,
    /// The tool.
    pub name: String,
    /// The arguments as JSON text, which may be broken if the dialect carries text.
    pub arguments: String,
    /// Gemini: the `thoughtSignature` of the part.
    pub signature: Option<String>,
}

impl CallScript {
    /// Builds a call with an id.
    #[must_use]
    pub fn new(id: &str, name: &str, arguments: &Value) -> Self {
        Self::raw(Some(id), name, &arguments.to_string())
    }

    /// Builds a call without an id.
    #[must_use]
    pub fn without_id(name: &str, arguments: &Value) -> Self {
        Self::raw(None, name, &arguments.to_string())
    }

    /// Builds a call whose arguments are written as given.
    #[must_use]
    pub fn raw(id: Option<&str>, name: &str, arguments: &str) -> Self {
        Self {
            id: id.map(str::to_owned),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
            signature: None,
        }
    }

    /// Returns the call with a thought signature.
    #[must_use]
    pub fn signed(mut self, signature: &str) -> Self {
        self.signature = Some(signature.to_owned());
        self
    }
}

/// Writes each event as a `data:` line, ended by `end`.
pub(crate) fn frame(events: &[Value], end: &str) -> Vec<Bytes> {
    events
        .iter()
        .map(|event| Bytes::from(format!("data: {event}{end}")))
        .collect()
}
