//! One layer of settings: a file, the environment, or the flags.

use crate::env::Env;
use crate::error::SetupErrorKind;
use crate::error::{Result, SetupError};
use crate::files;
use crate::models::ModelTable;
use crate::providers::Provider;
use crate::values::{ColorChoice, DurabilityLevel, EditKeys, OutputFormat, TimeSpan};
use rondo_types::Effort;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The bound on a configuration file, in bytes.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// What one source sets. The keys are those of `config.toml`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Layer {
    /// `provider/model`.
    pub model: Option<String>,
    /// The models that follow it when its requests fail, in order.
    pub fallbacks: Option<Vec<String>>,
    /// The profile's name.
    pub profile: Option<String>,
    /// The provider's address.
    pub base_url: Option<String>,
    /// Bounds the model requests.
    pub max_steps: Option<u32>,
    /// Bounds the tool calls.
    pub max_tool_calls: Option<u32>,
    /// Bounds the tokens.
    pub max_tokens_total: Option<u64>,
    /// Bounds the money, in dollars.
    pub max_budget_usd: Option<f64>,
    /// Bounds the time.
    pub deadline: Option<TimeSpan>,
    /// Tools that run without asking.
    pub allowed_tools: Option<Vec<String>>,
    /// Tools that never run; every layer adds to them.
    pub disallowed_tools: Option<Vec<String>>,
    /// Whether everything runs without asking.
    pub yolo: Option<bool>,
    /// Nothing is fetched but answers: no weights of local models.
    pub offline: Option<bool>,
    /// Further directories for the tools.
    pub add_dirs: Option<Vec<PathBuf>>,
    /// Replaces the profile's system prompt.
    pub system_prompt: Option<String>,
    /// Follows the system prompt.
    pub append_system_prompt: Option<String>,
    /// How freely to sample.
    pub temperature: Option<f64>,
    /// Bounds the tokens of one reply.
    pub max_output_tokens: Option<u32>,
    /// How much to reason.
    pub effort: Option<Effort>,
    /// What standard output carries.
    pub output_format: Option<OutputFormat>,
    /// What a record survives.
    pub durability: Option<DurabilityLevel>,
    /// Whether nothing is kept of a session.
    pub ephemeral: Option<bool>,
    /// Whether a degraded answer is not good enough.
    pub strict_complete: Option<bool>,
    /// Whether only the answer is printed.
    pub quiet: Option<bool>,
    /// When to use colours.
    pub color: Option<ColorChoice>,
    /// Whose keys edit a line of `rondo repl`.
    pub edit_keys: Option<EditKeys>,
    /// A PEM file of certificate authorities to trust besides the system's.
    pub ca_file: Option<PathBuf>,
    /// Folders whose own configuration is honoured whole; only the user's file may set it.
    pub trusted_folders: Option<Vec<PathBuf>>,
    /// Providers by name.
    pub providers: BTreeMap<String, Provider>,
    /// Facts of models by `provider/model`.
    pub models: ModelTable,
    /// Values of profiles by name.
    pub profiles: BTreeMap<String, toml::Table>,
}

impl Layer {
    /// Reads a configuration file; one that does not exist sets nothing.
    ///
    /// # Errors
    /// When the file cannot be read, is larger than a megabyte, or is not such a configuration.
    pub fn from_file(path: &Path) -> Result<Self> {
        let Some(text) = read_bounded(path)? else {
            return Ok(Self::default());
        };
        toml::from_str(&text).map_err(|err| unparsed(path, &text, &err))
    }

    /// Reads the configuration file of a folder that nobody trusts: what narrows, and the names of
    /// what else it sets.
    ///
    /// # Errors
    /// As [`from_file`](Self::from_file).
    pub fn from_untrusted_file(path: &Path) -> Result<(Self, Vec<String>)> {
        let Some(text) = read_bounded(path)? else {
            return Ok((Self::default(), Vec::new()));
        };
        Self::untrusted(&text).map_err(|err| unparsed(path, &text, &err))
    }

    fn untrusted(text: &str) -> Result<(Self, Vec<String>), toml::de::Error> {
        // What is ignored must make sense all the same.
        toml::from_str::<Self>(text)?;
        let mut table: toml::Table = toml::from_str(text)?;
        let keys = table.iter().filter(|(key, value)| !may_be_set(key, value));
        let ignored: Vec<String> = keys.map(|(key, _)| key.clone()).collect();
        table.retain(|key, value| may_be_set(key, value));
        Ok((table.try_into()?, ignored))
    }

