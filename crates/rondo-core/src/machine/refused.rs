//! Removal of content that the provider refused to read, so that the request can be sent again.
//!
//! A provider refuses a whole request for one image, or for reasoning that another address had sealed. Since every
//! later request repeats it, the session would be lost. What is refused is therefore taken out of the transcript for
//! good, which is recorded like a compaction. At most two changes of each kind are made in a row: afterwards nothing
//! of the kind is left.

use super::turn::{Cx, TurnMachine};
use crate::compaction::{Change, Compaction, has_media, is_sealed};
use rondo_types::{ErrorClass, EventBody, Message, ModelError, Role};
use std::sync::Arc;

/// Words, lower case, of refusals that are about an image or a file, whatever their class.
const MEDIA_WORDS: [&str; 7] = [
    "image",
    "vision",
    "multimodal",
    "multi-modal",
    "modalit",
    "mmproj",
    "audio",
];

/// The same of refusals of a request as such; elsewhere these words may be about anything.
const FILE_WORDS: [&str; 4] = ["pdf", "document", "media", "file"];

/// The same of refusals that are about what the provider sealed or signed.
const SEAL_WORDS: [&str; 6] = [
    "reasoning",
    "encrypted",
    "signature",
    "thinking",
    "thought",
    "'rs_",
];

/// The same of refusals that are about the request's settings, which no change of the conversation mends.
const SETTING_WORDS: [&str; 10] = [
    "parameter",
    "temperature",
    "effort",
    "budget",
    "max_tokens",
    "max_completion_tokens",
    "top_p",
    "tool_choice",
    "schema",
    "model name",
];

/// Content for which a request may be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RefusalCause {
    Media,
    Sealed,
}

impl TurnMachine {
    /// Sends a refused request again without what the provider refuses, if that is known or likely. Returns whether it
    /// did.
    pub(super) fn ask_without_refused(&mut self, cx: &mut Cx<'_>, error: &ModelError) -> bool {
        if self.is_summarising() || !may_be_about_content(error.class) {
            return false;
        }
        let text = error.message.to_lowercase();
        if !self.omit_temperature(cx, error.class, &text) {
            let Some((suspect, from)) = self.suspect(error.class, &text) else {
                return false;
            };
            self.take_out(cx, suspect, from, error);
        }
        self.attempt += 1;
        self.send_request(cx);
        true
    }

    fn omit_temperature(&mut self, cx: &mut Cx<'_>, class: ErrorClass, text: &str) -> bool {
        let is_sent = self.config.profile.sampling.temperature.is_some() && !self.omits_temperature;
        let is_refused = matches!(class, ErrorClass::BadRequest | ErrorClass::Unsupported);
        if !is_sent || !is_refused || !text.contains("temperature") {
            return false;
        }
        self.omits_temperature = true;
        let model = self.model().full_name();
        cx.emit(EventBody::Warning {
            text: format!("`{model}` takes no temperature, so it was asked again without one"),
        });
        true
    }

    /// Returns the content for which the request was refused, as far as it is known, and the first message that holds
    /// it.
    ///
    /// Refusals that do not say what they are about are put down to what this model has not accepted yet.
    fn suspect(&self, class: ErrorClass, text: &str) -> Option<(RefusalCause, usize)> {
        let mentions = |words: &[&str]| words.iter().any(|word| text.contains(word));
        let is_of_request = matches!(class, ErrorClass::BadRequest | ErrorClass::Unsupported);
        let is_of_setting = mentions(&SETTING_WORDS);
        let sealed = self.holds(0, is_sealed).filter(|_| !is_of_setting);
        if (is_of_request || class == ErrorClass::NotFound) && mentions(&SEAL_WORDS) {
            return sealed.map(|from| (RefusalCause::Sealed, from));
        }
        let unread = self.holds(self.first_unread(), has_media);
        if mentions(&MEDIA_WORDS) || (is_of_request && mentions(&FILE_WORDS)) {
            let media = unread.or_else(|| self.holds(0, has_media));
            return media.map(|from| (RefusalCause::Media, from));
        }
        if class != ErrorClass::BadRequest || is_of_setting {
            return None;
        }
        // Data that the provider sealed within this turn, it has read already.
        let sealed = sealed.filter(|_| self.spent.steps == 1);
        let media = unread.map(|from| (RefusalCause::Media, from));
        media.or(sealed.map(|from| (RefusalCause::Sealed, from)))
    }

    /// Returns the index of the first message that no accepted request of this model has carried.
    pub(super) fn first_unread(&self) -> usize {
        let origin = &self.model().origin;
        let is_own = |message: &Arc<Message>| {
            message.role == Role::Assistant && message.origin.as_ref() == Some(origin)
        };
        self.transcript
            .iter()
            .rposition(is_own)
            .map_or(0, |last| last + 1)
    }

    /// Returns the index of the first message from `from` on of which this holds.
    fn holds(&self, from: usize, what: fn(&Message) -> bool) -> Option<usize> {
        let mut messages = self.transcript.iter().enumerate().skip(from);
        messages
            .find(|(_, message)| what(message))
            .map(|(at, _)| at)
    }

    fn take_out(
        &mut self,
        cx: &mut Cx<'_>,
        suspect: RefusalCause,
        from: usize,
        error: &ModelError,
    ) {
        let reason = error.message.clone();
        let change = match suspect {
            RefusalCause::Media => Change::Described { reason },
            RefusalCause::Sealed => Change::Unsealed { reason },
        };
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let (from, to) = (place(from), place(self.transcript.len()));
        self.compact(cx, Compaction { from, to, change });
    }
}

/// Returns whether a failure of this class may be about what the request holds.
fn may_be_about_content(class: ErrorClass) -> bool {
    match class {
        ErrorClass::BadRequest
        | ErrorClass::Unsupported
        | ErrorClass::NotFound
        | ErrorClass::Server
        | ErrorClass::TooLarge
        | ErrorClass::ContentFilter
        | ErrorClass::ContextTooLong => true,
        ErrorClass::Auth
        | ErrorClass::Quota
        | ErrorClass::RateLimited
        | ErrorClass::Overloaded
        | ErrorClass::Network
        | ErrorClass::FirstByteTimeout
        | ErrorClass::IdleTimeout
        | ErrorClass::StepTimeout
        | ErrorClass::Deadline
        | ErrorClass::Protocol
        | ErrorClass::InvalidToolCall
        | ErrorClass::Cancelled
        | ErrorClass::Internal => false,
    }
}
