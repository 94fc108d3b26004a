//! The tools of a loop, by name.

use super::{FaeLlmError, ToolDefinition};
use crate::bounded::BoundedTool;
use rondo_core::{Tool, Toolbox};
use rondo_types::Effects;
use std::fmt;
use std::sync::Arc;

/// The tools of a loop, in the order they were registered.
#[derive(Clone, Default)]
pub struct ToolRegistry {
    tools: Vec<Arc<dyn Tool>>,
}

impl ToolRegistry {
    /// Builds an empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool; one of the same name is replaced, in its place.
    pub fn register(&mut self, tool: Arc<dyn Tool>) {
        let name = tool.spec().name;
        let known = self
            .tools
            .iter_mut()
            .find(|known| known.spec().name == name);
        match known {
            Some(known) => *known = tool,
            None => self.tools.push(tool),
        }
    }

    /// Returns the registry with one more tool.
    #[must_use]
    pub fn with(mut self, tool: impl Tool + 'static) -> Self {
        self.register(Arc::new(tool));
        self
    }

    /// Returns the registry with only those tools that change nothing.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.tools
            .retain(|tool| tool.spec().effects == Effects::ReadOnly);
        self
    }

    /// Returns the tool of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let mut tools = self.tools.iter();
        tools.find(|tool| tool.spec().name == name).cloned()
    }

    /// Returns the specifications of the tools that the model reads.
    #[must_use]
    pub fn definitions(&self) -> Vec<ToolDefinition> {
        self.tools.iter().map(|tool| tool.spec()).collect()
    }

    /// Returns the tools for one run, in which each call ends at its limit. Tools that do not declare whether their
    /// calls may run beside others may with `shares_undeclared`.
    pub(crate) fn toolbox(&self, shares_undeclared: bool) -> Result<Toolbox, FaeLlmError> {
        let tools = self.tools.iter().cloned().map(|tool| {
            let bounded = BoundedTool {
                tool,
                shares_undeclared,
            };
            Arc::new(bounded) as Arc<dyn Tool>
        });
        Toolbox::new(tools).map_err(|error| FaeLlmError::ConfigError(error.to_string()))
    }
}

impl fmt::Debug for ToolRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.tools.iter().map(|tool| tool.spec().name);
        f.debug_list().entries(names).finish()
    }
}
