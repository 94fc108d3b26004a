//! The command line's arguments. Their effect on settings is decided in [`rondo_runtime::settings`].

mod answer;
mod attach;
mod chat;
mod config;
mod context;
mod fork;
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
pub(crate) use hub::{OnboardArgs, OutboxArgs, OutboxCommand, ServeArgs};
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
use clap::{ArgAction, Args, Parser, Subcommand};
use rondo_runtime::Layer;
use rondo_runtime::values::{ApprovalMode, DurabilityLevel, SandboxChoice, TimeSpan, Word};
use rondo_types::Effort;
use std::path::PathBuf;

/// The exit codes, shown below the help of the commands that run or replay turns.
const EXIT_CODES: &str = "Exit codes:
  0 success, 1 error, 2 usage, 3 degraded answer with --strict-complete, 4 replay differs,
  41 API key, 42 input, 44 approval needed but no terminal, 45 no such session or nothing to
  resume, 46 session in use, 47 waiting for an answer, 52 configuration, 53 limit reached without an answer, 54 journal,
  124 deadline exceeded without an answer, 130 interrupted, 141 output pipe closed,
  143 terminated";

/// What `rondo` does without a command.
const NO_COMMAND: &str = "Without a command, `rondo QUESTION` is `rondo ask QUESTION`; the options of `rondo ask` may come first, and \
piped input is attached to the question. Without a question, `rondo` in a terminal is `rondo repl`.";

/// An agent for the command line whose every run ends
#[derive(Debug, Parser)]
#[command(
    name = "rondo",
    version,
    propagate_version = true,
    override_usage = "rondo [OPTIONS] [QUESTION]\n       rondo [OPTIONS] <COMMAND>",
    after_help = NO_COMMAND
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

/// The commands.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Ask a question, let the model work on it, and print the answer
    #[command(after_help = EXIT_CODES)]
    Ask(Box<AskArgs>),
    /// Start an interactive prompt for the agent, your shell and Python
    #[command(after_help = EXIT_CODES)]
    Repl(Box<ReplArgs>),
    /// Run a script: agents as a program in Lua
    #[command(after_help = EXIT_CODES)]
    Run(Box<RunArgs>),
    /// Resume an interrupted turn
    #[command(after_help = EXIT_CODES)]
    Resume(Box<ResumeArgs>),
    /// Answer a question that a session waits with, and let the session go on
    #[command(after_help = EXIT_CODES)]
    Answer(Box<AnswerArgs>),
    /// Show the turn that another process works on; Ctrl-C leaves it running
    #[command(after_help = EXIT_CODES)]
    Attach(AttachArgs),
    /// Create a session that branches off from an existing one
    #[command(after_help = EXIT_CODES)]
    Fork(Box<ForkArgs>),
    /// Talk to a running hub
    Chat(ChatArgs),
    /// Add, list and revoke the users of a hub, and make their keys
    Users(UsersArgs),
    /// Manage recorded sessions
    Session(SessionArgs),
    /// Replay a recorded session offline
    #[command(after_help = EXIT_CODES)]
    Replay(ReplayArgs),
    /// Replay all exported sessions in a directory and report which changed
    #[command(after_help = EXIT_CODES)]
    Test(TestArgs),
    /// Show profiles: named sets of limits, tools and prompts
    Profiles(ProfilesArgs),
    /// Show skills: instructions for particular tasks
    Skills(SkillsArgs),
    /// Run the gateway, which people reach by chats and programs by HTTP
    Serve(ServeArgs),
    /// Set up the gateway: a workspace, a channel and its owner, until a first message is answered
    Onboard(OnboardArgs),
    /// Show and mend what the gateway has not sent
    Outbox(OutboxArgs),
    /// Show what the model of a session reads, and how much of its context that takes
    Context(ContextArgs),
    /// Show what the recorded sessions used: tokens and cost
    Usage(UsageArgs),
    /// Manage the weights of local models
    Models(ModelsArgs),
    /// Decode a provider's response, or encode a request
    Wire(WireArgs),
    /// Show and change settings
    Config(ConfigArgs),
    /// Trust a folder, so that its own configuration applies in full
    Trust(TrustArgs),
    /// Show the rules of calls, and what they say about a command
    Policy(PolicyArgs),
    /// Manage servers of the Model Context Protocol, whose tools the model may call
    Mcp(McpArgs),
    /// List, search and change what is remembered across sessions
    Memory(MemoryArgs),
    /// Check the configuration, and optionally a provider
    Doctor(DoctorArgs),
    /// Generate a shell completion script
    Completion {
        /// Shell to generate the script for
        shell: clap_complete::Shell,
    },
}

