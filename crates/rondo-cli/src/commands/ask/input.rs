//! Input of `rondo ask`: words, standard input, attached files and a schema, read within the time limit of a turn.

use crate::cli::AskArgs;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::output::Output;
use crate::process_end;
use crate::user_input;
use rondo_schema::Validator;
use rondo_types::Message;
use serde_json::Value;
use std::path::Path;
use std::sync::mpsc;
use std::thread::Builder;
use std::time::Duration;

/// The bound on a schema file, in bytes.
const SCHEMA_BYTES_MAX: u64 = 1 << 20;

/// How long the input is read if the turn has no bound on its time.
const INPUT_TIMEOUT: Duration = Duration::from_mins(30);

/// Reads the turn's first message, within the time that a turn has: a pipe or a terminal among the
/// files may never end.
///
/// # Errors
/// When something cannot be read, or not in time.
pub(super) fn read_input(
    args: &AskArgs,
    directory: &Path,
    servers: Vec<String>,
    timeout: Option<Duration>,
    output: Output,
) -> Result<(Option<Value>, Message)> {
    let schema_file = args.output_schema.as_ref().map(|path| directory.join(path));
    let (words, directory) = (args.prompt.clone(), directory.to_owned());
    let implied = args.implied;
    let is_at_once = schema_file.is_none() && user_input::reads_at_once(&words);
    let read = move || {
        let schema = schema_file.as_deref().map(read_schema).transpose()?;
        let tell = |note: &str| output.note(note);
        let message = user_input::read(&words, &directory, &servers, implied, &tell)?;
        Ok((schema, message))
    };
    if is_at_once {
        return read();
    }
    let (read_tx, read_rx) = mpsc::sync_channel(1);
    let spawned = Builder::new().name("input".to_owned()).spawn(move || {
        // The receiver is gone only when the process is about to end.
        let _ = read_tx.send(read());
    });
    spawned.map_err(|err| {
        let context = "failed to start a thread";
        CliError::caused(Exit::Error, anyhow::Error::new(err).context(context))
    })?;
    let time = process_end::shortened(timeout).unwrap_or(INPUT_TIMEOUT);
    read_rx.recv_timeout(time).unwrap_or_else(|_| {
        let message = "the deadline passed before all input was read";
        Err(CliError::new(Exit::Deadline, message)
            .hint("is something still writing to standard input or to an attached file? Use `< /dev/null` if there is no input"))
    })
}

fn read_schema(path: &Path) -> Result<Value> {
    let context = || format!("failed to read the schema `{}`", path.display());
    let size = std::fs::metadata(path).map(|meta| meta.len());
    let text = size.and_then(|size| {
        if size > SCHEMA_BYTES_MAX {
            return Err(std::io::Error::other("it is larger than a megabyte"));
        }
        std::fs::read_to_string(path)
    });
    let text = text
        .map_err(|err| CliError::caused(Exit::Input, anyhow::Error::new(err).context(context())))?;
    let schema = serde_json::from_str(&text)
        .map_err(|err| CliError::caused(Exit::Input, anyhow::Error::new(err).context(context())))?;
    Validator::new(&schema)
        .map_err(|err| CliError::caused(Exit::Input, anyhow::Error::new(err).context(context())))?;
    Ok(schema)
}
