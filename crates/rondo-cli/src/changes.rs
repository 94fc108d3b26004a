//! The changes that calls make to files: previewed for the question about a call, and shown after it ran.

use rondo_core::redact::Secrets;
use rondo_runtime::Turn;
use rondo_tools::{ChangeLog, DiffLine, FileChange, Workspace, preview};
use rondo_types::{CallId, Question};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// How long a look at a file may hold up the question; a file system may hang.
const LOOK_TIMEOUT: Duration = Duration::from_secs(2);
/// The bound on looks that wait for their call to end.
const LOOKS_MAX: usize = 32;

/// The changes of one turn. Cheap to clone; clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    source: OnceLock<Source>,
    looks: Mutex<VecDeque<(CallId, FileChange)>>,
}

/// Source of changes.
#[derive(Debug)]
struct Source {
    workspace: Arc<Workspace>,
    log: ChangeLog,
    secrets: Secrets,
}

/// Result of inspecting a call's file: the change, or the reason why the call would fail; `None` for a call that
/// changes no file, or whose file could not be inspected in time.
pub(crate) type ChangePreview = Option<Result<FileChange, String>>;

impl Changes {
    /// Takes changes from the tools of a turn; what calls did is noted only if it `is_shown`.
    pub(crate) fn watch(&self, turn: &Turn, is_shown: bool) {
        let toolset = turn.toolset();
        if is_shown {
            toolset.log.enable();
        }
        // A turn is set up once.
        let _ = self.0.source.set(Source {
            workspace: Arc::clone(&toolset.workspace),
            log: toolset.log.clone(),
            secrets: turn.secrets().clone(),
        });
    }

    /// Looks at what a call would do.
    ///
    /// # Cancel safety
    /// Cancel safe: a look that is not awaited ends by itself.
    pub(crate) async fn look(&self, question: &Question) -> ChangePreview {
        let source = self.0.source.get()?;
        let workspace = Arc::clone(&source.workspace);
        let call = question.call.clone()?;
        let subject = &question.subject;
        let (tool, arguments) = (subject.tool.clone(), subject.arguments.clone());
        let looking = spawn_blocking(move || preview(&workspace, &tool, &arguments));
        let look = timeout(LOOK_TIMEOUT, looking).await.ok()?.ok()??;
        let look = look.map(|change| source.redacted(change));
        if let Ok(change) = &look {
            let mut looks = self.looks();
            // The latest question about a call is the one that was answered.
            looks.retain(|(id, _)| *id != call);
            if looks.len() >= LOOKS_MAX {
                looks.pop_front();
            }
            looks.push_back((call, change.clone()));
        }
        Some(look.map_err(|why| source.secrets.text(why)))
    }

    /// Removes and returns the change of a call, and whether its file had changed since the question about the call.
    pub(crate) fn take(&self, call: &CallId) -> Option<(FileChange, bool)> {
        let source = self.0.source.get()?;
        let asked = {
            let mut looks = self.looks();
            let at = looks.iter().position(|(id, _)| id == call);
            at.and_then(|at| looks.remove(at)).map(|(_, change)| change)
        };
        let done = source.redacted(source.log.take(call)?);
        let is_another = asked.is_some_and(|asked| !done.begins_as(&asked));
        Some((done, is_another))
    }

    fn looks(&self) -> MutexGuard<'_, VecDeque<(CallId, FileChange)>> {
        self.0.looks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source {
    /// Lines of a kind that follow each other are one text: a key may have several.
    fn redacted(&self, mut change: FileChange) -> FileChange {
        let lines = change.lines.take();
        change.lines = lines.map(|lines| {
            let runs = lines.chunk_by(|one, other| one.kind == other.kind);
            runs.flat_map(|run| self.redacted_run(run)).collect()
        });
        change
    }

    fn redacted_run(&self, run: &[DiffLine]) -> Vec<DiffLine> {
        let Some(kind) = run.first().map(|line| line.kind) else {
            return Vec::new();
        };
        let texts: Vec<&str> = run.iter().map(|line| line.text.as_str()).collect();
        let text = self.secrets.text(texts.join("\n"));
        let lines = text.split('\n').map(str::to_owned);
        lines.map(|text| DiffLine { kind, text }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_core::ports::{Terms, question_about_call};
    use rondo_tools::DiffKind;
    use rondo_types::{QuestionKind, QuestionSubject};
    use serde_json::json;

    #[tokio::test]
    async fn a_key_in_a_file_is_not_shown() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("f"), "a=1\nkey=sk-12345678\nb=2\n").unwrap();
        let changes = Changes::default();
        let secrets = Secrets::new(["sk-12345678".to_owned()]);
        let source = Source {
            workspace: Arc::new(Workspace::open(directory.path()).unwrap()),
            log: ChangeLog::default(),
            secrets,
        };
        changes.0.source.set(source).unwrap();
        let arguments = json!({"path": "f", "old_string": "a=1", "new_string": "a=3"});
        let subject = QuestionSubject {
            tool: "edit_file".to_owned(),
            arguments,
            ..QuestionSubject::default()
        };
        let (call, kind) = (CallId::new("c"), QuestionKind::Approval);
        let question = question_about_call(subject, &call, kind, String::new(), &Terms::default());
        let change = changes.look(&question).await.unwrap().unwrap();
        let lines = change.lines.unwrap();
        let same = lines.iter().filter(|line| line.kind == DiffKind::Same);
        let same: Vec<_> = same.map(|line| line.text.as_str()).collect();
        assert_eq!(same, ["key=[redacted]", "b=2"]);
    }
}
