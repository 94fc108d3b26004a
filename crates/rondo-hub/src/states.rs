//! Which channels of a hub receive, and why others do not.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The states of a hub's channels, by name.
#[derive(Debug, Default)]
pub struct ChannelStates {
    states: Mutex<BTreeMap<String, ChannelState>>,
    changed: Notify,
}

/// The state of one channel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChannelState {
    /// Why it receives nothing; none while it receives, and before it was tried.
    pub failure: Option<String>,
    /// Set if retrying is useless before something is changed.
    pub is_final: bool,
}

impl ChannelStates {
    pub(crate) fn new<'a>(names: impl Iterator<Item = &'a String>) -> Self {
        let states = names.map(|name| (name.clone(), ChannelState::default()));
        Self {
            states: Mutex::new(states.collect()),
            changed: Notify::new(),
        }
    }

    fn states(&self) -> MutexGuard<'_, BTreeMap<String, ChannelState>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the channels with their states.
    #[must_use]
    pub fn all(&self) -> BTreeMap<String, ChannelState> {
        self.states().clone()
    }

    /// Records that a channel receives.
    pub(crate) fn receives(&self, name: &str) {
        let before = self
            .states()
            .insert(name.to_owned(), ChannelState::default());
        if before.is_some_and(|it| it.failure.is_some()) {
            tracing::warn!(channel = name, "the channel receives again");
        }
    }

    /// Notes why a channel receives nothing. The log has each reason once.
    pub(crate) fn fails(&self, name: &str, reason: &str, is_final: bool) {
        let state = ChannelState {
            failure: Some(reason.to_owned()),
            is_final,
        };
        let before = self.states().insert(name.to_owned(), state.clone());
        if before.as_ref() != Some(&state) {
            tracing::error!(channel = name, "the channel receives nothing: {reason}");
        }
        self.changed.notify_one();
    }

    /// Waits until no channel can receive before something is changed, and returns why.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn none_is_left(&self) -> String {
        loop {
            let changed = self.changed.notified();
            let states = self.all();
            if !states.is_empty() && states.values().all(|it| it.is_final) {
                let reasons = states.into_iter().map(|(name, state)| {
                    let reason = state.failure.unwrap_or_default();
                    format!("`{name}`: {reason}")
                });
                return reasons.collect::<Vec<_>>().join("; ");
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[test]
    fn a_hub_is_over_once_each_of_its_channels_is() {
        let names = ["a".to_owned(), "b".to_owned()];
        let states = ChannelStates::new(names.iter());
        states.fails("a", "no token", true);
        states.fails("b", "no network", false);
        assert!(states.none_is_left().now_or_never().is_none());
        states.fails("b", "the port is taken", true);
        let why = states.none_is_left().now_or_never().unwrap();
        assert_eq!(why, "`a`: no token; `b`: the port is taken");
        states.receives("a");
        assert!(states.none_is_left().now_or_never().is_none());
        assert_eq!(states.all()["a"], ChannelState::default());
    }
}
