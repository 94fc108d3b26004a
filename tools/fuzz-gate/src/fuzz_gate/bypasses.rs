//! Attempts to pass the gate, from advisories and manuals: none may be allowed.

use super::world::World;
use super::{Tester, attempt as in_sandbox};
use anyhow::{Context, Result};
use rondo_policy::{
    AllowedDirs, GateOptions, ReadOnlySandbox, StandardGate, ToolPatterns, Workdir,
};
use rondo_tool_support::workspace;
use serde::Deserialize;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const FILE: &str = "fuzz/corpus/gate/bypasses.toml";
/// The tool that runs commands.
const TOOL: &str = "exec";
/// Search path of commands when attempts are judged.
const SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Corpus {
    class: Vec<Class>,
}

/// Attempts of one kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Class {
    pub(super) name: String,
    /// Script that bash runs in the project before each of them.
    #[serde(default)]
    pub(super) setup: String,
    /// Commands that a user allowed beside read-only ones.
    #[serde(default)]
    allowed: Vec<String>,
    pub(super) attempts: Vec<String>,
}

impl Class {
    /// Makes a project of its own, as the attempts expect it.
    fn world(&self) -> Result<(tempfile::TempDir, World)> {
        let place = tempfile::tempdir()?;
        let world = World::new(place.path().to_owned(), Vec::new());
        world.make()?;
        prepare(&world, &self.setup)?;
        Ok((place, world))
    }

    /// Attempts that need nothing.
    pub(super) fn unprepared(name: &str, attempts: Vec<String>) -> Self {
        Self {
            name: name.to_owned(),
            setup: String::new(),
            allowed: Vec::new(),
            attempts,
        }
    }

    /// Returns the attempts that would run without a question; with the read-only sandbox, also those that would run in
    /// it.
    fn allowed_in(&self, project: &Path, has_sandbox: bool) -> Result<Vec<&str>> {
        let mut options = GateOptions::new(AllowedDirs::new(project, &[])?);
        options.read_only = has_sandbox.then(|| {
            let home = std::env::home_dir();
            ReadOnlySandbox::new([TOOL], home.as_deref(), || true)
        });
        options.allowed_tools = ToolPatterns::parse(&self.allowed)?;
        // Not the environment of this program's user: a cargo without rustup names libraries.
        let workdir = Workdir::new(project.to_owned());
        let home = std::env::var_os("HOME").unwrap_or_default();
        let variables = [("HOME".into(), home), ("PATH".into(), SEARCH_PATH.into())];
        workdir.set_environment(variables.into_iter().collect());
        options.workdir = Some(workdir);
        let gate = StandardGate::new(options);
        let is_allowed = |attempt: &&String| {
            let judged = gate.explain(TOOL, attempt);
            judged
                .last()
                .is_none_or(|whole| whole.decision == rondo_policy::rules::Decision::Allow)
        };
        let found = self.attempts.iter().filter(is_allowed);
        Ok(found.map(String::as_str).collect())
    }
}

/// Reads the attempts.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn corpus() -> Result<Vec<Class>> {
    let path = workspace::root().join(FILE);
    let text = fs::read_to_string(&path).with_context(|| format!("failed to read `{FILE}`"))?;
    let corpus: Corpus = toml::from_str(&text).with_context(|| format!("`{FILE}` is damaged"))?;
    Ok(corpus.class)
}

/// Judges each attempt in a project like the one that it is meant for; returns how many there are, and those
/// that are allowed.
fn judge(classes: &[Class]) -> Result<(usize, Vec<String>)> {
    let (mut count, mut found) = (0, Vec::new());
    for class in classes {
        let (_place, world) = class.world()?;
        count += class.attempts.len();
        let allowed = class.allowed_in(&world.project(), false)?;
        found.extend(
            allowed
                .into_iter()
                .map(|it| format!("{}: {it:?}", class.name)),
        );
    }
    Ok((count, found))
}

/// Does what stands before the attempts of a class.
///
/// # Errors
/// When bash does not start, or fails.
pub(super) fn prepare(world: &World, setup: &str) -> Result<()> {
    let status = Command::new("bash")
        .args(["-ec", setup])
        .current_dir(world.project())
        .env("HOME", world.home())
        .stdin(Stdio::null())
        .status()
        .context("failed to start `bash`")?;
    anyhow::ensure!(status.success(), "the setup failed: {setup}");
    Ok(())
}

/// Judges all attempts, and runs each of them in the sandbox to see whether it is one.
///
/// # Errors
/// When commands cannot be confined on this machine.
pub(super) fn run() -> Result<bool> {
    let classes = corpus()?;
    let (count, allowed) = judge(&classes)?;
    for attempt in &allowed {
        println!("allowed: {attempt}");
    }
    let mut tester = Tester::new()?;
    let (mut real, mut empty) = (0, Vec::new());
    for class in &classes {
        for attempt in &class.attempts {
            let outcome = tester.run_whatever_is_judged(attempt, &class.setup)?;
            match outcome.effects() {
                Some(_) => real += 1,
                None => empty.push(format!("{}: {attempt:?}", class.name)),
            }
        }
    }
    for attempt in &empty {
        println!("without an effect here: {attempt}");
    }
    println!(
        "fuzz-gate: {count} attempts, {real} with an effect when run here, {} allowed",
        allowed.len()
    );
    let (held, effects) = run_held(&classes)?;
    for attempt in &effects {
        println!("with an effect in the read-only sandbox: {attempt}");
    }
    println!(
        "fuzz-gate: {held} attempts run unasked in the read-only sandbox, {} with an effect there",
        effects.len()
    );
    Ok(allowed.is_empty() && effects.is_empty())
}

/// Runs those attempts in Rondo's own read-only sandbox that are let into it unasked; returns how many these are, and those
/// that had an effect.
fn run_held(classes: &[Class]) -> Result<(usize, Vec<String>)> {
    let listener = in_sandbox::listener()?;
    let (mut count, mut found) = (0, Vec::new());
    for class in classes {
        let (_place, world) = class.world()?;
        for attempt in class.allowed_in(&world.project(), true)? {
            count += 1;
            let effects = in_sandbox::effects_of_looking(attempt, &class.setup, &listener)?;
            if !effects.is_empty() {
                found.push(format!(
                    "{}: {attempt:?}: {}",
                    class.name,
                    effects.join(", ")
                ));
            }
        }
    }
    Ok((count, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_attempt_to_pass_the_gate_is_allowed() {
        let (count, allowed) = judge(&corpus().unwrap()).unwrap();
        assert_eq!(allowed, [""; 0]);
        assert!(count >= 600, "{count}");
    }

    #[test]
    fn what_only_looks_is_allowed_in_the_same_project() {
        let looks = |line: &str| line.to_owned();
        let class = Class {
            name: String::new(),
            setup: String::new(),
            allowed: Vec::new(),
            attempts: ["ls", "git status", "cat README.md", "touch pwned"]
                .map(looks)
                .to_vec(),
        };
        let place = tempfile::tempdir().unwrap();
        let world = World::new(place.path().to_owned(), Vec::new());
        world.make().unwrap();
        let allowed = class.allowed_in(&world.project(), false).unwrap();
        assert_eq!(allowed, ["ls", "git status", "cat README.md"]);
    }
}
