//! The recording to replay: a session or an exported file.

use crate::error::{CliError, Result};
use crate::exit::Exit;
use anyhow::Error;
use rondo_core::ports::{Record, RecordBody};
use rondo_core::storage::ExportReader;
use rondo_core::storage::Store;
use rondo_runtime::sessions;
use rondo_runtime::settings::Settings;
use rondo_types::{SessionId, TurnId};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// The ending of exported files.
pub(in crate::commands) const EXTENSION: &str = "jsonl";

/// A recorded session, from the journal or from a file. It is read turn by turn.
pub(in crate::commands) struct RecordedSession {
    pub(in crate::commands) session: SessionId,
    source: RecordSource,
}

enum RecordSource {
    Journal(Store),
    File(PathBuf),
}

impl RecordedSession {
    /// Looks at the first line of an exported file.
    ///
    /// # Errors
    /// When it cannot be read, or is none.
    pub(in crate::commands) fn from_file(path: &Path) -> Result<Self> {
        let mut file = opened(path)?;
        let reader = ExportReader::open(&mut file).map_err(|err| unreadable(path, err.into()))?;
        Ok(Self {
            session: reader.session().clone(),
            source: RecordSource::File(path.to_owned()),
        })
    }

    /// Returns the records of the session's script; empty if it has none.
    ///
    /// # Errors
    /// When a record is damaged or cannot be read.
    pub(in crate::commands) fn script(&self) -> Result<Vec<RecordBody>> {
        let mut bodies = Vec::new();
        let mut is_script = None;
        self.each_record(|record| {
            let begins = matches!(record.body, RecordBody::ScriptStarted(_));
            if *is_script.get_or_insert(begins) && !record.body.is_of_turn() {
                bodies.push(record.body);
            }
            Ok(())
        })?;
        Ok(bodies)
    }

    /// Hands over the records of one turn after the other, and returns whether the file was cut
    /// short.
    ///
    /// # Errors
    /// When a record is damaged or cannot be read, and whatever `take` fails with.
    pub(in crate::commands) fn each_turn(
        &self,
        take: impl FnMut(&[Record]) -> Result<()>,
    ) -> Result<bool> {
        let mut turns = Turns {
            turn: None,
            records: Vec::new(),
            take,
        };
        let is_torn = self.each_record(|record| turns.record(record))?;
        turns.over()?;
        Ok(is_torn)
    }

    fn each_record(&self, mut take: impl FnMut(Record) -> Result<()>) -> Result<bool> {
        match &self.source {
            RecordSource::Journal(store) => {
                store.records(&self.session, take)?;
                Ok(false)
            }
            RecordSource::File(path) => {
                let failed = |err| unreadable(path, Error::from(err));
                let mut file = opened(path)?;
                let mut reader = ExportReader::open(&mut file).map_err(failed)?;
                while let Some(record) = reader.next_record().map_err(failed)? {
                    take(record)?;
                }
                Ok(reader.is_torn())
            }
        }
    }
}

/// Gathers the records of a turn, with what belongs to none before and behind it.
struct Turns<F> {
    /// The turn, once one of its records came.
    turn: Option<TurnId>,
    records: Vec<Record>,
    take: F,
}

impl<F: FnMut(&[Record]) -> Result<()>> Turns<F> {
    fn record(&mut self, record: Record) -> Result<()> {
        if record.body.is_of_turn() && self.turn.as_ref() != Some(&record.turn) {
            if self.turn.is_some() {
                self.over()?;
            }
            self.turn = Some(record.turn.clone());
        }
        self.records.push(record);
        Ok(())
    }

    fn over(&mut self) -> Result<()> {
        let records = std::mem::take(&mut self.records);
        match self.turn.take() {
            None => Ok(()),
            Some(_) => (self.take)(&records),
        }
    }
}

fn opened(path: &Path) -> Result<BufReader<File>> {
    let file = File::open(path).map_err(|err| unreadable(path, err.into()))?;
    Ok(BufReader::new(file))
}

fn unreadable(path: &Path, err: Error) -> CliError {
    let context = format!("failed to read the session `{}`", path.display());
    CliError::caused(Exit::Input, err.context(context))
}

/// Finds a session by its id, the beginning of it, `latest`, or the path of an exported file.
///
/// # Errors
/// When there is none, or it cannot be read.
pub(super) fn find(text: &str, settings: &Settings) -> Result<RecordedSession> {
    let path = settings.directory.join(text);
    let is_path = text.contains('/') || path.extension().is_some_and(|it| it == EXTENSION);
    if is_path {
        return RecordedSession::from_file(&path);
    }
    let store = sessions::open_to_read(settings)?;
    let session = sessions::find(&store, text)?.id;
    Ok(RecordedSession {
        session,
        source: RecordSource::Journal(store),
    })
}
