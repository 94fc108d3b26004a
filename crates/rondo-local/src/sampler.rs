//! Picks the next token among those the grammar allows.

use llguidance::toktrie::SimpleVob;

/// How tokens are picked.
#[derive(Debug)]
pub(crate) struct Sampler {
    temperature: f32,
    state: u64,
}

impl Sampler {
    /// Builds a sampler. At temperature 0 the likeliest token is taken; above, the same seed takes
    /// the same tokens.
    pub(crate) fn new(temperature: f32, seed: u64) -> Self {
        Self {
            temperature,
            state: seed,
        }
    }

    /// Picks a token; `None` when none is allowed.
    pub(crate) fn pick(&mut self, logits: &[f32], allowed: &SimpleVob) -> Option<u32> {
        let mut candidates = Vec::new();
        allowed.iter_set_entries(|index| {
            if let (Ok(token), Some(logit)) = (u32::try_from(index), logits.get(index)) {
                candidates.push((token, *logit));
            }
        });
        let likeliest = candidates
            .iter()
            .copied()
            // The first of equals, so that the choice does not depend on the order of a scan.
            .reduce(|best, one| if one.1 > best.1 { one } else { best })?;
        if self.temperature <= 0.0 {
            return Some(likeliest.0);
        }
        Some(self.draw(&candidates, likeliest))
    }

    fn draw(&mut self, candidates: &[(u32, f32)], likeliest: (u32, f32)) -> u32 {
        let weight = |logit: f32| f64::from((logit - likeliest.1) / self.temperature).exp();
        let total: f64 = candidates.iter().map(|(_, logit)| weight(*logit)).sum();
        let mut rest = next_fraction(&mut self.state) * total;
        for (token, logit) in candidates {
            rest -= weight(*logit);
            if rest <= 0.0 {
                return *token;
            }
        }
        likeliest.0
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): one state word, no dependency.
fn next_fraction(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^= word >> 31;
    let upper = u32::try_from(word >> 32).unwrap_or_default();
    f64::from(upper) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(tokens: &[u32]) -> SimpleVob {
        let mut set = SimpleVob::alloc(8);
        for token in tokens {
            set.allow_token(*token);
        }
        set
    }

    #[test]
    fn only_allowed_tokens_are_picked_and_the_first_of_equals() {
        let logits = [9.0, 1.0, 3.0, 3.0, 2.0];
        let mut sampler = Sampler::new(0.0, 1);
        assert_eq!(sampler.pick(&logits, &allowed(&[1, 2, 3])), Some(2));
        assert_eq!(sampler.pick(&logits, &allowed(&[])), None);
        assert_eq!(sampler.pick(&logits, &allowed(&[7])), None);
    }

    #[test]
    fn a_seed_draws_the_same_and_likelier_tokens_more_often() {
        let logits = [0.0, 2.0, -30.0];
        let draw = || {
            let mut sampler = Sampler::new(1.0, 7);
            (0..1000)
                .filter_map(|_| sampler.pick(&logits, &allowed(&[0, 1, 2])))
                .collect::<Vec<_>>()
        };
        let drawn = draw();
        assert_eq!(drawn, draw());
        let ones = drawn.iter().filter(|token| **token == 1).count();
        // e^2 to 1 is 88 in 100.
        assert!((830..930).contains(&ones), "{ones}");
        assert!(!drawn.contains(&2));
    }
}
