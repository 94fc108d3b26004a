//! Paths of the workspace, and calls of cargo.

use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Directory levels below the root that are searched for sources.
const DEPTH_MAX: usize = 12;

/// Returns the workspace's root.
pub fn root() -> PathBuf {
    let support = Path::new(env!("CARGO_MANIFEST_DIR"));
    support.ancestors().nth(2).unwrap_or(support).to_owned()
}

/// Returns the directory for what the tasks leave behind, and makes it.
pub fn output_dir() -> Result<PathBuf> {
    let dir = target_dir().join("xtask");
    fs::create_dir_all(&dir).with_context(|| format!("failed to make `{}`", dir.display()))?;
    Ok(dir)
}

/// Returns a command for the cargo that runs this task, at the workspace's root.
pub fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root());
    command
}

/// Returns the path of the binary that was built for tests.
pub fn debug_binary() -> PathBuf {
    target_dir().join("debug").join("rondo")
}

/// Builds the release binary and returns its path.
pub fn release_binary() -> Result<PathBuf> {
    build_release(&["-p", "rondo-cli", "--bin", "rondo"])?;
    Ok(target_dir().join("release").join("rondo"))
}

/// Builds the release binary and returns its path; its functions keep their names.
pub fn release_binary_with_symbols() -> Result<PathBuf> {
    let mut command = cargo();
    command.args(["rustc", "--release", "-p", "rondo-cli", "--bin", "rondo"]);
    // For this one program: a change of the profile would build everything again.
    command.args(["--", "-Cstrip=none"]);
    succeed(command, "rondo with symbols")?;
    Ok(target_dir().join("release").join("rondo"))
}

/// Builds a package's example in release mode and returns its path.
pub fn release_example(package: &str, name: &str) -> Result<PathBuf> {
    build_release(&["-p", package, "--example", name])?;
    Ok(target_dir().join("release").join("examples").join(name))
}

fn build_release(what: &[&str]) -> Result<()> {
    let mut command = cargo();
    command.args(["build", "--release"]).args(what);
    succeed(command, &what.join(" "))
}

fn succeed(mut command: Command, what: &str) -> Result<()> {
    let status = command.status().context("failed to start cargo")?;
    if !status.success() {
        bail!("`{what}` does not build");
    }
    Ok(())
}

/// Returns the sources of all crates, in a stable order.
pub fn rust_files() -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for top in ["crates", "tools", "xtask"] {
        collect(&root().join(top), DEPTH_MAX, &mut files)?;
    }
    files.sort();
    Ok(files)
}

fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

fn collect(dir: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<()> {
    if depth == 0 {
        bail!("`{}` is nested too deeply", dir.display());
    }
    let entries =
        fs::read_dir(dir).with_context(|| format!("failed to list `{}`", dir.display()))?;
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            collect(&path, depth - 1, files)?;
        } else if path.extension() == Some(OsStr::new("rs")) {
            files.push(path);
        }
    }
    Ok(())
}
