//! Points at which the victim can be killed.

use async_trait::async_trait;
use futures_util::StreamExt as _;
use rondo_core::ports::{
    Append, AppendError, Fence, InterruptedCall, Journal, Model, ModelStream, OutputSink,
    Reconciled, Record, Seq, Tool, ToolInvocation, WrappedJournal,
};
use rondo_types::{ModelInfo, ModelRequest, ToolOutcome, ToolSpec};
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Which events of a reply are points: its beginning, its middle, and its end.
const STREAM_EVENTS: [usize; 2] = [1, 4];

/// Counts the points that are passed, and ends the process at one.
#[derive(Clone)]
pub(crate) struct Points(Arc<Mutex<Passed>>);

struct Passed {
    log: File,
    count: usize,
    kill_at: usize,
}

impl Points {
    /// Writes what is passed to `log`; `kill_at` counts from 1.
    pub(crate) fn new(log: &Path, kill_at: usize) -> Self {
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(log)
            .unwrap();
        Self(Arc::new(Mutex::new(Passed {
            log,
            count: 0,
            kill_at,
        })))
    }

    /// Passes a point, or not.
    pub(crate) fn pass(&self, name: &str) {
        if self.count(name) {
            die();
        }
    }

    /// Counts a point and returns whether the process is to die at it.
    fn count(&self, name: &str) -> bool {
        let mut passed = self.0.lock().unwrap();
        // While the process dies inside a call, calls beside it continue: they are not where it died.
        if passed.kill_at > 0 && passed.count >= passed.kill_at {
            return false;
        }
        passed.count += 1;
        writeln!(passed.log, "{name}").unwrap();
        passed.count == passed.kill_at
    }
}

/// Nothing of the process runs after this: no destructor, no flush, no task.
fn die() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    loop {
        std::thread::park();
    }
}

pub(crate) struct MortalJournal<J> {
    pub(crate) inner: J,
    pub(crate) points: Points,
}

#[async_trait]
impl<J: Journal> WrappedJournal for MortalJournal<J> {
    fn inner(&self) -> &dyn Journal {
        &self.inner
    }

    async fn append_around(&self, fence: &Fence, append: Append) -> Result<Seq, AppendError> {
        let kinds = kinds(&append.batch);
        self.points.pass(&format!("journal before {kinds}"));
        let appended = self.inner.append(fence, append).await;
        self.points.pass(&format!("journal after {kinds}"));
        appended
    }
}

fn kinds(batch: &[Record]) -> String {
    let kind = |record: &Record| {
        let body = serde_json::to_value(&record.body).unwrap();
        body["kind"].as_str().unwrap().to_owned()
    };
    batch.iter().map(kind).collect::<Vec<_>>().join("+")
}

pub(crate) struct MortalModel<M> {
    pub(crate) inner: M,
    pub(crate) points: Points,
}

impl<M: Model> Model for MortalModel<M> {
    fn info(&self) -> ModelInfo {
        self.inner.info()
    }

    fn stream(&self, request: Arc<ModelRequest>) -> ModelStream {
        let (points, at_end) = (self.points.clone(), self.points.clone());
        let events = self.inner.stream(request).enumerate();
        let passed = events.inspect(move |(index, _)| {
            if STREAM_EVENTS.contains(index) {
                points.pass("stream event");
            }
        });
        let end = futures_util::stream::poll_fn(move |_| {
            at_end.pass("stream end");
            std::task::Poll::Ready(None)
        });
        Box::pin(passed.map(|(_, event)| event).chain(end))
    }
}

pub(crate) struct MortalTool {
    pub(crate) inner: Arc<dyn Tool>,
    pub(crate) points: Points,
    /// Directory of the written files.
    pub(crate) directory: PathBuf,
}

#[async_trait]
impl Tool for MortalTool {
    fn spec(&self) -> ToolSpec {
        self.inner.spec()
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        let name = self.spec().name;
        self.points.pass(&format!("tool before {name}"));
        let dies_inside = self.points.count(&format!("tool inside {name}"));
        if dies_inside {
            self.die_inside(&name);
        }
        let outcome = self
            .inner
            .call(mortal_output(invocation, dies_inside))
            .await;
        if dies_inside {
            die();
        }
        self.points.pass(&format!("tool after {name}"));
        outcome
    }

    async fn evidence(&self, arguments: &Value) -> Option<Value> {
        self.inner.evidence(arguments).await
    }

    async fn evidence_of(&self, idempotency_key: &str, arguments: &Value) -> Option<Value> {
        self.inner.evidence_of(idempotency_key, arguments).await
    }

    async fn reconcile(&self, call: &InterruptedCall) -> Reconciled {
        self.inner.reconcile(call).await
    }
}

impl MortalTool {
    /// A file tool is inside of its work while the file it writes has another name.
    fn die_inside(&self, name: &str) {
        if !matches!(name, "write_file" | "edit_file") {
            return;
        }
        let directory = self.directory.clone();
        std::thread::spawn(move || {
            loop {
                let mut entries = std::fs::read_dir(&directory).unwrap().flatten();
                if entries.any(|entry| entry.file_name().to_string_lossy().ends_with(".tmp")) {
                    die();
                }
            }
        });
    }
}

/// A command is inside of its work once it has written something.
fn mortal_output(mut invocation: ToolInvocation, dies: bool) -> ToolInvocation {
    if dies {
        invocation.output = OutputSink::new(|_| die());
    }
    invocation
}
