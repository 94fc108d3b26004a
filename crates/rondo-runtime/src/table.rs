//! The one table of settings: the name of each, where it can be set, and what it does.
//!
//! Layers, variables, what a project may set, `rondo config`, `--help` and the table of
//! `docs/configuration.md` follow from it, so that a new setting is one entry here (and its flag, if it has
//! one, among the arguments of the command line).

use crate::env::Env;
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::mcp::McpTable;
use crate::models::ModelTable;
use crate::providers::Provider;
use crate::values::{
    ApprovalMode, ColorChoice, DurabilityLevel, EditKeys, MotionChoice, MouseChoice, NotifyChoice,
    OutputFormat, PrintChoice, SandboxChoice, ScreenChoice, ThemeChoice, TimeSpan, WebSearchChoice,
    Word,
};
use rondo_types::Effort;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A setting, without its value.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its key in `config.toml`.
    pub name: &'static str,
    /// The variable that sets it.
    pub variable: Option<&'static str>,
    /// The option of the command line that sets it.
    pub flag: Option<&'static str>,
    /// Rights of an untrusted folder's configuration to the setting. That of a trusted folder may set it.
    pub untrusted: FromUntrusted,
    /// Description of its values.
    pub kind: &'static str,
    /// Its description, in one sentence.
    pub help: &'static str,
    /// The value that applies if no source sets it, as users read it.
    pub default: &'static str,
}

/// Rights of an untrusted folder's configuration to a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FromUntrusted {
    /// The value is ignored.
    Ignored,
    /// The number applies if it is lower than the value of the layers below.
    MayLower,
    /// The switch can only be set to this value.
    MayOnlyBe(bool),
    /// The names are added to those of the layers below.
    MayAdd,
}

/// The type of a setting.
trait Value: Sized + Clone {
    /// Description for users.
    const KIND: &'static str;

    /// Reads it from an environment variable.
    fn read(env: &Env, variable: &str) -> Result<Option<Self>>;

    /// Returns it in the form of `config.toml`.
    fn written(&self) -> toml::Value;

    /// Returns whether it is less than another; always `false` if it is not a number.
    fn is_lower(&self, other: &Self) -> bool {
        let _ = other;
        false
    }

    /// Puts it over the value of the layers below.
    fn over(&self, below: &mut Option<Self>, adds: bool) {
        let _ = adds;
        *below = Some(self.clone());
    }
}

