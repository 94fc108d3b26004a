//! Token counts.

use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// Token counts of one reply, or of a whole turn.
///
/// `input` is all prompt tokens, cached ones included; `output` is all generated tokens, reasoning
/// included. Dialects convert the counts of their providers to this form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
pub struct Usage {
    /// Prompt tokens, cached ones included.
    pub input: u64,
    /// Generated tokens, reasoning included.
    pub output: u64,
    /// Generated tokens that were reasoning.
    pub reasoning: u64,
    /// Prompt tokens that the provider read from its cache.
    pub cache_read: u64,
    /// Prompt tokens that the provider wrote to its cache.
    pub cache_write: u64,
}

impl Usage {
    /// Returns the sum of prompt and generated tokens.
    #[must_use]
    pub fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
    }
}

/// An amount of money in billionths of a US dollar. Serializes exactly, and is fine enough for the
/// price of the cheapest token.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct NanoUsd(pub u64);

impl NanoUsd {
    /// Converts from dollars; negative and non-finite amounts become zero.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the value is clamped to what fits before the cast"
    )]
    pub fn from_usd(usd: f64) -> Self {
        let nanos = (usd * 1e9).round();
        if nanos.is_finite() {
            Self(nanos.clamp(0.0, 1e19) as u64)
        } else {
            Self(0)
        }
    }

    /// Converts to dollars, for display and for events.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "display only; exact below nine million dollars"
    )]
    pub fn usd(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl AddAssign for NanoUsd {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

/// The price of a model, in [`NanoUsd`] per token (US dollars per million tokens, times 1,000).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
pub struct Price {
    /// For a prompt token that was not cached.
    pub input: u64,
    /// For a generated token.
    pub output: u64,
    /// For a prompt token read from the provider's cache.
    pub cache_read: u64,
    /// For a prompt token written to the provider's cache.
    pub cache_write: u64,
}

impl Price {
    /// Returns the cost of `usage`, saturating.
    #[must_use]
    pub fn cost(self, usage: Usage) -> NanoUsd {
        let fresh = usage
            .input
            .saturating_sub(usage.cache_read)
            .saturating_sub(usage.cache_write);
        let parts = [
            fresh.saturating_mul(self.input),
            usage.output.saturating_mul(self.output),
            usage.cache_read.saturating_mul(self.cache_read),
            usage.cache_write.saturating_mul(self.cache_write),
        ];
        NanoUsd(parts.into_iter().fold(0, u64::saturating_add))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_are_charged_once() {
        let price = Price {
            input: 1000,
            output: 4000,
            cache_read: 100,
            cache_write: 1250,
        };
        let usage = Usage {
            input: 100,
            output: 10,
            cache_read: 60,
            cache_write: 20,
            reasoning: 5,
        };
        assert_eq!(
            price.cost(usage),
            NanoUsd(20 * 1000 + 10 * 4000 + 60 * 100 + 20 * 1250)
        );
    }

    #[test]
    fn dollars_survive_the_way_through_nanos() {
        assert_eq!(NanoUsd::from_usd(0.05).usd(), 0.05);
        assert_eq!(NanoUsd::from_usd(-1.0), NanoUsd(0));
        assert_eq!(NanoUsd::from_usd(f64::NAN), NanoUsd(0));
    }
}
