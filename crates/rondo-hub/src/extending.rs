//! The owner's additions to the turns of all chats.

use crate::hub::Core;
use crate::users::{Actor, Role};
use rondo_runtime::Extensions;
use rondo_runtime::error::{Result, SetupError, SetupErrorKind};
use std::sync::Arc;

/// Additions by the owner of the machine to the turns of all chats: handlers that may deny and change what turns do,
/// and tools.
pub trait TurnExtensions: Send + Sync + 'static {
    /// Makes what is added to a turn that is about to begin or to continue. It may block, for seconds.
    ///
    /// # Errors
    /// When it cannot be made: the turn does not begin without it, and is tried again later.
    fn of_turn(&self) -> Result<Extensions>;
}

impl Core {
    /// Returns the owner's additions to a turn that this person began: for guests, no tools.
    pub(crate) async fn own_extensions(&self, actor: &Actor) -> Result<Extensions> {
        let Some(own) = self.own_extensions.get().cloned() else {
            return Ok(Extensions::default());
        };
        let made = tokio::task::spawn_blocking(move || own.of_turn()).await;
        let lost = |err| SetupError::caused(SetupErrorKind::Other, err);
        let mut extensions = made.map_err(lost)??;
        if actor.role == Role::Guest {
            extensions.tool_sources.clear();
        }
        Ok(extensions)
    }
}

/// The additions, once they are known.
pub(crate) type OwnExtensions = std::sync::OnceLock<Arc<dyn TurnExtensions>>;
