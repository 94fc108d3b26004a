use rondo_core::ports::{Tool, ToolInvocation};
use rondo_tools::{Workspace, file_tools};
use rondo_types::{CallId, SessionId, ToolErrorCode, ToolOutcome, ToolOutput};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A working directory, a read-only one, and a directory that must never be touched.
pub(crate) struct Bench {
    pub(crate) inside: TempDir,
    pub(crate) spill: TempDir,
    pub(crate) outside: TempDir,
    pub(crate) workspace: Arc<Workspace>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let [inside, spill, outside] = [(); 3].map(|()| TempDir::new().unwrap());
        std::fs::write(outside.path().join("secret"), "SECRET").unwrap();
        let workspace = Workspace::open(inside.path())
            .unwrap()
            .with_read_only_dir(spill.path())
            .unwrap();
        Self {
            inside,
            spill,
            outside,
            workspace: Arc::new(workspace),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.inside.path().join(name)
    }

    /// Writes a file beneath the working directory, with its directories.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn content(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn link(&self, target: impl AsRef<Path>, name: &str) {
        std::os::unix::fs::symlink(target, self.path(name)).unwrap();
    }

    pub(crate) fn tool(&self, name: &str) -> Arc<dyn Tool> {
        file_tools(&self.workspace)
            .into_iter()
            .find(|tool| tool.spec().name == name)
            .unwrap()
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> ToolOutcome {
        self.tool(tool)
            .call(invocation(arguments, CancellationToken::new()))
            .await
    }

    pub(crate) async fn ok(&self, tool: &str, arguments: Value) -> ToolOutput {
        match self.call(tool, arguments).await {
            ToolOutcome::Ok(output) => output,
            ToolOutcome::Error(error) => panic!("{error:?}"),
        }
    }

    /// Returns the text of a result.
    pub(crate) async fn text(&self, tool: &str, arguments: Value) -> String {
        self.ok(tool, arguments)
            .await
            .value
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Returns the message of a `failed` result.
    pub(crate) async fn failed(&self, tool: &str, arguments: Value) -> String {
        match self.call(tool, arguments).await {
            ToolOutcome::Error(error) if error.code == ToolErrorCode::Failed => error.message,
            other => panic!("{other:?}"),
        }
    }

    /// Returns the message of an `invalid_args` result.
    pub(crate) async fn invalid(&self, tool: &str, arguments: Value) -> String {
        match self.call(tool, arguments).await {
            ToolOutcome::Error(error) if error.code == ToolErrorCode::InvalidArgs => error.message,
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn invocation(arguments: Value, cancel: CancellationToken) -> ToolInvocation {
    ToolInvocation {
        call_id: CallId::new("c"),
        idempotency_key: "s-t-c".to_owned(),
        cancel,
        ..ToolInvocation::new(SessionId::new("s"), arguments)
    }
}
