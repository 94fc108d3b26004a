//! Measures the engine on one GGUF file and prints one JSON object:
//! `speed FILE [PROMPT] [REPLY] [INSTRUCTIONS]`, the last as [`Instructions`] are shown.
//!
//! Times are in milliseconds. `cargo xtask bench --local` runs this and puts the figures side by
//! side; by itself it is for work on the engine.
#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use rondo_local::{
    CONTEXT_TOKENS_MAX, CpuEngine, Engine, Instructions, LocalError, PREFILL_CHUNK_TOKENS,
};
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};

/// Tokens of the prompt and of the reply, unless the caller says otherwise.
const PROMPT: usize = 512;
const REPLY: usize = 64;
/// Tokens that a second step adds, as a call and its short result do.
const NEW: usize = 48;
/// Tokens that are passed over, since the first ones of a vocabulary are single bytes.
const FIRST: u32 = 1_000;
/// A stride that meets most of a vocabulary.
const STRIDE: u32 = 7_919;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("a GGUF file is wanted")?;
    let mut count = |usual| args.next().map_or(Ok(usual), |text| text.parse());
    let (prompt, reply) = (count(PROMPT)?, count(REPLY)?);
    let fastest = Instructions::available().next().ok_or("no instructions")?;
    let instructions = args.next().map_or(Ok(fastest), |name| name.parse())?;

    let started = Instant::now();
    let mut engine = CpuEngine::load_with(instructions, Path::new(&path), CONTEXT_TOKENS_MAX)?;
    let load = started.elapsed();
    let words = words(&engine, prompt + NEW);
    let (first, next) = words.split_at(prompt);

    let first_prefill = timed(|| prefill(&mut engine, first))?;
    let generation = timed(|| generate(&mut engine, reply))?;
    engine.truncate(prompt);
    let second = timed(|| prefill(&mut engine, next))?;
    let figures = json!({
        "instructions": instructions.to_string(),
        "load_ms": ms(load),
        "prompt_tokens": prompt,
        "prompt_ms": ms(first_prefill),
        "reply_tokens": reply,
        "reply_ms": ms(generation),
        "second_tokens": NEW,
        "second_ms": ms(second),
    });
    println!("{figures}");
    Ok(())
}

/// Returns tokens that mean nothing: computing takes as long whatever they say.
fn words(engine: &CpuEngine, count: usize) -> Vec<u32> {
    let known = u32::try_from(engine.vocabulary().len()).unwrap_or(u32::MAX);
    let known = known.saturating_sub(FIRST).max(1);
    let step = |index: usize| u32::try_from(index).unwrap_or(0).wrapping_mul(STRIDE);
    (0..count)
        .map(|index| FIRST + step(index) % known)
        .collect()
}

fn prefill(engine: &mut CpuEngine, tokens: &[u32]) -> Result<(), LocalError> {
    for chunk in tokens.chunks(PREFILL_CHUNK_TOKENS) {
        engine.extend(chunk)?;
    }
    Ok(())
}

fn generate(engine: &mut CpuEngine, count: usize) -> Result<(), LocalError> {
    for token in words(engine, count) {
        engine.extend(&[token])?;
    }
    Ok(())
}

fn timed(work: impl FnOnce() -> Result<(), LocalError>) -> Result<Duration, LocalError> {
    let started = Instant::now();
    work()?;
    Ok(started.elapsed())
}

fn ms(time: Duration) -> u128 {
    time.as_millis()
}
