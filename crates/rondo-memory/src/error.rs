//! Why a memory was not saved, found or changed.

use crate::scope::Scope;
use std::io;
use std::path::{Path, PathBuf};

/// Why an operation on memories failed.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The disk failed, or access was denied.
    #[error("failed to use `{}`", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Cause of the failure.
        #[source]
        source: io::Error,
    },
    /// A link, a pipe or the like is in the place of a file or a directory of memories. Links are not followed.
    #[error("`{}` is a link or no regular file; memories are only kept in regular files and directories", path.display())]
    NotRegular {
        /// The file or directory.
        path: PathBuf,
    },
    /// A file is too large to be read, or would become so.
    #[error("`{}` is larger than {bytes_max} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The bound.
        bytes_max: usize,
    },
    /// A file to change is not UTF-8.
    #[error("`{}` is not UTF-8 text", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// There is nothing to save.
    #[error("the memory is empty")]
    Empty,
    /// The text of a memory is too long.
    #[error("the memory has {bytes} bytes; at most {bytes_max} are saved")]
    TooLong {
        /// Length of the memory.
        bytes: usize,
        /// The bound.
        bytes_max: usize,
    },
    /// A query has nothing to search for.
    #[error("the query has no word to search for")]
    EmptyQuery,
    /// A query is too long.
    #[error("the query has {bytes} bytes; at most {bytes_max} are searched for")]
    QueryTooLong {
        /// Length of the query.
        bytes: usize,
        /// The bound.
        bytes_max: usize,
    },
    /// Another process holds the lock of a scope's directory.
    #[error("another process has been changing `{}` for too long", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// No memory has that id.
    #[error("no memory has the id `{id}`")]
    Unknown {
        /// The id, or its prefix.
        id: String,
    },
    /// Several memories have ids that begin so.
    #[error("the ids of {count} memories begin with `{id}`")]
    Ambiguous {
        /// The prefix.
        id: String,
        /// How many.
        count: usize,
    },
    /// There is nothing of that scope here.
    #[error("there are no memories of the scope `{scope}` here")]
    NoScope {
        /// The scope.
        scope: Scope,
    },
    /// The name is not one of a file of memories.
    #[error(
        "`{name}` is not a file of memories: it is `MEMORY.md`, a note such as `2026-03-01.md`, or another `.md` file without directories"
    )]
    BadName {
        /// Name that was given.
        name: String,
    },
    /// A file was changed by others while it was edited. Nothing was overwritten.
    #[error("`{}` was changed by another program while it was edited; your version is in `{}`", path.display(), kept.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// The user's version.
        kept: PathBuf,
    },
    /// SQLite failed.
    #[error("the index failed")]
    Index(#[from] rusqlite::Error),
    /// The work was interrupted.
    #[error("the work was ended before it was done")]
    Ended,
}

impl MemoryError {
    pub(crate) fn io(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::Io { path, source }
    }

    /// Returns the message with its causes, on one line.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            line = format!("{line}: {error}");
            cause = error.source();
        }
        line
    }
}
