//! Arguments of `rondo memory`.

use super::completion;
use clap::{Args, Subcommand, ValueEnum};
use clap_complete::engine::ArgValueCandidates;
use rondo_runtime::memory::Scope;

/// List, search, add and forget memories
#[derive(Debug, Args)]
pub(crate) struct MemoryArgs {
    #[command(subcommand)]
    pub(crate) command: MemoryCommand,
    /// Include the memories of this session: an id, a prefix of an id, or `latest`
    #[arg(long, global = true, value_name = "ID", add = ArgValueCandidates::new(completion::sessions))]
    pub(crate) session: Option<String>,
}

/// Actions on memories. A memory is named by its id, of which 4 digits are enough if they are unique.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum MemoryCommand {
    /// List your memories and those of the project in this directory
    List {
        /// List only the memories of this scope
        #[arg(long, value_name = "SCOPE")]
        scope: Option<ScopeName>,
        /// Print as JSON, one object per line
        #[arg(long)]
        json: bool,
    },
    /// Search memories for words and parts of words
    Search {
        /// Words to search for
        #[arg(value_name = "QUERY", required = true)]
        query: Vec<String>,
        /// Maximum number to print
        #[arg(short = 'n', long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u8).range(1..=20))]
        limit: u8,
        /// Print as JSON, one object per line
        #[arg(long)]
        json: bool,
    },
    /// Show a memory and where it came from
    Show {
        /// Id of the memory, or a prefix of it
        id: String,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Save a memory
    Add {
        /// Text of the memory
        #[arg(value_name = "TEXT", required = true)]
        text: Vec<String>,
        /// Scope of the memory
        #[arg(long, value_name = "SCOPE", default_value = "user")]
        scope: ScopeName,
    },
    /// Edit a file of memories in your editor
    Edit {
        /// File to edit [default: MEMORY.md]
        #[arg(value_name = "FILE")]
        file: Option<String>,
        /// Scope of the file
        #[arg(long, value_name = "SCOPE", default_value = "user")]
        scope: ScopeName,
    },
    /// Remove memories from their files and from the index
    Forget {
        /// Ids of the memories, or prefixes of them
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
        /// Do not ask for confirmation
        #[arg(short, long)]
        yes: bool,
    },
}

/// Scopes of memories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeName {
    /// In all of your projects
    User,
    /// In this project; kept among its files
    Project,
    /// In one session
    Chat,
}

impl From<ScopeName> for Scope {
    fn from(name: ScopeName) -> Self {
        match name {
            ScopeName::User => Self::User,
            ScopeName::Project => Self::Project,
            ScopeName::Chat => Self::Chat,
        }
    }
}
