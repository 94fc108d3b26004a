//! Reads the body of a reply for any dialect: framing, bounds, and how it ended.

use crate::framing::{BodyEnd, Frame, Framer};
use crate::halves::Halves;
use crate::json::{mend_surrogates, raw};
use crate::latch::{LatchedReader, Reader};
use crate::{Bounds, errors, failure};
use rondo_types::{ErrorClass, FinishReason, ModelError, ModelEvent, Opaque, Origin, Usage};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Decodes the JSON payloads of a body: the part of a decoder that each dialect has of its own. Framing
/// and bounds are shared, in [`BodyReader`].
pub(crate) trait PayloadDecoder: Send {
    /// Decodes one JSON object: an event of a stream, or a whole reply.
    fn read_object(
        &mut self,
        event: &str,
        json: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError>;

    /// Reads an error that the server sent outside of any event.
    fn read_failure(&self, text: &str) -> ModelError {
        errors::of_text(text)
    }

    /// Returns whether any payload so far belongs to this protocol.
    fn has_read_any(&self) -> bool;

    /// Returns whether the reply may end where an event ended.
    fn may_end(&self) -> bool;

    /// Returns whether every candidate has its finish reason, so that the reply is complete even if
    /// the server never ends the body.
    fn is_whole(&self) -> bool {
        self.may_end()
    }

    /// Returns whether the protocol's own end was read. Anything after it is ignored.
    fn ended(&self) -> bool {
        false
    }

    /// Returns whether the reply may end with `[DONE]` where it is.
    fn done_may_end(&self) -> bool {
        true
    }

    /// Returns whether a reply that is one whole document may end without a finish reason.
    fn document_may_end(&self) -> bool {
        true
    }

    /// Builds the error of a body that ended well and whose reply did not.
    fn unfinished(&self, how: &str) -> ModelError {
        cut(how)
    }

    /// Appends the last events of a reply that ended as its protocol ends.
    ///
    /// # Errors
    /// When what the reply says of itself shows that a part of it was lost on the way.
    fn complete(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError>;

    /// Returns the last token counts as the provider counts.
    fn reported_usage(&self) -> Option<Usage>;
}

/// Decodes a body with a dialect's [`PayloadDecoder`].
pub(crate) type BodyDecoder<P> = LatchedReader<BodyReader<P>>;

/// Reads a body with a dialect's [`PayloadDecoder`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BodyReader<P> {
    framer: Framer,
    payloads: P,
    halves: Halves,
    bytes: u64,
    bytes_max: u64,
}

impl<P: PayloadDecoder> BodyDecoder<P> {
    pub(crate) fn new(payloads: P, bounds: Bounds) -> Self {
        Self::over(BodyReader {
            framer: Framer::new(bounds),
            payloads,
            halves: Halves::default(),
            bytes: 0,
            bytes_max: bounds.response_bytes_max,
        })
    }
}

impl<P: PayloadDecoder> BodyReader<P> {
    fn complete(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        self.halves.finish(out);
        self.payloads.complete(out)
    }

    fn read_within(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        // The part that fits is read before the rest is refused, or else the cut would matter.
        let left = usize::try_from(self.bytes_max.saturating_sub(self.bytes)).unwrap_or(usize::MAX);
        let (bytes, beyond) = bytes.split_at_checked(left).unwrap_or((bytes, &[]));
        let read = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.bytes = self.bytes.saturating_add(read);
        let (payloads, halves) = (&mut self.payloads, &mut self.halves);
        self.framer
            .read(bytes, &mut |frame| take(payloads, halves, frame, out))?;
        if beyond.is_empty() || self.framer.is_done() {
            return Ok(());
        }
        Err(ModelError::new(
            ErrorClass::TooLarge,
            format!("the response has more than {} bytes", self.bytes_max),
        ))
    }
}

impl<P: PayloadDecoder> Reader for BodyReader<P> {
    fn read(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let result = self.read_within(bytes, out);
        // Bytes after the end are not looked at, so they cannot fail either.
        if self.payloads.ended() {
            Ok(())
        } else {
            result
        }
    }

    fn end(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if self.payloads.ended() {
            return self.complete(out);
        }
        let (payloads, halves) = (&mut self.payloads, &mut self.halves);
        let end = self
            .framer
            .finish(&mut |frame| take(payloads, halves, frame, out))?;
        match end {
            BodyEnd::Document if !self.payloads.has_read_any() => {
                return Err(malformed("it is json of another kind"));
            }
            BodyEnd::Document if !self.payloads.document_may_end() => {
                return Err(self.payloads.unfinished("no finish reason came"));
            }
            BodyEnd::Done if !self.payloads.done_may_end() => {
                return Err(self.payloads.unfinished("no finish reason came"));
            }
            BodyEnd::Done | BodyEnd::Document => {}
            BodyEnd::Boundary if self.payloads.may_end() => {}
            BodyEnd::Boundary => return Err(self.payloads.unfinished("no finish reason came")),
            BodyEnd::Cut => return Err(self.payloads.unfinished("inside an event")),
            BodyEnd::Foreign(text) => return Err(foreign(&text)),
        }
        self.complete(out)
    }

    fn is_whole(&self) -> bool {
        self.payloads.is_whole()
    }

    fn conclude(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        self.complete(out)
    }

