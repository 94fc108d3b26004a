//! One layer of settings: a file, the environment, or the flags.

use crate::cli::{AskArgs, ColorChoice, DurabilityLevel, EditKeys, OutputFormat, TimeSpan};
use crate::env::Env;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::models::ModelTable;
use crate::providers::Provider;
use rondo_types::Effort;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

/// The bound on a configuration file, in bytes.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// What one source sets. The keys are those of `config.toml`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Layer {
    /// `provider/model`.
    pub(crate) model: Option<String>,
    /// The models that follow it when its requests fail, in order.
    pub(crate) fallbacks: Option<Vec<String>>,
    /// The profile's name.
    pub(crate) profile: Option<String>,
    /// The provider's address.
    pub(crate) base_url: Option<String>,
    /// Bounds the model requests.
    pub(crate) max_steps: Option<u32>,
    /// Bounds the tool calls.
    pub(crate) max_tool_calls: Option<u32>,
    /// Bounds the tokens.
    pub(crate) max_tokens_total: Option<u64>,
    /// Bounds the money, in dollars.
    pub(crate) max_budget_usd: Option<f64>,
    /// Bounds the time.
    pub(crate) deadline: Option<TimeSpan>,
    /// Tools that run without asking.
    pub(crate) allowed_tools: Option<Vec<String>>,
    /// Tools that never run; every layer adds to them.
    pub(crate) disallowed_tools: Option<Vec<String>>,
    /// Whether everything runs without asking.
    pub(crate) yolo: Option<bool>,
    /// Nothing is fetched but answers: no weights of local models.
    pub(crate) offline: Option<bool>,
    /// Further directories for the tools.
    pub(crate) add_dirs: Option<Vec<PathBuf>>,
    /// Replaces the profile's system prompt.
    pub(crate) system_prompt: Option<String>,
    /// Follows the system prompt.
    pub(crate) append_system_prompt: Option<String>,
    /// How freely to sample.
    pub(crate) temperature: Option<f64>,
    /// Bounds the tokens of one reply.
    pub(crate) max_output_tokens: Option<u32>,
    /// How much to reason.
    pub(crate) effort: Option<Effort>,
    /// What standard output carries.
    pub(crate) output_format: Option<OutputFormat>,
    /// What a record survives.
    pub(crate) durability: Option<DurabilityLevel>,
    /// Whether nothing is kept of a session.
    pub(crate) ephemeral: Option<bool>,
    /// Whether a degraded answer is not good enough.
    pub(crate) strict_complete: Option<bool>,
    /// Whether only the answer is printed.
    pub(crate) quiet: Option<bool>,
    /// When to use colours.
    pub(crate) color: Option<ColorChoice>,
    /// Whose keys edit a line of `rondo repl`.
    pub(crate) edit_keys: Option<EditKeys>,
    /// A PEM file of certificate authorities to trust besides the system's.
    pub(crate) ca_file: Option<PathBuf>,
    /// Folders whose own configuration is honoured whole; only the user's file may set it.
    pub(crate) trusted_folders: Option<Vec<PathBuf>>,
    /// Providers by name.
    pub(crate) providers: BTreeMap<String, Provider>,
    /// Facts of models by `provider/model`.
    pub(crate) models: ModelTable,
    /// Values of profiles by name.
    pub(crate) profiles: BTreeMap<String, toml::Table>,
}

impl Layer {
    /// Reads a configuration file; one that does not exist sets nothing.
    ///
    /// # Errors
    /// When the file cannot be read, is larger than a megabyte, or is not such a configuration.
    pub(crate) fn from_file(path: &Path) -> Result<Self> {
        let Some(text) = read_bounded(path)? else {
            return Ok(Self::default());
        };
        toml::from_str(&text).map_err(|err| {
            let context = format!("failed to parse `{}`", path.display());
            let shown = anyhow::Error::msg(err.to_string().trim_end().to_owned());
            CliError::caused(Exit::Config, shown.context(context))
        })
    }