/// Arguments of `rondo usage`.
#[derive(Debug, Args)]
pub(crate) struct UsageArgs {
    /// What to sum up by
    #[arg(long, value_enum, default_value_t = UsageKey::Day)]
    pub(crate) by: UsageKey,
    /// Count only what was used in this time, such as `24h` or `30d`
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<TimeSpan>,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// What usage is summed up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum UsageKey {
    /// The day
    Day,
    /// The model
    Model,
    /// The directory
    Project,
    /// The session, with the subagents that it started
    Session,
}

/// Arguments of `rondo models`.
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
        model: Option<String>,
    },
    /// Remove a model's weights
    Rm {
        /// Name from `rondo models list`, or `hf:OWNER/REPOSITORY/FILE`
        model: String,
    },
    /// Print the path of a model's weights
    Path {
        /// Name from `rondo models list`, path of a GGUF file, or `hf:OWNER/REPOSITORY/FILE` [default: the default
        /// local model]
        model: Option<String>,
    },
    /// Show details of a model
    Info {
        /// Name from `rondo models list`, path of a GGUF file, or `hf:OWNER/REPOSITORY/FILE` [default: the default
        /// local model]
        model: Option<String>,
    },
}

/// Arguments of `rondo ask`.
#[derive(Debug, Args, Default)]
pub(crate) struct AskArgs {
    /// Question to ask; `-` reads it from standard input, `@FILE` attaches a file
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,
    #[command(flatten)]
    pub(crate) turn: TurnArgs,
    /// Set by `rondo fork`: permissions of the original session do not carry over, and the message replaces
    /// what followed.
    #[arg(skip)]
    pub(crate) is_fork: bool,
    /// Whether the command was not typed; without a question, there is nothing to do.
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
    /// JSON Schema file that the answer must conform to
    #[arg(long, value_name = "FILE")]
    pub(crate) output_schema: Option<PathBuf>,
    #[arg(help = help("strict_complete"), long)]
    pub(crate) strict_complete: bool,
}