    fn ended(&self) -> bool {
        self.framer.is_done() || self.payloads.ended()
    }

    fn reported_usage(&self) -> Option<Usage> {
        self.payloads.reported_usage()
    }
}

fn take<P: PayloadDecoder>(
    payloads: &mut P,
    halves: &mut Halves,
    frame: Frame<'_>,
    out: &mut Vec<ModelEvent>,
) -> Result<(), ModelError> {
    if payloads.ended() {
        return Ok(());
    }
    match frame {
        Frame::ErrorField(text) => Err(payloads.read_failure(&String::from_utf8_lossy(text))),
        Frame::Json { event, text } => {
            let json = match std::str::from_utf8(text) {
                Ok(json) => Cow::Borrowed(json),
                Err(_) => String::from_utf8_lossy(text),
            };
            let mended = mend_surrogates(&json);
            let (from, has_halves) = (out.len(), mended.is_some() || !halves.is_empty());
            let taken = take_json(payloads, event, mended.as_deref().unwrap_or(&json), out);
            if has_halves {
                halves.settle(out, from);
            }
            taken
        }
    }
}

fn take_json<P: PayloadDecoder>(
    payloads: &mut P,
    event: &str,
    json: &str,
    out: &mut Vec<ModelEvent>,
) -> Result<(), ModelError> {
    if !json.starts_with('[') {
        return payloads.read_object(event, json, out);
    }
    let elements: Vec<&RawValue> =
        serde_json::from_str(json).map_err(|_| malformed("an event is not json"))?;
    for element in elements {
        payloads.read_object(event, element.get(), out)?;
    }
    Ok(())
}

/// Returns the reason that decides on the calls of a candidate when several came: a later one does
/// not make whole what an earlier one refused or cut.
fn stricter(earlier: Option<FinishReason>, later: FinishReason) -> FinishReason {
    match earlier {
        Some(earlier) if !earlier.is_acceptable() => earlier,
        Some(FinishReason::Length) if later.is_acceptable() => FinishReason::Length,
        _ => later,
    }
}

/// Reports a finish reason, and keeps the one that decides.
pub(crate) fn finished(
    kept: &mut Option<FinishReason>,
    candidate: u32,
    reason: FinishReason,
    raw: &str,
    out: &mut Vec<ModelEvent>,
) {
    *kept = Some(stricter(*kept, reason));
    out.push(ModelEvent::Finished {
        candidate,
        reason,
        raw: raw.to_owned(),
    });
}

/// Returns the state of a candidate or an item, and begins one if there is room.
///
/// # Errors
/// When there would be more than `max` of `what`.
pub(crate) fn state_of<'s, S: Default>(
    states: &'s mut BTreeMap<u32, S>,
    key: u32,
    max: usize,
    what: &str,
) -> Result<&'s mut S, ModelError> {
    if !states.contains_key(&key) && states.len() >= max {
        return Err(too_many(what, max));
    }
    Ok(states.entry(key).or_default())
}

/// Builds the error of a reply that has more of something than it may.
pub(crate) fn too_many(what: &str, max: usize) -> ModelError {
    ModelError::new(
        ErrorClass::TooLarge,
        format!("the response has more than {max} {what}"),
    )
}

/// Returns a place in a list as the number that events have; lists are bounded far below `u32::MAX`.
pub(crate) fn number_of(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// Builds the data of a provider that goes back to the model it came from.
pub(crate) fn provider_data(origin: &Origin, json: String) -> Opaque {
    let origin = origin.clone();
    Opaque { origin, json }
}

/// Builds the error of a payload that cannot be read.
pub(crate) fn malformed(what: &str) -> ModelError {
    ModelError::new(
        ErrorClass::Protocol,
        format!("failed to read the response: {what}"),
    )
}

/// Explains why a payload cannot be read, and reads a failure from one that is not JSON.
pub(crate) fn unreadable<P: PayloadDecoder>(
    payloads: &P,
    event: &str,
    json: &str,
    error: &serde_json::Error,
) -> ModelError {
    if event == "error" && raw(json).is_none() {
        return payloads.read_failure(json);
    }
    let what = match error.is_data() {
        true => "not of the shape that its API promises",
        false => "not valid JSON",
    };
    let (sent, why) = (
        failure::summary(json.as_bytes()),
        failure::clip(&error.to_string()),
    );
    ModelError::new(
        ErrorClass::Protocol,
        format!("the provider sent `{sent}`, which is {what}: {why}"),
    )
}

fn cut(how: &str) -> ModelError {
    ModelError::new(
        ErrorClass::Network,
        format!("the response ended early: {how}"),
    )
}

/// Builds the error of a reply of which a part was lost, though its body ended well.
pub(crate) fn damaged(how: &str) -> ModelError {
    ModelError::new(
        ErrorClass::Network,
        format!("a part of the response was lost: {how}"),
    )
}

/// Builds the error of a payload from which something is missing, which another request may bring.
pub(crate) fn incomplete(how: &str) -> ModelError {
    ModelError {
        retryable: true,
        ..malformed(how)
    }
}

fn foreign(text: &str) -> ModelError {
    malformed(&format!(
        "it is neither json nor an event stream: `{}`",
        failure::summary(text.as_bytes())
    ))
}

#[cfg(test)]
mod tests;
