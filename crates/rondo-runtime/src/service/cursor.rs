//! A place among the updates of a session, from which a listener continues.

use rondo_core::joined::{is_left_out, text};
use rondo_types::{EventBody, TimeMs};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::mem::{Discriminant, discriminant};
use std::str::FromStr;

/// How far a listener has come. Its text can be kept anywhere, such as in a browser, and is given back to continue
/// from there, also to another process.
///
/// It counts updates with their deltas joined, as the records tell them, so that it means the same to a listener
/// of the running turn and to one of the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Cursor {
    pub(super) place: CursorPosition,
    /// The same place among the updates that a service holds in memory.
    pub(super) live: Option<LivePosition>,
}

impl Cursor {
    /// Before everything that happened in a session.
    pub const START: Self = Self {
        place: CursorPosition {
            turn: 0,
            run: 0,
            update: 0,
            offset: 0,
            began: TimeMs(0),
        },
        live: None,
    };
}

/// A place by what is recorded. Later places are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct CursorPosition {
    /// The turn's number in its session, from 1; 0 is before the first.
    pub(super) turn: u32,
    /// The number of the process that runs a part of the turn, from 0.
    pub(super) run: u32,
    /// How many updates of that run were returned.
    pub(super) update: u32,
    /// How many bytes of the last one were returned, if it is a delta.
    pub(super) offset: u64,
    /// When the run began, which distinguishes it from one that was lost with its process before anything was recorded.
    pub(super) began: TimeMs,
}

impl CursorPosition {
    /// The beginning of a run.
    pub(super) fn beginning(turn: u32, run: u32, began: TimeMs) -> Self {
        Self {
            turn,
            run,
            began,
            update: 0,
            offset: 0,
        }
    }

    /// Returns whether nothing of the run was returned.
    pub(super) fn is_beginning(self) -> bool {
        (self.update, self.offset) == (0, 0)
    }

    /// Returns whether both are in the same run of the same turn.
    pub(super) fn is_same_run(self, other: Self) -> bool {
        (self.turn, self.run, self.began) == (other.turn, other.run, other.began)
    }
}

/// A place among the updates that a service holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LivePosition {
    /// The service: another one, or the same after a restart, has other numbers.
    pub(super) service: u64,
    /// The number of the update.
    pub(super) number: u64,
}

/// Follows the events of a run, and tells the place after each.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    pub(super) place: CursorPosition,
    /// The kind of the delta that the next one may join.
    delta: Option<Discriminant<EventBody>>,
}

impl Progress {
    pub(super) fn new(place: CursorPosition) -> Self {
        Self { place, delta: None }
    }

    /// Passes an update that is not an event of the turn.
    pub(super) fn pass(&mut self) -> CursorPosition {
        self.place.update += 1;
        self.place.offset = 0;
        self.delta = None;
        self.place
    }

    /// Passes an event.
    pub(super) fn pass_event(&mut self, body: &EventBody) -> CursorPosition {
        if is_left_out(body) {
            return self.place;
        }
        let Some(text) = text(body) else {
            return self.pass();
        };
        let kind = Some(discriminant(body));
        if self.delta != kind {
            self.pass();
            self.delta = kind;
        }
        self.place.offset += text.len() as u64;
        self.place
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CursorPosition {
            turn,
            run,
            update,
            offset,
            began,
        } = self.place;
        write!(f, "{turn}.{run}.{update}.{offset}.{}", began.0)?;
        match self.live {
            Some(live) => write!(f, ".{}.{}", live.service, live.number),
            None => Ok(()),
        }
    }
}

/// A text is not a cursor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a cursor is five or seven numbers with dots between them, as an update has it")]
pub struct BadCursor;

impl FromStr for Cursor {
    type Err = BadCursor;

    fn from_str(text: &str) -> Result<Self, BadCursor> {
        let numbers: Result<Vec<u64>, _> = text.split('.').take(8).map(str::parse).collect();
        let numbers = numbers.map_err(|_| BadCursor)?;
        let small = |number: u64| u32::try_from(number).map_err(|_| BadCursor);
        let (place, live) = match numbers[..] {
            [turn, run, update, offset, began] => ([turn, run, update, offset, began], None),
            [turn, run, update, offset, began, service, number] => {
                let live = LivePosition { service, number };
                ([turn, run, update, offset, began], Some(live))
            }
            _ => return Err(BadCursor),
        };
        let [turn, run, update, offset, began] = place;
        let place = CursorPosition {
            turn: small(turn)?,
            run: small(run)?,
            update: small(update)?,
            offset,
            began: TimeMs(began),
        };
        Ok(Self { place, live })
    }
}

impl From<Cursor> for String {
    fn from(cursor: Cursor) -> Self {
        cursor.to_string()
    }
}

impl TryFrom<String> for Cursor {
    type Error = BadCursor;

    fn try_from(text: String) -> Result<Self, BadCursor> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_back_and_other_texts_are_refused() {
        let place = CursorPosition {
            turn: 3,
            run: 1,
            update: 17,
            offset: 5,
            began: TimeMs(1_700_000_000_000),
        };
        for live in [
            None,
            Some(LivePosition {
                service: u64::MAX,
                number: 9,
            }),
        ] {
            let cursor = Cursor { place, live };
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        assert_eq!("0.0.0.0.0".parse(), Ok(Cursor::START));
        for text in [
            "",
            "1",
            "1.2.3.4",
            "1.2.3.4.5.6",
            "1.2.3.4.5.6.7.8",
            "4294967296.0.0.0.0",
            "-1.0.0.0.0",
            "a.0.0.0.0",
        ] {
            assert_eq!(text.parse::<Cursor>(), Err(BadCursor), "{text}");
        }
    }

    #[test]
    fn deltas_count_as_one_where_they_would_be_joined() {
        let text = |text: &str| EventBody::TextDelta { text: text.into() };
        let thought = |text: &str| EventBody::ReasoningDelta { text: text.into() };
        let live = EventBody::ToolOutputDelta {
            id: rondo_types::CallId::new("c"),
            text: "out".to_owned(),
        };
        let events = [
            EventBody::StepStarted { step: 1 },
            thought("a"),
            thought("bc"),
            text("d"),
            text(""),
            live,
            text("ef"),
            EventBody::RequestQueued,
            text("g"),
        ];
        let mut progress = Progress::new(CursorPosition::beginning(1, 0, TimeMs(7)));
        let places = events.map(|body| {
            let place = progress.pass_event(&body);
            (place.update, place.offset)
        });
        assert_eq!(
            places,
            [
                (1, 0),
                (2, 1),
                (2, 3),
                (3, 1),
                (3, 1),
                (3, 1),
                (3, 3),
                (4, 0),
                (5, 1)
            ]
        );
    }
}
