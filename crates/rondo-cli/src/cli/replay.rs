//! Arguments of `rondo replay` and `rondo test`.

use super::{OutputFormat, one_of};
use clap::{Args, ValueEnum};
use rondo_runtime::table::help;
use std::path::PathBuf;

/// Arguments of `rondo replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Session to replay: an id, a prefix of one, `latest`, or an exported file
    #[arg(value_name = "ID")]
    pub(crate) session: String,
    /// Show the first difference in full and exit with code 4
    #[arg(long)]
    pub(crate) strict: bool,
    /// Source of tool results; `live` also runs read-only tools again and compares
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

/// Arguments of `rondo test`.
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
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Replay with this system prompt
    #[arg(long, value_name = "TEXT")]
    pub(crate) system_prompt: Option<String>,
    /// Replay sessions of scripts with this script in place of the recorded one
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<String>,
}

/// Where tool results come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolResults {
    /// Recorded results.
    Recorded,
    /// Recorded results; read-only tools also run again, to compare.
    Live,
}
