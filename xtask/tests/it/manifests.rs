//! The manifests: reasons, features, lints.

use crate::tree;
use toml::{Table, Value};

/// Crates that need no reason because nearly every Rust program has them.
const FOUNDATIONS: [&str; 5] = ["serde", "serde_json", "thiserror", "tokio", "tracing"];
const KINDS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

#[test]
fn every_outside_dependency_says_why_it_is_there() {
    let manifest = tree::read("Cargo.toml");
    tree::assert_none(
        "dependencies without a reason above",
        &without_reason(&manifest),
    );
}

#[test]
fn a_dependency_without_a_reason_is_found() {
    let manifest = "[workspace.dependencies]\n# Because.\nthis = \"1\"\nthat = \"1\"\nours = { path = \"x\" }\n\n[other]\nkey = 1\n";
    assert_eq!(without_reason(manifest), ["that"]);
}

#[test]
fn dates_are_the_business_of_one_crate() {
    let manifest = parse("Cargo.toml");
    let ours = manifest
        .get("workspace")
        .and_then(|it| it.get("dependencies"));
    let others = ["chrono", "time", "humantime"];
    let found = others.map(|name| ours.is_some_and(|ours| ours.get(name).is_some()));
    assert_eq!(
        found, [false; 3],
        "jiff is the crate for dates, not {others:?}"
    );
}

#[test]
fn crates_take_their_dependencies_from_the_workspace_unchanged() {
    let mut found = Vec::new();
    for path in member_manifests() {
        let manifest = parse(&path);
        for kind in KINDS {
            for (name, value) in table(&manifest, kind) {
                let is_added = match kind {
                    "dev-dependencies" => adds_only(&value, is_for_tests),
                    _ => name == "tokio" && adds_only(&value, is_for_processes),
                };
                if !is_added && !is_plain(&value) {
                    found.push(format!("{path}: `{name}`"));
                }
            }
        }
    }
    tree::assert_none(
        "versions and features are fixed in the workspace only",
        &found,
    );
}

#[test]
fn a_changed_dependency_is_found() {
    let entry = |text: &str| text.parse::<Table>().unwrap()["x"].clone();
    assert!(is_plain(&entry("x = { workspace = true }")));
    assert!(!is_plain(&entry(
        "x = { workspace = true, features = [\"y\"] }"
    )));
    assert!(!is_plain(&entry("x = \"1\"")));
    let added = |feature: &str| {
        entry(&format!(
            "x = {{ workspace = true, features = [\"{feature}\"] }}"
        ))
    };
    assert!(adds_only(&added("test-util"), is_for_tests));
    assert!(!adds_only(&added("test-util"), is_for_processes));
    assert!(adds_only(&added("process"), is_for_processes));
    assert!(!adds_only(&added("full"), is_for_tests));
}

#[test]
fn every_crate_has_the_workspaces_lints_and_package_fields() {
    let mut found = Vec::new();
    for path in member_manifests() {
        let manifest = parse(&path);
        if table(&manifest, "lints").get("workspace") != Some(&Value::Boolean(true)) {
            found.push(format!("{path}: no workspace lints"));
        }
        let package = table(&manifest, "package");
        for field in ["version", "edition", "rust-version", "license", "publish"] {
            let inherited = package.get(field).and_then(|value| value.get("workspace"));
            if inherited != Some(&Value::Boolean(true)) {
                found.push(format!("{path}: `{field}` is its own"));
            }
        }
    }
    tree::assert_none("what every crate inherits", &found);
}

#[test]
fn no_banned_crate_is_locked() {
    let banned = banned_names();
    assert!(banned.iter().any(|name| name == "openssl"));
    let lock = tree::read("Cargo.lock");
    let found: Vec<String> = banned
        .into_iter()
        .filter(|name| lock.contains(&format!("name = \"{name}\"\n")))
        .collect();
    tree::assert_none("crates that deny.toml bans", &found);
}

fn banned_names() -> Vec<String> {
    let bans = table(&parse("deny.toml"), "bans");
    let denied = bans.get("deny").and_then(Value::as_array);
    denied
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.get("crate").and_then(Value::as_str))
        .map(str::to_owned)
        .collect()
}

fn without_reason(manifest: &str) -> Vec<String> {
    let mut previous = "";
    let mut found = Vec::new();
    let section = manifest
        .lines()
        .skip_while(|line| *line != "[workspace.dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['));
    for line in section {
        if let Some((name, value)) = line.split_once(" = ") {
            let is_ours = value.contains("path =");
            let has_reason = previous.starts_with('#') || FOUNDATIONS.contains(&name);
            if !line.starts_with('#') && !is_ours && !has_reason {
                found.push(name.to_owned());
            }
        }
        previous = line;
    }
    found
}

/// `workspace = true`, and at most `optional` beside it.
fn is_plain(value: &Value) -> bool {
    value.as_table().is_some_and(|entry| {
        entry.get("workspace") == Some(&Value::Boolean(true))
            && entry
                .keys()
                .all(|key| key == "workspace" || key == "optional")
    })
}

/// Paused time is for tests; in a release it would make every look at the clock dearer. Examples use standard input and
/// output.
fn is_for_tests(feature: &str) -> bool {
    ["test-util", "power", "io-std"].contains(&feature) || is_for_processes(feature)
}

/// Processes, signals and threads bring crates and code that those who only ask models over HTTP do not need.
fn is_for_processes(feature: &str) -> bool {
    ["process", "rt-multi-thread", "signal"].contains(&feature)
}

/// Returns whether an entry takes the workspace's dependency and adds no features but such.
fn adds_only(value: &Value, may: impl Fn(&str) -> bool) -> bool {
    value.as_table().is_some_and(|entry| {
        let features = entry.get("features").and_then(Value::as_array);
        let all = |features: &Vec<Value>| features.iter().all(|it| it.as_str().is_some_and(&may));
        entry.len() == 2
            && entry.get("workspace") == Some(&Value::Boolean(true))
            && features.is_some_and(all)
    })
}

fn member_manifests() -> Vec<String> {
    tree::files_ending("toml")
        .into_iter()
        .filter(|path| path.ends_with("/Cargo.toml"))
        .filter(|path| {
            ["crates/", "tools/", "xtask/"]
                .iter()
                .any(|top| path.starts_with(top))
        })
        .collect()
}

fn parse(path: &str) -> Table {
    tree::read(path)
        .parse()
        .unwrap_or_else(|err| panic!("`{path}` is not TOML: {err}"))
}

fn table(manifest: &Table, key: &str) -> Table {
    manifest
        .get(key)
        .and_then(Value::as_table)
        .cloned()
        .unwrap_or_default()
}
