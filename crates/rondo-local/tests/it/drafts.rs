//! Guessing how a reply goes on changes none of its tokens.

use crate::support::{ask, request, weights};
use crate::tiny::file;
use rondo_local::{CpuEngine, Engine, LocalError, LocalModel, Vocabulary};
use rondo_types::{Message, ModelEvent};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An engine that computes at most so many tokens exactly at once, and counts what it is asked for.
struct Counted {
    inner: Box<dyn Engine>,
    exact: usize,
    batches: Arc<AtomicUsize>,
}

impl Engine for Counted {
    fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.inner.vocabulary()
    }

    fn context_tokens(&self) -> usize {
        self.inner.context_tokens()
    }

    fn sequence(&self) -> &[u32] {
        self.inner.sequence()
    }

    fn truncate(&mut self, length: usize) {
        self.inner.truncate(length);
    }

    fn extend(&mut self, tokens: &[u32]) -> Result<Vec<f32>, LocalError> {
        self.inner.extend(tokens)
    }

    fn extend_all(&mut self, tokens: &[u32], from: usize) -> Result<Vec<f32>, LocalError> {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.inner.extend_all(tokens, from)
    }

    fn exact_tokens(&self) -> usize {
        self.exact.min(self.inner.exact_tokens())
    }

    fn fork(&self) -> Result<Box<dyn Engine>, LocalError> {
        Ok(Box::new(Self {
            inner: self.inner.fork()?,
            exact: self.exact,
            batches: Arc::clone(&self.batches),
        }))
    }
}

/// Returns a model that guesses, or one that does not, and how often it computes.
fn model(path: PathBuf, exact: usize) -> (LocalModel, Arc<AtomicUsize>) {
    let batches = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&batches);
    let load = move || {
        let inner = Box::new(CpuEngine::load(&path, 2_048)?);
        let batches = Arc::clone(&counter);
        Ok(Box::new(Counted {
            inner,
            exact,
            batches,
        }) as Box<dyn Engine>)
    };
    (
        LocalModel::with_engine("counted", 2_048, load).unwrap(),
        batches,
    )
}

fn said(model: &LocalModel, prompt: &str, temperature: f64) -> Vec<ModelEvent> {
    let mut request = request(vec![Message::user(prompt)], Vec::new());
    request.sampling.max_output_tokens = Some(100);
    request.sampling.temperature = Some(temperature);
    ask(model, request).unwrap()
}

#[test]
fn a_thousand_replies_are_the_same_with_guesses_and_without() {
    let (mut guessing, mut plain) = (0, 0);
    for (family, prompts) in [("llama", 334), ("qwen2", 333), ("qwen3", 333)] {
        let (with, with_batches) = model(file(family), usize::MAX);
        let (without, without_batches) = model(file(family), 1);
        for index in 0..prompts {
            let words = ["hello", "the", "tea", "well", "1234", "doll"];
            let text = (0..4).map(|at| words[(index * (at + 3) + at * at) % words.len()]);
            let prompt = format!("{index} {}", text.collect::<Vec<_>>().join(" "));
            let temperature = if index % 4 == 0 { 0.7 } else { 0.0 };
            let expected = said(&without, &prompt, temperature);
            assert_eq!(
                said(&with, &prompt, temperature),
                expected,
                "{family}: {prompt}"
            );
        }
        guessing += with_batches.load(Ordering::Relaxed);
        plain += without_batches.load(Ordering::Relaxed);
    }
    assert!(
        guessing < plain,
        "{guessing} of {plain} batches: nothing was guessed"
    );
}

#[test]
fn what_the_context_says_already_is_computed_in_fewer_batches() {
    let prompt = "Write 'the quick brown fox jumps over the lazy dog' ten times.";
    let (with, with_batches) = model(weights(), usize::MAX);
    let (without, without_batches) = model(weights(), 1);
    assert_eq!(said(&with, prompt, 0.0), said(&without, prompt, 0.0));
    let [with, without] = [with_batches, without_batches].map(|it| it.load(Ordering::Relaxed));
    assert!(
        with * 4 <= without * 3,
        "{with} batches, {without} without guesses"
    );
}
