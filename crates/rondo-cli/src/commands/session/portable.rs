//! `rondo session export` and `import`.

use crate::commands::report::current_dir;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::output::Output;
use rondo_core::storage::Store;
use rondo_runtime::sanitize;
use rondo_runtime::sessions::{self, directory_name};
use rondo_types::SessionId;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Writes a session to a file or to standard output.
///
/// # Errors
/// When there is no such session, or writing fails.
pub(super) fn export(store: &Store, session: &str, file: Option<&Path>) -> Result<String> {
    let id = sessions::find(store, session)?.id;
    let mut out: Box<dyn Write> = match file {
        Some(path) => Box::new(BufWriter::new(created(path)?)),
        None => Box::new(BufWriter::new(io::stdout().lock())),
    };
    store.export(&id, &mut out)?;
    out.flush().map_err(|err| {
        let context = "failed to write the exported session";
        CliError::caused(Exit::Error, anyhow::Error::new(err).context(context))
    })?;
    Ok(String::new())
}

/// Exported messages are private to the user.
fn created(path: &Path) -> Result<File> {
    OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .map_err(|err| unusable(path, err))
}

/// Reads a session from a file or from standard input, and returns its id as a line.
///
/// # Errors
/// When it is not an exported session, or there is one of that id already.
pub(super) fn import(
    store: &Store,
    file: Option<&Path>,
    id: Option<&str>,
    output: &Output,
) -> Result<String> {
    let mut input: Box<dyn BufRead> = match file.filter(|path| *path != Path::new("-")) {
        Some(path) => Box::new(BufReader::new(
            File::open(path).map_err(|err| unusable(path, err))?,
        )),
        None => Box::new(io::stdin().lock()),
    };
    let id = id.map(named).transpose()?;
    let imported = store.import(&mut input, id.as_ref())?;
    let count = imported.records;
    match imported.announced {
        Some(announced) if imported.torn => output.note(&format!(
            "the file was cut short: it has {count} of {announced} records"
        )),
        None if imported.torn => output.note(&format!(
            "the last line was cut short and was skipped; {count} records were read"
        )),
        None => output.note(&format!(
            "an older version wrote the file, which does not say how many records it should have; it has {count}"
        )),
        Some(_) => {}
    }
    // The directory in the file is no reason to work there: only where the user is already.
    let here = directory_name(&current_dir()?);
    if imported.directory == here {
        store.set_directory(&imported.session, &here)?;
    } else if !imported.directory.is_empty() {
        output.note(&format!(
            "it was recorded in `{}`; here it uses the directory in which you continue it",
            sanitize::cell(&imported.directory)
        ));
    }
    Ok(format!("{}\n", imported.session))
}

/// Takes the id of an imported session: one that other commands can be given.
fn named(id: &str) -> Result<SessionId> {
    SessionId::parse(id).map_err(|bad| {
        let message = format!("{id:?} cannot be a session's id: {bad}");
        CliError::new(Exit::Input, message)
    })
}

fn unusable(path: &Path, err: io::Error) -> CliError {
    let context = format!("failed to open `{}`", path.display());
    CliError::caused(Exit::Input, anyhow::Error::new(err).context(context))
}
