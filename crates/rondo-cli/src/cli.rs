//! The command line's arguments. Their effect on settings is decided in [`rondo_runtime::settings`].

mod answer;
mod attach;
mod chat;
mod completion;
mod config;
mod context;
mod fork;
mod help;
mod hub;
mod line;
mod mcp;
mod memory;
mod policy;
mod repl;
mod replay;
mod script;
mod session;
mod skills;
mod users;

pub(crate) use answer::AnswerArgs;
pub(crate) use attach::AttachArgs;
pub(crate) use chat::ChatArgs;
pub(crate) use config::{ConfigArgs, ConfigCommand, TrustArgs};
pub(crate) use context::{ContextArgs, ContextCommand};
pub(crate) use fork::ForkArgs;
pub(crate) use hub::{
    CronArgs, CronCommand, LogFormat, OnboardArgs, OutboxArgs, OutboxCommand, ServeArgs,
};
pub(crate) use line::{Line, Stdin, Streams, read as read_line};
pub(crate) use mcp::{McpArgs, McpCommand, McpServerArgs};
pub(crate) use memory::{MemoryArgs, MemoryCommand};
pub(crate) use policy::{PolicyArgs, PolicyCommand};
pub(crate) use repl::{ModeName, ReplArgs};
pub(crate) use replay::{ChangeArgs, ReplayArgs, TestArgs, ToolResults};
use rondo_runtime::table::help;
pub(crate) use rondo_runtime::values::{ColorChoice, OutputFormat};
pub(crate) use script::RunArgs;
pub(crate) use session::{PruneArgs, SessionArgs, SessionCommand, StoryFormat};
pub(crate) use skills::{SkillsArgs, SkillsCommand};
pub(crate) use users::{RoleName, UsersArgs, UsersCommand};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, CommandFactory as _, Parser, Subcommand};
use clap_complete::engine::ArgValueCandidates;
use rondo_runtime::Layer;
use rondo_runtime::values::{ApprovalMode, DurabilityLevel, SandboxChoice, TimeSpan, Word};
use rondo_types::Effort;
use std::path::PathBuf;

/// Run language-model agents on the command line, within limits that you set
#[derive(Debug, Parser)]
#[command(
    name = "rondo",
    version,
    propagate_version = true,
    override_usage = "rondo [OPTIONS] [QUESTION]\n       rondo [OPTIONS] <COMMAND>"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Log to standard error (repeat for more detail: -vv, -vvv)
    #[arg(short, long, global = true, action = ArgAction::Count, display_order = 900)]
    pub(crate) verbose: u8,
    #[arg(help = help("color"), long, global = true, value_name = "WHEN", value_parser = one_of::<ColorChoice>(), display_order = 901)]
    pub(crate) color: Option<ColorChoice>,
}

impl Cli {
    /// Returns the definition of the command line, whose help lists the commands in groups.
    pub(crate) fn definition() -> clap::Command {
        help::grouped(Self::command())
    }
}

