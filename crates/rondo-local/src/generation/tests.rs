//! Tests: computing a prompt, and giving it up.

use super::*;
use crate::vocabulary::Vocabulary;
use std::cell::Cell;
use std::sync::Arc;

/// An engine that computes nothing: all that an engine must be for a prompt.
#[derive(Default)]
struct Counter {
    chunks: Vec<usize>,
    sequence: Vec<u32>,
}

impl Engine for Counter {
    fn vocabulary(&self) -> &Arc<Vocabulary> {
        unreachable!("a prompt is tokens already")
    }

    fn context_tokens(&self) -> usize {
        1_024
    }

    fn sequence(&self) -> &[u32] {
        &self.sequence
    }

    fn truncate(&mut self, length: usize) {
        self.sequence.truncate(length);
    }

    fn extend(&mut self, tokens: &[u32]) -> Result<Vec<f32>, LocalError> {
        self.chunks.push(tokens.len());
        self.sequence.extend_from_slice(tokens);
        Ok(vec![0.0])
    }

    fn fork(&self) -> Result<Box<dyn Engine>, LocalError> {
        Ok(Box::new(Self {
            chunks: self.chunks.clone(),
            sequence: self.sequence.clone(),
        }))
    }
}

/// Leaves after so many looks.
struct Impatient(Cell<usize>);

impl Listener for Impatient {
    fn is_waiting(&self) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        left > 0
    }

    fn take(&mut self, _: &[u8]) {}
}

#[test]
fn a_prompt_is_given_up_between_two_chunks() {
    let prompt = vec![7; 2 * PREFILL_CHUNK_TOKENS + 1];
    for (looks, chunks) in [
        (0, vec![]),
        (1, vec![PREFILL_CHUNK_TOKENS]),
        (2, vec![PREFILL_CHUNK_TOKENS; 2]),
    ] {
        let mut engine = Counter::default();
        let listener = Impatient(Cell::new(looks));
        let logits = prefill(&mut engine, &prompt, &listener).unwrap();
        assert_eq!((logits, &engine.chunks), (None, &chunks), "{looks}");
        // What was computed is kept for the next request.
        assert_eq!(
            common_prefix(engine.sequence(), &prompt),
            engine.sequence.len()
        );
    }
    let mut engine = Counter::default();
    let logits = prefill(&mut engine, &prompt, &Impatient(Cell::new(3))).unwrap();
    assert_eq!(logits, Some(vec![0.0]));
    assert_eq!(engine.sequence.len(), prompt.len());
}

#[test]
fn a_beginning_that_is_too_short_is_kept_with_the_next_one_and_the_whole_prompt_never() {
    let prompt = vec![7; 200];
    let ends = |beginnings: &[usize]| {
        let parts = parts(&prompt, beginnings);
        let ends = parts.iter().map(|part| (part.from, part.whole.len()));
        ends.collect::<Vec<_>>()
    };
    let least = TOKENS_MIN;
    assert_eq!(ends(&[100, 150]), [(0, 100), (100, 150)]);
    assert_eq!(ends(&[least - 1, 150]), [(0, 150)]);
    assert_eq!(ends(&[100, 99 + least]), [(0, 100)]);
    assert_eq!(ends(&[100, 100 + least]), [(0, 100), (100, 100 + least)]);
    assert_eq!(ends(&[100, 200]), [(0, 100)]);
    assert_eq!(ends(&[]), []);
}

#[test]
fn the_last_token_of_a_prompt_is_always_computed() {
    assert_eq!(common_prefix(&[1, 2, 3], &[1, 2, 3]), 2);
    assert_eq!(common_prefix(&[1, 2, 3], &[1, 2, 9, 9]), 2);
    assert_eq!(common_prefix(&[], &[1]), 0);
    assert_eq!(common_prefix(&[1], &[]), 0);
}
