//! The port to tools that come and go while a turn runs.

use super::tool::Tool;
use rondo_types::{SessionId, TurnId};
use std::sync::Arc;

/// Offers tools that may change while a turn runs, such as those of a server.
///
/// A turn offers them beside its own, in the order of its sources. It looks for changes between two steps and never
/// within one, and records the tools that it offers from then on. A tool whose name is taken already, by the turn's
/// own tools or by a source before, is left out. A source that panics offers nothing.
pub trait ToolSource: Send + Sync {
    /// Returns the tools on offer now. Must not block: what it takes long to find out is found out beforehand.
    fn tools(&self, scope: &ToolScope) -> Vec<Arc<dyn Tool>>;

    /// Returns a number that is another one whenever [`tools`](Self::tools) would return others. Asked before each
    /// step; must be quick.
    fn generation(&self) -> u64;
}

/// Whom tools are offered to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolScope {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// The step whose request will offer them, from 1.
    pub step: u32,
}
