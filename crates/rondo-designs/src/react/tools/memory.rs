//! Memory: the tool `search_memory`.

use super::super::tool::Tool;
use crate::run::{invocation, text_of};
use anyhow::bail;
use async_trait::async_trait;
use rondo_core::Tool as _;
use rondo_memory::{Memories, SearchMemory};
use rondo_types::{ToolOutcome, ToolSpec};
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Searches what was remembered in earlier sessions, in the same files and with the same index as everywhere else.
///
/// The model reads text: each memory in an element of its own, with where it came from.
///
/// ```
/// use rondo::design::react::Tool;
/// use rondo::design::react::tools::memory::MemoryTool;
/// use rondo::memory::{Memories, Options};
/// use serde_json::json;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let home = tempfile::tempdir()?;
/// std::fs::create_dir(home.path().join("memory"))?;
/// std::fs::write(home.path().join("memory/MEMORY.md"), "- The cat is called Mia.\n")?;
/// let memories = Memories::new(Options { data: Some(home.path().into()), ..Options::default() });
/// let tool = MemoryTool::new(memories);
/// let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// let found = runtime.block_on(tool.execute(json!({"query": "cat", "limit": 1})))?;
/// assert!(found.contains("The cat is called Mia."));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct MemoryTool {
    search: SearchMemory,
    spec: ToolSpec,
}

impl MemoryTool {
    /// Takes the memories to search.
    #[must_use]
    pub fn new(memories: Memories) -> Self {
        let search = SearchMemory::new(memories);
        let spec = search.spec();
        Self { search, spec }
    }
}

#[async_trait]
impl Tool for MemoryTool {
    fn name(&self) -> &str {
        &self.spec.name
    }

    fn description(&self) -> &str {
        &self.spec.description
    }

    fn parameters(&self) -> Value {
        self.spec.parameters.clone()
    }

    /// Runs one search outside of any agent.
    async fn execute(&self, args: Value) -> anyhow::Result<String> {
        let call = invocation(&self.spec.name, args, CancellationToken::new());
        match self.search.call(call).await {
            ToolOutcome::Ok(output) => Ok(text_of(output.value)),
            ToolOutcome::Error(error) => bail!(error.message),
        }
    }

    fn as_native(&self) -> Option<Arc<dyn rondo_core::Tool>> {
        Some(Arc::new(self.search.clone()))
    }
}
