//! Commands that are kept: those that others are made of, and those that once slipped past.

use anyhow::{Context, Result};
use rondo_tool_support::workspace;
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

const SEEDS: &str = "seeds.jsonl";
const FINDINGS: &str = "findings.jsonl";

/// A command that was judged read-only and was not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Finding {
    pub(super) command: String,
    /// Effects of the command.
    pub(super) effects: Vec<String>,
}

fn path(name: &str) -> PathBuf {
    workspace::root().join("fuzz/corpus/gate").join(name)
}

/// Reads the commands that others are made of: a JSON string a line.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn seeds() -> Result<Vec<String>> {
    read(SEEDS)
}

/// Reads the earlier findings.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn findings() -> Result<Vec<Finding>> {
    read(FINDINGS)
}

fn read<T: for<'de> Deserialize<'de>>(name: &str) -> Result<Vec<T>> {
    let path = path(name);
    let text = fs::read_to_string(&path)
        .with_context(|| format!("failed to read `{}`", path.display()))?;
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let parsed: Result<Vec<T>, _> = lines.map(serde_json::from_str).collect();
    parsed.with_context(|| format!("`{}` is damaged", path.display()))
}

/// Adds a finding, unless it is there.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn keep(finding: &Finding) -> Result<()> {
    if findings()?
        .iter()
        .any(|known| known.command == finding.command)
    {
        return Ok(());
    }
    let mut line = serde_json::to_vec(finding)?;
    line.push(b'\n');
    let mut file = OpenOptions::new().append(true).open(path(FINDINGS))?;
    file.write_all(&line)?;
    Ok(())
}
