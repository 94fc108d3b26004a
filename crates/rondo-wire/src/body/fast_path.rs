//! The fast path for deltas and the parser agree: on all that was recorded, and on what is a
//! little different from it.

use super::tests::{anthropic, bodies, chat, gemini, responses};
use super::{BodyDecoder, PayloadDecoder};
use crate::Decoder as _;
use proptest::prelude::*;
use rondo_types::{ModelError, ModelEvent};
use std::fmt::Debug;

/// Cases of each property; every case changes every event of all recordings of a dialect.
const CASES: u32 = 8;

/// Events of a dialect's recordings, at least, that take the fast path.
const TAKEN_MIN: usize = 12;

/// What an event is changed by: what decides in JSON, and a bit of text.
const WRITTEN: [&str; 18] = [
    "\"", "\\", "\\\"", "\\n", "\\u00e9", "\\ud83d", "{", "}", "[", "]", ",", ":", "0", "-",
    "null", " ", "\u{1}", "\u{e9}",
];

/// One change of an event, made where `place` says, round its length.
#[derive(Debug, Clone)]
struct Change {
    place: usize,
    removed: usize,
    written: &'static str,
}

impl Change {
    fn made_to(&self, event: &str) -> String {
        let at = |wanted: usize| {
            let near = wanted.min(event.len());
            (0..=near)
                .rev()
                .find(|at| event.is_char_boundary(*at))
                .unwrap_or(0)
        };
        let start = at(self.place % event.len());
        let end = at(start + self.removed).max(start);
        [&event[..start], self.written, &event[end..]].concat()
    }
}

fn change() -> impl Strategy<Value = Change> {
    let written = prop_oneof![Just(""), proptest::sample::select(&WRITTEN[..])];
    (0usize..100_000, 0usize..3, written).prop_map(|(place, removed, written)| Change {
        place,
        removed,
        written,
    })
}

/// A decoder that learns, beside one that parses every event.
#[derive(Debug, Clone)]
struct Pair<P> {
    learning: BodyDecoder<P>,
    parsing: BodyDecoder<P>,
}

impl<P: PayloadDecoder + Clone + PartialEq + Debug> Pair<P> {
    fn new(decoder: BodyDecoder<P>) -> Self {
        Self {
            learning: decoder.clone(),
            parsing: decoder,
        }
    }

    fn push(&mut self, event: &str) -> (Result<(), ModelError>, Vec<ModelEvent>) {
        let (mut learnt, mut parsed) = (Vec::new(), Vec::new());
        self.parsing.reader.payloads.forget();
        let result = self.parsing.push(event.as_bytes(), &mut parsed);
        let same = self.learning.push(event.as_bytes(), &mut learnt);
        assert_eq!((&same, &learnt), (&result, &parsed), "{event}");
        let mut state = [&self.learning, &self.parsing].map(|it| it.reader.payloads.clone());
        state.iter_mut().for_each(PayloadDecoder::forget);
        assert_eq!(state[0], state[1], "{event}");
        (result, parsed)
    }
}

/// Reads every event of the recordings, each followed by changed ones.
fn agree<P>(dialect: &str, decoder: impl Fn() -> BodyDecoder<P>, changes: &[Change])
where
    P: PayloadDecoder + Clone + PartialEq + Debug,
{
    let (mut taken, mut all) = (0, 0);
    for (name, body) in bodies(dialect) {
        let mut pair = Pair::new(decoder());
        for event in body.replace("\r\n", "\n").split_inclusive("\n\n") {
            pair.push(event)
                .0
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            // The parser has learnt this event; the fast path keeps what it learnt before.
            taken += usize::from(pair.learning != pair.parsing);
            all += 1;
            for change in changes {
                let mut fork = pair.clone();
                if fork.push(&change.made_to(event)).0.is_ok() {
                    let _ = fork.push(event);
                }
            }
        }
    }
    assert!(taken >= TAKEN_MIN, "{dialect}: {taken} of {all}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn chat_chunks_say_the_same_on_the_fast_path(changes in proptest::collection::vec(change(), 3)) {
        agree("openai-chat", chat, &changes);
    }

    #[test]
    fn gemini_chunks_say_the_same_on_the_fast_path(changes in proptest::collection::vec(change(), 3)) {
        agree("gemini", gemini, &changes);
    }

    #[test]
    fn responses_say_the_same_on_the_fast_path(changes in proptest::collection::vec(change(), 3)) {
        agree("openai-responses", responses, &changes);
    }

    #[test]
    fn messages_say_the_same_on_the_fast_path(changes in proptest::collection::vec(change(), 3)) {
        agree("anthropic", anthropic, &changes);
    }
}