/// The commands. Their arguments begin with the same line, which clap shows in the help of the command.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Ask a question and print the answer
    #[command(after_help = help::ASK_EXAMPLES, after_long_help = help::with_exit_codes(help::ASK_EXAMPLES))]
    Ask(Box<AskArgs>),
    /// Open the line prompt, for questions, shell commands and Python
    #[command(after_long_help = help::EXIT_CODES)]
    Repl(Box<ReplArgs>),
    /// Run a Lua script that drives agents
    #[command(after_long_help = help::EXIT_CODES)]
    Run(Box<RunArgs>),
    /// Resume a turn that was cut off
    #[command(after_long_help = help::EXIT_CODES)]
    Resume(Box<ResumeArgs>),
    /// Answer a pending question and resume the session
    #[command(after_help = help::ANSWER_EXAMPLES, after_long_help = help::with_exit_codes(help::ANSWER_EXAMPLES))]
    Answer(Box<AnswerArgs>),
    /// Watch a turn that is running in another process
    #[command(after_long_help = help::EXIT_CODES)]
    Attach(AttachArgs),
    /// Start a new session from a step of an earlier one
    #[command(after_help = help::FORK_EXAMPLES, after_long_help = help::with_exit_codes(help::FORK_EXAMPLES))]
    Fork(Box<ForkArgs>),
    /// List, show, remove, export, import and check sessions
    Session(SessionArgs),
    /// Replay a recorded session offline
    #[command(after_long_help = help::EXIT_CODES)]
    Replay(ReplayArgs),
    /// Replay exported sessions and report which ones changed
    #[command(after_long_help = help::EXIT_CODES)]
    Test(TestArgs),
    /// Show what takes up the context window of a session
    Context(ContextArgs),
    /// Show the tokens and the cost of recorded sessions
    Usage(UsageArgs),
    /// List, get and set settings
    Config(ConfigArgs),
    /// List and show profiles: sets of limits, tools and prompts
    Profiles(ProfilesArgs),
    /// List, download and remove the weights of local models
    Models(ModelsArgs),
    /// Add, list, test and remove MCP servers, which offer more tools
    Mcp(McpArgs),
    /// List and show skills: instructions for particular tasks
    Skills(SkillsArgs),
    /// List, search, add and forget memories
    Memory(MemoryArgs),
    /// Trust a folder, so that its own configuration applies in full
    Trust(TrustArgs),
    /// Show the approval rules and check a command against them
    Policy(PolicyArgs),
    /// Check the configuration and, on request, the provider
    Doctor(DoctorArgs),
    /// Print a completion script for your shell
    #[command(after_long_help = help::COMPLETION)]
    Completion {
        /// Shell to print the script for
        shell: clap_complete::Shell,
    },
    /// Run the gateway (chat channels and an HTTP API)
    Serve(ServeArgs),
    /// Set up the gateway step by step
    Onboard(OnboardArgs),
    /// Talk to a running gateway
    Chat(ChatArgs),
    /// Add, list and revoke users of the gateway and their API keys
    Users(UsersArgs),
    /// Inspect and retry undelivered messages
    Outbox(OutboxArgs),
    /// Show the scheduled jobs of chats
    Cron(CronArgs),
    /// Decode a provider's response or encode a request
    Wire(WireArgs),
}

/// Show the tokens and the cost of recorded sessions
#[derive(Debug, Args)]
pub(crate) struct UsageArgs {
    /// Add up the usage by day, model, project or session
    #[arg(long, value_enum, default_value_t = UsageKey::Day)]
    pub(crate) by: UsageKey,
    /// Count only the usage of this last period, such as `24h` or `30d`
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<TimeSpan>,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// A key to add up usage by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum UsageKey {
    /// One line per day
    Day,
    /// One line per model
    Model,
    /// One line per project directory
    Project,
    /// One line per session, including its subagents
    Session,
}

/// List, download and remove the weights of local models
#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    pub(crate) command: ModelsCommand,
    /// Do not download anything
    #[arg(long, global = true)]
    pub(crate) offline: bool,
}

/// Actions on weights. A model is named as in `rondo models list`, by the path of a GGUF file,
/// or as `hf:owner/repository/file`.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum ModelsCommand {
    /// List the known models and whether their weights are downloaded
    List,
    /// Download a model's weights
    Pull {
        /// Name from `rondo models list`, or `hf:OWNER/REPOSITORY/FILE` [default: the default local model]
        #[arg(add = ArgValueCandidates::new(completion::local_models))]
        model: Option<String>,
    },
    /// Remove a model's weights
    Rm {
        /// Name from `rondo models list`, or `hf:OWNER/REPOSITORY/FILE`
        #[arg(add = ArgValueCandidates::new(completion::local_models))]
        model: String,
    },
    /// Print the path of a model's weights
    Path {
        /// Name from `rondo models list`, path of a GGUF file, or `hf:OWNER/REPOSITORY/FILE` [default: the default
        /// local model]
        #[arg(add = ArgValueCandidates::new(completion::local_models))]
        model: Option<String>,
    },
    /// Show details of a model
    Info {
        /// Name from `rondo models list`, path of a GGUF file, or `hf:OWNER/REPOSITORY/FILE` [default: the default
        /// local model]
        #[arg(add = ArgValueCandidates::new(completion::local_models))]
        model: Option<String>,
    },
}

