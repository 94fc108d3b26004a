//! Notes on what a dialect left out or changed because its protocol cannot express it.

use crate::target::Quirks;
use rondo_types::{Media, Message, Opaque, Origin, Part, ToolResult};
use serde::Serialize;
use std::fmt;

/// Change by a dialect, because its wire cannot carry the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lowering {
    /// Reasoning was left out: it came from another provider or model, or this one does not take it back.
    ReasoningDropped,
    /// Opaque data was left out: it came from another provider or model, or it is not a JSON object.
    OpaqueDropped,
    /// A refusal was sent as text.
    RefusalAsText,
    /// Arguments that are no JSON object were sent as `{}`.
    ArgumentsReplaced,
    /// A call id was replaced by one that the provider accepts. Replacing the wire id of another provider
    /// by the call's own id is not noted.
    IdReplaced,
    /// A name that the provider refuses was replaced.
    NameReplaced,
    /// An image or a file of the model's own message could not be sent.
    MediaDropped,
    /// A text stands for an image or a file that could not be sent.
    MediaAsText,
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
    /// The provider's own search of the web was not offered.
    SearchDropped,
}

/// Why a dialect changed something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoweringCause {
    /// It came from another dialect, provider or model, and would be refused or misread here.
    Elsewhere,
    /// The provider does not take it back, not even from itself.
    NotTakenBack,
    /// The protocol has no field for it, or none at this place.
    NoPlace,
    /// It is not a JSON object, which the protocol requires.
    NotAnObject,
    /// It breaks the protocol's rule on length or characters.
    NotAllowed,
    /// The model or its provider refuses it, as far as known or configured.
    Refused,
    /// The protocol requires it.
    Demanded,
    /// Nothing of the message was left to send.
    NothingLeft,
    /// The transcript was changed since, and this data no longer matches it.
    Outdated,
    /// The item or result that must follow it is missing.
    Unanswered,
}

/// One change that encoding made to a request: what, where and why.
///
/// Notes are complete: every part of a transcript that is not in the request has one, except for blank
/// texts and the names of media.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoweringNote {
    /// The change.
    pub lowering: Lowering,
    /// Reason of the change.
    pub cause: LoweringCause,
    /// The message's index in the transcript; absent when it is about the whole request.
    pub message: Option<usize>,
    /// The part's index in the message; absent when it is about the whole message.
    pub part: Option<usize>,
    /// Origin of the part, if that is the cause and known: the dialect; of the same
    /// dialect the provider; of the same provider the model.
    pub from: Option<String>,
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
            Self::MediaAsText => "media replaced by a text that describes it",
            Self::MediaMoved => "media of a tool result sent as a user message",
            Self::SchemaDropped => "response schema left out",
            Self::SamplingDropped => "sampling value left out",
            Self::MessageDropped => "empty message left out",
            Self::OutputBoundAdded => "output bound added",
            Self::UserMessageAdded => "user message added",
            Self::ToolsDeclared => "tools of the history declared",
            Self::SearchDropped => "the provider's search left out",
        }
    }
}

impl LoweringNote {
    /// Sort key of notes: messages and their parts in turn, then notes about all of them.
    pub(crate) fn place(&self) -> (usize, usize) {
        let or_last = |index: Option<usize>| index.unwrap_or(usize::MAX);
        (or_last(self.message), or_last(self.part))
    }
}

impl Lowering {
    /// The cause, if it is always the same one or nothing more is known.
    fn usual_cause(self) -> LoweringCause {
        match self {
            Self::ReasoningDropped | Self::OpaqueDropped => LoweringCause::Elsewhere,
            Self::RefusalAsText
            | Self::MediaDropped
            | Self::MediaAsText
            | Self::MediaMoved
            | Self::SearchDropped => LoweringCause::NoPlace,
            Self::ArgumentsReplaced => LoweringCause::NotAnObject,
            Self::IdReplaced | Self::NameReplaced => LoweringCause::NotAllowed,
            Self::SchemaDropped | Self::SamplingDropped => LoweringCause::Refused,
            Self::MessageDropped => LoweringCause::NothingLeft,
            Self::OutputBoundAdded | Self::UserMessageAdded | Self::ToolsDeclared => {
                LoweringCause::Demanded
            }
        }
    }
}

impl LoweringCause {
    /// Returns the cause as the end of a sentence.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Elsewhere => "it came from elsewhere",
            Self::NotTakenBack => "this provider takes none back",
            Self::NoPlace => "this protocol has no place for it",
            Self::NotAnObject => "it is not a JSON object",
            Self::NotAllowed => "this protocol does not allow it",
            Self::Refused => "this model or provider refuses it",
            Self::Demanded => "this provider demands it",
            Self::NothingLeft => "nothing of it was left",
            Self::Outdated => "the transcript says something else",
            Self::Unanswered => "the part that must follow it is missing",
        }
    }
}

