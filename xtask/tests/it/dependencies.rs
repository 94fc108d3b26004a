//! Dependencies between our crates point down only.

use crate::tree;
use serde::Deserialize;
use std::process::Command;

/// Crates from the bottom up: each may depend on crates of lower layers only.
const LAYERS: [&[&str]; 10] = [
    &["rondo-types"],
    &[
        "rondo-context",
        "rondo-sandbox",
        "rondo-schema",
        "rondo-wire",
    ],
    &["rondo-core"],
    &["rondo-launch", "rondo-policy"],
    &[
        "rondo-exec",
        "rondo-http",
        "rondo-journal",
        "rondo-local",
        "rondo-memory",
        "rondo-python",
        "rondo-tools",
    ],
    // Telemetry and servers go over the same connections as requests, and the web with their proxies and certificates.
    &["rondo-agent", "rondo-mcp", "rondo-otel", "rondo-web"],
    &["rondo-designs", "rondo-runtime"],
    &["rondo", "rondo-hub", "rondo-script"],
    // Channels of the hub; the screen is a host like it.
    &["rondo-telegram", "rondo-tui", "rondo-webhook"],
    &["rondo-cli"],
];
/// The bound on the longest chain of crates that depend on each other. It may only fall; the aim is 7.
const CHAIN_MAX: usize = 9;
/// Crates that are never part of the program, so that nothing but a test may depend on them.
const DEVELOPMENT: [&str; 8] = [
    "rondo-bench",
    "rondo-conformance",
    "rondo-eval",
    "rondo-fuzz-gate",
    "rondo-picture",
    "rondo-testkit",
    "rondo-tool-support",
    "xtask",
];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
    path: Option<String>,
}

#[test]
fn dependencies_point_down_only() {
    let metadata = metadata();
    let mut found = Vec::new();
    for package in &metadata.packages {
        for dependency in package.dependencies.iter().filter(|it| is_ours(it)) {
            if !may_depend(&package.name, &dependency.name) {
                found.push(format!("`{}` on `{}`", package.name, dependency.name));
            }
        }
    }
    tree::assert_none("dependencies that do not point down", &found);
}

#[test]
fn every_crate_has_a_layer() {
    let found: Vec<String> = metadata()
        .packages
        .into_iter()
        .map(|package| package.name)
        .filter(|name| layer(name).is_none() && !DEVELOPMENT.contains(&name.as_str()))
        .collect();
    tree::assert_none("crates without a layer", &found);
}

#[test]
fn chains_of_dependencies_are_short() {
    let metadata = metadata();
    let chains: Vec<Vec<&str>> = LAYERS
        .iter()
        .flat_map(|names| names.iter())
        .map(|name| chain(&metadata, name))
        .collect();
    let longest = chains.into_iter().max_by_key(Vec::len).unwrap_or_default();
    assert!(
        longest.len() <= CHAIN_MAX,
        "{} crates: {}",
        longest.len(),
        longest.join(", ")
    );
}

/// Returns the longest chain of our crates from one down.
fn chain<'a>(metadata: &'a Metadata, name: &str) -> Vec<&'a str> {
    let package = metadata
        .packages
        .iter()
        .find(|package| package.name == name);
    let package = package.expect("a layer names crates that are there");
    let below = package
        .dependencies
        .iter()
        .filter(|it| is_ours(it))
        .map(|it| chain(metadata, &it.name));
    let below = below.max_by_key(Vec::len).unwrap_or_default();
    [vec![package.name.as_str()], below].concat()
}

fn is_ours(dependency: &Dependency) -> bool {
    dependency.path.is_some() && dependency.kind.as_deref() != Some("dev")
}

#[test]
fn up_and_sideways_are_refused() {
    assert!(may_depend("rondo-core", "rondo-types"));
    assert!(may_depend("rondo-testkit", "rondo-core"));
    assert!(!may_depend("rondo-types", "rondo-core"));
    assert!(!may_depend("rondo-exec", "rondo-tools"));
    assert!(!may_depend("rondo-launch", "rondo-policy"));
    assert!(!may_depend("rondo-cli", "rondo-testkit"));
}

fn may_depend(from: &str, on: &str) -> bool {
    if DEVELOPMENT.contains(&from) {
        return on != "xtask";
    }
    match (layer(from), layer(on)) {
        (Some(from), Some(on)) => on < from,
        _ => false,
    }
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|names| names.contains(&name))
}

fn metadata() -> Metadata {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ])
        .current_dir(tree::root())
        .output()
        .expect("cargo starts");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata failed: {message}");
    serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON")
}
