//! Edits that cannot be made: a person is not asked about a call of `edit_file` whose text does not occur in the file. The
//! model reads the error that the tool would give, and tries again.

use async_trait::async_trait;
use rondo_core::ports::{Gate, GateRequest, Terms, Tool as _, Verdict};
use rondo_tools::{EDIT_FILE, ReadFile, Workspace, preview};
use rondo_types::{Grant, ToolSpec};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// How long a look at the file may hold up the question; a file system may hang.
const LOOK_TIMEOUT: Duration = Duration::from_secs(2);

/// Refuses edits that would fail, if the inner gate would ask about them.
pub(crate) struct UnmatchedGate {
    inner: Arc<dyn Gate>,
    workspace: Arc<Workspace>,
    reading: Arc<ToolSpec>,
}

impl UnmatchedGate {
    /// Builds the gate over the workspace that the edits are made in.
    pub(crate) fn new(inner: Arc<dyn Gate>, workspace: &Arc<Workspace>) -> Self {
        Self {
            inner,
            workspace: Arc::clone(workspace),
            reading: Arc::new(ReadFile::new(Arc::clone(workspace)).spec()),
        }
    }

    /// Returns the error of an edit that would fail now. The error shows the file's text, so there is none if the
    /// model may not read the file without asking.
    async fn failure(&self, request: &GateRequest) -> Option<String> {
        let reading = GateRequest {
            spec: Arc::clone(&self.reading),
            arguments: json!({"path": request.arguments.get("path")?}),
            ..request.clone()
        };
        if self.inner.check(&reading).await != Verdict::Allow {
            return None;
        }
        let (workspace, arguments) = (Arc::clone(&self.workspace), request.arguments.clone());
        let looking = spawn_blocking(move || preview(&workspace, EDIT_FILE, &arguments));
        timeout(LOOK_TIMEOUT, looking).await.ok()?.ok()??.err()
    }
}

#[async_trait]
impl Gate for UnmatchedGate {
    async fn check(&self, request: &GateRequest) -> Verdict {
        let verdict = self.inner.check(request).await;
        let is_asked = matches!(verdict, Verdict::Ask { .. });
        if !is_asked || request.spec.name != EDIT_FILE {
            return verdict;
        }
        match self.failure(request).await {
            Some(why) => Verdict::Deny {
                reason: format!("it would fail: {why}"),
            },
            None => verdict,
        }
    }

    async fn terms(&self, request: &GateRequest) -> Terms {
        self.inner.terms(request).await
    }

    fn remember(&self, grant: &Grant) {
        self.inner.remember(grant);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_tools::EditFile;
    use rondo_types::{CallId, SessionId, TurnId};
    use serde_json::Value;
    use std::fs;

    /// Asks about edits, and about reading the file `private`.
    struct Asking;

    #[async_trait]
    impl Gate for Asking {
        async fn check(&self, request: &GateRequest) -> Verdict {
            let is_private = request.arguments["path"] == "private";
            match request.spec.name == EDIT_FILE || is_private {
                true => Verdict::Ask {
                    prompt: "?".to_owned(),
                    reasons: Vec::new(),
                },
                false => Verdict::Allow,
            }
        }
    }

    async fn checked(arguments: Value) -> Verdict {
        let directory = tempfile::tempdir().unwrap();
        for name in ["a.txt", "private"] {
            fs::write(directory.path().join(name), "one\ntwo\n").unwrap();
        }
        let workspace = Arc::new(Workspace::open(directory.path()).unwrap());
        let gate = UnmatchedGate::new(Arc::new(Asking), &workspace);
        let request = GateRequest {
            session: SessionId::new("s"),
            turn: TurnId::new("t"),
            step: 1,
            call_id: CallId::new("c"),
            spec: Arc::new(EditFile::new(workspace).spec()),
            arguments,
            has_outside_text: false,
        };
        gate.check(&request).await
    }

    #[tokio::test]
    async fn an_edit_that_cannot_match_is_refused_with_the_error_of_the_tool() {
        let edit =
            |path: &str, old: &str| json!({"path": path, "old_string": old, "new_string": "x"});
        let Verdict::Deny { reason } = checked(edit("a.txt", "three")).await else {
            panic!("it is not asked about")
        };
        assert!(
            reason.starts_with("it would fail: `old_string` does not occur in `a.txt` (0 matches)"),
            "{reason}"
        );
        let verdict = checked(edit("a.txt", "two")).await;
        assert!(matches!(verdict, Verdict::Ask { .. }), "{verdict:?}");
    }

    #[tokio::test]
    async fn a_refusal_tells_nothing_of_a_file_that_may_not_be_read_unasked() {
        let edit = json!({"path": "private", "old_string": "three", "new_string": "x"});
        let verdict = checked(edit).await;
        assert!(matches!(verdict, Verdict::Ask { .. }), "{verdict:?}");
    }
}
