//! Shows a model what the working directory has to do with a question, before its first step: for small
//! models, which choose commands badly and read well. Profiles ask for it with `look_first`.

use async_trait::async_trait;
use rondo_core::ports::{Gate, GateRequest, Interceptor, StepContext, StepDecision, Tool, Verdict};
use rondo_core::redact::Secrets;
use rondo_tools::{Overview, ReadFile, Workspace};
use rondo_types::{CallId, Message, Role, ToolSpec};
use serde_json::json;
use std::sync::Arc;

/// Looks at the working directory at the start of each turn.
///
/// The gate is asked about each file of which lines would be shown, as about a call of `read_file`; what
/// it does not allow at once is not shown.
pub(crate) struct LookFirst {
    workspace: Arc<Workspace>,
    gate: Arc<dyn Gate>,
    secrets: Secrets,
    reading: Arc<ToolSpec>,
}

impl LookFirst {
    /// Looks at a workspace, as far as a gate allows.
    pub(crate) fn new(workspace: &Arc<Workspace>, gate: &Arc<dyn Gate>, secrets: &Secrets) -> Self {
        Self {
            workspace: Arc::clone(workspace),
            gate: Arc::clone(gate),
            secrets: secrets.clone(),
            reading: Arc::new(ReadFile::new(Arc::clone(workspace)).spec()),
        }
    }

    async fn may_read(&self, step: &StepContext, path: &str) -> bool {
        let request = GateRequest {
            session: step.session.clone(),
            turn: step.turn.clone(),
            step: step.step,
            call_id: CallId::new("look-first"),
            spec: Arc::clone(&self.reading),
            arguments: json!({"path": path}),
            has_outside_text: false,
        };
        self.gate.check(&request).await == Verdict::Allow
    }
}

/// Returns what the user asked last.
fn question(messages: &[Arc<Message>]) -> Option<String> {
    let mut from_end = messages.iter().rev();
    let asked = from_end.find(|it| it.role == Role::User && !it.synthetic)?;
    Some(asked.text())
}

#[async_trait]
impl Interceptor for LookFirst {
    fn name(&self) -> &'static str {
        "look_first"
    }

    /// # Cancel safety
    /// Cancel safe: it only reads.
    async fn turn_start(&self, step: &StepContext) -> StepDecision {
        let Some(question) = question(&step.transcript) else {
            return StepDecision::Continue;
        };
        let workspace = Arc::clone(&self.workspace);
        let looked = tokio::task::spawn_blocking(move || Overview::of(&workspace, &question));
        let Ok(mut overview) = looked.await else {
            return StepDecision::Continue;
        };
        let files: Vec<String> = overview
            .shown_files()
            .into_iter()
            .map(str::to_owned)
            .collect();
        for file in files {
            if !self.may_read(step, &file).await {
                overview = overview.without(&file);
            }
        }
        let text = self.secrets.text(overview.to_string());
        StepDecision::Add { text }
    }
}
