//! One reply, from its prompt to its last token, over any engine.

use crate::engine::Engine;
use crate::error::{LocalError, first_line};
use crate::prompt_cache::PromptCache;
use crate::sampler::Sampler;
use llguidance::Matcher;

/// Tokens computed between two looks at whether the caller still waits. Larger chunks are hardly
/// faster; this many take half a second to a second at 1.5 B parameters on two cores. The kernels
/// take twelve at a time.
pub const PREFILL_CHUNK_TOKENS: usize = 96;

/// What one reply is generated from.
pub(crate) struct Job<'a> {
    /// The whole prompt.
    pub(crate) prompt: &'a [u32],
    /// How many of its tokens are a beginning that other prompts have too.
    pub(crate) fixed: usize,
    /// Where the state of that beginning is kept.
    pub(crate) cache: Option<&'a PromptCache>,
    /// What may be said.
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
pub(crate) struct Generated {
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

/// Generates one reply. What the engine has computed of the prompt's beginning is used again.
///
/// # Errors
/// When computing fails.
pub(crate) fn generate(
    engine: &mut dyn Engine,
    job: Job<'_>,
    listener: &mut dyn Listener,
) -> Result<Generated, LocalError> {
    let reused = reuse(engine, &job);
    let Some(logits) = read(engine, &job, reused, &*listener)? else {
        return Ok(Generated {
            end: End::Unwanted,
            reused,
            tokens: 0,
        });
    };
    let mut reply = Reply {
        engine,
        listener,
        matcher: job.matcher,
        sampler: job.sampler,
        tokens: 0,
        tokens_max: job.tokens_max,
    };
    let end = reply.run(logits)?;
    Ok(Generated {
        end,
        reused,
        tokens: reply.tokens,
    })
}

/// Returns how much of a prompt need not be computed, having the engine go back to there: what the
/// sequence shares with it, or its fixed beginning from the cache.
fn reuse(engine: &mut dyn Engine, job: &Job<'_>) -> usize {
    let common = common_prefix(engine.sequence(), job.prompt);
    let fixed = job.prompt.get(..job.fixed).unwrap_or_default();
    if common < fixed.len()
        && let Some(cache) = job.cache
        && cache.restore(engine, fixed)
    {
        return fixed.len();
    }
    let common = common.min(engine.sequence().len());
    engine.truncate(common);
    common
}

/// Computes the rest of a prompt and returns what follows it. The fixed beginning is computed by itself
/// and kept; `None` if the caller left.
fn read(
    engine: &mut dyn Engine,
    job: &Job<'_>,
    from: usize,
    listener: &dyn Listener,
) -> Result<Option<Vec<f32>>, LocalError> {
    let mut rest = job.prompt.get(from..).unwrap_or_default();
    if let Some(cache) = job.cache
        && let Some(new) = job.fixed.checked_sub(from).filter(|new| *new > 0)
        && let Some((fixed, after)) = rest.split_at_checked(new)
        && !after.is_empty()
    {
        if prefill(engine, fixed, listener)?.is_none() {
            return Ok(None);
        }
        cache.keep(engine, job.prompt.get(..job.fixed).unwrap_or_default());
        rest = after;
    }
    prefill(engine, rest, listener)
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

fn prefill(
    engine: &mut dyn Engine,
    tokens: &[u32],
    listener: &dyn Listener,
) -> Result<Option<Vec<f32>>, LocalError> {
    let mut logits = None;
    for chunk in tokens.chunks(PREFILL_CHUNK_TOKENS) {
        if !listener.is_waiting() {
            return Ok(None);
        }
        logits = Some(engine.extend(chunk)?);
    }
    Ok(logits)
}

struct Reply<'a> {
    engine: &'a mut dyn Engine,
    listener: &'a mut dyn Listener,
    matcher: Matcher,
    sampler: Sampler,
    tokens: usize,
    tokens_max: usize,
}

impl Reply<'_> {
    fn run(&mut self, mut logits: Vec<f32>) -> Result<End, LocalError> {
        loop {
            if !self.listener.is_waiting() {
                return Ok(End::Unwanted);
            }
            let next = self.next(&logits)?;
            if next.is_empty() {
                return Ok(End::Whole);
            }
            self.matcher.consume_tokens(&next).map_err(grammar_failed)?;
            self.tokens += next.len();
            let bytes = self.engine.vocabulary().decode(&next);
            self.listener.take(&bytes);
            if self.matcher.is_stopped() {
                return Ok(End::Whole);
            }
            if self.tokens >= self.tokens_max {
                return Ok(End::Length);
            }
            logits = self.engine.extend(&next)?;
        }
    }

    /// Returns the tokens the grammar forces, or else the one the model picks; none at the end.
    fn next(&mut self, logits: &[f32]) -> Result<Vec<u32>, LocalError> {
        let forced = self.matcher.compute_ff_tokens();
        if !forced.is_empty() {
            return Ok(forced);
        }
        let allowed = self.matcher.compute_mask_or_eos().map_err(grammar_failed)?;
        let end = self.engine.vocabulary().end();
        let picked = self.sampler.pick(logits, &allowed);
        Ok(picked.filter(|token| *token != end).into_iter().collect())
    }
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
