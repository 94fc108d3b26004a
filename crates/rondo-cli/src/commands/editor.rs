//! The user's editor.

use crate::error::{CliError, Result};
use crate::exit::Exit;
use rondo_runtime::env::Env;
use std::path::Path;
use std::process::Command;

/// The editor where neither `VISUAL` nor `EDITOR` names one.
const USUAL_EDITOR: &str = "vi";

/// Opens a file in the user's editor, and waits for its end.
///
/// # Errors
/// When it does not start, or says that it failed.
pub(super) fn edit(env: &Env, path: &Path) -> Result<()> {
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
