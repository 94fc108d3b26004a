//! Scripts that are not run: looked at for mistakes, or begun.

use crate::commands::report::write_failed;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::output::Output;
use rondo_script::{ANNOTATIONS, START, Script, check};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The file that editors read of the functions.
const ANNOTATIONS_FILE: &str = "rondo.d.lua";
/// The mode of a script that can be started by its name.
const PROGRAM: u32 = 0o777;

/// Prints the mistakes of a script.
pub(super) fn looked_at(script: &Script, output: &Output) -> Result<Exit> {
    let mistakes = check(&script.name, &script.source);
    let mut text = String::new();
    for mistake in &mistakes {
        // The message of a syntax error has its line already.
        let _ = match mistake.line {
            0 => writeln!(text, "{}", mistake.message),
            line => writeln!(text, "{}:{line}: {}", script.name, mistake.message),
        };
    }
    output.stdout(&text).map_err(write_failed)?;
    Ok(match mistakes.is_empty() {
        true => Exit::Answer,
        false => Exit::Error,
    })
}

/// Writes a script to start from, and the annotations beside it. Nothing that is there is overwritten.
///
/// # Errors
/// When there is such a file, or it cannot be written.
pub(super) fn begun(name: &str, output: &Output) -> Result<Exit> {
    let path = Path::new(name);
    let text = START.replace("NAME.lua", name);
    write_new(path, &text, PROGRAM)?;
    let beside = path.with_file_name(ANNOTATIONS_FILE);
    if !beside.exists() {
        write_new(&beside, ANNOTATIONS, 0o666)?;
    }
    output.note(&format!(
        "wrote a script to start from: `rondo run {name}` runs it; `{}` has the type definitions for editors",
        beside.display()
    ));
    Ok(Exit::Answer)
}

fn write_new(path: &Path, text: &str, mode: u32) -> Result<()> {
    let opened = File::options()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path);
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|err| {
        let context = format!("failed to write `{}`", path.display());
        CliError::caused(Exit::Input, anyhow::Error::new(err).context(context))
    })
}