/// Ask a question and print the answer
///
/// The model may read files and run commands to find the answer; calls that change something need your approval. The
/// answer is printed on standard output, and the progress of the turn on standard error. Input that is piped in is
/// attached to the question.
#[derive(Debug, Args, Default)]
pub(crate) struct AskArgs {
    /// Question to ask; `-` reads it from standard input, `@FILE` attaches a file
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,
    #[command(flatten)]
    pub(crate) turn: TurnArgs,
    /// Set by `rondo fork`: permissions of the original session do not carry over, and the message replaces
    /// the later turns.
    #[arg(skip)]
    pub(crate) is_fork: bool,
    /// Set if the command was not typed; without a question, there is nothing to do.
    #[arg(skip)]
    pub(crate) implied: bool,
    /// Run in the background and print the session's id; `rondo attach` shows the turn
    #[arg(long, conflicts_with_all = ["ephemeral", "output_format", "json"])]
    pub(crate) detach: bool,
    /// Set for the process that works on a detached turn.
    #[arg(long, hide = true, conflicts_with = "detach")]
    pub(crate) detached: bool,
    /// Also write the answer to this file
    #[arg(short, long = "output-last-message", value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[arg(help = help("quiet"), short, long)]
    pub(crate) quiet: bool,
    #[arg(help = help("output_format"), long, value_name = "FORMAT", value_parser = one_of::<OutputFormat>())]
    pub(crate) output_format: Option<OutputFormat>,
    /// Same as `--output-format json`
    #[arg(long, conflicts_with = "output_format")]
    pub(crate) json: bool,
    /// File with a JSON Schema that the answer must match
    #[arg(long, value_name = "FILE")]
    pub(crate) output_schema: Option<PathBuf>,
    #[arg(help = help("strict_complete"), long)]
    pub(crate) strict_complete: bool,
}

impl AskArgs {
    /// Returns the settings of the flags.
    pub(crate) fn layer(&self) -> Layer {
        let switch = |on: bool| on.then_some(true);
        Layer {
            model: self.turn.model.clone(),
            fallbacks: (!self.turn.fallback.is_empty()).then(|| self.turn.fallback.clone()),
            profile: self.turn.profile.clone(),
            agent: self.turn.agent.clone(),
            base_url: self.turn.base_url.clone(),
            max_steps: self.turn.max_steps,
            max_tool_calls: self.turn.max_tool_calls,
            max_tokens_total: self.turn.max_tokens_total,
            max_budget_usd: self.turn.max_budget_usd,
            max_session_usd: self.turn.max_session_usd,
            max_session_tokens: self.turn.max_session_tokens,
            max_daily_usd: self.turn.max_daily_usd,
            max_daily_tokens: self.turn.max_daily_tokens,
            max_project_daily_usd: self.turn.max_project_daily_usd,
            max_project_daily_tokens: self.turn.max_project_daily_tokens,
            max_subagent_depth: self.turn.max_subagent_depth,
            deadline: self.turn.deadline,
            allowed_tools: self.turn.allowed_tools.clone(),
            disallowed_tools: self.turn.disallowed_tools.clone(),
            approval: self.turn.approval,
            sandbox: self.turn.sandbox,
            yolo: switch(self.turn.yolo),
            plan: switch(self.turn.plan),
            offline: switch(self.turn.offline),
            add_dirs: (!self.turn.add_dir.is_empty()).then(|| self.turn.add_dir.clone()),
            system_prompt: self.turn.system_prompt.clone(),
            append_system_prompt: self.turn.append_system_prompt.clone(),
            temperature: self.turn.temperature,
            max_output_tokens: self.turn.max_output_tokens,
            effort: self.turn.effort,
            output_format: if self.json {
                Some(OutputFormat::Json)
            } else {
                self.output_format
            },
            durability: self.turn.durability,
            ephemeral: switch(self.turn.ephemeral),
            strict_complete: switch(self.strict_complete),
            quiet: switch(self.quiet),
            ..Layer::default()
        }
    }
}