    /// Reads the variables that mirror the settings.
    ///
    /// # Errors
    /// When a value is not what its setting takes.
    pub(crate) fn from_env(env: &Env) -> Result<Self> {
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
            effort: env
                .parsed::<crate::cli::EffortLevel>("RONDO_EFFORT")?
                .map(Effort::from),
            output_format: env.parsed("RONDO_OUTPUT_FORMAT")?,
            durability: env.parsed("RONDO_DURABILITY")?,
            ephemeral: env.switch("RONDO_EPHEMERAL")?,
            strict_complete: env.switch("RONDO_STRICT_COMPLETE")?,
            quiet: env.switch("RONDO_QUIET")?,
            color: env.parsed("RONDO_COLOR")?,
            edit_keys: env.parsed("RONDO_EDIT_KEYS")?,
            ca_file: env.text("RONDO_CA_FILE").map(PathBuf::from),
            ..Self::default()
        })
    }

    /// Takes what the flags set.
    pub(crate) fn from_flags(args: &AskArgs) -> Self {
        let switch = |on: bool| on.then_some(true);
        Self {
            model: args.turn.model.clone(),
            fallbacks: (!args.turn.fallback.is_empty()).then(|| args.turn.fallback.clone()),
            profile: args.turn.profile.clone(),
            base_url: args.turn.base_url.clone(),
            max_steps: args.turn.max_steps,
            max_tool_calls: args.turn.max_tool_calls,
            max_tokens_total: args.turn.max_tokens_total,
            max_budget_usd: args.turn.max_budget_usd,
            deadline: args.turn.deadline,
            allowed_tools: args.turn.allowed_tools.clone(),
            disallowed_tools: args.turn.disallowed_tools.clone(),
            yolo: switch(args.turn.yolo),
            offline: switch(args.turn.offline),
            add_dirs: (!args.turn.add_dir.is_empty()).then(|| args.turn.add_dir.clone()),
            system_prompt: args.turn.system_prompt.clone(),
            append_system_prompt: args.turn.append_system_prompt.clone(),
            temperature: args.turn.temperature,
            max_output_tokens: args.turn.max_output_tokens,
            effort: args.turn.effort.map(Effort::from),
            output_format: if args.json {
                Some(OutputFormat::Json)
            } else {
                args.output_format
            },
            durability: args.turn.durability,
            ephemeral: switch(args.turn.ephemeral),
            strict_complete: switch(args.strict_complete),
            quiet: switch(args.quiet),
            ..Self::default()
        }
    }

    /// Checks what the flags check as they are parsed.
    ///
    /// # Errors
    /// When a number makes no sense; `source` is named then.
    pub(crate) fn check(&self, source: &str) -> Result<()> {
        let negative = |number: f64| !(number.is_finite() && number >= 0.0);
        for (key, wrong) in [
            ("temperature", self.temperature.is_some_and(negative)),
            ("max_budget_usd", self.max_budget_usd.is_some_and(negative)),
            ("max_output_tokens", self.max_output_tokens == Some(0)),
            ("max_steps", self.max_steps == Some(0)),
        ] {
            if wrong {
                let message = format!("`{key}`, as set by {source}, is out of its range");
                return Err(CliError::new(Exit::Config, message));
            }
        }
        Ok(())
    }

    /// Takes out what a folder that nobody trusts may not set, and returns the names of what was
    /// set: whatever sends data or keys elsewhere, runs something, opens a permission, speaks for
    /// the user, or raises a bound.
    pub(crate) fn remove_unsafe(&mut self) -> Vec<&'static str> {
        let mut removed = Vec::new();
        macro_rules! remove {
            ($($field:ident),*) => {$(
                if self.$field.take().is_some() {
                    removed.push(stringify!($field));
                }
            )*};
        }
        remove!(
            base_url,
            max_steps,
            max_tool_calls,
            max_tokens_total,
            max_budget_usd,
            deadline,
            allowed_tools,
            yolo,
            add_dirs,
            system_prompt,
            append_system_prompt,
            strict_complete,
            durability,
            ephemeral,
            ca_file
        );
        for (name, empty) in [
            ("providers", self.providers.is_empty()),
            ("models", self.models.is_empty()),
            ("profiles", self.profiles.is_empty()),
        ] {
            if !empty {
                removed.push(name);
            }
        }
        self.providers.clear();
        self.models.clear();
        self.profiles.clear();
        removed
    }
}

fn read_bounded(path: &Path) -> Result<Option<String>> {
    let failed = |err: std::io::Error| {
        let context = format!("failed to read `{}`", path.display());
        CliError::caused(Exit::Config, anyhow::Error::new(err).context(context))
    };
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        // A home such as `/dev/null` has no files either.
        Err(err) if matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(err) => return Err(failed(err)),
    };
    let mut text = String::new();
    file.take(CONFIG_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(failed)?;
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > CONFIG_BYTES_MAX {
        return Err(CliError::new(
            Exit::Config,
            format_args!(
                "`{}` is larger than {CONFIG_BYTES_MAX} bytes",
                path.display()
            ),
        ));
    }
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_untrusted_project_sets_only_what_is_harmless() {
        let mut layer: Layer = toml::from_str(
            "model = 'gemini/x'\nyolo = true\nbase_url = 'http://evil'\nquiet = true\n\
             disallowed_tools = ['exec']\n[providers.p]\ndialect = 'gemini'\nbase_url = 'http://e'\n",
        )
        .unwrap();
        assert_eq!(layer.remove_unsafe(), ["base_url", "yolo", "providers"]);
        assert_eq!(layer.model.as_deref(), Some("gemini/x"));
        assert!(layer.disallowed_tools.is_some());
        assert!(layer.providers.is_empty() && layer.yolo.is_none());
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
            assert_eq!(error.exit, Exit::Config);
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
        assert_eq!(error.exit, Exit::Config);
        assert!(error.line().contains("RONDO_MAX_STEPS"));
    }
}
