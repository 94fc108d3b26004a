//! Requirement ids, the tests that prove them, and the results of those.

use crate::test_output::Status;
use crate::{test_names, test_run};
use anyhow::{Context, Result, bail};
use rondo_tool_support::{table, workspace};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// Arguments of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Runs the tests even if the last run is newer than the sources
    #[arg(long)]
    run: bool,
    /// Takes the last run even if the sources are newer
    #[arg(long, conflicts_with = "run")]
    last: bool,
    /// Prints only what is promised, without the pending ids
    #[arg(long)]
    promised: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Requirements {
    delivered: Vec<String>,
    requirement: Vec<Requirement>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Requirement {
    id: String,
    summary: String,
    due: String,
}

/// Prints the table; true when every promised id has tests and all of them passed.
///
/// # Errors
/// When the data file cannot be read, or a test names an id that is in no design.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let results_path = test_run::results_path()?;
    if args.run || (!args.last && is_stale(&results_path)?) {
        test_run::run(&test_run::Args::default())?;
    }
    let requirements = load()?;
    let tests = tests_by_id()?;
    refuse_unknown_ids(&requirements, &tests)?;
    let results = results_by_function(&test_run::recall(&results_path)?);
    let report = Report::new(&requirements, &tests, &results);
    report.print(args.promised);
    Ok(report.unproved.is_empty())
}

type Tests = BTreeMap<String, BTreeSet<String>>;
type Results = HashMap<String, Vec<Status>>;

#[derive(Default)]
struct Report {
    promised: Vec<[String; 4]>,
    pending: Vec<[String; 4]>,
    unproved: Vec<String>,
}

impl Report {
    fn new(requirements: &Requirements, tests: &Tests, results: &Results) -> Self {
        let mut report = Self::default();
        for requirement in &requirements.requirement {
            let promised = requirements.delivered.contains(&requirement.due);
            report.add(requirement, promised, tests, results);
        }
        report
    }

    fn add(&mut self, requirement: &Requirement, promised: bool, tests: &Tests, results: &Results) {
        let id = &requirement.id;
        let named: Vec<&String> = tests.get(id).into_iter().flatten().collect();
        let states: Vec<&str> = named.iter().map(|name| state_of(name, results)).collect();
        if promised && (states.is_empty() || states.iter().any(|state| *state != "ok")) {
            self.unproved.push(id.clone());
        }
        let rows = if promised {
            &mut self.promised
        } else {
            &mut self.pending
        };
        if named.is_empty() {
            let result = if promised {
                "MISSING".to_owned()
            } else {
                format!("pending: {}", requirement.due)
            };
            rows.push(row(id, "-", &result, &requirement.summary));
        }
        for (name, state) in named.into_iter().zip(states) {
            rows.push(row(id, name, state, &requirement.summary));
        }
    }

    fn print(&self, promised_only: bool) {
        let mut rows = self.promised.clone();
        if !promised_only {
            rows.extend(self.pending.iter().cloned());
        }
        print!("{}", table::render(["id", "test", "result", "what"], &rows));
        let count = |rows: &[[String; 4]]| {
            let ids: BTreeSet<&String> = rows.iter().filter_map(|row| row.first()).collect();
            ids.len()
        };
        let promised = count(&self.promised);
        println!(
            "\n{} of {promised} promised ids proved, {} pending",
            promised - self.unproved.len(),
            count(&self.pending)
        );
        if !self.unproved.is_empty() {
            println!("not proved: {}", self.unproved.join(" "));
        }
    }
}

fn row(id: &str, test: &str, result: &str, summary: &str) -> [String; 4] {
    [id, test, result, summary].map(str::to_owned)
}

fn state_of(name: &str, results: &Results) -> &'static str {
    let Some(states) = results.get(name) else {
        return "NOT RUN";
    };
    states
        .iter()
        .find(|state| **state != Status::Passed)
        .unwrap_or(&Status::Passed)
        .word()
}

fn load() -> Result<Requirements> {
    let path = workspace::root().join("conformance/requirements.toml");
    let text = fs::read_to_string(&path)
        .with_context(|| format!("failed to read `{}`", path.display()))?;
    toml::from_str(&text).with_context(|| format!("`{}` is not valid", path.display()))
}

