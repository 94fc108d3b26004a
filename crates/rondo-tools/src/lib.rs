//! Built-in tools: files and search, confined to their directories.
//!
//! Every path a model names is opened beneath a directory handle that was opened once at the start
//! (`cap-std`, `openat2` where there is one). Checking a path and opening it afterwards was
//! rejected: between the two a directory can become a link. Directories are walked by handle too,
//! so the walkers of ripgrep's `ignore` crate are not used, only its reading of ignore rules.

#![warn(missing_docs)]

mod blocking;
mod change;
mod edit;
mod failure;
mod instructions;
mod lines;
mod list;
mod matching;
mod read;
mod recovery;
mod replace;
mod rules;
mod search;
mod unix;
mod walk;
mod workspace;
mod write;

pub use change::{ChangeLog, DiffKind, DiffLine, FileBefore, FileChange, preview};
pub use edit::EditFile;
pub use instructions::{RepositoryInstructions, instruction_file, repository_instructions};
pub use list::ListFiles;
pub use read::ReadFile;
pub use search::SearchFiles;
pub use workspace::{Workspace, WorkspaceError};
pub use write::WriteFile;

use rondo_core::ports::Tool;
use std::sync::Arc;

/// Returns the five file tools over one workspace, in the order they are offered.
#[must_use]
pub fn file_tools(workspace: &Arc<Workspace>) -> Vec<Arc<dyn Tool>> {
    file_tools_with_log(workspace, &ChangeLog::default())
}

/// Returns the same tools as [`file_tools`]; what they make of files is noted in the log.
#[must_use]
pub fn file_tools_with_log(workspace: &Arc<Workspace>, log: &ChangeLog) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(ReadFile::new(Arc::clone(workspace))),
        Arc::new(WriteFile::new(Arc::clone(workspace)).with_log(log.clone())),
        Arc::new(EditFile::new(Arc::clone(workspace)).with_log(log.clone())),
        Arc::new(ListFiles::new(Arc::clone(workspace))),
        Arc::new(SearchFiles::new(Arc::clone(workspace))),
    ]
}