/// Options of a turn and of its session.
#[derive(Debug, Clone, Args, Default)]
pub(crate) struct TurnArgs {
    /// Continue the latest session of this directory or, if it has none, the latest of all
    #[arg(short = 'c', long = "continue", help_heading = help::SESSION)]
    pub(crate) continue_latest: bool,
    /// Continue this session: an id, a prefix of an id, or `latest`
    #[arg(long, value_name = "ID", help_heading = help::SESSION, add = ArgValueCandidates::new(completion::sessions))]
    pub(crate) session: Option<String>,
    #[arg(help = help("ephemeral"), long, conflicts_with_all = ["continue_latest", "session"], help_heading = help::SESSION)]
    pub(crate) ephemeral: bool,
    #[arg(help = help("durability"), long, value_name = "LEVEL", value_parser = one_of::<DurabilityLevel>(), help_heading = help::SESSION)]
    pub(crate) durability: Option<DurabilityLevel>,
    #[arg(help = help("model"), short, long, value_name = "MODEL", help_heading = help::MODEL, add = ArgValueCandidates::new(completion::models))]
    pub(crate) model: Option<String>,
    #[arg(help = help("fallbacks"), long, value_name = "MODEL", help_heading = help::MODEL, add = ArgValueCandidates::new(completion::models))]
    pub(crate) fallback: Vec<String>,
    #[arg(help = help("profile"), long, value_name = "NAME", help_heading = help::MODEL, add = ArgValueCandidates::new(completion::profiles))]
    pub(crate) profile: Option<String>,
    #[arg(help = help("agent"), long, value_name = "NAME", help_heading = help::MODEL)]
    pub(crate) agent: Option<String>,
    #[arg(help = help("base_url"), long, value_name = "URL", help_heading = help::MODEL)]
    pub(crate) base_url: Option<String>,
    #[arg(help = help("max_steps"), long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = help::LIMITS)]
    pub(crate) max_steps: Option<u32>,
    #[arg(help = help("max_tool_calls"), long, value_name = "N", help_heading = help::LIMITS)]
    pub(crate) max_tool_calls: Option<u32>,
    #[arg(help = help("max_tokens_total"), long, value_name = "N", help_heading = help::LIMITS)]
    pub(crate) max_tokens_total: Option<u64>,
    #[arg(help = help("max_budget_usd"), long, value_name = "USD", value_parser = parse_amount, help_heading = help::LIMITS)]
    pub(crate) max_budget_usd: Option<f64>,
    #[arg(help = help("max_session_usd"), long, value_name = "USD", value_parser = parse_amount, help_heading = help::LIMITS)]
    pub(crate) max_session_usd: Option<f64>,
    #[arg(help = help("max_session_tokens"), long, value_name = "N", help_heading = help::LIMITS)]
    pub(crate) max_session_tokens: Option<u64>,
    #[arg(help = help("max_daily_usd"), long, value_name = "USD", value_parser = parse_amount, help_heading = help::LIMITS)]
    pub(crate) max_daily_usd: Option<f64>,
    #[arg(help = help("max_daily_tokens"), long, value_name = "N", help_heading = help::LIMITS)]
    pub(crate) max_daily_tokens: Option<u64>,
    #[arg(help = help("max_project_daily_usd"), long, value_name = "USD", value_parser = parse_amount, help_heading = help::LIMITS)]
    pub(crate) max_project_daily_usd: Option<f64>,
    #[arg(help = help("max_project_daily_tokens"), long, value_name = "N", help_heading = help::LIMITS)]
    pub(crate) max_project_daily_tokens: Option<u64>,
    #[arg(help = help("max_subagent_depth"), long, value_name = "N", help_heading = help::LIMITS)]
    pub(crate) max_subagent_depth: Option<u32>,
    #[arg(help = help("deadline"), long, value_name = "TIME", help_heading = help::LIMITS)]
    pub(crate) deadline: Option<TimeSpan>,
    #[arg(help = help("allowed_tools"), long, value_name = "TOOLS", value_delimiter = ',', help_heading = help::TOOLS)]
    pub(crate) allowed_tools: Option<Vec<String>>,
    #[arg(help = help("disallowed_tools"), long, value_name = "TOOLS", value_delimiter = ',', help_heading = help::TOOLS)]
    pub(crate) disallowed_tools: Option<Vec<String>>,
    #[arg(help = help("approval"), long, value_name = "MODE", value_parser = one_of::<ApprovalMode>(), help_heading = help::TOOLS)]
    pub(crate) approval: Option<ApprovalMode>,
    #[arg(help = help("sandbox"), long, value_name = "MODE", value_parser = one_of::<SandboxChoice>(), help_heading = help::TOOLS)]
    pub(crate) sandbox: Option<SandboxChoice>,
    #[arg(help = help("yolo"), long, help_heading = help::TOOLS)]
    pub(crate) yolo: bool,
    #[arg(help = help("plan"), long, help_heading = help::TOOLS)]
    pub(crate) plan: bool,
    #[arg(help = help("offline"), long, help_heading = help::MODEL)]
    pub(crate) offline: bool,
    /// Run in this directory
    #[arg(short = 'C', long = "cwd", value_name = "DIR", help_heading = help::TOOLS)]
    pub(crate) directory: Option<PathBuf>,
    #[arg(help = help("add_dirs"), long, value_name = "DIR", help_heading = help::TOOLS)]
    pub(crate) add_dir: Vec<PathBuf>,
    #[arg(help = help("system_prompt"), long, value_name = "TEXT", help_heading = help::MODEL)]
    pub(crate) system_prompt: Option<String>,
    #[arg(help = help("append_system_prompt"), long, value_name = "TEXT", help_heading = help::MODEL)]
    pub(crate) append_system_prompt: Option<String>,
    #[arg(help = help("temperature"), long, value_name = "T", value_parser = parse_temperature, help_heading = help::MODEL)]
    pub(crate) temperature: Option<f64>,
    #[arg(help = help("max_output_tokens"), long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = help::MODEL)]
    pub(crate) max_output_tokens: Option<u32>,
    #[arg(help = help("effort"), long, value_name = "EFFORT", value_parser = one_of::<Effort>(), help_heading = help::MODEL)]
    pub(crate) effort: Option<Effort>,
}