macro_rules! settings {
    ($(
        #[doc = $help:literal]
        $name:ident: $type:ty, $default:literal, $variable:expr, $flag:expr, $untrusted:expr;
    )*) => {
        /// Values from one source. The keys are those of `config.toml`.
        #[derive(Debug, Clone, Default, PartialEq, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct Layer {
            $(
                #[doc = $help]
                pub $name: Option<$type>,
            )*
            /// Providers by name.
            pub providers: BTreeMap<String, Provider>,
            /// Facts of models by `provider/model`.
            pub models: ModelTable,
            /// Models by the tiers that scripts and commands name them by, such as `lite`.
            pub tiers: BTreeMap<String, String>,
            /// Values of profiles by name.
            pub profiles: BTreeMap<String, toml::Table>,
            /// Servers of the Model Context Protocol.
            pub mcp: McpTable,
            /// The gateway: its channels and its users, as the gateway reads them. That of a project is ignored.
            pub hub: toml::Table,
        }

        /// Every setting that is one value, in the order in which they are shown.
        pub const SETTINGS: &[Setting] = &[$(
            Setting {
                name: stringify!($name),
                variable: $variable,
                flag: $flag,
                untrusted: $untrusted,
                kind: <$type as Value>::KIND,
                help: $help,
                default: $default,
            }
        ),*];

        impl Layer {
            /// Reads the variables that mirror the settings.
            ///
            /// # Errors
            /// When a value is not what its setting takes.
            pub fn from_env(env: &Env) -> Result<Self> {
                Ok(Self {
                    $($name: read_variable::<$type>(env, $variable)?,)*
                    ..Self::default()
                })
            }

            /// Sets one setting to a typed value, written as for its variable.
            ///
            /// # Errors
            /// When the value is invalid, with the reason.
            pub(crate) fn typed(setting: &Setting, typed: &str) -> std::result::Result<Self, String> {
                const TYPED: &str = "typed";
                let env = Env::of(&[(TYPED, typed)]);
                let mut layer = Self::default();
                match setting.name {
                    $(stringify!($name) => {
                        let read = <$type as Value>::read(&env, TYPED);
                        layer.$name = read.map_err(|err| reason(&err))?;
                    })*
                    _ => {}
                }
                Ok(layer)
            }

            /// Returns the value of a setting as `config.toml` has it; `None` if it is not set.
            #[must_use]
            pub fn get(&self, name: &str) -> Option<toml::Value> {
                match name {
                    $(stringify!($name) => self.$name.as_ref().map(Value::written),)*
                    _ => None,
                }
            }

            /// Puts this layer over another one.
            pub fn put_over(self, below: &mut Self) {
                self.over(below);
            }

            /// Puts this layer over those below it.
            pub(crate) fn over(self, below: &mut Self) {
                $(
                    if let Some(value) = &self.$name {
                        value.over(&mut below.$name, $untrusted == FromUntrusted::MayAdd);
                    }
                )*
                for (name, own) in self.providers {
                    let known = below.providers.remove(&name).unwrap_or_default();
                    below.providers.insert(name, own.or(known));
                }
                self.mcp.over(&mut below.mcp);
                below.hub.extend(self.hub);
                below.tiers.extend(self.tiers);
                for (name, own) in self.models {
                    let known = below.models.remove(&name).unwrap_or_default();
                    below.models.insert(name, own.or(known));
                }
            }

            /// Leaves out the numbers that are not lower than those below.
            pub(crate) fn keep_lower(&mut self, below: &Self) {
                $(
                    if $untrusted == FromUntrusted::MayLower
                        && let (Some(own), Some(known)) = (&self.$name, &below.$name)
                        && !own.is_lower(known)
                    {
                        self.$name = None;
                    }
                )*
            }
        }
    };
}

