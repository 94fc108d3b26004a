//! Arguments of `rondo replay` and `rondo test`.

use super::{OutputFormat, one_of};
use clap::{Args, ValueEnum};
use rondo_runtime::table::help;
use std::path::PathBuf;

/// Arguments of `rondo replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The session: its id, the beginning of it, `latest`, or an exported file
    #[arg(value_name = "ID")]
    pub(crate) session: String,
    /// Show the first difference in full, and end with exit code 4 if there is any
    #[arg(long)]
    pub(crate) strict: bool,
    /// Where tool results come from; `live` also runs tools that only look again, and compares
    #[arg(long, value_name = "FROM", default_value = "recorded")]
    pub(crate) tools: ToolResults,
    #[command(flatten)]
    pub(crate) changes: ChangeArgs,
    #[arg(help = help("output_format"), long, value_name = "FORMAT", default_value = "text", value_parser = one_of::<OutputFormat>())]
    pub(crate) output_format: OutputFormat,
    /// The same as `--output-format json`
    #[arg(long, conflicts_with = "output_format")]
    pub(crate) json: bool,
}

/// Arguments of `rondo test`.
#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// The directory of exported sessions, `*.jsonl`; or one such file
    #[arg(value_name = "DIR")]
    pub(crate) path: PathBuf,
    #[command(flatten)]
    pub(crate) changes: ChangeArgs,
    /// Write a report in JUnit's form to this file too
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
}

/// What is put in the place of what was recorded.
#[derive(Debug, Args)]
pub(crate) struct ChangeArgs {
    /// Replay under this profile: its limits, prompt and tools
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Replay with this system prompt
    #[arg(long, value_name = "TEXT")]
    pub(crate) system_prompt: Option<String>,
}

/// Where tool results come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolResults {
    /// From the records.
    Recorded,
    /// From the records; and tools that only look run again.
    Live,
}
