use rondo_launch::SupervisorCommand;
use rondo_python::{Capability, CellEnd, CellLimits, LiveOutput, Session, SessionError, Settings};
use rondo_types::{ToolError, ToolOutcome};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Starting may take long if the machine is busy; a test that hangs here has found nothing.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// Settings of the `python3` that is on the search path, in a directory of the tests'.
pub(crate) fn settings() -> Settings {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).to_owned();
    let mut settings = Settings::from_env(directory).expect("there is a `python3`");
    settings.supervisor = supervisor();
    settings.start_timeout = START_TIMEOUT;
    settings.interrupt_grace = START_TIMEOUT;
    settings
}

/// Names the supervisor of the interpreters of these tests. The tests of `unsupervised` have none.
pub(crate) fn supervisor() -> Option<SupervisorCommand> {
    let is_supervised = env!("CARGO_CRATE_NAME") == "it";
    let program = env!("CARGO_BIN_EXE_rondo-python-supervisor");
    is_supervised.then(|| SupervisorCommand::Path(program.into()))
}

pub(crate) fn session() -> Session {
    Session::new(settings())
}

/// Runs a cell that raises nothing.
pub(crate) async fn run(session: &Session, code: &str) -> CellEnd {
    let end = cell(session, code).await.unwrap();
    assert_eq!(end.exception, None);
    end
}

pub(crate) async fn cell(session: &Session, code: &str) -> Result<CellEnd, SessionError> {
    let live = LiveOutput::discard();
    session.run_cell(code, live, CellLimits::default()).await
}

/// Runs a cell and cancels it at its first output.
pub(crate) async fn cell_cancelled(session: &Session, code: &str) -> Result<CellEnd, SessionError> {
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let live = LiveOutput::new(move |_, _| stop.cancel());
    let until = CellLimits {
        cancel,
        ..CellLimits::default()
    };
    session.run_cell(code, live, until).await
}

/// Runs a cell for so long.
pub(crate) async fn cell_within(
    session: &Session,
    code: &str,
    millis: u64,
) -> Result<CellEnd, SessionError> {
    let until = CellLimits {
        timeout: Some(Duration::from_millis(millis)),
        ..CellLimits::default()
    };
    session.run_cell(code, LiveOutput::discard(), until).await
}

/// Returns the `repr` of a value.
pub(crate) async fn repr(session: &Session, expr: &str) -> String {
    let found = look(session, Capability::GetRepr, expr).await;
    found["repr"].as_str().unwrap().to_owned()
}

pub(crate) async fn look(session: &Session, capability: Capability, expr: &str) -> Value {
    found(call(session, capability, json!({ "expr": expr })).await)
}

pub(crate) async fn call(session: &Session, capability: Capability, args: Value) -> ToolOutcome {
    session.call(capability, &args, CellLimits::default()).await
}

#[track_caller]
pub(crate) fn found(outcome: ToolOutcome) -> Value {
    match outcome {
        ToolOutcome::Ok(output) => output.value,
        ToolOutcome::Error(error) => panic!("{error:?}"),
    }
}

#[track_caller]
pub(crate) fn failed(outcome: ToolOutcome) -> ToolError {
    match outcome {
        ToolOutcome::Ok(output) => panic!("{output:?}"),
        ToolOutcome::Error(error) => error,
    }
}

/// Returns once a process has ended; it must be told to end before.
pub(crate) async fn gone(pid: &str) {
    let stat = Path::new("/proc").join(pid.trim()).join("stat");
    let is_alive = || {
        let stat = std::fs::read_to_string(&stat).unwrap_or_default();
        // The state is after the name; a zombie has ended.
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| !rest.starts_with('Z'))
    };
    while is_alive() {
        tokio::task::yield_now().await;
    }
}
