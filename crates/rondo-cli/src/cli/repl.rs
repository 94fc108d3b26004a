use super::{AskArgs, DurabilityLevel, EffortLevel, TimeSpan};
use clap::{Args, ValueEnum};
use serde::Deserialize;
use std::path::PathBuf;

/// Arguments of `rondo repl`. They hold for every turn of it.
#[derive(Debug, Args, Default)]
pub(crate) struct ReplArgs {
    /// Go on with the latest session, of this directory if it has one
    #[arg(short = 'c', long = "continue")]
    pub(crate) continue_latest: bool,
    /// Go on with this session: its id, the beginning of it, or `latest`
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Run the Python cells of that session again
    #[arg(long)]
    pub(crate) restore_python: bool,
    /// Keep nothing of this session
    #[arg(long, conflicts_with_all = ["continue_latest", "session"])]
    pub(crate) ephemeral: bool,
    /// What a record survives: loss of power, or the end of the process alone
    #[arg(long, value_name = "LEVEL")]
    pub(crate) durability: Option<DurabilityLevel>,
    /// The mode to begin in
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<ModeName>,
    /// The model, as `provider/model`
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Who is asked when that model fails; may be repeated
    #[arg(long, value_name = "MODEL")]
    pub(crate) fallback: Vec<String>,
    /// The profile (see `rondo profiles list`)
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// The provider's address, as its own variable has it
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Bounds the model requests of a turn
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_steps: Option<u32>,
    /// Bounds the tool calls of a turn
    #[arg(long, value_name = "N")]
    pub(crate) max_tool_calls: Option<u32>,
    /// Bounds the tokens of a turn, prompts and replies together
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens_total: Option<u64>,
    /// Bounds the money of a turn
    #[arg(long, value_name = "USD", value_parser = super::parse_amount)]
    pub(crate) max_budget_usd: Option<f64>,
    /// Bounds the time of a turn, such as `500ms`, `20s`, `2m` or `1h30m`
    #[arg(long, value_name = "TIME")]
    pub(crate) deadline: Option<TimeSpan>,
    /// Tools and commands that run without asking, such as `exec(git *)`
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    pub(crate) allowed_tools: Option<Vec<String>>,
    /// Tools and commands that never run
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    pub(crate) disallowed_tools: Option<Vec<String>>,
    /// Run every call without asking
    #[arg(long)]
    pub(crate) yolo: bool,
    /// Fetch no weights; a local model must be here already
    #[arg(long)]
    pub(crate) offline: bool,
    /// Work in this directory
    #[arg(short = 'C', long = "cwd", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Let the tools use this directory too
    #[arg(long, value_name = "DIR")]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Replaces the profile's system prompt
    #[arg(long, value_name = "TEXT")]
    pub(crate) system_prompt: Option<String>,
    /// Follows the system prompt
    #[arg(long, value_name = "TEXT")]
    pub(crate) append_system_prompt: Option<String>,
    /// How freely the model samples
    #[arg(long, value_name = "T", value_parser = super::parse_temperature)]
    pub(crate) temperature: Option<f64>,
    /// Bounds the tokens of one reply
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_output_tokens: Option<u32>,
    /// How much a reasoning model reasons
    #[arg(long, value_name = "EFFORT")]
    pub(crate) effort: Option<EffortLevel>,
}

/// What a line that is typed is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeName {
    /// A question to the agent.
    Agent,
    /// A command.
    Shell,
    /// Python.
    Python,
}

/// Whose keys edit the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EditKeys {
    /// Those of Emacs and of most shells.
    Emacs,
    /// Those of vi.
    Vi,
}

impl From<ReplArgs> for AskArgs {
    fn from(args: ReplArgs) -> Self {
        Self {
            continue_latest: args.continue_latest,
            session: args.session,
            ephemeral: args.ephemeral,
            durability: args.durability,
            model: args.model,
            fallback: args.fallback,
            profile: args.profile,
            base_url: args.base_url,
            max_steps: args.max_steps,
            max_tool_calls: args.max_tool_calls,
            max_tokens_total: args.max_tokens_total,
            max_budget_usd: args.max_budget_usd,
            deadline: args.deadline,
            allowed_tools: args.allowed_tools,
            disallowed_tools: args.disallowed_tools,
            yolo: args.yolo,
            offline: args.offline,
            directory: args.directory,
            add_dir: args.add_dir,
            system_prompt: args.system_prompt,
            append_system_prompt: args.append_system_prompt,
            temperature: args.temperature,
            max_output_tokens: args.max_output_tokens,
            effort: args.effort,
            ..Self::default()
        }
    }
}