settings! {
    #[doc = "Model to use, as `provider/model`"]
    model: String, "the first provider with a key, else a local model", Some("RONDO_MODEL"), Some("model"), FromUntrusted::Ignored;
    #[doc = "Model to use if the first one fails (repeatable)"]
    fallbacks: Vec<String>, "none", Some("RONDO_FALLBACKS"), Some("fallback"), FromUntrusted::Ignored;
    #[doc = "Profile to use (see `rondo profiles list`)"]
    profile: String, "default", Some("RONDO_PROFILE"), Some("profile"), FromUntrusted::Ignored;
    #[doc = "Agent file to use, such as `reviewer` for `.rondo/agents/reviewer.md`: its prompt, tools and model apply"]
    agent: String, "none", Some("RONDO_AGENT"), Some("agent"), FromUntrusted::Ignored;
    #[doc = "Base URL of the provider"]
    base_url: String, "the provider's", Some("RONDO_BASE_URL"), Some("base-url"), FromUntrusted::Ignored;
    #[doc = "Maximum number of model requests per turn"]
    max_steps: u32, "the profile's", Some("RONDO_MAX_STEPS"), Some("max-steps"), FromUntrusted::MayLower;
    #[doc = "Maximum number of tool calls per turn"]
    max_tool_calls: u32, "the profile's", Some("RONDO_MAX_TOOL_CALLS"), Some("max-tool-calls"), FromUntrusted::MayLower;
    #[doc = "Maximum number of tokens per turn, prompts and replies together"]
    max_tokens_total: u64, "the profile's", Some("RONDO_MAX_TOKENS_TOTAL"), Some("max-tokens-total"), FromUntrusted::MayLower;
    #[doc = "Maximum cost per turn, in US dollars"]
    max_budget_usd: f64, "the profile's", Some("RONDO_MAX_BUDGET_USD"), Some("max-budget-usd"), FromUntrusted::MayLower;
    #[doc = "Time limit per turn, such as `500ms`, `20s`, `2m` or `1h30m`"]
    deadline: TimeSpan, "the profile's", Some("RONDO_DEADLINE"), Some("deadline"), FromUntrusted::MayLower;
    #[doc = "Maximum cost of a session and its subagents, in US dollars"]
    max_session_usd: f64, "no limit", Some("RONDO_MAX_SESSION_USD"), Some("max-session-usd"), FromUntrusted::MayLower;
    #[doc = "Maximum number of tokens of a session and its subagents"]
    max_session_tokens: u64, "no limit", Some("RONDO_MAX_SESSION_TOKENS"), Some("max-session-tokens"), FromUntrusted::MayLower;
    #[doc = "Maximum cost per day, in US dollars"]
    max_daily_usd: f64, "no limit", Some("RONDO_MAX_DAILY_USD"), Some("max-daily-usd"), FromUntrusted::MayLower;
    #[doc = "Maximum number of tokens per day"]
    max_daily_tokens: u64, "no limit", Some("RONDO_MAX_DAILY_TOKENS"), Some("max-daily-tokens"), FromUntrusted::MayLower;
    #[doc = "Maximum cost per day in one project, in US dollars"]
    max_project_daily_usd: f64, "no limit", Some("RONDO_MAX_PROJECT_DAILY_USD"), Some("max-project-daily-usd"), FromUntrusted::MayLower;
    #[doc = "Maximum number of tokens per day in one project"]
    max_project_daily_tokens: u64, "no limit", Some("RONDO_MAX_PROJECT_DAILY_TOKENS"), Some("max-project-daily-tokens"), FromUntrusted::MayLower;
    #[doc = "Maximum nesting of subagents: 0 disables them, 1 keeps them from starting their own"]
    max_subagent_depth: u32, "1", Some("RONDO_MAX_SUBAGENT_DEPTH"), Some("max-subagent-depth"), FromUntrusted::MayLower;
    #[doc = "Tools and commands that run without asking, such as `exec(git *)`"]
    allowed_tools: Vec<String>, "none", Some("RONDO_ALLOWED_TOOLS"), Some("allowed-tools"), FromUntrusted::Ignored;
    #[doc = "Tools and commands that never run"]
    disallowed_tools: Vec<String>, "none", Some("RONDO_DISALLOWED_TOOLS"), Some("disallowed-tools"), FromUntrusted::MayAdd;
    #[doc = "What to do if a call needs approval"]
    approval: ApprovalMode, "ask", Some("RONDO_APPROVAL"), Some("approval"), FromUntrusted::Ignored;
    #[doc = "Restrict the files and the network that commands can access"]
    sandbox: SandboxChoice, "off, or workspace-write if `approval` is `auto`", Some("RONDO_SANDBOX"), Some("sandbox"), FromUntrusted::Ignored;
    #[doc = "Run agents' commands in a shell; if false, each command is one program with a list of arguments"]
    exec_shell: bool, "true, or false for `rondo serve`", Some("RONDO_EXEC_SHELL"), None, FromUntrusted::MayOnlyBe(false);
    #[doc = "Environment variables to pass to commands even if they look like secrets or the sandbox would remove them"]
    command_env: Vec<String>, "none", Some("RONDO_COMMAND_ENV"), None, FromUntrusted::Ignored;
    #[doc = "Memory limit of a command with all of its processes, in MiB"]
    command_memory_mib: u64, "half of the machine's, at least 2048", Some("RONDO_COMMAND_MEMORY_MIB"), None, FromUntrusted::Ignored;
    #[doc = "Files that no tool may read, as `.gitignore` patterns, in addition to those in `.rondoignore`"]
    ignored_files: Vec<String>, "none", Some("RONDO_IGNORED_FILES"), None, FromUntrusted::MayAdd;
    #[doc = "How long a question stays open for `rondo answer` before it counts as denied"]
    question_expiry: TimeSpan, "7d", Some("RONDO_QUESTION_EXPIRY"), None, FromUntrusted::MayLower;
    #[doc = "How long to wait for an answer before the turn is saved for `rondo answer`"]
    park_after: TimeSpan, "10m", Some("RONDO_PARK_AFTER"), None, FromUntrusted::MayLower;
    #[doc = "Run all tool calls without asking"]
    yolo: bool, "false", Some("RONDO_YOLO"), Some("yolo"), FromUntrusted::MayOnlyBe(false);
    #[doc = "Change nothing, and answer with a plan"]
    plan: bool, "false", Some("RONDO_PLAN"), Some("plan"), FromUntrusted::MayOnlyBe(true);
    #[doc = "Do not download weights; local models must already be downloaded"]
    offline: bool, "false", Some("RONDO_OFFLINE"), Some("offline"), FromUntrusted::MayOnlyBe(true);
    #[doc = "Non-public hosts that `web_fetch` may read, such as `localhost:8080`"]
    web_allow_hosts: Vec<String>, "none", Some("RONDO_WEB_ALLOW_HOSTS"), None, FromUntrusted::Ignored;
    #[doc = "Search engine that the model may use"]
    web_search: WebSearchChoice, "off", Some("RONDO_WEB_SEARCH"), None, FromUntrusted::Ignored;
    #[doc = "Address of the search engine"]
    web_search_url: String, "the search engine's", Some("RONDO_WEB_SEARCH_URL"), None, FromUntrusted::Ignored;
    #[doc = "Additional directory that tools may use (repeatable)"]
    add_dirs: Vec<PathBuf>, "none", Some("RONDO_ADD_DIRS"), Some("add-dir"), FromUntrusted::Ignored;
    #[doc = "System prompt, in place of the profile's"]
    system_prompt: String, "the profile's", Some("RONDO_SYSTEM_PROMPT"), Some("system-prompt"), FromUntrusted::Ignored;
    #[doc = "Text to append to the system prompt"]
    append_system_prompt: String, "none", Some("RONDO_APPEND_SYSTEM_PROMPT"), Some("append-system-prompt"), FromUntrusted::Ignored;
    #[doc = "Sampling temperature"]
    temperature: f64, "the profile's", Some("RONDO_TEMPERATURE"), Some("temperature"), FromUntrusted::Ignored;
    #[doc = "Maximum number of tokens per reply"]
    max_output_tokens: u32, "the profile's", Some("RONDO_MAX_OUTPUT_TOKENS"), Some("max-output-tokens"), FromUntrusted::MayLower;
    #[doc = "Reasoning effort, for models that reason"]
    effort: Effort, "the profile's", Some("RONDO_EFFORT"), Some("effort"), FromUntrusted::Ignored;
    #[doc = "Format of standard output"]
    output_format: OutputFormat, "text", Some("RONDO_OUTPUT_FORMAT"), Some("output-format"), FromUntrusted::Ignored;
    #[doc = "Whether recorded sessions survive a power loss"]
    durability: DurabilityLevel, "full", Some("RONDO_DURABILITY"), Some("durability"), FromUntrusted::Ignored;
    #[doc = "Remember facts across sessions"]
    memory: bool, "true", Some("RONDO_MEMORY"), None, FromUntrusted::MayOnlyBe(false);
    #[doc = "Model that computes vectors of memories, as `provider/model` or `local/NAME`; `none` disables vectors"]
    embedding_model: String, "downloaded weights, else the provider's", Some("RONDO_EMBEDDING_MODEL"), None, FromUntrusted::Ignored;
    #[doc = "Do not keep the session"]
    ephemeral: bool, "false", Some("RONDO_EPHEMERAL"), Some("ephemeral"), FromUntrusted::Ignored;
    #[doc = "Exit with code 3 if the answer is degraded"]
    strict_complete: bool, "false", Some("RONDO_STRICT_COMPLETE"), Some("strict-complete"), FromUntrusted::Ignored;
    #[doc = "Print only the answer and errors"]
    quiet: bool, "false", Some("RONDO_QUIET"), Some("quiet"), FromUntrusted::Ignored;
    #[doc = "When to use colors"]
    color: ColorChoice, "auto", Some("RONDO_COLOR"), Some("color"), FromUntrusted::Ignored;
    #[doc = "Key bindings of the line prompt and the full screen"]
    edit_keys: EditKeys, "emacs", Some("RONDO_EDIT_KEYS"), None, FromUntrusted::Ignored;
    #[doc = "Interface that `rondo` without arguments opens at a terminal"]
    tui_screen: ScreenChoice, "auto", Some("RONDO_TUI_SCREEN"), None, FromUntrusted::Ignored;
    #[doc = "Use of the mouse in the full screen"]
    tui_mouse: MouseChoice, "on", Some("RONDO_TUI_MOUSE"), None, FromUntrusted::Ignored;
    #[doc = "Animations in the full screen"]
    tui_motion: MotionChoice, "on", Some("RONDO_TUI_MOTION"), None, FromUntrusted::Ignored;
    #[doc = "Colors of the full screen"]
    tui_theme: ThemeChoice, "auto", Some("RONDO_TUI_THEME"), None, FromUntrusted::Ignored;
    #[doc = "What stays in the terminal's scrollback after the full screen closes"]
    tui_print: PrintChoice, "all", Some("RONDO_TUI_PRINT"), None, FromUntrusted::Ignored;
    #[doc = "How the full screen calls you while you look at another window"]
    tui_notify: NotifyChoice, "off", Some("RONDO_TUI_NOTIFY"), None, FromUntrusted::Ignored;
    #[doc = "PEM file with additional certificate authorities"]
    ca_file: PathBuf, "none", Some("RONDO_CA_FILE"), None, FromUntrusted::Ignored;
    #[doc = "Folders whose own configuration applies in full; changed with `rondo trust`"]
    trusted_folders: Vec<PathBuf>, "none", None, None, FromUntrusted::Ignored;
    #[doc = "Folders in which commands run in the sandbox without asking; changed with `rondo policy sandbox`"]
    sandboxed_folders: Vec<PathBuf>, "none", None, None, FromUntrusted::Ignored;
}

