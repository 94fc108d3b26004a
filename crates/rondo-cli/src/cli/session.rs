//! Arguments of `rondo session`.

use clap::{Args, Subcommand, ValueEnum};
use rondo_runtime::values::TimeSpan;
use std::path::PathBuf;

/// Arguments of `rondo session`.
#[derive(Debug, Args)]
pub(crate) struct SessionArgs {
    #[command(subcommand)]
    pub(crate) command: SessionCommand,
}

/// What to do with sessions. One is named by its id, by the beginning of it, or as `latest`.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// List the sessions, the one written last first
    List {
        /// At most this many
        #[arg(short = 'n', long, value_name = "N", default_value_t = 30)]
        limit: usize,
        /// Print them as JSON, an object a line
        #[arg(long)]
        json: bool,
    },
    /// Show what happened in a session: what was said, calls, times, tokens and money
    Show {
        /// The session
        #[arg(value_name = "ID", default_value = "latest")]
        session: String,
        /// How; `html` is one page that needs nothing else
        #[arg(long, value_name = "FORMAT", default_value = "markdown")]
        format: StoryFormat,
    },
    /// Remove sessions
    Rm {
        /// The sessions
        #[arg(value_name = "ID", required = true)]
        sessions: Vec<String>,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
    /// Remove old sessions, never one in use or one that others are forks of
    Prune(PruneArgs),
    /// Write a session as lines of JSON
    Export {
        /// The session
        #[arg(value_name = "ID", default_value = "latest")]
        session: String,
        /// Write to this file; standard output otherwise
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Read a session that was exported
    Import {
        /// The file; `-` or nothing reads standard input
        file: Option<PathBuf>,
        /// Give it this id
        #[arg(long = "as", value_name = "ID")]
        id: Option<String>,
    },
    /// Check the records of sessions, of all if none is named
    Fsck {
        /// The session
        #[arg(value_name = "ID")]
        session: Option<String>,
        /// Cut off everything from the first damaged record on, and save it beside the journal
        #[arg(long)]
        repair: bool,
    },
}

/// How a session is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StoryFormat {
    /// Markdown.
    Markdown,
    /// One HTML page.
    Html,
    /// One JSON object.
    Json,
}

/// What may go.
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Sessions that were last written longer ago than this, such as `30d`
    #[arg(long, value_name = "TIME")]
    pub(crate) older_than: Option<TimeSpan>,
    /// The oldest ones, until all records are no more than this, such as `500MB`
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(crate) keep_bytes: Option<u64>,
    /// Say which, and remove none
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
        .ok_or_else(|| "that is more than there can be".to_owned())
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
