//! Sources of tools that offer some of their tools only.

use rondo_core::Tool;
use rondo_core::ports::{ToolScope, ToolSource};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Offers only the tools of these names.
pub(super) struct NarrowedTools {
    pub(super) source: Arc<dyn ToolSource>,
    pub(super) names: Arc<BTreeSet<String>>,
}

impl ToolSource for NarrowedTools {
    fn tools(&self, scope: &ToolScope) -> Vec<Arc<dyn Tool>> {
        let mut tools = self.source.tools(scope);
        tools.retain(|it| self.names.contains(&it.spec().name));
        tools
    }

    fn generation(&self) -> u64 {
        self.source.generation()
    }
}