/// Returns a setting by name.
#[must_use]
pub fn setting(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|it| it.name == name)
}

/// Returns a setting's help text, for its flag.
#[must_use]
pub fn help(name: &str) -> &'static str {
    setting(name).map_or("", |it| it.help)
}

/// Returns why a value is wrong, without the leading name and value.
fn reason(error: &SetupError) -> String {
    let line = error.line();
    line.rsplit_once(": ")
        .map_or(line.clone(), |(_, why)| why.to_owned())
}

fn read_variable<T: Value>(env: &Env, variable: Option<&str>) -> Result<Option<T>> {
    variable.map_or(Ok(None), |variable| T::read(env, variable))
}

fn too_large(number: impl std::fmt::Display) -> toml::Value {
    toml::Value::String(number.to_string())
}

macro_rules! whole_numbers {
    ($($type:ty),*) => {$(
        impl Value for $type {
            const KIND: &'static str = "a whole number";

            fn read(env: &Env, variable: &str) -> Result<Option<Self>> {
                env.parsed(variable)
            }

            fn written(&self) -> toml::Value {
                i64::try_from(*self).map_or_else(|_| too_large(self), toml::Value::Integer)
            }

            fn is_lower(&self, other: &Self) -> bool {
                self < other
            }
        }
    )*};
}

