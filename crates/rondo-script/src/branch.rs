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
    /// Until when it may run, where it is the call of a tool.
    pub(crate) until: Option<TimeMs>,
    /// Calls so far.
    places: AtomicU32,
    /// The state of its random numbers.
    random: AtomicU64,
}

/// Steps of the generator of random numbers, SplitMix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Branch {
    /// The script itself.
    pub(crate) fn root(seed: u64) -> Arc<Self> {
        Self::named(String::new(), seed, None)
    }

    /// A branch with its own name.
    pub(crate) fn named(name: String, seed: u64, until: Option<TimeMs>) -> Arc<Self> {
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
