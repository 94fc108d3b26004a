//! Arguments of `rondo fork`.

use super::completion;
use super::{AskArgs, OutputFormat, TurnArgs, one_of};
use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use rondo_runtime::sessions::StepPlace;
use rondo_runtime::table::help;

/// Start a new session from a step of an earlier one
#[derive(Debug, Args)]
pub(crate) struct ForkArgs {
    /// Session to fork: an id, a prefix of an id, or `latest`
    #[arg(value_name = "ID", add = ArgValueCandidates::new(completion::sessions))]
    pub(crate) session: String,
    /// Last step to keep: the number of a step of the latest turn, or `TURN.STEP`
    #[arg(long, value_name = "STEP")]
    pub(crate) at: StepPlace,
    /// Message to continue with, in place of the later steps
    #[arg(long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
    /// Only create the session and print its id
    #[arg(long, conflicts_with = "message")]
    pub(crate) no_run: bool,
    /// Model that answers the message, as `provider/model`
    #[arg(short, long, value_name = "MODEL", requires = "message", add = ArgValueCandidates::new(completion::models))]
    pub(crate) model: Option<String>,
    #[arg(help = help("base_url"), long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Tools and commands that run without asking; the new session does not inherit the old one's
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    pub(crate) allowed_tools: Option<Vec<String>>,
    #[arg(help = help("yolo"), long)]
    pub(crate) yolo: bool,
    #[arg(help = help("quiet"), short, long)]
    pub(crate) quiet: bool,
    #[arg(help = help("output_format"), long, value_name = "FORMAT", value_parser = one_of::<OutputFormat>())]
    pub(crate) output_format: Option<OutputFormat>,
    /// Same as `--output-format json`
    #[arg(long, conflicts_with = "output_format")]
    pub(crate) json: bool,
}

impl ForkArgs {
    /// Returns the arguments that continue the new session.
    pub(crate) fn going_on(self, session: &str) -> AskArgs {
        AskArgs {
            prompt: self.message.into_iter().collect(),
            quiet: self.quiet,
            output_format: self.output_format,
            json: self.json,
            is_fork: true,
            turn: TurnArgs {
                session: Some(session.to_owned()),
                model: self.model,
                base_url: self.base_url,
                allowed_tools: self.allowed_tools,
                yolo: self.yolo,
                ..TurnArgs::default()
            },
            ..AskArgs::default()
        }
    }
}