whole_numbers!(u32, u64);

impl Value for f64 {
    const KIND: &'static str = "a number";

    fn read(env: &Env, variable: &str) -> Result<Option<Self>> {
        env.parsed(variable)
    }

    fn written(&self) -> toml::Value {
        toml::Value::Float(*self)
    }

    fn is_lower(&self, other: &Self) -> bool {
        self < other
    }
}

impl Value for TimeSpan {
    const KIND: &'static str = "a time";

    fn read(env: &Env, variable: &str) -> Result<Option<Self>> {
        env.parsed(variable)
    }

    fn written(&self) -> toml::Value {
        toml::Value::String(self.to_string())
    }

    fn is_lower(&self, other: &Self) -> bool {
        self.0 < other.0
    }
}

impl Value for bool {
    const KIND: &'static str = "`true` or `false`";

    fn read(env: &Env, variable: &str) -> Result<Option<Self>> {
        env.switch(variable)
    }

    fn written(&self) -> toml::Value {
        toml::Value::Boolean(*self)
    }
}

impl Value for String {
    const KIND: &'static str = "text";

    fn read(env: &Env, variable: &str) -> Result<Option<Self>> {
        Ok(env.text(variable))
    }

    fn written(&self) -> toml::Value {
        toml::Value::String(self.clone())
    }
}