    /// Reads the variables that mirror the settings.
    ///
    /// # Errors
    /// When a value is not what its setting takes.
    pub fn from_env(env: &Env) -> Result<Self> {
        Ok(Self {
            model: env.text("RONDO_MODEL"),
            fallbacks: env.list("RONDO_FALLBACKS", ','),
            profile: env.text("RONDO_PROFILE"),
            base_url: env.text("RONDO_BASE_URL"),
            max_steps: env.parsed("RONDO_MAX_STEPS")?,
            max_tool_calls: env.parsed("RONDO_MAX_TOOL_CALLS")?,
            max_tokens_total: env.parsed("RONDO_MAX_TOKENS_TOTAL")?,
            max_budget_usd: env.parsed("RONDO_MAX_BUDGET_USD")?,
            deadline: env.parsed("RONDO_DEADLINE")?,
            allowed_tools: env.list("RONDO_ALLOWED_TOOLS", ','),
            disallowed_tools: env.list("RONDO_DISALLOWED_TOOLS", ','),
            yolo: env.switch("RONDO_YOLO")?,
            offline: env.switch("RONDO_OFFLINE")?,
            add_dirs: env
                .list("RONDO_ADD_DIRS", ':')
                .map(|dirs| dirs.into_iter().map(PathBuf::from).collect()),
            system_prompt: env.text("RONDO_SYSTEM_PROMPT"),
            append_system_prompt: env.text("RONDO_APPEND_SYSTEM_PROMPT"),
            temperature: env.parsed("RONDO_TEMPERATURE")?,
            max_output_tokens: env.parsed("RONDO_MAX_OUTPUT_TOKENS")?,
            effort: env.word("RONDO_EFFORT")?,
            output_format: env.word("RONDO_OUTPUT_FORMAT")?,
            durability: env.word("RONDO_DURABILITY")?,
            ephemeral: env.switch("RONDO_EPHEMERAL")?,
            strict_complete: env.switch("RONDO_STRICT_COMPLETE")?,
            quiet: env.switch("RONDO_QUIET")?,
            color: env.word("RONDO_COLOR")?,
            edit_keys: env.word("RONDO_EDIT_KEYS")?,
            ca_file: env.text("RONDO_CA_FILE").map(PathBuf::from),
            ..Self::default()
        })
    }

    /// Checks what the flags check as they are parsed.
    ///
    /// # Errors
    /// When a number makes no sense; `source` is named then.
    pub fn check(&self, source: &str) -> Result<()> {
        let negative = |number: f64| !(number.is_finite() && number >= 0.0);
        for (key, wrong) in [
            ("temperature", self.temperature.is_some_and(negative)),
            ("max_budget_usd", self.max_budget_usd.is_some_and(negative)),
            ("max_output_tokens", self.max_output_tokens == Some(0)),
            ("max_steps", self.max_steps == Some(0)),
        ] {
            if wrong {
                let message = format!("`{key}`, as set by {source}, is out of its range");
                return Err(SetupError::new(SetupErrorKind::Config, message));
            }
        }
        Ok(())
    }
}

/// What the configuration of a folder that nobody trusts may do with a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Narrowing {
    /// The number counts where it is lower than what is in force below it.
    Lowers,
    /// The switch can be put into this position only.
    Only(bool),
    /// The names are added to those of the layers below.
    Adds,
}

/// All that a folder that nobody trusts may set. What is not named here it may not: a setting that
/// is new is the user's alone until it is entered.
const UNTRUSTED: [(&str, Narrowing); 9] = [
    ("deadline", Narrowing::Lowers),
    ("disallowed_tools", Narrowing::Adds),
    ("max_budget_usd", Narrowing::Lowers),
    ("max_output_tokens", Narrowing::Lowers),
    ("max_steps", Narrowing::Lowers),
    ("max_tokens_total", Narrowing::Lowers),
    ("max_tool_calls", Narrowing::Lowers),
    ("offline", Narrowing::Only(true)),
    ("yolo", Narrowing::Only(false)),
];

fn may_be_set(key: &str, value: &toml::Value) -> bool {
    let found = UNTRUSTED.iter().find(|(known, _)| *known == key);
    match found.map(|(_, narrowing)| *narrowing) {
        Some(Narrowing::Only(position)) => value.as_bool() == Some(position),
        Some(Narrowing::Lowers | Narrowing::Adds) => true,
        None => false,
    }
}

