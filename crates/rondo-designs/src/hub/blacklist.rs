//! Refuses programs of the blacklist (`rm`, `sudo` and others), whichever tool runs them.

use async_trait::async_trait;
use rondo_core::{Gate, GateRequest, Verdict};
use rondo_policy::rules::Rules;
use rondo_policy::{AllowedDirs, GateOptions, StandardGate};
use rondo_types::{ToolKind, ToolSpec};
use std::path::Path;
use std::sync::Arc;

/// Refuses calls that run, or may run, a program of the blacklist; another gate judges the rest.
pub(super) struct Blacklist {
    programs: StandardGate,
    next: Arc<dyn Gate>,
}

impl Blacklist {
    /// Puts the rule sets of a profile before a gate.
    ///
    /// # Errors
    /// When a set is not defined, or the root directory cannot be opened.
    pub(super) fn before(
        next: Arc<dyn Gate>,
        rule_sets: &[String],
        profile: &str,
    ) -> Result<Self, String> {
        let mut rules = Rules::default();
        for name in rule_sets {
            let known = rules.put_in_force(name, profile);
            known.map_err(|error| error.to_string())?;
        }
        // No rule of the sets is about files, so the directory does not matter.
        let dirs = AllowedDirs::new(Path::new("/"), &[]);
        let mut options = GateOptions::new(dirs.map_err(|error| error.to_string())?);
        options.yolo = true;
        options.rules = Arc::new(rules);
        let programs = StandardGate::new(options);
        Ok(Self { programs, next })
    }
}

#[async_trait]
impl Gate for Blacklist {
    async fn check(&self, request: &GateRequest) -> Verdict {
        if runs_commands(&request.spec) {
            let spec = ToolSpec {
                kind: ToolKind::Execute,
                ..ToolSpec::clone(&request.spec)
            };
            let command = GateRequest {
                spec: Arc::new(spec),
                ..request.clone()
            };
            let verdict = self.programs.check(&command).await;
            if matches!(verdict, Verdict::Deny { .. }) {
                return verdict;
            }
        }
        self.next.check(request).await
    }
}

/// Returns whether the tool runs commands: it says so, or it takes a command or the words of one.
fn runs_commands(spec: &ToolSpec) -> bool {
    let property = |name: &str| spec.parameters.pointer(&format!("/properties/{name}"));
    let takes = |name: &str, kind: &str| {
        property(name).is_some_and(|it| it.get("type").is_none_or(|of| of == kind))
    };
    spec.kind == ToolKind::Execute || takes("command", "string") || takes("argv", "array")
}