impl Value for PathBuf {
    const KIND: &'static str = "a path";

    fn read(env: &Env, variable: &str) -> Result<Option<Self>> {
        Ok(env.text(variable).map(Self::from))
    }

    fn written(&self) -> toml::Value {
        toml::Value::String(self.display().to_string())
    }
}

impl Value for Vec<String> {
    const KIND: &'static str = "a list; separated by commas in the variable";

    fn read(env: &Env, variable: &str) -> Result<Option<Self>> {
        Ok(env.list(variable, ','))
    }

    fn written(&self) -> toml::Value {
        toml::Value::Array(self.iter().map(Value::written).collect())
    }

    fn over(&self, below: &mut Option<Self>, adds: bool) {
        let kept = below.take().filter(|_| adds);
        let mut all = kept.unwrap_or_default();
        all.extend(self.iter().cloned());
        *below = Some(all);
    }
}

impl Value for Vec<PathBuf> {
    const KIND: &'static str = "a list of paths; separated by colons in the variable";

    fn read(env: &Env, variable: &str) -> Result<Option<Self>> {
        let paths = env.list(variable, ':');
        Ok(paths.map(|paths| paths.into_iter().map(PathBuf::from).collect()))
    }

    fn written(&self) -> toml::Value {
        toml::Value::Array(self.iter().map(Value::written).collect())
    }
}

macro_rules! words {
    ($($type:ty: $kind:literal),* $(,)?) => {$(
        impl Value for $type {
            const KIND: &'static str = $kind;

            fn read(env: &Env, variable: &str) -> Result<Option<Self>> {
                env.word(variable)
            }

            fn written(&self) -> toml::Value {
                let word = Self::ALL.iter().find(|it| it.value == *self);
                toml::Value::String(word.map_or("", |it| it.word).to_owned())
            }
        }
    )*};
}

words! {
    Effort: "`low`, `medium` or `high`",
    OutputFormat: "`text`, `json` or `stream-json`",
    DurabilityLevel: "`full` or `normal`",
    ApprovalMode: "`ask`, `auto`, `deny` or `park`",
    SandboxChoice: "`off`, `read-only` or `workspace-write`",
    ColorChoice: "`auto`, `always` or `never`",
    EditKeys: "`emacs` or `vi`",
    ScreenChoice: "`auto`, `full` or `inline`",
    MouseChoice: "`on`, `wheel` or `off`",
    MotionChoice: "`on` or `off`",
    ThemeChoice: "`auto`, `dark`, `light` or `terminal`",
    PrintChoice: "`all`, `last` or `none`",
    NotifyChoice: "`off`, `title`, `bell` or `desktop`",
    WebSearchChoice: "`off`, `model`, `brave` or `searxng`",
}

/// Returns the error for an unknown setting.
#[must_use]
pub fn unknown(name: &str) -> SetupError {
    let similar = similar(name, SETTINGS.iter().map(|it| it.name));
    let hint = match similar.is_empty() {
        true => ALL_SETTINGS.to_owned(),
        false => format!("did you mean {}?", similar.join(" or ")),
    };
    SetupError::new(
        SetupErrorKind::Usage,
        format_args!("there is no setting `{name}`"),
    )
    .hint(hint)
}

/// The hint if no setting is like a mistyped one.
pub(crate) const ALL_SETTINGS: &str = "`rondo config list` shows all settings";
/// How alike a mistyped name and a setting's are at least, from 0 to 1.
const LIKENESS_MIN: f64 = 0.85;
/// Similar names that are suggested.
const SUGGESTIONS_MAX: usize = 3;

