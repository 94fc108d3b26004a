//! The default gate of an agent, which lets the program's own tools run without approval.

use async_trait::async_trait;
use rondo_core::shown;
use rondo_core::{Gate, GateRequest, Verdict};
use rondo_types::Effects;
use std::collections::HashSet;
use std::sync::Arc;

/// Names of built-in tools with effects. A tool with one of them is always judged.
const BUILT_IN: [&str; 4] = ["exec", "execute_command", "write_file", "edit_file"];

/// Lets the program's own tools run, and passes calls of other tools to another gate.
pub(crate) struct OwnToolsRun {
    own: HashSet<String>,
    /// Judges the other tools; without it, only read-only tools run without approval.
    judge: Option<Arc<dyn Gate>>,
}

impl OwnToolsRun {
    pub(crate) fn new(own: impl IntoIterator<Item = String>, judge: Option<Arc<dyn Gate>>) -> Self {
        let own = own
            .into_iter()
            .filter(|name| !BUILT_IN.contains(&name.as_str()));
        Self {
            own: own.collect(),
            judge,
        }
    }
}

#[async_trait]
impl Gate for OwnToolsRun {
    async fn check(&self, request: &GateRequest) -> Verdict {
        if self.own.contains(&request.spec.name) {
            return Verdict::Allow;
        }
        match &self.judge {
            Some(judge) => judge.check(request).await,
            None if request.spec.effects == Effects::ReadOnly => Verdict::Allow,
            None => Verdict::Ask {
                prompt: format!(
                    "`{}` wants to run with\n{}",
                    shown::line(&request.spec.name),
                    shown::call(&request.arguments)
                ),
            },
        }
    }
}
