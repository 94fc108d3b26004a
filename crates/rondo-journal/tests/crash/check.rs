//! Conditions that must hold in the end.

use crate::harness;
use crate::scenario::{ANSWER, Scenario, step_of};
use crate::table::{Doubts, Moment};
use crate::victim::{self, SESSION};
use rondo_core::ports::{Record, RecordBody};
use rondo_journal::{Options, Store};
use rondo_testkit::check_paired;
use rondo_types::{CallId, InDoubtDecision, SessionId, StopReason, ToolErrorCode, ToolOutcome};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// How many kills there are at least for a hundred points. Each point is killed at, and every second
/// case twice; calls that run side by side may pass one point less than they did undisturbed.
const KILLED_PERCENT_MIN: usize = 110;

/// Everything that is left of a case.
pub(crate) struct End {
    pub(crate) points: Vec<String>,
    died_at: Vec<String>,
    records: Vec<Record>,
    requests: Vec<Value>,
    effects: BTreeMap<String, usize>,
    files: BTreeMap<String, String>,
}

impl End {
    pub(crate) fn read(home: &Path, requests: Vec<Value>, died_at: Vec<String>) -> Self {
        let store = Store::open(&victim::store_dir(home), Options::default()).unwrap();
        let entries = store.read_all(&SessionId::new(SESSION)).unwrap();
        let effects = std::fs::read_to_string(victim::effects(home)).unwrap();
        let mut counted = BTreeMap::new();
        for line in effects.lines() {
            *counted.entry(line.to_owned()).or_default() += 1;
        }
        Self {
            points: harness::points(home),
            died_at,
            records: entries
                .into_iter()
                .filter_map(|entry| entry.into_record())
                .collect(),
            requests,
            effects: counted,
            files: files(&victim::work_dir(home)),
        }
    }

    /// Returns how the calls ended, each as often as it is recorded.
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

    fn tool_of(&self, id: &CallId) -> &str {
        let begun = self.records.iter().find_map(|record| match &record.body {
            RecordBody::ToolStarted { call_id, name, .. } if call_id == id => Some(name.as_str()),
            _ => None,
        });
        begun.unwrap_or("nobody's")
    }

    fn doubts(&self) -> impl Iterator<Item = (&str, InDoubtDecision)> {
        self.records.iter().filter_map(|record| match &record.body {
            RecordBody::ToolInDoubt {
                call_id, decision, ..
            } => Some((self.tool_of(call_id), *decision)),
            _ => None,
        })
    }
}

fn files(work: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(work).unwrap().map(Result::unwrap);
    let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
    files
        .map(|file| {
            let name = file.file_name().into_string().unwrap();
            (name, std::fs::read_to_string(file.path()).unwrap())
        })
        .collect()
}

/// Findings in one case.
#[derive(Default)]
pub(crate) struct Found {
    kills: usize,
    problems: Vec<String>,
    lost: usize,
    repeated: usize,
    doubts: Doubts,
}

/// Compares the end of a case with that of the same turn undisturbed.
pub(crate) fn compare(scenario: &Scenario, undisturbed: &End, end: &End) -> Found {
    let mut found = Found {
        kills: end.died_at.len(),
        ..Found::default()
    };
    let mut problems = Vec::new();
    check_final(end, &mut problems);
    check_requests(end, &mut problems);
    check_outcomes(undisturbed, end, &mut problems);
    count_effects(undisturbed, end, &mut found);
    if end.files != undisturbed.files {
        problems.push(format!("the files differ: {:?}", end.files));
    }
    let moment = Moment::of(&end.died_at);
    for (tool, decision) in end.doubts() {
        found.doubts.add(tool, moment, decision);
    }
    let place = format!("{} killed at {:?}: ", scenario.name, end.died_at);
    found.problems = problems.iter().map(|it| place.clone() + it).collect();
    found
}

fn check_final(end: &End, problems: &mut Vec<String>) {
    let finals = end.records.iter().filter_map(|record| match &record.body {
        RecordBody::Final {
            stop_reason,
            text,
            degraded,
            ..
        } => Some((*stop_reason, text.clone(), *degraded)),
        _ => None,
    });
    let finals: Vec<_> = finals.collect();
    if finals != [(StopReason::Complete, ANSWER.concat(), false)] {
        problems.push(format!("it ended as {finals:?}"));
    }
}