fn tests_by_id() -> Result<Tests> {
    let mut tests = Tests::new();
    for path in workspace::rust_files()? {
        let source = fs::read_to_string(&path)
            .with_context(|| format!("failed to read `{}`", path.display()))?;
        // Names in this task's own unit tests are samples.
        if path.starts_with(workspace::root().join("xtask")) {
            continue;
        }
        for name in test_names::functions_in(&source) {
            for id in test_names::ids_in(name) {
                tests.entry(id).or_default().insert(name.to_owned());
            }
        }
    }
    Ok(tests)
}

fn refuse_unknown_ids(requirements: &Requirements, tests: &Tests) -> Result<()> {
    let known: BTreeSet<&String> = requirements.requirement.iter().map(|r| &r.id).collect();
    for (id, names) in tests {
        if !known.contains(id) {
            bail!("no design has an id `{id}`, which {names:?} name");
        }
    }
    Ok(())
}

fn results_by_function(tests: &[(String, Status)]) -> Results {
    let mut results = Results::new();
    for (path, status) in tests {
        let function = path.rsplit("::").next().unwrap_or(path);
        results
            .entry(function.to_owned())
            .or_default()
            .push(*status);
    }
    results
}

fn is_stale(results: &Path) -> Result<bool> {
    let Ok(metadata) = fs::metadata(results) else {
        return Ok(true);
    };
    let recorded = metadata.modified()?;
    let newest = newest_source()?;
    Ok(newest > recorded)
}

fn newest_source() -> Result<SystemTime> {
    let mut newest = SystemTime::UNIX_EPOCH;
    for path in workspace::rust_files()? {
        newest = newest.max(fs::metadata(&path)?.modified()?);
    }
    Ok(newest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requirements() -> Requirements {
        toml::from_str(
            r#"
            delivered = ["now"]
            requirement = [
                { id = "FA-1", summary = "one", due = "now" },
                { id = "FA-2", summary = "two", due = "now" },
                { id = "FA-3", summary = "three", due = "later" },
            ]"#,
        )
        .unwrap()
    }

    fn tests(pairs: &[(&str, &str)]) -> Tests {
        let mut tests = Tests::new();
        for (id, name) in pairs {
            tests
                .entry((*id).to_owned())
                .or_default()
                .insert((*name).to_owned());
        }
        tests
    }

    #[test]
    fn a_promised_id_needs_a_passing_test() {
        let tests = tests(&[("FA-1", "fa_1_a"), ("FA-2", "fa_2_b")]);
        let ran = [
            ("x::fa_1_a".to_owned(), Status::Passed),
            ("y::fa_2_b".to_owned(), Status::Failed),
        ];
        let report = Report::new(&requirements(), &tests, &results_by_function(&ran));
        assert_eq!(report.unproved, ["FA-2"]);
        assert_eq!(
            report.pending,
            [row("FA-3", "-", "pending: later", "three")]
        );
    }

    #[test]
    fn a_test_that_is_missing_or_did_not_run_proves_nothing() {
        let report = Report::new(
            &requirements(),
            &tests(&[("FA-2", "fa_2_b")]),
            &Results::new(),
        );
        assert_eq!(report.unproved, ["FA-1", "FA-2"]);
        assert_eq!(
            report.promised,
            [
                row("FA-1", "-", "MISSING", "one"),
                row("FA-2", "fa_2_b", "NOT RUN", "two")
            ]
        );
    }

    #[test]
    fn one_failure_among_tests_of_one_name_counts() {
        let ran = [
            ("a::fa_1_x".to_owned(), Status::Passed),
            ("b::fa_1_x".to_owned(), Status::Failed),
        ];
        assert_eq!(state_of("fa_1_x", &results_by_function(&ran)), "FAILED");
    }

    #[test]
    fn an_id_of_no_design_is_refused() {
        assert!(refuse_unknown_ids(&requirements(), &tests(&[("FA-99", "fa_99_x")])).is_err());
    }

    #[test]
    fn the_data_file_lists_every_id_once() {
        let mut ids: Vec<String> = load()
            .unwrap()
            .requirement
            .into_iter()
            .map(|requirement| requirement.id)
            .collect();
        let mut expected: Vec<String> = [
            ("PY-", 51),
            ("PY-T", 21),
            ("FA-", 36),
            ("MY-", 25),
            ("HUB-", 35),
            ("GS-", 18),
            ("GS-F", 5),
        ]
        .into_iter()
        .flat_map(|(prefix, last)| (1..=last).map(move |number| format!("{prefix}{number}")))
        .chain(["HUB-T".to_owned(), "GS-T".to_owned()])
        .collect();
        ids.sort();
        expected.sort();
        assert_eq!(ids, expected);
    }
}
