use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::sessions;
use crate::settings::Settings;
use anyhow::Error;
use rondo_core::ports::Record;
use rondo_journal::Exported;
use rondo_types::SessionId;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// The ending of exported files.
pub(in crate::commands) const EXTENSION: &str = "jsonl";

/// A recorded session, from the journal or from a file.
pub(in crate::commands) struct Recorded {
    /// Its id.
    pub(in crate::commands) session: SessionId,
    /// Its records.
    pub(in crate::commands) records: Vec<Record>,
    /// Whether the file it was read from was cut short.
    pub(in crate::commands) torn: bool,
}

impl Recorded {
    /// Reads an exported file.
    ///
    /// # Errors
    /// When it cannot be read, or is none.
    pub(in crate::commands) fn from_file(path: &Path) -> Result<Self> {
        let context = || format!("failed to read the session `{}`", path.display());
        let failed = |err: Error| CliError::caused(Exit::Input, err.context(context()));
        let file = File::open(path).map_err(|err| failed(err.into()))?;
        let read = Exported::read(&mut BufReader::new(file)).map_err(|err| failed(err.into()))?;
        Ok(Self {
            session: read.session,
            records: read.records,
            torn: read.torn,
        })
    }
}

/// Finds a session by its id, the beginning of it, `latest`, or the path of an exported file.
///
/// # Errors
/// When there is none, or it cannot be read.
pub(super) fn find(text: &str, settings: &Settings) -> Result<Recorded> {
    let path = settings.directory.join(text);
    let is_path = text.contains('/') || path.extension().is_some_and(|it| it == EXTENSION);
    if is_path {
        return Recorded::from_file(&path);
    }
    let store = sessions::open(settings)?;
    let session = sessions::find(&store, text)?.id;
    let records = store.load(&session).map_err(sessions::failed)?;
    Ok(Recorded {
        session,
        records,
        torn: false,
    })
}
