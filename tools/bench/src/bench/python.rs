//! Cost of a call into a live Python session.

use anyhow::{Context, Result, bail};
use rondo_tool_support::workspace;
use std::path::Path;
use std::process::Command;

/// Runs the example `round_trip`, whose figures are a table in Markdown.
///
/// # Errors
/// When it cannot be built or fails.
pub(crate) fn measure(example: Option<&Path>) -> Result<String> {
    let build = || workspace::release_example("rondo-python", "round_trip");
    let output = Command::new(super::built(example, build)?)
        .output()
        .context("failed to start the example")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}
