//! One reply, from its prompt to its last token, over any engine.

use crate::drafts::Drafts;
use crate::engine::Engine;
use crate::error::{LocalError, first_line};
use crate::prompt_cache::{Part, PromptCache, TOKENS_MIN};
use crate::sampler::Sampler;
use llguidance::Matcher;
use std::ops::Range;

/// Tokens computed between two looks at whether the caller still waits. Larger chunks are hardly
/// faster; this many take half a second to a second at 1.5 B parameters on two cores. The kernels
/// take twelve at a time.
pub const PREFILL_CHUNK_TOKENS: usize = 96;

/// Input for one reply.
pub(crate) struct Job<'a> {
    /// The whole prompt.
    pub(crate) prompt: &'a [u32],
    /// How long its beginnings are that other prompts have too, in tokens, the shortest first.
    pub(crate) beginnings: &'a [usize],
    /// Cache of the state of these beginnings.
    pub(crate) cache: Option<&'a PromptCache>,
    /// Grammar of the reply.
    pub(crate) matcher: Matcher,
    /// How tokens are picked.
    pub(crate) sampler: Sampler,
    /// The bound on the reply, in tokens.
    pub(crate) tokens_max: usize,
}

/// The receiver of a reply.
pub(crate) trait Listener {
    /// Returns whether the reply is still wanted.
    fn is_waiting(&self) -> bool;

    /// Takes more of the reply.
    fn take(&mut self, bytes: &[u8]);
}

/// How a reply ended, and what it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GenerationEnd {
    /// Why it ended.
    pub(crate) end: End,
    /// Prompt tokens that were there from before.
    pub(crate) reused: usize,
    /// Tokens of the reply.
    pub(crate) tokens: usize,
}

/// Why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It is whole.
    Whole,
    /// Its bound was reached.
    Length,
    /// The caller waits for it no more.
    Unwanted,
}

/// Generates one reply. The computed state of the prompt's beginning is used again.
///
/// # Errors
/// When computing fails.
pub(crate) fn generate(
    engine: &mut dyn Engine,
    mut job: Job<'_>,
    listener: &mut dyn Listener,
) -> Result<GenerationEnd, LocalError> {
    let reused = reuse(engine, &job);
    let forced = forced(&mut job.matcher)?;
    let Some(logits) = read(engine, &job, &forced, &*listener)? else {
        return Ok(GenerationEnd {
            end: End::Unwanted,
            reused,
            tokens: 0,
        });
    };
    let drafts = if engine.exact_tokens() > 1 {
        Drafts::new(&engine.vocabulary().decode(job.prompt))
    } else {
        Drafts::default()
    };
    let mut reply = Reply {
        committed: engine.sequence().len(),
        drafts,
        draft: 0..0,
        rows: Vec::new(),
        engine,
        listener,
        matcher: job.matcher,
        sampler: job.sampler,
        tokens: 0,
        tokens_max: job.tokens_max,
    };
    let end = reply.run(&forced, logits);
    let committed = reply.committed;
    reply.engine.truncate(committed);
    let end = end?;
    Ok(GenerationEnd {
        end,
        reused,
        tokens: reply.tokens,
    })
}

/// Returns the parts of a prompt that the cache keeps, in order. One that would be too short is part of
/// the next one.
fn parts<'a>(prompt: &'a [u32], beginnings: &[usize]) -> Vec<Part<'a>> {
    let mut parts = Vec::new();
    let mut from = 0;
    for end in beginnings {
        // The output behind the prompt's last token is wanted, so that one is never kept.
        let whole = prompt.get(..*end).filter(|_| *end < prompt.len());
        if let Some(whole) = whole.filter(|_| *end >= from + TOKENS_MIN) {
            parts.push(Part { whole, from });
            from = *end;
        }
    }
    parts
}

/// Returns how much of a prompt need not be computed, having the engine go back to there: what the
/// sequence shares with it, or beginnings from the cache.
fn reuse(engine: &mut dyn Engine, job: &Job<'_>) -> usize {
    let mut common = common_prefix(engine.sequence(), job.prompt);
    if let Some(cache) = job.cache {
        for part in parts(job.prompt, job.beginnings) {
            if part.whole.len() <= common {
                continue;
            }
            if !cache.restore(engine, part) {
                break;
            }
            common = part.whole.len();
        }
    }
    let common = common.min(engine.sequence().len());
    engine.truncate(common);
    common
}

/// Computes the rest of a prompt, and the tokens that the reply begins with in any case; returns what
/// follows, or `None` if the caller left. The beginnings are computed by themselves and kept.
fn read(
    engine: &mut dyn Engine,
    job: &Job<'_>,
    forced: &[u32],
    listener: &dyn Listener,
) -> Result<Option<Vec<f32>>, LocalError> {
    if let Some(cache) = job.cache {
        for part in parts(job.prompt, job.beginnings) {
            let computed = engine.sequence().len();
            let Some(new) = part.whole.get(computed..).filter(|it| !it.is_empty()) else {
                continue;
            };
            if !advance(engine, new, listener)? {
                return Ok(None);
            }
            cache.keep(engine, part);
        }
    }
    let computed = engine.sequence().len();
    let rest = job.prompt.get(computed..).unwrap_or_default();
    prefill(engine, &[rest, forced].concat(), listener)
}

/// Returns how much of a prompt is computed; its last token never is, since what follows it is
/// wanted.
fn common_prefix(sequence: &[u32], prompt: &[u32]) -> usize {
    let common = sequence
        .iter()
        .zip(prompt)
        .take_while(|(computed, wanted)| computed == wanted)
        .count();
    common.min(prompt.len().saturating_sub(1))
}

