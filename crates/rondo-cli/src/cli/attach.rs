//! The arguments of `rondo attach`.

use super::completion;
use super::{OutputFormat, one_of};
use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use rondo_runtime::table::help;

/// Watch a turn that is running in another process
///
/// Ctrl-C stops watching; the turn goes on.
#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    /// Session to watch: an id, a prefix of an id, or `latest`
    #[arg(value_name = "ID", default_value = "latest", add = ArgValueCandidates::new(completion::sessions))]
    pub(crate) session: String,
    #[arg(help = help("output_format"), long, value_name = "FORMAT", value_parser = one_of::<OutputFormat>())]
    pub(crate) output_format: Option<OutputFormat>,
    /// Same as `--output-format json`
    #[arg(long, conflicts_with = "output_format")]
    pub(crate) json: bool,
}

impl AttachArgs {
    /// Returns the format of standard output.
    pub(crate) fn format(&self) -> OutputFormat {
        match self.json {
            true => OutputFormat::Json,
            false => self.output_format.unwrap_or(OutputFormat::Text),
        }
    }
}
