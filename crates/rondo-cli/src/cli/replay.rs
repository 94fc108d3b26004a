//! Arguments of `rondo replay` and `rondo test`.

use super::completion;
use super::{OutputFormat, one_of};
use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCandidates;
use rondo_runtime::table::help;
use std::path::PathBuf;

/// Replay a recorded session offline
///
/// No request is sent: the recorded replies and results are used, and every difference to the records is shown.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Session to replay: an id, a prefix of an id, `latest`, or an exported file
    #[arg(value_name = "ID", add = ArgValueCandidates::new(completion::sessions))]
    pub(crate) session: String,
    /// Show the first difference in full and exit with code 4
    #[arg(long)]
    pub(crate) strict: bool,
    /// Source of tool results
    #[arg(long, value_name = "FROM", default_value = "recorded")]
    pub(crate) tools: ToolResults,
    #[command(flatten)]
    pub(crate) changes: ChangeArgs,
    #[arg(help = help("output_format"), long, value_name = "FORMAT", default_value = "text", value_parser = one_of::<OutputFormat>())]
    pub(crate) output_format: OutputFormat,
    /// Same as `--output-format json`
    #[arg(long, conflicts_with = "output_format")]
    pub(crate) json: bool,
}

/// Replay exported sessions and report which ones changed
#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Directory of exported sessions (`*.jsonl`), or one such file
    #[arg(value_name = "DIR")]
    pub(crate) path: PathBuf,
    #[command(flatten)]
    pub(crate) changes: ChangeArgs,
    /// Also write a JUnit XML report to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
}

/// Overrides of recorded values.
#[derive(Debug, Args)]
pub(crate) struct ChangeArgs {
    /// Replay with the limits, prompt and tools of this profile
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(completion::profiles))]
    pub(crate) profile: Option<String>,
    /// Replay with this system prompt
    #[arg(long, value_name = "TEXT")]
    pub(crate) system_prompt: Option<String>,
    /// Replay sessions of scripts with this script in place of the recorded one
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<String>,
}

/// Source of tool results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolResults {
    /// The recorded results
    Recorded,
    /// The recorded results; read-only tools also run again, and their results are compared
    Live,
}
