//! Events that cannot be processed while others can: each is set aside after a few tries, so that it does not hold up
//! the events behind it for good.

use crate::channel::Inbound;
use crate::hub::Core;
use crate::inbox::{InboxError, Receiver as _};
use crate::outgoing;
use crate::receive::event_key;
use rondo_core::ports::{HostCommit, MailboxError};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// How often such an event is tried.
const TRIES_MAX: u32 = 5;
/// Events whose tries are counted.
const COUNTED_MAX: usize = 1_000;

/// How often each event failed alone.
#[derive(Default)]
pub(crate) struct Failing(Mutex<HashMap<String, u32>>);

impl Failing {
    /// Counts a failure. Returns whether it was the last try.
    fn failed(&self, key: &str) -> bool {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() >= COUNTED_MAX && !failures.contains_key(key) {
            failures.clear();
        }
        let count = failures.entry(key.to_owned()).or_default();
        *count += 1;
        let is_last = *count >= TRIES_MAX;
        if is_last {
            failures.remove(key);
        }
        is_last
    }
}

impl Core {
    /// Decides about an event that could not be processed while others can. Its sender is told once it is set aside.
    pub(crate) async fn not_taken_alone(
        &self,
        event: &Inbound,
        error: &MailboxError,
    ) -> InboxError {
        let (key, reason) = (event_key(event), cause(error));
        if !self.failing.failed(&key) {
            return InboxError::Later { reason };
        }
        tracing::error!(event = key, %reason, "an event is set aside, since it cannot be processed");
        self.metrics.set_aside();
        let text = format!("Your message could not be processed and was set aside: {reason}.");
        let mut commit = HostCommit {
            event: Some(key.clone()),
            ..HostCommit::default()
        };
        if self.admits(event).await {
            let notice = outgoing::notice(format!("set_aside:{key}"), &event.chat, text.clone());
            commit.outbox.push(notice);
        }
        if let Err(error) = self.store.commit(commit).await {
            tracing::warn!(%error, "it is not noted that an event is set aside");
            self.tell_unnoted(&event.chat, text);
        }
        InboxError::Malformed { reason }
    }
}

/// Returns the cause, with the system's message.
fn cause(error: &MailboxError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_tried_a_few_times_and_counted_by_itself() {
        let failing = Failing::default();
        for _ in 1..TRIES_MAX {
            assert!(!failing.failed("a"));
        }
        assert!(!failing.failed("b"));
        assert!(failing.failed("a"));
        assert!(!failing.failed("a"), "it is counted anew");
        for number in 0..2 * COUNTED_MAX {
            failing.failed(&number.to_string());
        }
        assert!(failing.0.lock().unwrap().len() <= COUNTED_MAX);
    }
}
