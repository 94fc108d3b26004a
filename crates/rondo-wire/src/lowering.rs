use std::fmt;

/// What a dialect changed because its wire cannot carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lowering {
    /// Reasoning was left out: it came from elsewhere, or the provider does not take it back.
    ReasoningDropped,
    /// Opaque data was left out: it came from elsewhere, or it is not JSON.
    OpaqueDropped,
    /// A refusal was sent as text.
    RefusalAsText,
    /// Arguments that are no JSON object were sent as `{}`.
    ArgumentsReplaced,
    /// A call id was replaced by one that the provider accepts.
    IdReplaced,
    /// A name that the provider refuses was replaced.
    NameReplaced,
    /// An image or a file could not be sent.
    MediaDropped,
    /// An image or a file of a tool result was sent as a user message.
    MediaMoved,
    /// The response schema was left out.
    SchemaDropped,
    /// A sampling value was left out.
    SamplingDropped,
    /// A message with nothing left to send was left out.
    MessageDropped,
    /// A bound on the output was added, since the provider requires one.
    OutputBoundAdded,
    /// A short user message was added, since the provider wants the user first and last.
    UserMessageAdded,
    /// Tools that only the history names were declared, since the provider requires that.
    ToolsDeclared,
}

/// One change that encoding made to a request, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoweringNote {
    /// What was done.
    pub lowering: Lowering,
    /// The message's index in the transcript; absent when it is about the whole request.
    pub message: Option<usize>,
}

impl Lowering {
    /// Returns the change as a short text.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReasoningDropped => "reasoning left out",
            Self::OpaqueDropped => "provider data left out",
            Self::RefusalAsText => "refusal sent as text",
            Self::ArgumentsReplaced => "broken arguments sent as `{}`",
            Self::IdReplaced => "call id replaced",
            Self::NameReplaced => "tool name replaced",
            Self::MediaDropped => "media left out",
            Self::MediaMoved => "media of a tool result sent as a user message",
            Self::SchemaDropped => "response schema left out",
            Self::SamplingDropped => "sampling value left out",
            Self::MessageDropped => "empty message left out",
            Self::OutputBoundAdded => "output bound added",
            Self::UserMessageAdded => "user message added",
            Self::ToolsDeclared => "tools of the history declared",
        }
    }
}

impl fmt::Display for LoweringNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message {
            Some(index) => write!(f, "message {index}: {}", self.lowering.as_str()),
            None => f.write_str(self.lowering.as_str()),
        }
    }
}

/// Collects notes, each once for a message.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    list: Vec<LoweringNote>,
    message: Option<usize>,
}

impl Notes {
    /// Goes on from notes that were kept.
    pub(crate) fn resumed(list: Vec<LoweringNote>) -> Self {
        Self {
            list,
            message: None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns a copy of the first notes.
    pub(crate) fn first(&self, count: usize) -> Vec<LoweringNote> {
        self.list.iter().take(count).cloned().collect()
    }

    pub(crate) fn enter(&mut self, message: Option<usize>) {
        self.message = message;
    }

    pub(crate) fn add(&mut self, lowering: Lowering) {
        let note = LoweringNote {
            lowering,
            message: self.message,
        };
        let repeated = self
            .list
            .iter()
            .rev()
            .take_while(|earlier| earlier.message == note.message)
            .any(|earlier| *earlier == note);
        if !repeated {
            self.list.push(note);
        }
    }

    pub(crate) fn into_list(self) -> Vec<LoweringNote> {
        self.list
    }
}