fn unparsed(path: &Path, text: &str, err: &toml::de::Error) -> SetupError {
    let before = err.span().and_then(|span| text.get(..span.start));
    let line = before.map(|before| format!(":{}", before.matches('\n').count() + 1));
    let place = format!("{}{}", path.display(), line.unwrap_or_default());
    let context = format!("failed to parse `{place}`");
    let shown = err.to_string().trim_end().to_owned();
    SetupError::because(SetupErrorKind::Config, context, shown)
}

fn read_bounded(path: &Path) -> Result<Option<String>> {
    match files::read_text(path, CONFIG_BYTES_MAX) {
        Ok(text) => Ok(Some(text)),
        // A home such as `/dev/null` has no files either.
        Err(err) if matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(err) => {
            let context = format!("failed to read `{}`", path.display());
            Err(SetupError::because(SetupErrorKind::Config, context, err))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every setting, with a value that would widen something.
    const WIDE: &str = "model = 'hf:a/b/c.gguf'\nfallbacks = ['./trap.gguf']\nprofile = 'python'\n\
        base_url = 'http://evil'\nallowed_tools = ['exec']\nyolo = true\noffline = false\n\
        add_dirs = ['/']\nsystem_prompt = 'x'\nappend_system_prompt = 'x'\ntemperature = 2.0\n\
        effort = 'high'\noutput_format = 'json'\ndurability = 'normal'\nephemeral = true\n\
        strict_complete = false\nquiet = true\ncolor = 'always'\nedit_keys = 'vi'\n\
        ca_file = '/x'\ntrusted_folders = ['/']\n[providers.p]\ndialect = 'gemini'\n\
        [models.'a/b']\ninput_usd = 0.0\n[profiles.default]\nallowed_tools = ['exec']\n";

    #[test]
    fn an_untrusted_project_sets_nothing_that_widens() {
        let (layer, mut ignored) = Layer::untrusted(WIDE).unwrap();
        assert_eq!(format!("{layer:?}"), format!("{:?}", Layer::default()));
        let table: toml::Table = toml::from_str(WIDE).unwrap();
        let mut all: Vec<_> = table.keys().cloned().collect();
        all.sort();
        ignored.sort();
        assert_eq!(ignored, all);
    }

    #[test]
    fn an_untrusted_project_sets_what_narrows() {
        let text = "deadline = '2s'\ndisallowed_tools = ['exec']\nmax_budget_usd = 0.5\n\
            max_output_tokens = 9\nmax_steps = 2\nmax_tokens_total = 7\nmax_tool_calls = 3\n\
            offline = true\nyolo = false\n";
        let whole: Layer = toml::from_str(text).unwrap();
        let (layer, ignored) = Layer::untrusted(text).unwrap();
        assert_eq!(ignored, Vec::<String>::new());
        assert_eq!(format!("{layer:?}"), format!("{whole:?}"));
    }

    #[test]
    fn a_number_out_of_its_range_is_refused_with_its_key_and_source() {
        for text in [
            "temperature = nan",
            "temperature = -1.0",
            "max_budget_usd = -0.5",
            "max_output_tokens = 0",
            "max_steps = 0",
        ] {
            let layer: Layer = toml::from_str(text).unwrap();
            let error = layer.check("the file").unwrap_err();
            let key = text.split(' ').next().unwrap();
            assert!(error.line().contains(key), "{}", error.line());
            assert!(error.line().contains("the file"), "{}", error.line());
            assert_eq!(error.kind, SetupErrorKind::Config);
        }
    }

    #[test]
    fn every_setting_has_its_variable() {
        let env = Env::of(&[
            ("RONDO_MAX_STEPS", "4"),
            ("RONDO_YOLO", "1"),
            ("RONDO_DEADLINE", "2m"),
            ("RONDO_EFFORT", "low"),
            ("RONDO_ALLOWED_TOOLS", "exec(ls *), read_file"),
        ]);
        let layer = Layer::from_env(&env).unwrap();
        assert_eq!(layer.max_steps, Some(4));
        assert_eq!(layer.yolo, Some(true));
        assert_eq!(layer.deadline.unwrap().0.as_secs(), 120);
        assert_eq!(layer.effort, Some(Effort::Low));
        assert_eq!(layer.allowed_tools.unwrap(), ["exec(ls *)", "read_file"]);
        let error = Layer::from_env(&Env::of(&[("RONDO_MAX_STEPS", "many")])).unwrap_err();
        assert_eq!(error.kind, SetupErrorKind::Config);
        assert!(error.line().contains("RONDO_MAX_STEPS"));
    }
}