/// Returns the names that are most like a mistyped one, the best first.
pub(crate) fn similar<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    let name = name.to_lowercase().replace('-', "_");
    let mut alike: Vec<_> = known
        .map(|it| (strsim::jaro_winkler(&name, it), it))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .collect();
    alike.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let best = alike.into_iter().take(SUGGESTIONS_MAX);
    best.map(|(_, it)| format!("`{it}`")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value of every setting, as its variable has it.
    fn sample(setting: &Setting) -> &'static str {
        match setting.name {
            "model" | "fallbacks" => "a/b",
            "profile" => "hub",
            "base_url" => "http://h/v1",
            "approval" => "park",
            "sandbox" => "read-only",
            "deadline" | "question_expiry" | "park_after" => "2m",
            "effort" => "low",
            "output_format" => "json",
            "durability" => "normal",
            "color" => "never",
            "edit_keys" => "vi",
            "web_search" => "brave",
            "tui_screen" => "inline",
            "tui_mouse" => "wheel",
            "tui_motion" => "off",
            "tui_theme" => "dark",
            "tui_print" => "last",
            "tui_notify" => "bell",
            _ => match setting.kind {
                "`true` or `false`" => "true",
                "a number" => "0.5",
                "a whole number" => "4",
                _ => "/x",
            },
        }
    }

    #[test]
    fn every_setting_is_read_from_its_variable_and_shown_as_it_is_written() {
        for setting in SETTINGS {
            let Some(variable) = setting.variable else {
                assert!(setting.name.ends_with("ed_folders"), "{}", setting.name);
                continue;
            };
            assert_eq!(variable, format!("RONDO_{}", setting.name.to_uppercase()));
            let env = Env::of(&[(variable, sample(setting))]);
            let layer = Layer::from_env(&env).unwrap();
            let shown = layer.get(setting.name).unwrap();
            let set = SETTINGS.iter().filter(|it| layer.get(it.name).is_some());
            assert_eq!(set.count(), 1, "{}", setting.name);
            // The shown value is one that a file may have.
            let mut file = toml::Table::new();
            file.insert(setting.name.to_owned(), shown.clone());
            let read: Layer = toml::from_str(&file.to_string()).unwrap();
            assert_eq!(read.get(setting.name), Some(shown), "{}", setting.name);
        }
    }

    #[test]
    fn every_setting_of_a_higher_layer_counts() {
        for setting in SETTINGS {
            let Some(variable) = setting.variable else {
                continue;
            };
            let own = Layer::from_env(&Env::of(&[(variable, sample(setting))])).unwrap();
            let shown = own.get(setting.name);
            let mut values = Layer::default();
            own.over(&mut values);
            assert_eq!(values.get(setting.name), shown, "{}", setting.name);
        }
    }

    #[test]
    fn the_documentation_has_every_setting_and_no_other() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        let page = std::fs::read_to_string(page).unwrap();
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
        let rows = rows.filter_map(|row| {
            let (name, rest) = row.split_once("` | ")?;
            let variable = rest.split('|').next()?.trim();
            Some((name, variable.trim_matches('`')))
        });
        // A later table says what of them a project may set.
        let rows: Vec<_> = rows.take(SETTINGS.len()).collect();
        let known = SETTINGS
            .iter()
            .map(|it| (it.name, it.variable.unwrap_or("")));
        let mut known: Vec<_> = known.collect();
        let mut shown = rows.clone();
        known.sort_unstable();
        shown.sort_unstable();
        assert_eq!(shown, known);
    }

    #[test]
    fn a_variable_with_a_wrong_word_names_the_right_ones() {
        let error = Layer::from_env(&Env::of(&[("RONDO_EFFORT", "huge")])).unwrap_err();
        assert_eq!(error.kind, SetupErrorKind::Config);
        assert_eq!(
            error.line(),
            "the variable `RONDO_EFFORT` is invalid: `huge`: expected one of `low`, `medium`, `high`"
        );
    }
}
