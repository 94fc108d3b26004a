//! The tools on offer.

use crate::catalog::Schemas;
use crate::ports::Tool;
use crate::redact::{Secrets, redacted};
use rondo_types::ToolSpec;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The tools of a turn, by name, in the order they were added.
#[derive(Clone, Default)]
pub struct Toolbox {
    by_name: Arc<HashMap<String, Offered>>,
    schemas: Arc<Schemas>,
    /// Redacted from the results of the tools, and of those that are added.
    secrets: Option<Secrets>,
}

struct Offered {
    tool: Arc<dyn Tool>,
    spec: Arc<ToolSpec>,
}

/// Why a tool cannot be added.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ToolboxError {
    /// Two tools of one name.
    #[error("there are two tools named `{0}`")]
    Duplicate(String),
    /// More tools than any provider takes.
    #[error("there are more than {max} tools", max = Toolbox::TOOLS_MAX)]
    TooMany,
}

impl Toolbox {
    /// The bound on tools of one turn.
    pub const TOOLS_MAX: usize = 512;

    /// Collects tools.
    ///
    /// # Errors
    /// When two have the same name, or there are more than [`Self::TOOLS_MAX`].
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Result<Self, ToolboxError> {
        let mut by_name = HashMap::new();
        let mut specs = Vec::new();
        for tool in tools {
            let spec = tool.spec();
            if specs.len() == Self::TOOLS_MAX {
                return Err(ToolboxError::TooMany);
            }
            let offered = Offered {
                tool,
                spec: Arc::new(spec.clone()),
            };
            if by_name.insert(spec.name.clone(), offered).is_some() {
                return Err(ToolboxError::Duplicate(spec.name));
            }
            specs.push(spec);
        }
        Ok(Self {
            by_name: Arc::new(by_name),
            schemas: Arc::new(Schemas::new(Arc::new(specs))),
            secrets: None,
        })
    }

    /// Returns the same tools and more, up to [`Self::TOOLS_MAX`], with the names of those that were left out: their
    /// name is taken, or there are too many.
    pub(crate) fn extended(
        &self,
        tools: impl IntoIterator<Item = Arc<dyn Tool>>,
    ) -> (Self, Vec<String>) {
        let mut all: Vec<_> = self.tools().collect();
        let mut names: HashSet<String> = self.by_name.keys().cloned().collect();
        let mut left_out = Vec::new();
        for tool in tools {
            let name = tool.spec().name;
            if all.len() == Self::TOOLS_MAX || !names.insert(name.clone()) {
                left_out.push(name);
                continue;
            }
            all.push(match &self.secrets {
                Some(secrets) => redacted(tool, secrets),
                None => tool,
            });
        }
        match Self::new(all) {
            Ok(toolbox) => {
                let secrets = self.secrets.clone();
                (Self { secrets, ..toolbox }, left_out)
            }
            // A tool that names itself anew each time.
            Err(_) => (self.clone(), names.into_iter().collect()),
        }
    }

    /// Returns the tools in their order.
    fn tools(&self) -> impl Iterator<Item = Arc<dyn Tool>> + '_ {
        let specs = self.specs();
        let names: Vec<String> = specs.iter().map(|spec| spec.name.clone()).collect();
        names.into_iter().filter_map(|name| self.get(&name))
    }

    /// Returns the same tools, with these secrets redacted from their results.
    #[must_use]
    pub fn redacted(self, secrets: &Secrets) -> Self {
        let tools = self.by_name.iter().map(|(name, Offered { tool, spec })| {
            let tool = redacted(Arc::clone(tool), secrets);
            let spec = Arc::clone(spec);
            (name.clone(), Offered { tool, spec })
        });
        Self {
            by_name: Arc::new(tools.collect()),
            schemas: self.schemas,
            secrets: Some(secrets.clone()),
        }
    }

    /// Returns the tool of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.by_name.get(name).map(|it| Arc::clone(&it.tool))
    }

    /// Returns the spec of the tool of that name, as it was when the tool was added.
    #[must_use]
    pub fn spec(&self, name: &str) -> Option<Arc<ToolSpec>> {
        self.by_name.get(name).map(|it| Arc::clone(&it.spec))
    }

    /// Returns the specs of all tools, which the model reads.
    #[must_use]
    pub fn specs(&self) -> Arc<Vec<ToolSpec>> {
        self.schemas.tools()
    }

    /// Returns the specs with their compiled schemas. Turns that share a toolbox compile each schema once.
    #[must_use]
    pub fn schemas(&self) -> Arc<Schemas> {
        Arc::clone(&self.schemas)
    }
}