/// Resume a turn that was cut off
///
/// The turn keeps the model, the prompts and the limits that it started with. Finished tool calls do not run again.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// Session to resume: an id, a prefix of an id, or `latest` [default: the latest session of this directory]
    #[arg(value_name = "ID", add = ArgValueCandidates::new(completion::sessions))]
    pub(crate) session: Option<String>,
    /// Continue the turn with another model, as `provider/model`
    #[arg(short, long, value_name = "MODEL", add = ArgValueCandidates::new(completion::models))]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) options: ResumeOptions,
}

/// Options of a turn that continues.
#[derive(Debug, Args)]
pub(crate) struct ResumeOptions {
    #[arg(help = help("base_url"), long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Time limit of this process, such as `90s` or `2m`; an unfinished turn is then cut off
    #[arg(long, value_name = "TIME")]
    pub(crate) deadline: Option<TimeSpan>,
    #[arg(help = help("allowed_tools"), long, value_name = "TOOLS", value_delimiter = ',')]
    pub(crate) allowed_tools: Option<Vec<String>>,
    #[arg(help = help("disallowed_tools"), long, value_name = "TOOLS", value_delimiter = ',')]
    pub(crate) disallowed_tools: Option<Vec<String>>,
    #[arg(help = help("approval"), long, value_name = "MODE", value_parser = one_of::<ApprovalMode>())]
    pub(crate) approval: Option<ApprovalMode>,
    #[arg(help = help("yolo"), long)]
    pub(crate) yolo: bool,
    #[arg(help = help("add_dirs"), long, value_name = "DIR")]
    pub(crate) add_dir: Vec<PathBuf>,
    #[arg(help = help("offline"), long)]
    pub(crate) offline: bool,
    /// Also write the answer to this file
    #[arg(short, long = "output-last-message", value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[arg(help = help("quiet"), short, long)]
    pub(crate) quiet: bool,
    #[arg(help = help("output_format"), long, value_name = "FORMAT", value_parser = one_of::<OutputFormat>())]
    pub(crate) output_format: Option<OutputFormat>,
    /// Same as `--output-format json`
    #[arg(long, conflicts_with = "output_format")]
    pub(crate) json: bool,
    #[arg(help = help("strict_complete"), long)]
    pub(crate) strict_complete: bool,
}

