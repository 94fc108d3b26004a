//! The part of encoding that the dialects share: ids, names and arguments that a provider takes, and
//! notes on what is left out.

use crate::Target;
use crate::encoded_prefix::EncoderMark;
use crate::ids::IdRule;
use crate::json::raw_if_object;
use crate::lowering::{Lowering, LoweringCause, Notes};
use crate::names::NameRule;
use rondo_types::{Effort, Media, MediaSource, ModelRequest, Opaque, Origin, ToolCall};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::marker::PhantomData;

/// Rules of a dialect. The defaults fit nearly all providers.
pub(crate) trait Rules {
    /// The names of tools: `^[A-Za-z0-9_-]{1,64}$`.
    const NAMES: NameRule = NameRule {
        more_chars: &[],
        chars_max: 64,
        starts_with_letter: false,
    };

    /// The ids of calls: `^[A-Za-z0-9_-]{1,64}$`.
    const IDS: IdRule = IdRule { chars_max: 64 };
}

/// Encodes the messages of a request for the dialect `D`, which adds the shapes of its protocol.
#[derive(Debug)]
pub(crate) struct Encoder<'a, D> {
    pub(crate) target: &'a Target,
    pub(crate) notes: Notes,
    /// Set if the latest assistant message came from this dialect and provider: then its ids and
    /// those of the results behind it are the provider's own.
    pub(crate) own: bool,
    dialect: PhantomData<D>,
}

impl<'a, D: Rules> Encoder<'a, D> {
    /// Continues after the messages that are kept encoded.
    pub(crate) fn resumed(mark: EncoderMark, target: &'a Target) -> Self {
        Self {
            target,
            notes: Notes::resumed(mark.notes),
            own: mark.own,
            dialect: PhantomData,
        }
    }

    /// Returns the id of a call: the provider's own, or one made from ours.
    pub(crate) fn id(&mut self, wire_id: Option<&'a str>, ours: &'a str) -> Cow<'a, str> {
        if let Some(id) = wire_id.filter(|id| self.own && !id.is_empty()) {
            return Cow::Borrowed(id);
        }
        let made = D::IDS.apply(ours);
        if made != ours {
            self.notes.add(Lowering::IdReplaced);
        }
        made
    }

    /// Returns the name of a tool as the provider accepts it.
    pub(crate) fn name(&mut self, name: &'a str) -> Cow<'a, str> {
        let made = D::NAMES.apply(name);
        if made != name {
            self.notes.add(Lowering::NameReplaced);
        }
        made
    }

    /// Returns the arguments of a call if they are an object; otherwise `{}` takes their place.
    pub(crate) fn arguments(&mut self, call: &'a ToolCall) -> Option<&'a RawValue> {
        let arguments = raw_if_object(&call.arguments);
        if arguments.is_none() {
            self.notes.add(Lowering::ArgumentsReplaced);
        }
        arguments
    }

    /// Returns the temperature if it can be sent.
    pub(crate) fn temperature(&mut self, request: &ModelRequest) -> Option<f64> {
        let temperature = request.sampling.temperature?;
        if temperature.is_finite() && !self.target.quirks.omit_temperature {
            return Some(temperature);
        }
        self.notes.add(Lowering::SamplingDropped);
        None
    }

    /// Records that reasoning of this origin is left out.
    pub(crate) fn drop_reasoning(&mut self, origin: Option<&Origin>, is_own: bool) {
        let what = Lowering::ReasoningDropped;
        if is_own {
            self.notes.add_for(what, LoweringCause::NotTakenBack);
        } else {
            self.notes.add_from(what, origin, &self.target.origin);
        }
    }

    /// Records that provider data is left out: for `cause` if this very model made it.
    pub(crate) fn drop_opaque(&mut self, opaque: &Opaque, cause: LoweringCause) {
        let what = Lowering::OpaqueDropped;
        if self.is_own(opaque) {
            self.notes.add_for(what, cause);
        } else {
            let origin = Some(&opaque.origin);
            self.notes.add_from(what, origin, &self.target.origin);
        }
    }

    /// Returns whether this very model made the data. Signed or sealed data goes back only there.
    pub(crate) fn is_own(&self, opaque: &Opaque) -> bool {
        opaque.origin == self.target.origin
    }
}

/// Returns the address of media, or a `data:` URL that holds them.
pub(crate) fn address(media: &Media) -> Cow<'_, str> {
    match &media.source {
        MediaSource::Url(url) => Cow::Borrowed(url),
        MediaSource::Base64(data) => Cow::Owned(format!("data:{};base64,{data}", media.mime)),
    }
}

pub(crate) fn effort_text(effort: Effort) -> &'static str {
    match effort {
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
    }
}