/// Every request pairs calls and results, was announced, and is not asked again once its reply is
/// recorded.
fn check_requests(end: &End, problems: &mut Vec<String>) {
    let mut announced: BTreeMap<u32, usize> = BTreeMap::new();
    let mut replied = Vec::new();
    for record in &end.records {
        match &record.body {
            RecordBody::ModelRequested { .. } => {
                *announced.entry(record.step).or_default() += 1;
                if replied.contains(&record.step) {
                    problems.push(format!("step {} was asked for again", record.step));
                }
            }
            RecordBody::ModelReplied { .. } => replied.push(record.step),
            _ => {}
        }
    }
    let mut sent: BTreeMap<u32, usize> = BTreeMap::new();
    for request in &end.requests {
        problems.extend(check_paired(request).err());
        let step = u32::try_from(step_of(request)).unwrap() + 1;
        *sent.entry(step).or_default() += 1;
    }
    for (step, count) in sent {
        if count > announced.get(&step).copied().unwrap_or_default() {
            problems.push(format!("step {step} was sent more often than recorded"));
        }
    }
}

/// Each call ends once, and as it does undisturbed, unless its end is unknown.
fn check_outcomes(undisturbed: &End, end: &End, problems: &mut Vec<String>) {
    let (expected, got) = (undisturbed.outcomes(), end.outcomes());
    if !expected.keys().eq(got.keys()) {
        problems.push(format!("other calls ended: {:?}", got.keys()));
    }
    for (id, outcomes) in got {
        let is_same = expected.get(id) == Some(&outcomes);
        if !is_same && !matches!(&outcomes[..], [only] if is_in_doubt(only)) {
            problems.push(format!(
                "`{}` ended as {outcomes:?}, not as {:?}",
                end.tool_of(id),
                expected.get(id),
            ));
        }
    }
}

fn is_in_doubt(outcome: &ToolOutcome) -> bool {
    matches!(outcome, ToolOutcome::Error(error) if error.code == ToolErrorCode::InDoubt)
}

/// An effect happens once; if its call is in doubt, once or not at all.
fn count_effects(undisturbed: &End, end: &End, found: &mut Found) {
    let outcomes = end.outcomes();
    let mut unknown = outcomes.values().flatten().filter(|it| is_in_doubt(it));
    let may_lack = unknown.next().is_some();
    for token in undisturbed.effects.keys() {
        match end.effects.get(token).copied().unwrap_or_default() {
            1 => {}
            0 if may_lack => {}
            0 => found.lost += 1,
            _ => found.repeated += 1,
        }
    }
}

/// Findings in all cases.
#[derive(Default)]
pub(crate) struct Tally {
    scenarios: usize,
    points: usize,
    cases: usize,
    found: Found,
}

impl Tally {
    pub(crate) fn add_scenario(&mut self, undisturbed: &End) {
        self.scenarios += 1;
        self.points += undisturbed.points.len();
        assert!(!undisturbed.effects.is_empty(), "it has nothing to lose");
    }

    pub(crate) fn add(&mut self, found: Found) {
        self.cases += 1;
        self.found.kills += found.kills;
        self.found.lost += found.lost;
        self.found.repeated += found.repeated;
        self.found.problems.extend(found.problems);
        self.found.doubts.merge(found.doubts);
    }

    pub(crate) fn print(&self) {
        let found = &self.found;
        println!("{}", found.doubts);
        println!(
            "crash: {} scenarios, {} points, {} cases, {} kills; {} effects lost, {} repeated; {}",
            self.scenarios,
            self.points,
            self.cases,
            found.kills,
            found.lost,
            found.repeated,
            found.doubts.summary(),
        );
    }

    pub(crate) fn assert(&self) {
        assert!(self.found.problems.is_empty(), "{:#?}", self.found.problems);
        assert_eq!((self.found.lost, self.found.repeated), (0, 0));
        assert!(
            self.found.kills * 100 >= self.points * KILLED_PERCENT_MIN,
            "too few were killed"
        );
        self.found.doubts.assert_resolved();
    }
}
