//! The default gate of an agent, which lets the program's own tools run without approval.

use async_trait::async_trait;
use rondo_core::ports::Terms;
use rondo_core::shown;
use rondo_core::{Gate, GateRequest, Verdict};
use rondo_types::{AskReason, Effects, Grant, ToolKind, ToolSpec};
use std::collections::HashSet;
use std::sync::Arc;

/// Lets the program's own tools run, and passes calls of other tools to another gate. So it does with tools that
/// run commands or change files, also the program's own.
pub(crate) struct OwnToolsRun {
    own: HashSet<String>,
    /// The names of tools that the profile allows, without a judge.
    allowed: HashSet<String>,
    /// Judges the other tools; without it, only read-only tools run without approval.
    judge: Option<Arc<dyn Gate>>,
}

impl OwnToolsRun {
    pub(crate) fn new(
        own: impl IntoIterator<Item = ToolSpec>,
        judge: Option<Arc<dyn Gate>>,
        allowed_tools: &[String],
    ) -> Self {
        let own = own
            .into_iter()
            .filter(|spec| !spec.kind.changes_machine())
            .map(|spec| spec.name);
        Self {
            own: own.collect(),
            // The judge has them, and knows patterns of calls too.
            allowed: match judge {
                Some(_) => HashSet::new(),
                None => allowed_tools.iter().cloned().collect(),
            },
            judge,
        }
    }
}

/// Returns whether a call may send out what text from outside makes the model say.
fn sends_after_outside(request: &GateRequest) -> bool {
    let spec = &request.spec;
    let reaches_outside = spec.kind == ToolKind::Fetch || spec.hints.open_world == Some(true);
    request.has_outside_text && reaches_outside
}

#[async_trait]
impl Gate for OwnToolsRun {
    async fn check(&self, request: &GateRequest) -> Verdict {
        let name = &request.spec.name;
        if self.own.contains(name) || self.allowed.contains(name) {
            return Verdict::Allow;
        }
        match &self.judge {
            Some(judge) => judge.check(request).await,
            None if request.spec.effects == Effects::ReadOnly && !sends_after_outside(request) => {
                Verdict::Allow
            }
            None => Verdict::Ask {
                prompt: format!(
                    "`{}` wants to run with\n{}",
                    shown::line(&request.spec.name),
                    shown::call(&request.arguments)
                ),
                reasons: vec![match sends_after_outside(request) {
                    true => AskReason::OutsideText,
                    false => AskReason::NotAllowed,
                }],
            },
        }
    }

    async fn terms(&self, request: &GateRequest) -> Terms {
        match &self.judge {
            Some(judge) => judge.terms(request).await,
            None => Terms::default(),
        }
    }

    fn remember(&self, grant: &Grant) {
        if let Some(judge) = &self.judge {
            judge.remember(grant);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use serde_json::json;

    #[tokio::test]
    async fn a_call_that_sends_something_after_text_from_outside_is_asked_about_for_that() {
        for (kind, has_outside_text, reason) in [
            (ToolKind::Other, false, AskReason::NotAllowed),
            (ToolKind::Other, true, AskReason::NotAllowed),
            (ToolKind::Fetch, false, AskReason::NotAllowed),
            (ToolKind::Fetch, true, AskReason::OutsideText),
        ] {
            let request = GateRequest {
                has_outside_text,
                ..GateRequest::new(
                    ToolSpec {
                        name: "theirs".to_owned(),
                        kind,
                        ..ToolSpec::default()
                    },
                    json!({}),
                )
            };
            let verdict = OwnToolsRun::new([], None, &[]).check(&request).await;
            let prompt = "`theirs` wants to run with\n".to_owned();
            let reasons = vec![reason];
            assert_eq!(verdict, Verdict::Ask { prompt, reasons }, "{kind}");
        }
    }
}
