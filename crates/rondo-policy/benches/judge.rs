//! How long the gate takes to judge a command, and what the longest lines take.
//!
//! Prints a line for each kind of command, separated by tabs: what it is, the nanoseconds of the median, of the
//! 99th of a hundred and of the slowest decision, and the most memory of this program, in KiB.
//! `cargo xtask bench --policy` makes a table of it.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark talks on the terminal and fails like a test does"
)]

use rondo_core::ports::{Gate, GateRequest};
use rondo_policy::analysis::{COMMAND_BYTES_MAX, TOKENS_MAX};
use rondo_policy::rules::{AnyOf, Decision, RuleDirs, RuleSpec};
use rondo_policy::{AllowedDirs, GateOptions, StandardGate};
use rondo_types::{ToolKind, ToolSpec};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Commands that a model runs all the time, and others that are asked about.
const COMMON: [&str; 12] = [
    "ls -la src",
    "cat README.md",
    "git status",
    "git log --oneline -5",
    "git diff",
    "grep -rn 'fn main' src",
    "sed -n '1,120p' src/a.rs",
    "cd src && wc -l a.rs | sort -n",
    "find . -name '*.rs' | head -20",
    "cargo test -p a 2>&1 | tail -20",
    "python3 -c 'print(1)'",
    "mkdir -p a/b && touch a/b/c",
];
/// Repeated parts of a long line.
const PARTS: [&str; 60] = [
    "<<a ",
    "<<$(",
    "$( (",
    "`",
    "$(",
    "${",
    "$((",
    "((",
    "(",
    "{ ",
    "[[ ( ",
    "if ",
    "for x in ",
    "case x in ",
    "x=(",
    "a[",
    "<(",
    "\"$(",
    "'",
    "$'",
    "<<-",
    "& ",
    "! ",
    "f() ",
    "*/",
    "{a,",
    "@(",
    "cd src;",
    "cat <<a\na\n",
    "git log;",
    "ls *;",
    "ls;",
    "ls|",
    "cd a||",
    "a=b ",
    "$a",
    "\\\n",
    "x=$x;",
    "env ",
    "sudo ",
    "a ",
    "ls [a-z]*",
    "bash -c '",
    "\"a\"",
    "$'a' ",
    "~/",
    "../",
    "ls ../;",
    "echo $(ls);",
    "(ls);",
    "if ls;then ls;fi;",
    "find . -exec ls ;",
    "git -C src log;",
    "2>&1 ",
    "\n",
    "#\n",
    "[!a]",
    "ls /dev/null ",
    "xargs ",
    "echo a|xargs ",
];
/// First words of a long line.
const PROGRAMS: [&str; 10] = [
    "", "ls ", "cat ", "git log ", "sed ", "awk ", "find ", "xargs ", "env ", "bash -c ",
];
/// How often each common command is judged.
const ROUNDS: usize = 400;

fn main() {
    let place = tempfile::tempdir().unwrap();
    make(place.path());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let gate = gate(place.path());
    let judge = |command: &str| {
        let request = request(command);
        let begun = Instant::now();
        runtime.block_on(gate.check(&request));
        begun.elapsed()
    };
    let common = COMMON.iter().cycle().take(COMMON.len() * ROUNDS);
    report("a common command", common.map(|it| judge(it)).collect());
    let lines = PROGRAMS
        .iter()
        .flat_map(|program| PARTS.map(|part| long(program, part, COMMAND_BYTES_MAX)));
    report("a line of 64 KiB", lines.map(|line| judge(&line)).collect());
    let words = PROGRAMS
        .iter()
        .flat_map(|program| PARTS.map(|part| long(program, part, part.len() * (TOKENS_MAX / 2))));
    report(
        "a line of as many words as are judged",
        words.map(|line| judge(&line)).collect(),
    );
}

fn long(program: &str, part: &str, bytes: usize) -> String {
    let mut line = program.to_owned();
    line.push_str(&part.repeat(bytes.saturating_sub(program.len()) / part.len()));
    line
}

fn make(project: &Path) {
    std::fs::create_dir_all(project.join("src")).unwrap();
    std::fs::write(project.join("README.md"), "a\n").unwrap();
    std::fs::write(project.join("src/a.rs"), "fn main() {}\n").unwrap();
    let status = std::process::Command::new("git")
        .args(["init", "-q"])
        .current_dir(project)
        .status();
    assert!(status.unwrap().success());
}

/// A gate with rules of each kind, so that none of its ways is left out.
fn gate(project: &Path) -> StandardGate {
    let one = |text: &str| AnyOf::One(text.to_owned());
    let command = RuleSpec {
        command: vec![one("cargo"), one("publish")],
        ..RuleSpec::new(Decision::Deny)
    };
    let path = RuleSpec {
        path: Some(one("secrets/**")),
        ..RuleSpec::new(Decision::Ask)
    };
    let dirs = RuleDirs {
        working: project,
        home: None,
    };
    let mut options = GateOptions::new(AllowedDirs::new(project, &[]).unwrap());
    let rules = Arc::make_mut(&mut options.rules);
    rules.add(vec![command, path], "policy.toml", dirs).unwrap();
    StandardGate::new(options)
}

fn request(command: &str) -> GateRequest {
    let spec = ToolSpec {
        name: "exec".to_owned(),
        kind: ToolKind::Execute,
        ..ToolSpec::default()
    };
    GateRequest::new(spec, json!({ "command": command }))
}

fn report(name: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |of_a_hundred: usize| times[(times.len() - 1) * of_a_hundred / 100].as_nanos();
    println!(
        "{name}\t{}\t{}\t{}\t{}",
        at(50),
        at(99),
        at(100),
        peak_kib()
    );
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|it| it.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}
