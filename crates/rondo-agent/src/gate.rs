//! The default gate of an agent, which lets the program's own tools run without approval.

use async_trait::async_trait;
use rondo_core::shown;
use rondo_core::{Gate, GateRequest, Verdict};
use rondo_types::{Effects, ToolSpec};
use std::collections::HashSet;
use std::sync::Arc;

/// Lets the program's own tools run, and passes calls of other tools to another gate. So it does with tools that
/// run commands or change files, also the program's own.
pub(crate) struct OwnToolsRun {
    own: HashSet<String>,
    /// Judges the other tools; without it, only read-only tools run without approval.
    judge: Option<Arc<dyn Gate>>,
}

impl OwnToolsRun {
    pub(crate) fn new(
        own: impl IntoIterator<Item = ToolSpec>,
        judge: Option<Arc<dyn Gate>>,
    ) -> Self {
        let own = own
            .into_iter()
            .filter(|spec| !spec.kind.changes_machine())
            .map(|spec| spec.name);
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
