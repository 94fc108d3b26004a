//! Halves of surrogate pairs: servers that cut text by UTF-16 units send one at the end of an event and the other one at
//! the beginning of the next.
//!
//! No string here can hold a half, so a character that is never assigned stands for it until the event's text is put
//! behind that of the one before.

use rondo_types::ModelEvent;
use std::ops::RangeInclusive;

/// The first of the characters that stand for halves, at the end of the last private plane.
const FIRST: u32 = 0x10_F800;
/// The UTF-16 units that are halves.
const UNITS: RangeInclusive<u32> = 0xD800..=0xDFFF;
/// The first unit that is a second half.
const FIRST_LOW: u16 = 0xDC00;
/// Texts that may end in a half at once.
const OPEN_MAX: usize = 64;

/// Returns the character that stands for a half.
pub(crate) fn stand_in(unit: u16) -> char {
    let place = u32::from(unit).saturating_sub(*UNITS.start());
    char::from_u32(FIRST + place).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Puts halves together, and lone ones away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Joiner {
    /// The first half at the end of what came so far.
    high: Option<u16>,
}

impl Joiner {
    /// Takes the next character and hands out those that are settled by it.
    pub(crate) fn take(&mut self, it: char, mut out: impl FnMut(char)) {
        match (self.high.take(), unit_of(it)) {
            (Some(high), Some(low)) if low >= FIRST_LOW => out(pair(high, low)),
            (lone, unit) => {
                if lone.is_some() {
                    out(char::REPLACEMENT_CHARACTER);
                }
                match unit {
                    None => out(it),
                    Some(low) if low >= FIRST_LOW => out(char::REPLACEMENT_CHARACTER),
                    high => self.high = high,
                }
            }
        }
    }
}

/// Puts halves together across the events of a reply.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Halves {
    open: Vec<(Stream, Joiner)>,
}

/// A text that grows event by event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Text(u32),
    Reasoning(u32),
    Refusal(u32),
    Arguments(u32),
}

impl Halves {
    /// Returns whether no text ends in a half.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Settles the texts of the events from `from` on. Those that are nothing but a half are removed.
    pub(crate) fn settle(&mut self, events: &mut Vec<ModelEvent>, from: usize) {
        let mut place = 0;
        events.retain_mut(|event| {
            place += 1;
            place <= from || self.settle_event(event)
        });
    }

    /// Ends the texts: what waits for its other half waits in vain.
    pub(crate) fn finish(&mut self, out: &mut Vec<ModelEvent>) {
        for (stream, _) in std::mem::take(&mut self.open) {
            out.push(stream.delta(char::REPLACEMENT_CHARACTER.to_string()));
        }
    }

    fn settle_event(&mut self, event: &mut ModelEvent) -> bool {
        if let Some(opaque) = opaque_of(event) {
            if opaque.chars().any(|it| unit_of(it).is_some()) {
                *opaque = joined(&mut Joiner::default(), opaque);
            }
            return true;
        }
        let Some((stream, text)) = Stream::of(event) else {
            return true;
        };
        let place = self.open.iter().position(|(it, _)| *it == stream);
        let mut joiner = place.map_or_else(Joiner::default, |at| self.open.remove(at).1);
        *text = joined(&mut joiner, text);
        if joiner.high.is_some() {
            if self.open.len() < OPEN_MAX {
                self.open.push((stream, joiner));
            } else {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        !text.is_empty()
    }
}

impl Stream {
    fn of(event: &mut ModelEvent) -> Option<(Self, &mut String)> {
        Some(match event {
            ModelEvent::TextDelta { candidate, text } => (Self::Text(*candidate), text),
            ModelEvent::ReasoningDelta { candidate, text } => (Self::Reasoning(*candidate), text),
            ModelEvent::RefusalDelta { candidate, text } => (Self::Refusal(*candidate), text),
            ModelEvent::ToolCallDelta { call, arguments } => (Self::Arguments(*call), arguments),
            _ => return None,
        })
    }

    fn delta(self, text: String) -> ModelEvent {
        match self {
            Self::Text(candidate) => ModelEvent::TextDelta { candidate, text },
            Self::Reasoning(candidate) => ModelEvent::ReasoningDelta { candidate, text },
            Self::Refusal(candidate) => ModelEvent::RefusalDelta { candidate, text },
            Self::Arguments(call) => ModelEvent::ToolCallDelta {
                call,
                arguments: text,
            },
        }
    }
}

fn opaque_of(event: &mut ModelEvent) -> Option<&mut String> {
    match event {
        ModelEvent::PartClosed { opaque, .. } | ModelEvent::OpaquePart { opaque, .. } => {
            Some(&mut opaque.json)
        }
        ModelEvent::ToolCallFinished { opaque, .. } => opaque.as_mut().map(|it| &mut it.json),
        _ => None,
    }
}

fn joined(joiner: &mut Joiner, text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for it in text.chars() {
        joiner.take(it, |it| out.push(it));
    }
    out
}

/// Returns the half that a character stands for.
fn unit_of(it: char) -> Option<u16> {
    let unit = u32::from(it)
        .checked_sub(FIRST)?
        .saturating_add(*UNITS.start());
    UNITS.contains(&unit).then(|| u16::try_from(unit).ok())?
}

fn pair(high: u16, low: u16) -> char {
    let mut both = char::decode_utf16([high, low]);
    both.next()
        .and_then(Result::ok)
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}
