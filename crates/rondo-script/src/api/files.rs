//! Files of a script, which are the user's own act: no gate judges them.

use super::Functions;
use super::system::text_of;
use crate::error::CallError;
use crate::ledger::{KeptPart, RESULT_BYTES_MAX};
use crate::shared::{Position, Shared, to_lua};
use rondo_types::CallId;
use serde_json::{Value, json};
use std::fmt::{self, Display};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// Entries of a directory that are listed.
const ENTRIES_MAX: usize = 100_000;
/// Bytes of a module.
const MODULE_BYTES_MAX: u64 = 1 << 20;

/// Adds the functions.
pub(super) fn add(to: &Functions<'_>) -> mlua::Result<()> {
    reading(to)?;
    writing(to)
}

fn reading(to: &Functions<'_>) -> mlua::Result<()> {
    to.waiting(
        "files_read",
        "rondo.files.read",
        |shared, lua, at, path: String| async move {
            let value = read(&shared, &at, "rondo.files.read", path).await?;
            Ok(to_lua(&lua, &value)?)
        },
    )?;
    to.waiting(
        "module",
        "require",
        |shared, lua, at, name: String| async move {
            if !name.split('.').all(is_module_part) {
                return Err(CallError::failed(
                    "the name of a module has letters, digits, `_`, `-` and `.`",
                ));
            }
            let file = shared
                .directory
                .join(name.replace('.', "/"))
                .with_extension("lua");
            let shown = file.display().to_string();
            let arguments = json!(name);
            let call = shared.call(&at, "require", &arguments, KeptPart::Look, async |_| {
                let bytes = blocking(&shown, move || read_bounded(&file, MODULE_BYTES_MAX)).await?;
                Ok(Value::String(text_of(bytes)?))
            });
            Ok(to_lua(&lua, &call.await?)?)
        },
    )?;
    to.waiting(
        "files_exists",
        "rondo.files.exists",
        |shared, lua, at, path: String| async move {
            let is_there =
                looked(&shared, &at, "rondo.files.exists", path, Path::try_exists).await?;
            Ok(to_lua(&lua, &is_there)?)
        },
    )?;
    to.waiting(
        "files_list",
        "rondo.files.list",
        |shared, lua, at, path: String| async move {
            let names = looked(&shared, &at, "rondo.files.list", path, list).await?;
            Ok(to_lua(&lua, &names)?)
        },
    )
}

fn writing(to: &Functions<'_>) -> mlua::Result<()> {
    to.waiting(
        "files_write",
        "rondo.files.write",
        |shared, _, at, (path, text): (String, mlua::LuaString)| async move {
            let file = shared.session.settings().directory.join(&path);
            let bytes = text.as_bytes().to_vec();
            let arguments = json!([path, String::from_utf8_lossy(&bytes)]);
            let call = shared.call(
                &at,
                "rondo.files.write",
                &arguments,
                KeptPart::Effect,
                async |_| {
                    // It is the same however often it is done.
                    let written = blocking(&path, move || std::fs::write(&file, &bytes)).await;
                    written.map(|()| Value::Null).map_err(not_done)
                },
            );
            call.await.map(|_| mlua::Nil)
        },
    )?;
    to.waiting(
        "files_append",
        "rondo.files.append",
        |shared, _, at, (path, text): (String, mlua::LuaString)| async move {
            append(&shared, &at, path, text.as_bytes().to_vec()).await
        },
    )
}

fn is_module_part(part: &str) -> bool {
    let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    !part.is_empty() && part.chars().all(is_part)
}

/// Looks at what a path leads to from the script's directory.
async fn looked<T: Into<Value> + Send + 'static>(
    shared: &Arc<Shared>,
    at: &Position,
    function: &'static str,
    path: String,
    look: fn(&Path) -> io::Result<T>,
) -> Result<Value, CallError> {
    let there = shared.session.settings().directory.join(&path);
    let arguments = json!(path);
    let call = shared.call(at, function, &arguments, KeptPart::Look, async |_| {
        Ok(blocking(&path, move || look(&there)).await?.into())
    });
    call.await
}

async fn read(
    shared: &Arc<Shared>,
    at: &Position,
    function: &'static str,
    path: String,
) -> Result<Value, CallError> {
    let file = shared.session.settings().directory.join(&path);
    let bytes_max = u64::try_from(RESULT_BYTES_MAX).unwrap_or(u64::MAX);
    let arguments = json!(path);
    let call = shared.call(at, function, &arguments, KeptPart::Look, async |_| {
        let bytes = blocking(&path, move || read_bounded(&file, bytes_max)).await?;
        Ok(Value::String(text_of(bytes)?))
    });
    call.await
}

