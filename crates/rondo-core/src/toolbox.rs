//! The tools on offer.

use crate::catalog::Schemas;
use crate::ports::Tool;
use crate::redact::{Secrets, redacted};
use rondo_types::ToolSpec;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

/// The tools of a turn, by name, in the order they were added.
#[derive(Clone)]
pub struct Toolbox {
    /// In the order of their specs.
    tools: Arc<[Arc<dyn Tool>]>,
    specs: Arc<Specs>,
    /// Redacted from the results of the tools, and of those that are added.
    secrets: Option<Secrets>,
}

/// Specs of tools, without the tools themselves.
#[derive(Default)]
struct Specs {
    /// Each with the place of its tool.
    by_name: HashMap<String, (usize, Arc<ToolSpec>)>,
    schemas: Arc<Schemas>,
}

/// Lets toolboxes whose specs are equal, as those of most turns of a program are, hold them once, with their compiled
/// schemas. Clones share the same ones.
#[derive(Clone, Default)]
pub struct SharedSpecs(Arc<Mutex<Vec<Arc<Specs>>>>);

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

impl Default for Toolbox {
    fn default() -> Self {
        Self {
            tools: Arc::new([]),
            specs: Arc::default(),
            secrets: None,
        }
    }
}

impl Toolbox {
    /// The bound on tools of one turn.
    pub const TOOLS_MAX: usize = 512;

    /// Collects tools.
    ///
    /// # Errors
    /// When two have the same name, or there are more than [`Self::TOOLS_MAX`].
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Result<Self, ToolboxError> {
        Self::sharing(&SharedSpecs::default(), tools)
    }

    /// Collects tools, and shares what is known of them with other toolboxes.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn sharing(
        shared: &SharedSpecs,
        tools: impl IntoIterator<Item = Arc<dyn Tool>>,
    ) -> Result<Self, ToolboxError> {
        let (mut names, mut collected) = (HashSet::new(), Vec::new());
        let mut specs = Vec::new();
        for tool in tools {
            let spec = tool.spec();
            if specs.len() == Self::TOOLS_MAX {
                return Err(ToolboxError::TooMany);
            }
            if !names.insert(spec.name.clone()) {
                return Err(ToolboxError::Duplicate(spec.name));
            }
            specs.push(spec);
            collected.push(tool);
        }
        Ok(Self {
            tools: collected.into(),
            specs: shared.of(specs),
            secrets: None,
        })
    }

    /// Returns the same tools and more, up to [`Self::TOOLS_MAX`], with the names of those that were left out: their
    /// name is taken, or there are too many.
    pub(crate) fn extended(
        &self,
        tools: impl IntoIterator<Item = Arc<dyn Tool>>,
    ) -> (Self, Vec<String>) {
        let mut all = self.tools.to_vec();
        let mut names: HashSet<String> = self.specs.by_name.keys().cloned().collect();
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
            // A tool that names itself again each time.
            Err(_) => (self.clone(), names.into_iter().collect()),
        }
    }

    /// Returns the same tools, with these secrets redacted from their results.
    #[must_use]
    pub fn redacted(self, secrets: &Secrets) -> Self {
        let tools = self.tools.iter();
        Self {
            tools: tools.map(|it| redacted(Arc::clone(it), secrets)).collect(),
            specs: self.specs,
            secrets: Some(secrets.clone()),
        }
    }

    /// Returns the tool of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let (place, _) = self.specs.by_name.get(name)?;
        self.tools.get(*place).map(Arc::clone)
    }

    /// Returns the spec of the tool of that name, as it was when the tool was added.
    #[must_use]
    pub fn spec(&self, name: &str) -> Option<Arc<ToolSpec>> {
        let (_, spec) = self.specs.by_name.get(name)?;
        Some(Arc::clone(spec))
    }

    /// Returns the specs of all tools, which the model reads.
    #[must_use]
    pub fn specs(&self) -> Arc<Vec<ToolSpec>> {
        self.specs.schemas.tools()
    }

    /// Returns the specs with their compiled schemas. Turns that share a toolbox compile each schema once.
    #[must_use]
    pub fn schemas(&self) -> Arc<Schemas> {
        Arc::clone(&self.specs.schemas)
    }
}

impl Specs {
    fn of(specs: Vec<ToolSpec>) -> Self {
        let by_name = specs.iter().enumerate().map(|(place, spec)| {
            let known = (place, Arc::new(spec.clone()));
            (spec.name.clone(), known)
        });
        Self {
            by_name: by_name.collect(),
            schemas: Arc::new(Schemas::new(Arc::new(specs))),
        }
    }
}

impl SharedSpecs {
    /// How many are kept, of different tools: those that were used last.
    const KEPT_MAX: usize = 16;

    fn of(&self, specs: Vec<ToolSpec>) -> Arc<Specs> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.iter().position(|it| *it.schemas.tools() == specs);
        let found = match known {
            Some(place) => kept.remove(place),
            None => Arc::new(Specs::of(specs)),
        };
        if kept.len() == Self::KEPT_MAX {
            kept.remove(0);
        }
        kept.push(Arc::clone(&found));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::ToolInvocation;
    use async_trait::async_trait;
    use rondo_types::ToolOutcome;

    struct Named(String);

    #[async_trait]
    impl Tool for Named {
        fn spec(&self) -> ToolSpec {
            ToolSpec {
                name: self.0.clone(),
                ..ToolSpec::default()
            }
        }

        async fn call(&self, _: ToolInvocation) -> ToolOutcome {
            ToolOutcome::text("")
        }
    }

    fn toolbox(shared: &SharedSpecs, name: &str) -> Toolbox {
        let tool: Arc<dyn Tool> = Arc::new(Named(name.to_owned()));
        Toolbox::sharing(shared, [tool]).expect("one tool is not too many")
    }

    #[test]
    fn toolboxes_of_equal_tools_hold_their_specs_once_and_those_of_others_their_own() {
        let shared = SharedSpecs::default();
        let (one, same) = (toolbox(&shared, "a"), toolbox(&shared, "a"));
        let other = toolbox(&shared, "b");
        assert!(Arc::ptr_eq(&one.schemas(), &same.schemas()));
        assert!(!Arc::ptr_eq(&one.schemas(), &other.schemas()));
        assert!(other.spec("a").is_none());
        assert_eq!(
            other.spec("b").map(|it| it.name.clone()),
            Some("b".to_owned())
        );
    }

    #[test]
    fn what_is_shared_is_bounded() {
        let shared = SharedSpecs::default();
        for number in 0..=SharedSpecs::KEPT_MAX {
            toolbox(&shared, &format!("tool{number}"));
        }
        let kept = shared.0.lock().expect("no panic");
        assert_eq!(kept.len(), SharedSpecs::KEPT_MAX);
    }
}