impl AskArgs {
    /// Returns what the flags set.
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
    /// Continue the latest session, preferably one of this directory
    #[arg(short = 'c', long = "continue")]
    pub(crate) continue_latest: bool,
    /// Continue this session: an id, a prefix of one, or `latest`
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    #[arg(help = help("ephemeral"), long, conflicts_with_all = ["continue_latest", "session"])]
    pub(crate) ephemeral: bool,
    #[arg(help = help("durability"), long, value_name = "LEVEL", value_parser = one_of::<DurabilityLevel>())]
    pub(crate) durability: Option<DurabilityLevel>,
    #[arg(help = help("model"), short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    #[arg(help = help("fallbacks"), long, value_name = "MODEL")]
    pub(crate) fallback: Vec<String>,
    #[arg(help = help("profile"), long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    #[arg(help = help("agent"), long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    #[arg(help = help("base_url"), long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    #[arg(help = help("max_steps"), long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_steps: Option<u32>,
    #[arg(help = help("max_tool_calls"), long, value_name = "N")]
    pub(crate) max_tool_calls: Option<u32>,
    #[arg(help = help("max_tokens_total"), long, value_name = "N")]
    pub(crate) max_tokens_total: Option<u64>,
    #[arg(help = help("max_budget_usd"), long, value_name = "USD", value_parser = parse_amount)]
    pub(crate) max_budget_usd: Option<f64>,
    #[arg(help = help("max_session_usd"), long, value_name = "USD", value_parser = parse_amount)]
    pub(crate) max_session_usd: Option<f64>,
    #[arg(help = help("max_session_tokens"), long, value_name = "N")]
    pub(crate) max_session_tokens: Option<u64>,
    #[arg(help = help("max_daily_usd"), long, value_name = "USD", value_parser = parse_amount)]
    pub(crate) max_daily_usd: Option<f64>,
    #[arg(help = help("max_daily_tokens"), long, value_name = "N")]
    pub(crate) max_daily_tokens: Option<u64>,
    #[arg(help = help("max_project_daily_usd"), long, value_name = "USD", value_parser = parse_amount)]
    pub(crate) max_project_daily_usd: Option<f64>,
    #[arg(help = help("max_project_daily_tokens"), long, value_name = "N")]
    pub(crate) max_project_daily_tokens: Option<u64>,
    #[arg(help = help("max_subagent_depth"), long, value_name = "N")]
    pub(crate) max_subagent_depth: Option<u32>,
    #[arg(help = help("deadline"), long, value_name = "TIME")]
    pub(crate) deadline: Option<TimeSpan>,
    #[arg(help = help("allowed_tools"), long, value_name = "TOOLS", value_delimiter = ',')]
    pub(crate) allowed_tools: Option<Vec<String>>,
    #[arg(help = help("disallowed_tools"), long, value_name = "TOOLS", value_delimiter = ',')]
    pub(crate) disallowed_tools: Option<Vec<String>>,
    #[arg(help = help("approval"), long, value_name = "MODE", value_parser = one_of::<ApprovalMode>())]
    pub(crate) approval: Option<ApprovalMode>,
    #[arg(help = help("sandbox"), long, value_name = "MODE", value_parser = one_of::<SandboxChoice>())]
    pub(crate) sandbox: Option<SandboxChoice>,
    #[arg(help = help("yolo"), long)]
    pub(crate) yolo: bool,
    #[arg(help = help("plan"), long)]
    pub(crate) plan: bool,
    #[arg(help = help("offline"), long)]
    pub(crate) offline: bool,
    /// Run in this directory
    #[arg(short = 'C', long = "cwd", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    #[arg(help = help("add_dirs"), long, value_name = "DIR")]
    pub(crate) add_dir: Vec<PathBuf>,
    #[arg(help = help("system_prompt"), long, value_name = "TEXT")]
    pub(crate) system_prompt: Option<String>,
    #[arg(help = help("append_system_prompt"), long, value_name = "TEXT")]
    pub(crate) append_system_prompt: Option<String>,
    #[arg(help = help("temperature"), long, value_name = "T", value_parser = parse_temperature)]
    pub(crate) temperature: Option<f64>,
    #[arg(help = help("max_output_tokens"), long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_output_tokens: Option<u32>,
    #[arg(help = help("effort"), long, value_name = "EFFORT", value_parser = one_of::<Effort>())]
    pub(crate) effort: Option<Effort>,
}

/// Arguments of `rondo resume`. Models, prompts and limits are the ones that the turn started with.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// Session to resume: an id, a prefix of one, or `latest` [default: the latest of this directory]
    #[arg(value_name = "ID")]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) options: ResumeOptions,
}

/// Options of a turn that goes on.
#[derive(Debug, Args)]
pub(crate) struct ResumeOptions {
    #[arg(help = help("base_url"), long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Time of the process, as `90s` or `2m`; a turn that is not over then stays interrupted
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
    /// Returns the arguments of a command that goes on with a session, and asks nothing new.
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

/// Arguments of `rondo profiles`.
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
    /// Print a profile's effective values and where each was set
    Show {
        /// Name of the profile
        name: String,
    },
}

/// Arguments of `rondo wire`.
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
        /// Feed the decoder K bytes at a time
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
        /// Instead of the body, print what is left out or changed, and why
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

/// Arguments of `rondo doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[arg(help = help("model"), short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Base URL of the provider
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Send test requests to the provider to see what it supports (may cost a few tokens)
    #[arg(long)]
    pub(crate) probe: bool,
    /// Show what sandboxed commands left changed in protected files of this folder, and ask whether you accept it
    #[arg(long, conflicts_with = "probe")]
    pub(crate) review: bool,
    /// Accept what `--review` shows without asking
    #[arg(long, requires = "review")]
    pub(crate) accept: bool,
    /// Print what `--review` shows as JSON, and ask nothing
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
    parse_number(text, "an amount of dollars such as `0.25`")
}

fn parse_temperature(text: &str) -> Result<f64, String> {
    parse_number(text, "a temperature such as `0.7`")
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
    use clap::CommandFactory;
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