impl ResumeOptions {
    /// Returns the arguments of a command that continues with a session, and asks nothing new.
    pub(crate) fn going_on(self, session: Option<String>) -> AskArgs {
        AskArgs {
            output: self.output,
            quiet: self.quiet,
            output_format: self.output_format,
            json: self.json,
            strict_complete: self.strict_complete,
            turn: TurnArgs {
                session,
                base_url: self.base_url,
                deadline: self.deadline,
                allowed_tools: self.allowed_tools,
                disallowed_tools: self.disallowed_tools,
                approval: self.approval,
                yolo: self.yolo,
                add_dir: self.add_dir,
                offline: self.offline,
                ..TurnArgs::default()
            },
            ..AskArgs::default()
        }
    }
}

/// List and show profiles: sets of limits, tools and prompts
#[derive(Debug, Args)]
pub(crate) struct ProfilesArgs {
    #[command(subcommand)]
    pub(crate) command: ProfilesCommand,
}

/// Actions on profiles.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum ProfilesCommand {
    /// List the profiles
    List,
    /// Print the effective values of a profile and the source of each
    Show {
        /// Name of the profile
        #[arg(add = ArgValueCandidates::new(completion::profiles))]
        name: String,
    },
}

/// Decode a provider's response or encode a request
#[derive(Debug, Args)]
pub(crate) struct WireArgs {
    #[command(subcommand)]
    pub(crate) command: WireCommand,
}

/// Directions of translation.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum WireCommand {
    /// Decode a response body and print it as one JSON object
    Decode {
        /// Wire protocol, such as `openai-chat` or `anthropic`
        #[arg(long, value_name = "DIALECT")]
        dialect: String,
        /// HTTP status of the response
        #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(100..600))]
        status: u16,
        /// Pass K bytes at a time to the decoder
        #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
        chunk_bytes: Option<u32>,
        /// Header of the response, such as `Retry-After: 5` (repeatable)
        #[arg(long = "header", value_name = "NAME: VALUE", value_parser = parse_header)]
        headers: Vec<(String, String)>,
        /// File to decode; `-` is standard input [default: -]
        file: Option<PathBuf>,
    },
    /// Encode a transcript as a request body
    Encode {
        /// Wire protocol, such as `openai-chat` or `anthropic`
        #[arg(long, value_name = "DIALECT")]
        dialect: String,
        /// Print what the encoder leaves out or changes, and why, in place of the body
        #[arg(long)]
        explain: bool,
        /// Print the explanation as JSON, one object per line
        #[arg(long, requires = "explain")]
        json: bool,
        /// File with a request or an array of messages, as JSON; `-` is standard input
        transcript: PathBuf,
    },
}

/// Header names are case-insensitive, so they are kept in lower case.
fn parse_header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            let name = name.trim().to_ascii_lowercase();
            Ok((name, value.trim().to_owned()))
        }
        _ => Err("a header is `NAME: VALUE`".to_owned()),
    }
}

