//! A source of tools whose names and arguments every provider accepts.

use crate::builder::check_tool;
use rondo_core::Tool;
use rondo_core::ports::{ToolScope, ToolSource};
use std::sync::Arc;

/// A source of tools, without those that a provider would refuse the whole request for.
pub(crate) struct CheckedSource(pub(crate) Arc<dyn ToolSource>);

impl ToolSource for CheckedSource {
    fn tools(&self, scope: &ToolScope) -> Vec<Arc<dyn Tool>> {
        let mut tools = self.0.tools(scope);
        tools.retain(|tool| match check_tool(&tool.spec()) {
            Ok(()) => true,
            Err(problem) => {
                tracing::warn!(session = %scope.session, "a tool of a source is not offered: {problem}");
                false
            }
        });
        tools
    }

    fn generation(&self) -> u64 {
        self.0.generation()
    }
}
