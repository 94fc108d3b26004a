//! Arguments of `rondo session`.

use super::completion;
use clap::{Args, Subcommand, ValueEnum};
use clap_complete::engine::ArgValueCandidates;
use rondo_runtime::values::TimeSpan;
use std::path::PathBuf;

/// List, show, remove, export, import and check sessions
#[derive(Debug, Args)]
pub(crate) struct SessionArgs {
    #[command(subcommand)]
    pub(crate) command: SessionCommand,
}

/// Actions on sessions. A session is named by its id, a prefix of it, or `latest`.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum SessionCommand {
    /// List sessions, most recent first
    List {
        /// Maximum number to list
        #[arg(short = 'n', long, value_name = "N", default_value_t = 30)]
        limit: usize,
        /// Print as JSON, one object per line
        #[arg(long)]
        json: bool,
    },
    /// Show a session: messages, tool calls, times, tokens and costs
    Show {
        /// Session: an id, a prefix of an id, or `latest`
        #[arg(value_name = "ID", default_value = "latest", add = ArgValueCandidates::new(completion::sessions))]
        session: String,
        /// Output format
        #[arg(long, value_name = "FORMAT", default_value = "markdown")]
        format: StoryFormat,
    },
    /// Remove sessions
    Rm {
        /// Sessions: ids, prefixes, or `latest`
        #[arg(value_name = "ID", required = true, add = ArgValueCandidates::new(completion::sessions))]
        sessions: Vec<String>,
        /// Do not ask for confirmation
        #[arg(short, long)]
        yes: bool,
    },
    /// Remove old sessions, except those in use and those with forks
    Prune(PruneArgs),
    /// Export a session as JSON Lines
    Export {
        /// Session: an id, a prefix of an id, or `latest`
        #[arg(value_name = "ID", default_value = "latest", add = ArgValueCandidates::new(completion::sessions))]
        session: String,
        /// File to write to [default: standard output]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Import an exported session
    Import {
        /// File to import; `-` is standard input [default: -]
        file: Option<PathBuf>,
        /// Id of the imported session [default: the id in the file]
        #[arg(long = "as", value_name = "ID")]
        id: Option<String>,
    },
    /// Check the integrity of sessions
    Fsck {
        /// Session to check: an id, a prefix of an id, or `latest` [default: all]
        #[arg(value_name = "ID", add = ArgValueCandidates::new(completion::sessions))]
        session: Option<String>,
        /// Cut off a damaged session at its first damaged record; the removed records are saved beside the journal
        #[arg(long)]
        repair: bool,
    },
}

/// Formats of `rondo session show`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StoryFormat {
    /// Markdown
    Markdown,
    /// One self-contained HTML page
    Html,
    /// One JSON object
    Json,
}

/// Remove old sessions, except those in use and those with forks
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Remove sessions that were not written to for this long, such as `30d`
    #[arg(long, value_name = "TIME")]
    pub(crate) older_than: Option<TimeSpan>,
    /// Remove the oldest sessions until the rest takes up at most this much, such as `500MB`
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(crate) keep_bytes: Option<u64>,
    /// Show the sessions that would be removed, without removing them
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Reads a number of bytes with `kB`, `MB` or `GB`, powers of ten as disks have them.
fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        _ => return Err("bytes are written like `500MB`".to_owned()),
    };
    let number: u64 = number
        .parse()
        .map_err(|_| "bytes are written like `500MB`")?;
    number
        .checked_mul(factor)
        .ok_or_else(|| "the number is too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_with_their_unit() {
        let read = |text| parse_bytes(text).ok();
        assert_eq!(read("500MB"), Some(500_000_000));
        assert_eq!(read("2 k"), Some(2000));
        assert_eq!(read("7"), Some(7));
        for wrong in [
            "",
            "MB",
            "1.5GB",
            "-1",
            "99999999999999999999",
            "99999999999999GB",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
