//! Additions to a turn beside its own tools: sources of tools, interceptors and budgets.

use rondo_core::ports::ToolSource;
use rondo_core::{Budgets, Interceptor};
use std::sync::Arc;

/// Additions of a host to turns: to all turns of a [`Runtime`](crate::Runtime), or to one by its
/// [`TurnBuilder`](crate::TurnBuilder). Each is asked in its order; those of the runtime come first.
#[derive(Clone, Default)]
pub struct Extensions {
    /// Offer tools that may change between two steps, such as those of servers. The gate judges their calls and
    /// secrets are redacted from their results, as for all other tools.
    pub tool_sources: Vec<Arc<dyn ToolSource>>,
    /// May deny or change calls, results and steps.
    pub interceptors: Vec<Arc<dyn Interceptor>>,
    /// Are asked before each request to a model.
    pub budgets: Vec<Arc<dyn Budgets>>,
}

impl Extensions {
    /// Appends others.
    #[must_use]
    pub fn with(mut self, more: Self) -> Self {
        self.tool_sources.extend(more.tool_sources);
        self.interceptors.extend(more.interceptors);
        self.budgets.extend(more.budgets);
        self
    }
}