/// Check the configuration and, on request, the provider
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[arg(help = help("model"), short, long, value_name = "MODEL", add = ArgValueCandidates::new(completion::models))]
    pub(crate) model: Option<String>,
    /// Base URL of the provider
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Send test requests to the provider to find out what it supports (may cost a few tokens)
    #[arg(long)]
    pub(crate) probe: bool,
    /// Show changes that sandboxed commands made to protected files of this folder, and ask whether to accept them
    #[arg(long, conflicts_with = "probe")]
    pub(crate) review: bool,
    /// Accept the changes that `--review` shows without asking
    #[arg(long, requires = "review")]
    pub(crate) accept: bool,
    /// Print the changes that `--review` shows as JSON, without asking
    #[arg(long, requires = "review")]
    pub(crate) json: bool,
}

/// Parses one of a few words; the help lists each with its meaning.
pub(crate) fn one_of<T: Word + Send + Sync>() -> impl TypedValueParser<Value = T> {
    let shown = T::ALL.iter().map(|it| {
        let help = it.help.trim();
        PossibleValue::new(it.word).help(help.strip_suffix('.').unwrap_or(help))
    });
    PossibleValuesParser::new(shown).try_map(|word| T::read(&word))
}

fn parse_amount(text: &str) -> Result<f64, String> {
    parse_number(text, "an amount in dollars, such as `0.25`")
}

fn parse_temperature(text: &str) -> Result<f64, String> {
    parse_number(text, "a temperature, such as `0.7`")
}

fn parse_number(text: &str, what: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && *number >= 0.0)
        .ok_or_else(|| format!("`{text}` is not {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_runtime::SETTINGS;

    /// A value for the flag of a setting; `None` for a switch.
    fn argument(name: &str) -> Option<&'static str> {
        match name {
            "yolo" | "plan" | "offline" | "ephemeral" | "strict_complete" | "quiet" => None,
            "max_steps"
            | "max_tool_calls"
            | "max_tokens_total"
            | "max_output_tokens"
            | "max_subagent_depth"
            | "max_session_tokens"
            | "max_daily_tokens"
            | "max_project_daily_tokens" => Some("4"),
            "max_budget_usd"
            | "max_session_usd"
            | "max_daily_usd"
            | "max_project_daily_usd"
            | "temperature" => Some("0.5"),
            "deadline" => Some("2m"),
            "effort" => Some("low"),
            "output_format" => Some("json"),
            "durability" => Some("normal"),
            "approval" => Some("park"),
            "sandbox" => Some("read-only"),
            _ => Some("x"),
        }
    }

    #[test]
    fn every_setting_with_a_flag_is_set_by_it_and_has_its_help() {
        let mut command = Cli::command();
        command.build();
        let ask = command.find_subcommand("ask").unwrap();
        for setting in SETTINGS {
            let Some(flag) = setting.flag else {
                continue;
            };
            if setting.name == "color" {
                // A global flag.
                let known = command
                    .get_arguments()
                    .find(|it| it.get_long() == Some(flag));
                assert_eq!(known.unwrap().get_help().unwrap().to_string(), setting.help);
                continue;
            }
            let known = ask.get_arguments().find(|it| it.get_long() == Some(flag));
            let help = known.unwrap().get_help().unwrap().to_string();
            assert_eq!(help, setting.help, "{flag}");
            let mut typed = vec!["rondo".to_owned(), "ask".to_owned(), format!("--{flag}")];
            typed.extend(argument(setting.name).map(str::to_owned));
            let Command::Ask(args) = Cli::try_parse_from(&typed).unwrap().command else {
                panic!("it is `ask`")
            };
            let layer = args.layer();
            let set = SETTINGS.iter().filter(|it| layer.get(it.name).is_some());
            let set: Vec<_> = set.map(|it| it.name).collect();
            assert_eq!(set, [setting.name]);
        }
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }
}
