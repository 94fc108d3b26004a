use rondo_core::ports::{Asker, OutputSink, ProgressSink, Tool, ToolInvocation};
use rondo_exec::{ExecOptions, ExecTool, SupervisorCommand};
use rondo_types::{CallId, RemainingLimits, SessionId, ToolError, ToolOutcome, TurnId};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// How long a command may run if its timeout is not what is tested: no slow machine reaches it.
pub(crate) const PATIENCE: Duration = Duration::from_mins(10);

/// A timeout that is reached, but not before a slow machine has started the command.
pub(crate) const LONG_ENOUGH_SECONDS: u64 = 3;

/// Live output that is kept, in bytes: a gigabyte of it would be useless.
const LIVE_BYTES_MAX: usize = 1 << 20;

/// A directory to work in, one for state, and a tool over both.
pub(crate) struct Fixture {
    pub(crate) work: TempDir,
    pub(crate) state: TempDir,
    pub(crate) options: ExecOptions,
    pub(crate) cancel: CancellationToken,
    pub(crate) live: Arc<Mutex<String>>,
    calls: AtomicU32,
}

pub(crate) fn supervisor() -> SupervisorCommand {
    SupervisorCommand::Path(PathBuf::from(env!("CARGO_BIN_EXE_rondo-supervisor")))
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let work = tempfile::tempdir().unwrap();
        let state = tempfile::tempdir().unwrap();
        let options = ExecOptions::new(
            supervisor(),
            work.path().to_path_buf(),
            state.path().to_path_buf(),
        );
        Self {
            work,
            state,
            options,
            cancel: CancellationToken::new(),
            live: Arc::default(),
            calls: AtomicU32::new(0),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.work.path()
    }

    pub(crate) fn invocation(&self, arguments: Value) -> ToolInvocation {
        let live = Arc::clone(&self.live);
        ToolInvocation {
            session: SessionId::new("s"),
            turn: TurnId::new("t"),
            call_id: CallId::new("c"),
            idempotency_key: "key-1".to_owned(),
            arguments,
            timeout: Some(PATIENCE),
            cancel: self.cancel.clone(),
            output: OutputSink::new(move |text| {
                let mut live = live.lock().unwrap();
                if live.len() < LIVE_BYTES_MAX {
                    live.push_str(&text);
                }
            }),
            progress: ProgressSink::discard(),
            allowance: RemainingLimits::default(),
            asker: Asker::nobody(),
        }
    }

    pub(crate) async fn call(&self, arguments: Value) -> ToolOutcome {
        let tool = ExecTool::exec(self.options.clone());
        let mut invocation = self.invocation(arguments);
        // As a journal's keys are, each call's is its own.
        let count = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        invocation.idempotency_key = format!("key-{count}");
        tool.call(invocation).await
    }

    pub(crate) async fn run(&self, command: &str) -> Value {
        result(self.call(json!({ "command": command })).await)
    }

    pub(crate) async fn stdout(&self, command: &str) -> String {
        let result = self.run(command).await;
        let stdout = result.get("stdout").and_then(Value::as_str);
        stdout.unwrap().to_owned()
    }

    pub(crate) fn live(&self) -> String {
        self.live.lock().unwrap().clone()
    }
}

#[track_caller]
pub(crate) fn result(outcome: ToolOutcome) -> Value {
    match outcome {
        ToolOutcome::Ok(output) => output.value,
        ToolOutcome::Error(error) => panic!("no result: {error:?}"),
    }
}

#[track_caller]
pub(crate) fn failure(outcome: ToolOutcome) -> ToolError {
    match outcome {
        ToolOutcome::Ok(output) => panic!("no failure: {output:?}"),
        ToolOutcome::Error(error) => error,
    }
}

/// A word that no other process on the machine has in its command line or environment.
pub(crate) fn marker() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    // Its end is marked too: the first would otherwise be found in the tenth.
    format!("rondo_marker_{}_{next}_end", std::process::id())
}

/// Lists the processes that carry the marker in their command line or environment.
pub(crate) fn survivors(marker: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        if !name.bytes().all(|b| b.is_ascii_digit()) || name == std::process::id().to_string() {
            continue;
        }
        for file in ["cmdline", "environ"] {
            let bytes = std::fs::read(entry.path().join(file)).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
            if text.contains(marker) {
                found.push(format!("{name}: {text}"));
            }
        }
    }
    found
}

/// Writes a line to a named pipe, which waits until a command reads it.
pub(crate) async fn open_gate(gate: PathBuf) {
    let writing = tokio::task::spawn_blocking(|| std::fs::write(gate, "open\n"));
    writing.await.unwrap().unwrap();
}
