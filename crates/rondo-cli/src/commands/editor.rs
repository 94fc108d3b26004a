//! The user's editor and pager.

use crate::error::{CliError, Result};
use crate::exit::Exit;
use rondo_runtime::env::Env;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// The editor if neither `VISUAL` nor `EDITOR` names one.
const USUAL_EDITOR: &str = "vi";

/// The pager where `PAGER` names none.
const USUAL_PAGER: &str = "less -R";

/// Opens a text in the editor, and returns the edited text.
///
/// # Errors
/// When the editor fails, or what it leaves is not text.
pub(crate) fn edit_text(env: &Env, text: &str) -> Result<String> {
    let failed = |err: std::io::Error| {
        let error = anyhow::Error::new(err).context("failed to keep the draft in a file");
        CliError::caused(Exit::Error, error)
    };
    let mut file = tempfile::Builder::new()
        .prefix("draft-")
        .suffix(".md")
        .tempfile()
        .map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    edit(env, file.path())?;
    let edited = std::fs::read_to_string(file.path()).map_err(failed)?;
    Ok(edited.trim_end_matches('\n').to_owned())
}

/// Shows a text in the user's pager, and waits for its end.
///
/// # Errors
/// When it does not start.
pub(crate) fn page(env: &Env, text: &str) -> Result<()> {
    let pager = env.get("PAGER").unwrap_or(USUAL_PAGER);
    let failed = |err: std::io::Error| {
        let what = format_args!("the pager `{pager}` failed: {err}");
        CliError::new(Exit::Error, what).hint("name another one in `PAGER`")
    };
    let mut child = Command::new("/bin/sh")
        .args(["-c", pager])
        .stdin(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut input) = child.stdin.take() {
        // It may end before it has read all of it.
        let _ = input.write_all(text.as_bytes());
    }
    child.wait().map(drop).map_err(failed)
}

/// Opens a file in the user's editor, and waits for its end.
///
/// # Errors
/// When it does not start, or says that it failed.
pub(crate) fn edit(env: &Env, path: &Path) -> Result<()> {
    let editor = env.get("VISUAL").or_else(|| env.get("EDITOR"));
    let editor = editor.unwrap_or(USUAL_EDITOR);
    // A variable may hold options too, as in `code --wait`.
    let status = Command::new("/bin/sh")
        .args(["-c", &format!("{editor} \"$1\""), "sh"])
        .arg(path)
        .status();
    let failed = |why: String| {
        let what = format_args!("the editor `{editor}` failed: {why}");
        CliError::new(Exit::Error, what).hint("name another one in `VISUAL` or `EDITOR`")
    };
    let status = status.map_err(|err| failed(err.to_string()))?;
    match status.success() {
        true => Ok(()),
        false => Err(failed(status.to_string())),
    }
}