/// Computes tokens, at least one, and returns what follows the last one; `None` if the caller left.
fn prefill(
    engine: &mut dyn Engine,
    tokens: &[u32],
    listener: &dyn Listener,
) -> Result<Option<Vec<f32>>, LocalError> {
    let chunks = tokens.len().div_ceil(PREFILL_CHUNK_TOKENS);
    let (before, last) = tokens.split_at(chunks.saturating_sub(1) * PREFILL_CHUNK_TOKENS);
    if !advance(engine, before, listener)? || !listener.is_waiting() {
        return Ok(None);
    }
    engine.extend(last).map(Some)
}

/// Computes tokens whose logits are not wanted; false if the caller left.
fn advance(
    engine: &mut dyn Engine,
    tokens: &[u32],
    listener: &dyn Listener,
) -> Result<bool, LocalError> {
    for chunk in tokens.chunks(PREFILL_CHUNK_TOKENS) {
        if !listener.is_waiting() {
            return Ok(false);
        }
        engine.advance(chunk)?;
    }
    Ok(true)
}

struct Reply<'a> {
    engine: &'a mut dyn Engine,
    /// How many tokens of the engine's sequence belong to the reply or stand before it; those behind them are guessed.
    committed: usize,
    drafts: Drafts,
    /// The places of the tokens that were guessed last.
    draft: Range<usize>,
    /// The logits after the token before the guess and after each of its tokens, one row after another.
    rows: Vec<f32>,
    listener: &'a mut dyn Listener,
    matcher: Matcher,
    sampler: Sampler,
    tokens: usize,
    tokens_max: usize,
}

impl Reply<'_> {
    /// Generates what follows the tokens that the reply begins with, which are computed already.
    fn run(&mut self, forced: &[u32], mut logits: Vec<f32>) -> Result<End, LocalError> {
        let mut end = self.take(forced);
        while end.is_none() {
            if !self.listener.is_waiting() {
                return Ok(End::Unwanted);
            }
            let next = self.next(&logits)?;
            if next.is_empty() {
                return Ok(End::Whole);
            }
            end = self.take(&next);
            if end.is_none() {
                logits = self.compute(&next)?;
            }
        }
        Ok(end.unwrap_or(End::Whole))
    }

    /// Computes tokens, unless they were guessed and so computed before, and returns what follows the last one.
    fn compute(&mut self, tokens: &[u32]) -> Result<Vec<f32>, LocalError> {
        let most = self.engine.exact_tokens();
        let end = self.committed + tokens.len();
        let guessed = self.engine.sequence().get(self.committed..end);
        if guessed == Some(tokens) && tokens.len() <= most {
            self.committed = end;
            return Ok(self.row(end - self.draft.start));
        }
        if !self.draft.is_empty() {
            let picked = self.committed - self.draft.start;
            self.drafts.judge(self.draft.len(), picked);
        }
        self.engine.truncate(self.committed);
        let room = self.engine.context_tokens().saturating_sub(end);
        let most = most.saturating_sub(tokens.len()).min(room);
        let guess = self.drafts.guess(self.engine.vocabulary(), most);
        let batch = [tokens, &guess].concat();
        self.draft = end..end + guess.len();
        self.rows = self.engine.extend_all(&batch, tokens.len() - 1)?;
        self.committed = end;
        Ok(self.row(0))
    }

    /// Returns the logits after so many tokens of the guess.
    fn row(&self, tokens: usize) -> Vec<f32> {
        let width = self.rows.len() / (self.draft.len() + 1);
        let row = self.rows.chunks_exact(width.max(1)).nth(tokens);
        row.unwrap_or_default().to_vec()
    }

    /// Passes tokens on, and returns how the reply ends, if it does with these.
    fn take(&mut self, tokens: &[u32]) -> Option<End> {
        self.tokens += tokens.len();
        let bytes = self.engine.vocabulary().decode(tokens);
        self.listener.take(&bytes);
        self.drafts.follow(&bytes);
        if self.matcher.is_stopped() {
            return Some(End::Whole);
        }
        (self.tokens >= self.tokens_max).then_some(End::Length)
    }

    /// Returns the token that the model picks, and those that the grammar forces behind it; none at the
    /// end.
    fn next(&mut self, logits: &[f32]) -> Result<Vec<u32>, LocalError> {
        let allowed = self.matcher.compute_mask_or_eos().map_err(grammar_failed)?;
        let end = self.engine.vocabulary().end();
        let picked = self.sampler.pick(logits, &allowed);
        let Some(picked) = picked.filter(|token| *token != end) else {
            return Ok(Vec::new());
        };
        self.matcher
            .consume_tokens(&[picked])
            .map_err(grammar_failed)?;
        Ok([vec![picked], forced(&mut self.matcher)?].concat())
    }
}

/// Advances the grammar to the next choice, and returns the tokens up to there: they
/// need no logits, so they are computed together with the text before them.
fn forced(matcher: &mut Matcher) -> Result<Vec<u32>, LocalError> {
    let forced = matcher.compute_ff_tokens();
    if !forced.is_empty() {
        matcher.consume_tokens(&forced).map_err(grammar_failed)?;
    }
    Ok(forced)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it is handed to `map_err`, which passes by value"
)]
fn grammar_failed(error: impl ToString) -> LocalError {
    LocalError::Grammar(first_line(&error.to_string()))
}

#[cfg(test)]
mod tests;
