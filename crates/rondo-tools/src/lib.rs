//! Built-in tools: files and search, confined to their directories.
//!
//! Every path a model names is opened beneath a directory handle that was opened once at the start
//! (`cap-std`, `openat2` if there is one). Checking a path and opening it afterwards was
//! rejected: between the two a directory can become a link. Directories are walked by handle too,
//! so the walkers of ripgrep's `ignore` crate are not used, only its reading of ignore rules.
//!
//! # Layout
//! - `workspace`, `rules`, `unix`: the directories that tools may touch, and the ignore rules in them.
//! - `hidden`: the files that no tool may read, by `.rondoignore`, a setting or a rule.
//! - `read`, `write`, `edit`, `list`, `search`: one tool each; `lines`, `walk`: code that reading and
//!   searching share; `replace`: writing a file whole or not at all; `encoding`: texts that are not UTF-8.
//! - `seen`: files as a session last saw them, so that no other change is overwritten.
//! - `matching`: finds the text that `edit_file` replaces, or the place that comes nearest; `difference`: the
//!   character in which that differs.
//! - [`DocumentReader`]: reads PDFs for `read_file`; the host brings one.
//! - `change`: the log of file changes, and the preview of a call that has yet to run.
//! - `recovery`: whether an interrupted call changed its file, by the file's hashes.
//! - `instruction_files`: finds `AGENTS.md` and the like; `rondo-runtime` puts them into the prompt.
//! - [`Overview`], [`Occurrences`]: summaries of a directory for a small model, before a question, and after a search
//!   that found nothing.
//! - [`skill_files`], [`SkillHead`], [`front_matter`]: finds the files of skills, and reads what they say of themselves.
//! - [`context_files`]: the files of a chat assistant's workspace.

#![warn(missing_docs)]

mod blocking;
mod change;
pub mod context_files;
mod difference;
mod documents;
mod edit;
mod encoding;
mod failure;
pub mod front_matter;
mod hidden;
mod instruction_files;
mod lines;
mod list;
mod matching;
mod overview;
mod read;
mod recovery;
mod replace;
mod rules;
mod search;
mod seen;
pub mod skill_files;
mod skill_head;
mod unix;
mod walk;
mod workspace;
mod write;

pub use change::{
    ChangeLog, DiffKind, DiffLine, FileBefore, FileChange, ReplacedFile, preview, replaced,
};
pub use documents::{DocumentReader, DocumentText};
pub use edit::{EDIT_FILE, EditFile};
pub use hidden::{DeniedFiles, HiddenPaths, IGNORE_FILE};
pub use instruction_files::{
    RepositoryInstructions, instruction_file, repository_instructions, repository_root,
};
pub use list::ListFiles;
pub use overview::{Occurrences, Overview};
pub use read::ReadFile;
pub use search::SearchFiles;
pub use skill_head::{SKILL_NAME_MAX, SkillHead, check_skill_name};
pub use workspace::{Workspace, WorkspaceError};
pub use write::{WRITE_FILE, WriteFile};

use rondo_core::ports::Tool;
use std::sync::Arc;

/// The names of the five file tools, in the order they are offered.
pub const TOOL_NAMES: [&str; 5] = [
    "read_file",
    "write_file",
    "edit_file",
    "list_files",
    "search_files",
];

/// The names of those that only read.
pub const READING_TOOL_NAMES: [&str; 3] = ["read_file", "list_files", "search_files"];

/// Returns the five file tools over one workspace, in the order they are offered.
#[must_use]
pub fn file_tools(workspace: &Arc<Workspace>) -> Vec<Arc<dyn Tool>> {
    file_tools_with_log(workspace, &ChangeLog::default(), None)
}

/// Returns the same tools as [`file_tools`]; they record each file change in the log, and read PDFs if there is a reader
/// for them.
#[must_use]
pub fn file_tools_with_log(
    workspace: &Arc<Workspace>,
    log: &ChangeLog,
    documents: Option<Arc<dyn DocumentReader>>,
) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(ReadFile::new(Arc::clone(workspace)).with_documents(documents)),
        Arc::new(WriteFile::new(Arc::clone(workspace)).with_log(log.clone())),
        Arc::new(EditFile::new(Arc::clone(workspace)).with_log(log.clone())),
        Arc::new(ListFiles::new(Arc::clone(workspace))),
        Arc::new(SearchFiles::new(Arc::clone(workspace))),
    ]
}
