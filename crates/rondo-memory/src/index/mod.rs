//! The index of memories: an SQLite file that follows the Markdown files by their hashes.
//!
//! It holds nothing of its own but vectors, which can be made again. So a damaged one, or one of another version, is
//! removed and built again, and one that cannot be written is kept in memory instead.
//!
//! # Layout
//! - `schema`: the tables. `sync`: bringing them up to the files.
//! - `terms`: the terms that a query searches for. `words`: the lists of memories that match it, by words and by parts
//!   of words.
//! - `vectors`: vectors, and their nearest. `fusion`: several lists as one.

mod fusion;
mod schema;
mod sync;
mod terms;
mod vectors;
mod words;

pub(crate) use terms::Terms;
pub(crate) use vectors::{Pending, Vectors};
pub use vectors::{VECTOR_ROWS_MAX, VECTORS_EXACT_MAX};

use crate::error::MemoryError;
use crate::folder::Folder;
use crate::notes::Memory;
use fusion::fuse;
use rusqlite::Connection;
use std::fs;
use std::path::{Path, PathBuf};
use vectors::Quantised;

/// How many memories of each list take part in the ranking.
pub(crate) const CANDIDATES_MAX: usize = 64;

/// The weights of the lists of words; the model of vectors says what theirs is. They were chosen on one half of the questions in `tests/recall`, which measures the other.
pub(crate) const WORDS_WEIGHT: f64 = 1.0;
pub(crate) const PARTS_WEIGHT: f64 = 0.5;
pub(crate) const SHORT_WEIGHT: f64 = 0.7;

/// The index. Made when it is first used.
#[derive(Debug)]
pub(crate) struct Index {
    path: Option<PathBuf>,
    connection: Option<Connection>,
    quantised: Option<Quantised>,
}

/// A memory that fits a query.
#[derive(Debug, Clone)]
pub(crate) struct Ranked {
    pub(crate) memory: Memory,
    pub(crate) score: f64,
}

/// Search request.
pub(crate) struct Query {
    pub(crate) terms: Terms,
    pub(crate) vector: Option<QueryVector>,
    pub(crate) limit: usize,
}

/// The vector of the query.
pub(crate) struct QueryVector {
    pub(crate) model: String,
    pub(crate) numbers: Vec<f32>,
    /// How much the ranks by it count.
    pub(crate) weight: f64,
}

impl Index {
    pub(crate) fn at(path: Option<PathBuf>) -> Self {
        Self {
            path,
            connection: None,
            quantised: None,
        }
    }

    /// Brings the index up to the files. Returns what was not read, and why.
    pub(crate) fn refresh(&mut self, folders: &[&Folder]) -> Result<Vec<String>, MemoryError> {
        self.with(|connection, _| sync::refresh(connection, folders))
    }

    /// Brings the index up to the files, and leaves no trace in it of what is gone from them.
    pub(crate) fn purge(&mut self, folders: &[&Folder]) -> Result<(), MemoryError> {
        self.with(|connection, _| {
            sync::refresh(connection, folders)?;
            schema::purge(connection)
        })
    }

    /// Returns texts that have no vector of a model yet.
    pub(crate) fn pending(
        &mut self,
        folders: &[&Folder],
        model: &str,
        max: usize,
    ) -> Result<Vec<Pending>, MemoryError> {
        self.with(|connection, _| {
            let ids = sync::folder_ids(connection, folders)?;
            vectors::pending(connection, &ids, model, max)
        })
    }

    /// Keeps the vectors of texts.
    pub(crate) fn keep(&mut self, model: &str, vectors: &Vectors) -> Result<(), MemoryError> {
        self.with(|connection, _| vectors::keep(connection, model, vectors))
    }

    /// Returns the memories that fit best, the best first.
    pub(crate) fn search(
        &mut self,
        folders: &[&Folder],
        query: &Query,
    ) -> Result<Vec<Ranked>, MemoryError> {
        self.with(|connection, quantised| {
            let ids = sync::folder_ids(connection, folders)?;
            let mut lists = vec![
                (
                    WORDS_WEIGHT,
                    words::by_words(connection, &ids, &query.terms)?,
                ),
                (
                    PARTS_WEIGHT,
                    words::by_parts(connection, &ids, &query.terms)?,
                ),
                (
                    SHORT_WEIGHT,
                    words::by_short_parts(connection, &ids, &query.terms)?,
                ),
            ];
            if let Some(vector) = &query.vector {
                let bounds = (VECTORS_EXACT_MAX, VECTOR_ROWS_MAX);
                let QueryVector { model, numbers, .. } = vector;
                let near = vectors::nearest(connection, quantised, &ids, model, numbers, bounds)?;
                lists.push((vector.weight, near));
            }
            sync::memories(connection, &fuse(&lists), query.limit)
        })
    }

    /// Runs work on the connection. A damaged file is made again once; if it cannot be used, an index in memory is.
    fn with<T>(
        &mut self,
        work: impl Fn(&mut Connection, &mut Option<Quantised>) -> Result<T, MemoryError>,
    ) -> Result<T, MemoryError> {
        for attempt in 0..3 {
            let done = self.open().and_then(|()| match &mut self.connection {
                Some(connection) => work(connection, &mut self.quantised),
                None => Err(MemoryError::Ended),
            });
            match done {
                Err(MemoryError::Index(err)) if attempt < 2 => {
                    tracing::warn!(error = %err, attempt, "the index of memories is made anew");
                    self.start_over(attempt == 0 && is_damaged(&err));
                }
                done => return done,
            }
        }
        Err(MemoryError::Ended)
    }

    fn open(&mut self) -> Result<(), MemoryError> {
        if self.connection.is_none() {
            let path = self.path.as_deref();
            let opened = path.map(|path| make_parent(path).and_then(|()| schema::open(path)));
            let connection = match opened {
                Some(opened) => opened?,
                None => schema::in_memory()?,
            };
            self.connection = Some(connection);
        }
        Ok(())
    }

    /// Removes the file, or leaves it to others and continues in memory.
    fn start_over(&mut self, removes: bool) {
        self.connection = None;
        self.quantised = None;
        let Some(path) = self.path.take() else {
            return;
        };
        if removes {
            for suffix in ["", "-wal", "-shm", "-journal"] {
                let mut name = path.as_os_str().to_owned();
                name.push(suffix);
                let _ = fs::remove_file(PathBuf::from(name));
            }
            self.path = Some(path);
        }
    }
}

/// Returns whether the file itself is the problem. One that is busy, read-only or on a full disk is another process's
/// good index.
fn is_damaged(err: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase, Unknown};
    match err {
        // Tables of another version.
        rusqlite::Error::InvalidQuery => true,
        _ => matches!(
            err.sqlite_error_code(),
            Some(DatabaseCorrupt | NotADatabase | Unknown)
        ),
    }
}

/// An error of the directory is one of SQLite to the caller: the index is then in memory.
fn make_parent(path: &Path) -> Result<(), MemoryError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let parent = path.parent().unwrap_or(Path::new("."));
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(parent);
    made.map_err(|err| rusqlite::Error::ToSqlConversionFailure(Box::new(err)).into())
}

#[cfg(test)]
mod tests;
