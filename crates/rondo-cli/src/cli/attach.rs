//! The arguments of `rondo attach`.

use super::{OutputFormat, one_of};
use clap::Args;
use rondo_runtime::table::help;

/// Arguments of `rondo attach`.
#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    /// Session to show: an id, a prefix of one, or `latest`
    #[arg(value_name = "ID", default_value = "latest")]
    pub(crate) session: String,
    #[arg(help = help("output_format"), long, value_name = "FORMAT", value_parser = one_of::<OutputFormat>())]
    pub(crate) output_format: Option<OutputFormat>,
    /// Same as `--output-format json`
    #[arg(long, conflicts_with = "output_format")]
    pub(crate) json: bool,
}

impl AttachArgs {
    /// Returns what is printed on standard output.
    pub(crate) fn format(&self) -> OutputFormat {
        match self.json {
            true => OutputFormat::Json,
            false => self.output_format.unwrap_or(OutputFormat::Text),
        }
    }
}
