//! How often keys may be tried: a bound before a key is even looked up, for every address alike.

use crate::keys::KeyHash;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::time::{Duration, Instant};

/// How long failures count.
const WINDOW: Duration = Duration::from_secs(60);
/// Failures of one address within that time.
const FAILURES_MAX: u32 = 30;
/// Addresses that are remembered.
const ADDRESSES_MAX: usize = 1024;
/// Keys that are remembered as valid.
const VALID_MAX: usize = 1024;

/// Counts keys that were not valid.
#[derive(Default)]
pub(super) struct Limiter(Mutex<KeyAttempts>);

#[derive(Default)]
struct KeyAttempts {
    failures: HashMap<IpAddr, Failures>,
    /// Keys that were valid lately: someone who guesses keys from the same address, such as behind the same proxy, does
    /// not shut out who has one.
    valid: HashSet<KeyHash>,
}

struct Failures {
    since: Instant,
    count: u32,
}

impl Limiter {
    /// Returns for how many seconds no key is looked up, where too many failed.
    pub(super) fn refused(&self, ip: IpAddr, key: &KeyHash) -> Option<u32> {
        let tried = self.tried();
        if tried.valid.contains(key) {
            return None;
        }
        let failures = tried.failures.get(&ip)?;
        let left = WINDOW.saturating_sub(failures.since.elapsed());
        let is_over = failures.count >= FAILURES_MAX && !left.is_zero();
        is_over.then(|| u32::try_from(left.as_secs()).unwrap_or(u32::MAX).max(1))
    }

    pub(super) fn succeeded(&self, key: KeyHash) {
        let valid = &mut self.tried().valid;
        if valid.len() >= VALID_MAX {
            valid.clear();
        }
        valid.insert(key);
    }

    pub(super) fn failed(&self, ip: IpAddr, key: &KeyHash) {
        let mut tried = self.tried();
        tried.valid.remove(key);
        let failures = &mut tried.failures;
        if failures.len() >= ADDRESSES_MAX && !failures.contains_key(&ip) {
            failures.retain(|_, it| it.since.elapsed() < WINDOW);
            if failures.len() >= ADDRESSES_MAX {
                failures.clear();
            }
        }
        let now = Instant::now();
        let entry = failures.entry(ip).or_insert(Failures {
            since: now,
            count: 0,
        });
        if entry.since.elapsed() >= WINDOW {
            *entry = Failures {
                since: now,
                count: 0,
            };
        }
        entry.count = entry.count.saturating_add(1);
    }

    fn tried(&self) -> MutexGuard<'_, KeyAttempts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::ApiKey;

    fn key(text: &str) -> KeyHash {
        ApiKey::new(text.to_owned()).hash()
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_guesses_has_to_wait_and_does_not_shut_out_who_has_a_key() {
        let (limiter, ip) = (Limiter::default(), IpAddr::from([127, 0, 0, 1]));
        limiter.succeeded(key("good"));
        for _ in 0..FAILURES_MAX {
            assert_eq!(limiter.refused(ip, &key("bad")), None);
            limiter.failed(ip, &key("bad"));
        }
        assert_eq!(limiter.refused(ip, &key("other")), Some(60));
        assert_eq!(limiter.refused(ip, &key("good")), None);
        let elsewhere = IpAddr::from([192, 0, 2, 1]);
        assert_eq!(limiter.refused(elsewhere, &key("other")), None);
        tokio::time::advance(WINDOW).await;
        assert_eq!(limiter.refused(ip, &key("other")), None);
    }

    #[tokio::test(start_paused = true)]
    async fn many_addresses_take_bounded_memory() {
        let limiter = Limiter::default();
        for number in 0..5000_u32 {
            limiter.failed(IpAddr::from(number.to_be_bytes()), &key("bad"));
        }
        assert!(limiter.tried().failures.len() <= ADDRESSES_MAX);
    }
}
