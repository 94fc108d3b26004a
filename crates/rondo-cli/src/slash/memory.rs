//! Switch for including the conversation in questions.

use async_trait::async_trait;
use rondo_runtime::TurnBuilder;
use rondo_runtime::service::{AskedTurn, SessionHost};
use rondo_runtime::spec::TurnSpec;
use std::sync::{Arc, Mutex, PoisonError};

/// The choice of `/memory`; without one, the profile decides. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemoryChoice(Arc<Mutex<Option<bool>>>);

impl MemoryChoice {
    /// Chooses for the turns from now on.
    pub(super) fn choose(&self, is_on: bool) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(is_on);
    }

    /// Applies the choice to a turn. Its profile says what is left out, so that the session can still be replayed.
    pub(crate) fn apply(&self, spec: &mut TurnSpec) {
        let chosen = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(is_on) = chosen.filter(|&is_on| is_on != remembers(spec)) {
            let policy = &mut Arc::make_mut(&mut spec.profile).compaction;
            policy.max_messages = (!is_on).then_some(0);
        }
    }
}

/// Returns whether a turn of that spec knows what was said before.
pub(super) fn remembers(spec: &TurnSpec) -> bool {
    spec.profile.compaction.max_messages != Some(0)
}

#[async_trait]
impl SessionHost for MemoryChoice {
    async fn turn(
        &self,
        turn: &AskedTurn<'_>,
        builder: &mut TurnBuilder,
    ) -> rondo_runtime::error::Result<()> {
        // A turn that continues keeps the choice that it was begun with, and a summary reads the whole conversation.
        if turn.begins.is_some() && !builder.spec.profile.compaction.only {
            self.apply(&mut builder.spec);
        }
        Ok(())
    }
}
