//! Memory of an agent across sessions.
//!
//! Memories are Markdown files that people read and edit: `MEMORY.md`, and notes by day. There are three scopes: the
//! user's, the project's and the chat's. The files are the truth. An SQLite index finds memories in them by words, by
//! parts of words and by vectors; it may be thrown away at any time, since it follows the files by their hashes. A
//! database as the truth was rejected: people could not read, edit, review or merge it with the tools that they have.
//!
//! # Layout
//! - `scope`, `folder`: the files of a scope; opening, locking and replacing them.
//! - `notes`, `origin`: a file as memories, each with its origin, and back.
//! - `memories`: saving, listing and forgetting. `editing`: a file in the user's editor.
//! - `index`: words, parts of words and vectors, and how their ranks are joined. `search`: one search from end to end.
//! - `start`: the memories that a session is shown when it begins. `shown`: memories as data for a model.
//! - `tools`: `save_memory` and `search_memory`.
//!
//! # Decisions
//! - Each outermost list item or paragraph is one memory, followed by a comment with its origin. What Rondo writes is one item
//!   whose further lines are indented, so no text can become two memories or bring an origin of its own.
//! - The lock is on the directory itself, so no lock file lies in a project. A file is replaced as a whole. A call's mark is in
//!   the comment, so a call that was cut off is found done or not done.
//! - The index follows the files by their hashes before each search, in one transaction. A damaged one is replaced; one that
//!   cannot be written is kept in memory. So a crash between file and index does no harm.
//! - Words, trigrams, single and double characters, and vectors each give a list, and only ranks are compared. The model that
//!   makes vectors says how much they count (`Embedder::weight`). `tests/it/recall.rs` measures the result against `grep`.
//! - The prompt holds only `MEMORY.md`, without text from outside and without what the session saved today. So the prompt changes
//!   only when a file is edited or the date changes.
//! - A project's files may come from anyone: no link is followed there, and what is recalled is marked as data with its origin.
#![warn(missing_docs)]

pub mod calendar;
mod editing;
mod error;
mod folder;
mod index;
mod memories;
mod notes;
mod origin;
mod scope;
mod search;
mod shown;
mod start;
mod tools;

pub use editing::Editing;
pub use error::MemoryError;
pub use folder::{FILE_BYTES_MAX, FILES_MAX, FOLDER_BYTES_MAX};
pub use index::{VECTOR_ROWS_MAX, VECTORS_EXACT_MAX};
pub use memories::{Listing, Memories, NewMemory, Options, Saved};
pub use notes::{MEMORY_BYTES_MAX, Memory};
pub use origin::{Author, Origin};
pub use scope::Scope;
pub use search::{Hit, QUERY_BYTES_MAX, RESULTS_MAX, SearchResults};
pub use shown::as_data;
pub use start::{START_BYTES_MAX, START_LINES_MAX, StartFile};
pub use tools::{Outside, SAVE_MEMORY, SEARCH_MEMORY, SaveMemory, SearchMemory, TOOL_NAMES};