/// Appends to a file. Its length before tells after a crash whether that was done.
async fn append(
    shared: &Arc<Shared>,
    at: &Position,
    path: String,
    bytes: Vec<u8>,
) -> Result<mlua::Value, CallError> {
    let file = shared.session.settings().directory.join(&path);
    let arguments = json!([path, String::from_utf8_lossy(&bytes)]);
    let of_evidence = file.clone();
    let evidence = async |_: &CallId| {
        let length = spawn_blocking(move || length(&of_evidence)).await;
        length.ok().map(|length| json!(length))
    };
    let call = shared.call_with_evidence(
        at,
        "rondo.files.append",
        &arguments,
        KeptPart::Effect,
        evidence,
        async |made| {
            let before = made.begun.map(|it| it.as_ref().and_then(Value::as_u64));
            let appended = blocking(&path, move || Ok(append_once(&file, &bytes, before))).await?;
            match appended {
                Ok(()) => Ok(Value::Null),
                Err(AppendError::NotDone(err)) => Err(CallError::NotDone(named(&path, err))),
                Err(AppendError::InDoubt(why)) => Err(CallError::failed(named(&path, why))),
            }
        },
    );
    call.await.map(|_| mlua::Nil)
}

/// Why a text was not appended.
#[derive(Debug)]
pub(crate) enum AppendError {
    /// The file is as it was.
    NotDone(io::Error),
    /// The text, or a part of it, may be in the file.
    InDoubt(String),
}

impl Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotDone(error) => error.fmt(f),
            Self::InDoubt(why) => why.fmt(f),
        }
    }
}

impl From<io::Error> for AppendError {
    fn from(error: io::Error) -> Self {
        Self::NotDone(error)
    }
}

/// `before` is the length of the file before the call was begun the first time; `None` if it is begun now.
fn append_once(file: &Path, bytes: &[u8], before: Option<Option<u64>>) -> Result<(), AppendError> {
    let in_doubt = || AppendError::InDoubt(IN_DOUBT.to_owned());
    let mut options = std::fs::OpenOptions::new();
    let mut opened = options.append(true).create(true).open(file)?;
    if let Some(before) = before {
        let before = before.ok_or_else(in_doubt)?;
        let now = opened.metadata()?.len();
        let added = now.checked_sub(before).ok_or_else(in_doubt)?;
        let all = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if added == all {
            return Ok(());
        }
        if added > all {
            return Err(in_doubt());
        }
        // A partial write is written again.
        opened.set_len(before)?;
    }
    append_all(&mut opened, bytes)
}

/// Appends all bytes or none: what was written before a failure is taken back.
pub(crate) fn append_all(file: &mut File, bytes: &[u8]) -> Result<(), AppendError> {
    let before = file.metadata()?.len();
    let mut left = bytes;
    let error = loop {
        if left.is_empty() {
            return Ok(());
        }
        match file.write(left) {
            Ok(0) => break io::ErrorKind::WriteZero.into(),
            Ok(written) => left = left.get(written..).unwrap_or_default(),
            Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
            Err(err) => break err,
        }
    };
    let written = u64::try_from(bytes.len() - left.len()).unwrap_or(u64::MAX);
    // Another process may have appended more, which must stay.
    let is_last = || {
        file.metadata()
            .is_ok_and(|it| it.is_file() && it.len() == before + written)
    };
    if written == 0 || is_last() && file.set_len(before).is_ok() {
        return Err(AppendError::NotDone(error));
    }
    let why = format!("{error}; {written} bytes of the text were written, and it is not repeated");
    Err(AppendError::InDoubt(why))
}

/// Note that a call that was cut off is not repeated.
pub(super) const IN_DOUBT: &str = "it was running when the script was cut off, and it is not known whether it was done; it is not repeated";

fn length(file: &Path) -> u64 {
    std::fs::metadata(file).map_or(0, |it| it.len())
}

pub(crate) fn read_bounded(file: &PathBuf, bytes_max: u64) -> io::Result<Vec<u8>> {
    let opened = File::open(file)?;
    let mut bytes = Vec::new();
    opened
        .take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()).is_ok_and(|it| it <= bytes_max) {
        true => Ok(bytes),
        false => Err(io::Error::other(format!(
            "it is longer than {bytes_max} bytes"
        ))),
    }
}

pub(crate) fn list(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory)?.take(ENTRIES_MAX) {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

async fn blocking<T: Send + 'static>(
    path: &str,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, CallError> {
    let done = spawn_blocking(work).await.map_err(CallError::failed)?;
    done.map_err(|err| CallError::failed(named(path, err)))
}

pub(crate) fn named(path: &str, why: impl Display) -> String {
    format!("`{path}`: {why}")
}

/// Adds that a failed call may be made again.
fn not_done(error: CallError) -> CallError {
    match error {
        CallError::Failed(why) => CallError::NotDone(why),
        other => other,
    }
}
