//! Tests: the history of typed lines.

use super::*;
use crate::repl::mode::Mode;
use reedline::SearchFilter;
use rondo_core::redact::Secrets;
use std::fs::OpenOptions;
use std::io::Write as _;

struct Scene {
    folder: tempfile::TempDir,
    shared: Shared,
}

impl Scene {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            shared: Shared::new(Mode::Agent),
        }
    }

    fn lines(&self) -> Lines {
        let file = self.folder.path().join("state/history.jsonl");
        let secrets = Secrets::new(["hunter2hunter2".to_owned()]);
        self.shared.set_secrets(secrets);
        Lines::read(Some(file), self.shared.clone(), KeyNames::new(Vec::new()))
    }
}

fn type_in(lines: &mut Lines, mode: Mode, line: &str) {
    lines.shared.set_mode(mode);
    lines.save(HistoryItem::from_command_line(line)).unwrap();
}

/// Presses the key for the line before, over and over.
fn recalled(lines: &Lines, search: Option<CommandLineSearch>) -> Vec<String> {
    let mut filter = SearchFilter::anything(None);
    filter.command_line = search;
    let mut query = SearchQuery::last_with_search(filter);
    let mut found = Vec::new();
    loop {
        let again = match &query.filter.command_line {
            Some(CommandLineSearch::Prefix(text)) => Some(CommandLineSearch::Prefix(text.clone())),
            _ => None,
        };
        let Some(item) = lines.search(query).unwrap().pop() else {
            return found;
        };
        found.push(item.command_line.clone());
        let mut filter = SearchFilter::anything(None);
        filter.command_line = again;
        query = SearchQuery {
            start_id: item.id,
            ..SearchQuery::last_with_search(filter)
        };
    }
}

#[test]
fn lines_outlive_their_session_and_are_spelled_for_the_mode() {
    let scene = Scene::new();
    let mut lines = scene.lines();
    type_in(&mut lines, Mode::Shell, "ls -l");
    type_in(&mut lines, Mode::Agent, "why?");
    type_in(&mut lines, Mode::Agent, "why?");
    type_in(&mut lines, Mode::Python, "x = 1\ny = 2");
    drop(lines);
    let lines = scene.lines();
    scene.shared.set_mode(Mode::Agent);
    assert_eq!(recalled(&lines, None), [">x = 1\ny = 2", "why?", "!ls -l"]);
    scene.shared.set_mode(Mode::Shell);
    let found = recalled(&lines, Some(CommandLineSearch::Prefix("ls".into())));
    assert_eq!(found, ["ls -l"]);
}

#[test]
fn what_was_typed_is_private_and_without_secrets() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = Scene::new();
    type_in(&mut scene.lines(), Mode::Shell, "login hunter2hunter2");
    let file = scene.folder.path().join("state/history.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("login [redacted]"), "{text}");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn keys_in_lines_for_the_shell_are_not_kept() {
    let scene = Scene::new();
    let mut lines = scene.lines();
    type_in(&mut lines, Mode::Agent, "is max_token=5 enough?");
    type_in(&mut lines, Mode::Agent, "!A_TOKEN=abc ls");
    type_in(&mut lines, Mode::Agent, "export A_TOKEN=abc");
    type_in(&mut lines, Mode::Shell, "# A_TOKEN=5?");
    type_in(&mut lines, Mode::Shell, "A_TOKEN=abc ls");
    type_in(&mut lines, Mode::Python, "f(next_token=abc)");
    scene.shared.set_mode(Mode::Agent);
    let expected = [
        ">f(next_token=abc)",
        "!A_TOKEN=[redacted] ls",
        "# A_TOKEN=5?",
        "export A_TOKEN=[redacted]",
        "!A_TOKEN=[redacted] ls",
        "is max_token=5 enough?",
    ];
    assert_eq!(recalled(&lines, None), expected);
}

#[test]
fn a_line_that_is_cut_off_costs_no_other() {
    let scene = Scene::new();
    type_in(&mut scene.lines(), Mode::Agent, "one");
    let file = scene.folder.path().join("state/history.jsonl");
    let mut cut = OpenOptions::new().append(true).open(&file).unwrap();
    cut.write_all(b"{\"at_ms\":1,\"mode\":\"agent\",\"li\n")
        .unwrap();
    type_in(&mut scene.lines(), Mode::Agent, "two");
    assert_eq!(recalled(&scene.lines(), None), ["two", "one"]);
}
