//! Conditions that must hold whatever was killed.

use crate::case::CaseDir;
use crate::target::{self, Process};
use crate::work::{ANSWER, ScriptedTurn};
use rondo_core::history::History;
use rondo_core::ports::{Record, RecordBody};
use rondo_journal::{Options, SessionState, Store};
use rondo_types::{CallId, SessionId, StopReason, ToolErrorCode, ToolOutcome};
use rustix::process::{Signal, kill_process};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// How long what was started may continue once the turn is over: a command's own time, and what its
/// guard gives a supervisor that was stopped.
const ORPHANS_MAX: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Records at the latest look.
#[derive(Default)]
pub(crate) struct Journal {
    session: Option<SessionId>,
    records: Vec<Record>,
}

impl Journal {
    /// Reads the journal again, which may have grown and nothing else. Returns what is wrong.
    pub(crate) fn grow(&mut self, dir: &CaseDir) -> Vec<String> {
        match self.read(dir) {
            Ok(problems) => problems,
            Err(err) => vec![format!("the journal cannot be read: {err}")],
        }
    }

    fn read(&mut self, dir: &CaseDir) -> Result<Vec<String>, rondo_journal::JournalError> {
        let mut problems = Vec::new();
        let store = Store::open(&dir.sessions(), Options::default())?;
        let sessions = store.sessions(usize::MAX)?;
        if sessions.len() > 1 {
            problems.push(format!("there are {} sessions", sessions.len()));
        }
        let Some(info) = sessions.into_iter().next() else {
            if self.session.is_some() {
                problems.push("the session is gone".to_owned());
            }
            return Ok(problems);
        };
        if let Some(defect) = store.check(&info.id)?.defect {
            problems.push(format!("the chain is broken: {}", defect.reason));
        }
        let entries = store.read_all(&info.id)?.into_iter();
        let records: Vec<Record> = entries
            .filter_map(rondo_journal::Entry::into_record)
            .collect();
        if !records.starts_with(&self.records) {
            problems.push("records were lost or changed".to_owned());
        }
        (self.session, self.records) = (Some(info.id), records);
        Ok(problems)
    }

    fn state(&self, dir: &CaseDir) -> Option<SessionState> {
        let store = Store::open(&dir.sessions(), Options::default()).ok()?;
        Some(store.session(self.session.as_ref()?).ok()?.state)
    }

    /// Returns whether a turn is recorded, and over.
    pub(crate) fn is_over(&self, dir: &CaseDir) -> bool {
        self.state(dir) == Some(SessionState::Done)
    }

    /// Returns the command that the session needs to continue.
    pub(crate) fn standing(&self, dir: &CaseDir) -> Standing {
        match self.state(dir) {
            Some(SessionState::CutOff | SessionState::Running) => Standing::CutOff,
            Some(SessionState::Parked) => {
                let history = History::of(&self.records);
                let open = history.open_turn();
                let mut questions = open.into_iter().flat_map(|it| it.questions);
                questions
                    .next()
                    .map_or(Standing::CutOff, |it| Standing::Waits(it.id.0))
            }
            Some(SessionState::Done) | None => Standing::Over,
        }
    }

    fn outcomes(&self) -> BTreeMap<&CallId, Vec<&ToolOutcome>> {
        let mut outcomes: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for record in &self.records {
            if let RecordBody::ToolFinished {
                call_id, outcome, ..
            } = &record.body
            {
                outcomes.entry(call_id).or_default().push(outcome);
            }
        }
        outcomes
    }
}

/// State of a session.
pub(crate) enum Standing {
    /// Its turn is over, or there is none.
    Over,
    CutOff,
    /// For an answer to the question of this name.
    Waits(String),
}

/// Findings in the end.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) calls: u64,
    pub(crate) in_doubt: u64,
    pub(crate) problems: Vec<String>,
}

pub(crate) async fn end(dir: &CaseDir, turn: &ScriptedTurn, journal: &Journal) -> Found {
    let mut found = Found::default();
    if journal.session.is_some() {
        if journal.state(dir) != Some(SessionState::Done) {
            found
                .problems
                .push(format!("the turn is {:?}", journal.state(dir)));
        }
        check_turn(journal, &mut found.problems);
    }
    let effects = std::fs::read_to_string(dir.root().join("effects")).unwrap_or_default();
    check_calls(&effects, turn, journal, &mut found);
    for orphan in orphans(dir.mark()).await {
        found.problems.push(format!("{} was left", orphan.told()));
        let _ = kill_process(orphan.pid, Signal::KILL);
    }
    found
}

/// A turn that was recorded ends once, with its answer, and asks for no reply that it has.
fn check_turn(journal: &Journal, problems: &mut Vec<String>) {
    let mut replied = Vec::new();
    let mut ends = Vec::new();
    for record in &journal.records {
        match &record.body {
            RecordBody::ModelRequested { .. } if replied.contains(&record.step) => {
                problems.push(format!("step {} was asked for again", record.step));
            }
            RecordBody::ModelReplied { .. } => replied.push(record.step),
            RecordBody::Final {
                stop_reason, text, ..
            } => ends.push((*stop_reason, text.as_str())),
            _ => {}
        }
    }
    if ends != [(StopReason::Complete, ANSWER)] {
        problems.push(format!("the turn ended as {ends:?}"));
    }
}

/// A call ends once, and has its effect once if it is done; at most once if it is in doubt.
fn check_calls(effects: &str, turn: &ScriptedTurn, journal: &Journal, found: &mut Found) {
    let count = |token: &str| effects.lines().filter(|line| *line == token).count();
    for (id, outcomes) in journal.outcomes() {
        found.calls += 1;
        let is_done = outcomes.iter().any(|it| it.is_ok());
        if outcomes.len() != 1 {
            found
                .problems
                .push(format!("`{id}` ended {} times", outcomes.len()));
        }
        let is_doubted = |it: &&ToolOutcome| matches!(it, ToolOutcome::Error(error) if error.code == ToolErrorCode::InDoubt);
        found.in_doubt += u64::from(outcomes.iter().any(is_doubted));
        if is_done
            && turn.has_effect(id.as_str())
            && count(id.as_str()) == 0
            && !was_struck(&outcomes)
        {
            found
                .problems
                .push(format!("the effect of `{id}` is lost: {outcomes:?}"));
        }
    }
    let mut tokens: Vec<&str> = effects.lines().collect();
    tokens.sort_unstable();
    for pair in tokens.windows(2) {
        if let [first, second] = pair
            && first == second
        {
            found.problems.push(format!("`{first}` was done twice"));
        }
    }
}

/// A command that was killed itself, or whose child was, ends without its effect and says so.
fn was_struck(outcomes: &[&ToolOutcome]) -> bool {
    let said = format!("{outcomes:?}");
    said.contains("SIGKILL") || said.contains("Killed")
}

/// Waits for the end of what was started, and returns what does not end. A supervisor that was stopped
/// and whose agent and guard are gone can be woken only by the process that stopped it; it must end then.
async fn orphans(mark: &str) -> Vec<Process> {
    let until = Instant::now() + ORPHANS_MAX;
    loop {
        let left = target::processes(mark);
        for alone in target::without_guard(&left) {
            let _ = kill_process(alone.pid, Signal::CONT);
        }
        if left.is_empty() || Instant::now() >= until {
            return left;
        }
        sleep(LOOK_EVERY).await;
    }
}
