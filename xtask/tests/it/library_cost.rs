//! Compile cost of the library for its users: the table in `docs/library.md` matches cargo's figures.

use crate::tree;
use std::collections::BTreeSet;
use std::process::Command;

/// The bound on distinct crates below `rondo` with its default features, itself included, and those
/// that only build others.
const DEFAULT_CRATES_MAX: usize = 134;
/// The features in the table, besides the default ones.
const FEATURES: [&str; 8] = [
    "files", "exec", "python", "journal", "memory", "otel", "designs", "full",
];

#[test]
fn the_default_features_bring_no_more_crates_than_promised() {
    let crates = crates("");
    assert!(crates <= DEFAULT_CRATES_MAX, "{crates} crates");
}

#[test]
fn the_table_of_the_library_says_what_each_feature_brings() {
    let default = crates("");
    let mut table = vec![
        "| features | crates | more than by default |".to_owned(),
        "|---|---|---|".to_owned(),
        format!("| default (`http`) | {default} | |"),
    ];
    for feature in FEATURES {
        let crates = crates(feature);
        table.push(format!(
            "| and `{feature}` | {crates} | {} |",
            crates - default
        ));
    }
    let table = table.join("\n");
    let page = tree::read("docs/library.md");
    assert!(page.contains(&table), "the table must be:\n{table}");
}

/// Counts distinct crates, by name and version, on Linux.
fn crates(feature: &str) -> usize {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "-p", "rondo", "-e", "normal,build"])
        .args(["--target", "x86_64-unknown-linux-gnu", "--prefix", "none"])
        .args(["--features", feature])
        .current_dir(tree::root())
        .output()
        .expect("cargo starts");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo tree failed: {message}");
    let text = String::from_utf8(output.stdout).expect("cargo tree is UTF-8");
    let name = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().take(2).collect();
        words.join(" ")
    };
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.map(name).collect::<BTreeSet<_>>().len()
}
