//! Guesses of how a reply goes on, from what the context says already: an answer often quotes a tool's result.
//!
//! A guess is computed in one batch with the token before it, which costs little more than that token, since the
//! weights are read once. Tokens that the model picks otherwise are dropped, so a reply is the same, token for
//! token, with guesses and without. The method is from Saxena, "Prompt Lookup Decoding", 2023.

/// Tokens before a guess that must stand earlier in the context, at least, and the most that are compared.
const MATCH_MIN: usize = 3;
const MATCH_MAX: usize = 16;
/// Tokens guessed after a short match. A batch of these costs hardly more than one token.
const SHORT: usize = 3;
/// The length of a match that is no longer short.
const LONG_MATCH: usize = 6;
/// Tokens without a guess after one that failed, and the most; each further failure doubles them.
const PAUSE: usize = 4;
const PAUSE_MAX: usize = 64;

/// When to guess.
#[derive(Debug, Default)]
pub(crate) struct Drafts {
    /// Tokens before the next guess.
    pause: usize,
    /// The pause after the next failure.
    next_pause: usize,
}

impl Drafts {
    /// Notes how many tokens of a guess the model picked.
    pub(crate) fn judge(&mut self, guessed: usize, picked: usize) {
        // A guess pays when a third of it is right.
        if picked * 3 >= guessed {
            *self = Self::default();
            return;
        }
        self.pause = self.next_pause.max(PAUSE);
        self.next_pause = (self.pause * 2).min(PAUSE_MAX);
    }

    /// Guesses at most `max` tokens that follow `context`, whose last `new` tokens were just picked.
    pub(crate) fn guess<'a>(&mut self, context: &'a [u32], new: usize, max: usize) -> &'a [u32] {
        if self.pause > 0 {
            self.pause = self.pause.saturating_sub(new);
            return &[];
        }
        let Some((end, length)) = earlier(context) else {
            return &[];
        };
        let most = if length < LONG_MATCH { SHORT } else { max };
        let rest = context.get(end..).unwrap_or_default();
        rest.get(..most.min(max)).unwrap_or(rest)
    }
}

/// Returns the end of the earlier place that agrees with the end of `context` over the most tokens, the latest of
/// equal ones, and how many tokens agree.
fn earlier(context: &[u32]) -> Option<(usize, usize)> {
    let last = context.last()?;
    let mut best: Option<(usize, usize)> = None;
    for (place, token) in context.iter().enumerate().rev().skip(1) {
        if token != last {
            continue;
        }
        let before = context.iter().take(place + 1).rev();
        let length = before.zip(context.iter().rev()).take(MATCH_MAX);
        let length = length.take_while(|(one, other)| one == other).count();
        if length >= MATCH_MIN && best.is_none_or(|(_, most)| length > most) {
            best = Some((place + 1, length));
            if length == MATCH_MAX {
                break;
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_followed_the_same_tokens_is_guessed() {
        let context = [1, 2, 3, 4, 5, 6, 9, 9, 1, 2, 3];
        assert_eq!(Drafts::default().guess(&context, 1, 7), [4, 5, 6]);
        assert_eq!(Drafts::default().guess(&context, 1, 2), [4, 5]);
    }

    #[test]
    fn two_tokens_are_no_reason_to_guess() {
        let context = [1, 2, 3, 4, 9, 2, 3];
        assert_eq!(Drafts::default().guess(&context, 1, 7), [] as [u32; 0]);
        assert_eq!(Drafts::default().guess(&[], 1, 7), [] as [u32; 0]);
    }

    #[test]
    fn the_longest_match_counts_and_then_the_latest() {
        let longest = [7, 1, 2, 3, 4, 0, 8, 1, 2, 3, 5, 0, 7, 1, 2, 3];
        assert_eq!(Drafts::default().guess(&longest, 1, 1), [4]);
        let latest = [1, 2, 3, 4, 0, 1, 2, 3, 5, 0, 1, 2, 3];
        assert_eq!(Drafts::default().guess(&latest, 1, 1), [5]);
    }

    #[test]
    fn after_failures_guesses_become_rare_until_one_is_right() {
        let context = [1, 2, 3, 4, 5, 6, 9, 9, 1, 2, 3];
        let mut drafts = Drafts::default();
        let waits = |drafts: &mut Drafts| {
            drafts.judge(3, 0);
            (0..1_000).find(|_| !drafts.guess(&context, 1, 3).is_empty())
        };
        let waited: Vec<_> = (0..6).map(|_| waits(&mut drafts)).collect();
        assert_eq!(waited, [4, 8, 16, 32, 64, 64].map(Some));
        drafts.judge(3, 1);
        assert_eq!(drafts.guess(&context, 1, 3), [4, 5, 6]);
    }
}
