//! Weights of the models that the binary runs itself.

use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The default model.
pub const DEFAULT_MODEL: &str = "qwen2.5-coder-1.5b";

/// Asks the binary where the weights lie, in the caller's own environment.
///
/// # Errors
/// When they are not here and cannot be fetched.
pub fn weights(binary: &Path, model: &str) -> Result<PathBuf> {
    let output = Command::new(binary)
        .args(["models", "pull", model])
        .stderr(Stdio::inherit())
        .output()
        .context("failed to start the binary")?;
    if !output.status.success() {
        bail!("the weights of `{model}` are not downloaded and cannot be fetched");
    }
    let path = String::from_utf8(output.stdout)?;
    Ok(PathBuf::from(path.trim()))
}