impl fmt::Display for LoweringNote {
    /// Writes `message 3, part 1: reasoning left out: it came from gemini`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.message, self.part) {
            (Some(message), Some(part)) => write!(f, "message {message}, part {part}: ")?,
            (Some(message), None) => write!(f, "message {message}: ")?,
            (None, _) => {}
        }
        write!(f, "{}: ", self.lowering.as_str())?;
        match &self.from {
            Some(from) => write!(f, "it came from {from}"),
            None => f.write_str(self.cause.as_str()),
        }
    }
}

/// Returns whether both have the same dialect and provider: ids, and data that is not sealed, go back.
pub(crate) fn is_same_provider(one: &Origin, other: &Origin) -> bool {
    one.dialect == other.dialect && one.provider == other.provider
}

/// Returns whether a message came from the target's dialect and provider.
pub(crate) fn is_own(message: &Message, target: &Origin) -> bool {
    let origin = message.origin.as_ref();
    origin.is_some_and(|origin| is_same_provider(origin, target))
}

/// Returns in what an origin differs: its dialect, else its provider, else its model.
fn difference(origin: &Origin, target: &Origin) -> String {
    let differing = if origin.dialect != target.dialect {
        &origin.dialect
    } else if origin.provider != target.provider {
        &origin.provider
    } else {
        &origin.model
    };
    differing.clone()
}

/// Returns whether provider data only says where a text ends, so that without it nothing is lost.
pub(crate) fn closes_only(opaque: &Opaque) -> bool {
    opaque.json == "{}"
}

/// Returns the results of a message with their indices among its parts.
pub(crate) fn results(message: &Message) -> impl Iterator<Item = (usize, &ToolResult)> {
    let parts = message.parts.iter().enumerate();
    parts.filter_map(|(index, part)| match part {
        Part::ToolResult(result) => Some((index, result)),
        _ => None,
    })
}

/// Collects notes, each once for a part.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    list: Vec<LoweringNote>,
    message: Option<usize>,
    part: Option<usize>,
}

impl Notes {
    /// Continues from notes that were kept.
    pub(crate) fn resumed(list: Vec<LoweringNote>) -> Self {
        Self {
            list,
            ..Self::default()
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns a copy of the first notes.
    pub(crate) fn first(&self, count: usize) -> Vec<LoweringNote> {
        self.list.iter().take(count).cloned().collect()
    }

    /// Sets the message of the next notes; absent for the whole request.
    pub(crate) fn enter(&mut self, message: Option<usize>) {
        self.message = message;
        self.part = None;
    }

    /// Sets the part of the message of the next notes; absent for all of it.
    pub(crate) fn enter_part(&mut self, part: Option<usize>) {
        self.part = part;
    }

    /// Notes a change for its usual cause.
    pub(crate) fn add(&mut self, lowering: Lowering) {
        self.push(lowering, lowering.usual_cause(), None);
    }

    /// Returns the text that stands for media which are not sent whatever the protocol: they are not well-formed, or
    /// the model refuses all. Notes it.
    pub(crate) fn not_sent(&mut self, media: &Media, quirks: &Quirks) -> Option<String> {
        if !media.is_well_formed() {
            return Some(self.media_as_text(media));
        }
        quirks.omit_media.then(|| {
            self.add_for(Lowering::MediaAsText, LoweringCause::Refused);
            media.placeholder()
        })
    }

    /// Records that a text replaces media, and returns the text.
    pub(crate) fn media_as_text(&mut self, media: &Media) -> String {
        let cause = match media.is_well_formed() {
            true => LoweringCause::NoPlace,
            false => LoweringCause::NotAllowed,
        };
        self.add_for(Lowering::MediaAsText, cause);
        media.placeholder()
    }

    pub(crate) fn add_for(&mut self, lowering: Lowering, cause: LoweringCause) {
        self.push(lowering, cause, None);
    }

    /// Records that something came from elsewhere.
    pub(crate) fn add_from(&mut self, what: Lowering, origin: Option<&Origin>, target: &Origin) {
        let from = origin.map(|origin| difference(origin, target));
        self.push(what, LoweringCause::Elsewhere, from);
    }

    fn push(&mut self, lowering: Lowering, cause: LoweringCause, from: Option<String>) {
        let note = LoweringNote {
            lowering,
            cause,
            message: self.message,
            part: self.part,
            from,
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

    /// Returns the notes in the order of what they are about.
    pub(crate) fn into_list(mut self) -> Vec<LoweringNote> {
        self.list.sort_by_key(LoweringNote::place);
        self.list
    }
}
