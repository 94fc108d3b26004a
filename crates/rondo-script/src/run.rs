//! Runs a script from its beginning to its end, or again over its records.

use crate::branch::Branch;
use crate::error::{Abort, CallError, ScriptError, message_of};
use crate::host::ScriptHost;
use crate::ledger::Ledger;
use crate::shared::Shared;
use crate::vm;
use rondo_core::ports::{RecordBody, ScriptRun};
use rondo_runtime::script::ScriptSession;
use rondo_runtime::{SetupError, SetupErrorKind};
use rondo_types::SessionId;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The exit code of a script that raised an error.
const FAILED: u8 = 1;

/// A script, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Its file, as it was named.
    pub name: String,
    /// Its text; a first line that begins with `#` is left out.
    pub source: String,
    /// Directory of its modules.
    pub directory: PathBuf,
    /// Arguments of the script.
    pub arguments: Vec<String>,
    /// Seed of its random numbers.
    pub seed: u64,
}

/// How a script ended.
#[derive(Debug)]
pub struct ScriptEnd {
    /// Its exit code, or why it has none of its own.
    pub result: Result<u8, ScriptError>,
    /// Its session, if it has one.
    pub session: Option<SessionId>,
    /// Calls in its records that were not made, for people.
    pub unused: Vec<String>,
}

/// Runs a script. With `records` it runs over them, and makes the calls that are not in them.
///
/// # Cancel safety
/// Dropping the future ends the script and its turns at once; the next run over its records continues from there.
pub async fn run(
    script: Script,
    session: ScriptSession,
    records: Option<Vec<RecordBody>>,
    host: Arc<dyn ScriptHost>,
    cancel: &CancellationToken,
) -> ScriptEnd {
    start(script, session, records, host, cancel, false).await
}

/// Runs a script over records alone: no call is made, and one that is not in them ends it.
///
/// # Cancel safety
/// Cancel safe: nothing happens outside.
pub(crate) async fn replay(
    script: Script,
    session: ScriptSession,
    records: Vec<RecordBody>,
    host: Arc<dyn ScriptHost>,
    cancel: &CancellationToken,
) -> ScriptEnd {
    start(script, session, Some(records), host, cancel, true).await
}

async fn start(
    script: Script,
    session: ScriptSession,
    records: Option<Vec<RecordBody>>,
    host: Arc<dyn ScriptHost>,
    cancel: &CancellationToken,
    is_replay: bool,
) -> ScriptEnd {
    let mut run = ScriptRun {
        name: script.name,
        source: script.source,
        arguments: script.arguments,
        seed: script.seed,
    };
    if let Some(RecordBody::ScriptStarted(recorded)) = records.iter().flatten().next() {
        run.arguments.clone_from(&recorded.arguments);
        run.seed = recorded.seed;
    }
    let ledger = match records {
        None => Ledger::new(run),
        Some(records) => Ledger::over(run, records, is_replay),
    };
    let cancel = cancel.child_token();
    let shared = Shared::new(session, host, ledger, cancel, script.directory);
    let shared = Arc::new(shared);
    let result = to_its_end(&shared).await;
    let result = finished(&shared, result).await;
    ScriptEnd {
        result,
        session: shared
            .ledger
            .has_begun()
            .then(|| shared.session.id().clone()),
        unused: shared.ledger.unused(),
    }
}

async fn to_its_end(shared: &Arc<Shared>) -> Result<u8, ScriptError> {
    let lua = vm::new(shared).map_err(|error| raised(shared, &error))?;
    let run = shared.ledger.run();
    let chunk = lua
        .load(as_lua(&run.source))
        .set_name(format!("@{}", run.name));
    let main = chunk.set_mode(mlua::chunk::ChunkMode::Text).into_function();
    let main = main.map_err(|error| ScriptError::Syntax(message_of(&error)))?;
    let root = Branch::root(run.seed);
    let mut running = Box::pin(root.run(main.call_async::<()>(())));
    let ended = tokio::select! {
        biased;
        ended = &mut running => ended,
        () = over(shared) => {
            drop(shared.abort(Abort::Error(ScriptError::Deadline)));
            shared.cancel.cancel();
            running.await
        }
    };
    match (shared.take_abort(), ended) {
        (Some(Abort::Exit(code)), _) => Ok(code),
        (Some(Abort::Error(error)), _) => Err(error),
        (None, Ok(())) => Ok(0),
        (None, Err(error)) => Err(raised(shared, &error)),
    }
}

/// Waits until the time of the script is over; forever if it has no bound.
async fn over(shared: &Shared) {
    match shared.time_left() {
        Some(left) => tokio::time::sleep(left).await,
        None => std::future::pending().await,
    }
}

/// Secrets are left out: the message may go to a log, and a script that is replayed may be another user's.
fn raised(shared: &Shared, error: &mlua::Error) -> ScriptError {
    let message = message_of(error);
    let setup = shared.take_setup(&message);
    let message = shared.session.secrets().text(message);
    match setup {
        Some(error) => ScriptError::Setup {
            message,
            error: Box::new(error),
        },
        None => ScriptError::Raised(message),
    }
}

/// Records the end of a script that came to one. A script that was stopped, waits or went astray has none, and
/// continues when it is resumed.
async fn finished(shared: &Shared, result: Result<u8, ScriptError>) -> Result<u8, ScriptError> {
    let record = match &result {
        Ok(exit_code) => Some((*exit_code, None)),
        Err(error @ (ScriptError::Raised(_) | ScriptError::Setup { .. })) => {
            Some((FAILED, Some(error.to_string())))
        }
        Err(_) => None,
    };
    let record = record
        .filter(|_| shared.ledger.has_records())
        .map(|(exit_code, error)| RecordBody::ScriptFinished { exit_code, error });
    match (shared.ledger.write(&shared.session, record).await, &result) {
        (Err(error), Ok(_) | Err(ScriptError::Raised(_))) => Err(unwritten(error)),
        _ => result,
    }
}

fn unwritten(error: CallError) -> ScriptError {
    let error = match error {
        CallError::Setup(error) => error,
        other => SetupError::new(SetupErrorKind::Journal, other.reason()),
    };
    ScriptError::Setup {
        message: error.line(),
        error: Box::new(error),
    }
}

/// Returns the text without the line that names its interpreter. Line numbers stay.
pub(crate) fn as_lua(source: &str) -> String {
    match source.strip_prefix("#") {
        Some(rest) => format!("--{rest}"),
        None => source.to_owned(),
    }
}
