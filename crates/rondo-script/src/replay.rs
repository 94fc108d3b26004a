//! Runs a recorded script again over its records alone, and says what differs.

use crate::error::ScriptError;
use crate::host::{ScriptHost, StdinRead, UserQuestion};
use crate::run::{Script, replay};
use async_trait::async_trait;
use rondo_core::ports::{GateRequest, QuestionReply, RecordBody, ScriptRun, Verdict};
use rondo_core::{Approver, Gate};
use rondo_runtime::Runtime;
use rondo_runtime::script::ScriptSession;
use rondo_runtime::settings::Settings;
use rondo_types::{Question, TurnEvent};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A script that ran again over its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayedScript {
    /// Its file, as it was named.
    pub name: String,
    /// Calls in the records.
    pub calls: usize,
    /// Its exit code; `None` if the records end before the script does.
    pub exit_code: Option<u8>,
    /// Differences from the records, one a line.
    pub differences: Vec<String>,
}

/// Runs a script over its records: the recorded one, or a changed one in its place, with the recorded arguments. No
/// call is made and nothing is printed. `None` if the records have no script.
///
/// # Cancel safety
/// Cancel safe: nothing happens outside.
pub async fn replay_records(
    runtime: &Runtime,
    settings: &Settings,
    records: Vec<RecordBody>,
    changed: Option<&Script>,
) -> Option<ReplayedScript> {
    let RecordBody::ScriptStarted(run) = records.first()? else {
        return None;
    };
    let script = to_run(run, changed);
    let name = script.name.clone();
    let is_finished = |it: &&RecordBody| matches!(it, RecordBody::ScriptCallFinished { .. });
    let calls = records.iter().filter(is_finished).count();
    let ended = records.iter().rev().find_map(|it| match it {
        RecordBody::ScriptFinished { exit_code, error } => Some((*exit_code, error.clone())),
        _ => None,
    });
    let mut settings = settings.clone();
    settings.values.ephemeral = Some(true);
    settings.values.deadline = None;
    let session = ScriptSession::new(runtime.clone(), settings);
    let cancel = CancellationToken::new();
    let end = replay(script, session, records, Arc::new(Nobody), &cancel).await;
    let (exit_code, error) = match &end.result {
        Ok(code) => (Some(*code), None),
        Err(ScriptError::RecordsEnd(_)) if ended.is_none() => (None, None),
        Err(ScriptError::Raised(why) | ScriptError::Setup { message: why, .. }) => {
            (Some(1), Some(why.clone()))
        }
        Err(error) => (None, Some(error.to_string())),
    };
    let is_as_recorded =
        ended.is_none_or(|(code, why)| exit_code == Some(code) && error.is_some() == why.is_some());
    let mut differences = Vec::new();
    if !is_as_recorded || (exit_code.is_none() && error.is_some()) {
        differences.push(match (&error, exit_code) {
            (Some(why), _) => why.clone(),
            (None, Some(code)) => format!("{name}: the script ends with exit code {code}"),
            (None, None) => format!("{name}: the script continues past its records"),
        });
    }
    if differences.is_empty() {
        differences.extend(end.unused);
    }
    Some(ReplayedScript {
        name,
        calls,
        exit_code,
        differences,
    })
}

/// Modules are in the records, so there is no directory to read them from.
fn to_run(recorded: &ScriptRun, changed: Option<&Script>) -> Script {
    let (name, source) = match changed {
        Some(script) => (&script.name, &script.source),
        None => (&recorded.name, &recorded.source),
    };
    Script {
        name: name.clone(),
        source: source.clone(),
        directory: PathBuf::new(),
        arguments: recorded.arguments.clone(),
        seed: recorded.seed,
    }
}

/// A host that nothing comes from or goes to.
struct Nobody;

#[async_trait]
impl ScriptHost for Nobody {
    fn stdout(&self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn stderr(&self, _: &[u8]) {}

    async fn stdin(&self, _: StdinRead, _: usize) -> io::Result<Option<Vec<u8>>> {
        Ok(None)
    }

    async fn ask(&self, _: &UserQuestion) -> Result<String, String> {
        Err("no user is available".to_owned())
    }

    fn approver(&self) -> Arc<dyn Approver> {
        Arc::new(Self)
    }

    fn gate(&self) -> Option<Arc<dyn Gate>> {
        Some(Arc::new(Self))
    }

    fn event(&self, _: &str, _: &TurnEvent) {}
}

#[async_trait]
impl Approver for Nobody {
    async fn ask(&self, question: &Question) -> QuestionReply {
        QuestionReply::denied(question, "replay", "nothing runs in a replay")
    }
}

#[async_trait]
impl Gate for Nobody {
    async fn check(&self, _: &GateRequest) -> Verdict {
        let reason = "nothing runs in a replay".to_owned();
        Verdict::Deny { reason }
    }
}
