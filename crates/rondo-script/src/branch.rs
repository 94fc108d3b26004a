//! The branches of a script: functions that run at once, each of which counts its own calls.
//!
//! Whatever a branch does is polled within its future, so the branch of a call is found in the task, not in Lua, whose
//! coroutines say nothing of it.

use rondo_types::TimeMs;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

tokio::task_local! {
    static BRANCH: Arc<Branch>;
}

/// A branch.
#[derive(Debug)]
pub(crate) struct Branch {
    /// Its name; empty for the script itself.
    pub(crate) name: String,
    /// Until when it may run, if it is the call of a tool.
    pub(crate) until: Option<TimeMs>,
    /// Calls so far.
    places: AtomicU32,
    /// The state of its random numbers.
    random: AtomicU64,
}

/// Steps of the generator of random numbers, SplitMix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Prefix of the names of branches that are calls of a tool.
const TOOL: &str = "tool ";

/// Returns whether a branch with this name belongs to the call of a tool, whose failures the model reads.
pub(crate) fn is_of_tool(name: &str) -> bool {
    name.starts_with(TOOL)
}

/// Returns the branches that a branch is in, the nearest first, each with the place of the call that began the branch
/// there.
pub(crate) fn above(name: &str) -> impl Iterator<Item = (&str, u32)> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let (begun, _number) = rest.rsplit_once('.')?;
        let (above, place) = begun.rsplit_once('.').unwrap_or(("", begun));
        rest = above;
        Some((above, place.parse().ok()?))
    })
}

impl Branch {
    /// The script itself.
    pub(crate) fn root(seed: u64) -> Arc<Self> {
        Self::named(String::new(), seed, None)
    }

    /// A branch with its own name.
    fn named(name: String, seed: u64, until: Option<TimeMs>) -> Arc<Self> {
        let digest = Sha256::digest(format!("{seed}/{name}"));
        let start = digest
            .first_chunk::<8>()
            .map_or(seed, |it| u64::from_le_bytes(*it));
        Arc::new(Self {
            name,
            until,
            places: AtomicU32::new(0),
            random: AtomicU64::new(start),
        })
    }

    /// The call of a tool, named by its key.
    pub(crate) fn of_tool(key: &str, seed: u64, until: Option<TimeMs>) -> Arc<Self> {
        Self::named(format!("{TOOL}{key}"), seed, until)
    }

    /// One of several branches that a call at a place begins.
    pub(crate) fn below(&self, place: u32, number: usize, seed: u64) -> Arc<Self> {
        let dot = if self.name.is_empty() { "" } else { "." };
        let name = format!("{}{dot}{place}.{number}", self.name);
        Self::named(name, seed, self.until)
    }

    /// Runs a future in the branch.
    pub(crate) async fn run<F: Future>(self: Arc<Self>, future: F) -> F::Output {
        BRANCH.scope(self, future).await
    }

    /// Returns the branch that is being polled; none outside of scripts.
    pub(crate) fn current() -> Option<Arc<Self>> {
        BRANCH.try_with(Arc::clone).ok()
    }

    /// Counts a call, and returns its place, from 1.
    pub(crate) fn next_place(&self) -> u32 {
        self.places
            .fetch_add(1, Ordering::Relaxed)
            .saturating_add(1)
    }

    /// Returns the next random number.
    pub(crate) fn random(&self) -> u64 {
        let state = self
            .random
            .fetch_add(GOLDEN, Ordering::Relaxed)
            .wrapping_add(GOLDEN);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_branches_that_a_branch_is_in_are_read_from_its_name() {
        let root = Branch::root(1);
        let outer = root.below(3, 2, 1);
        let inner = outer.below(40, 5, 1);
        let of = |branch: &Branch| -> Vec<(String, u32)> {
            let found = above(&branch.name);
            found
                .map(|(name, place)| (name.to_owned(), place))
                .collect()
        };
        assert_eq!(of(&root), []);
        assert_eq!(of(&outer), [(String::new(), 3)]);
        assert_eq!(of(&inner), [("3.2".to_owned(), 40), (String::new(), 3)]);
        assert!(is_of_tool(
            &Branch::of_tool("s-1.2", 1, None).below(1, 1, 1).name
        ));
    }
}
