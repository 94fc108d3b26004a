//! Chooses the provider, model, address and key of a turn, from the command line and the settings.
//!
//! `parse_model` makes the error for a provider that is not known. A model that the provider does not know
//! is found out only by its reply (404), which `view::Failure` words.

use crate::error::SetupErrorKind;
use crate::error::{Result, SetupError};
use crate::models::{self, ModelFacts};
use crate::providers::{LOCAL, LOCALHOST, OneOrMany, Provider, Providers, name_of_today};
use crate::settings::Settings;
use crate::weights::{Store, WeightsSource};
use rondo_types::Profile;
use rustix::process::{Pid, Signal, kill_process_group};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;

/// The provider that is assumed for an address that is not on this machine.
const OPENAI: &str = "openai";
/// The dialect that writes calls as text, on top of another dialect.
const REACT: &str = "react";
/// The port Ollama listens on.
const OLLAMA_PORT: u16 = 11434;
/// How long a command may take to print a key.
const KEY_COMMAND_TIMEOUT: Duration = Duration::from_secs(30);
/// The bound on a printed key, in bytes.
const KEY_BYTES_MAX: u64 = 16 << 10;

/// A model at a provider, with everything needed to send it requests.
#[derive(Debug, Clone)]
pub struct ModelTarget {
    /// The provider's name.
    pub provider_name: String,
    /// The provider's configuration.
    pub provider: Provider,
    /// The model's name at the provider.
    pub model: String,
    /// The base URL.
    pub base_url: String,
    /// The model's context, price and abilities, as far as known.
    pub facts: ModelFacts,
    /// The weights of a model that runs in this process, without HTTP.
    pub weights: Option<WeightsSource>,
}

impl ModelTarget {
    /// Chooses the model that the settings name, or the default model.
    ///
    /// # Errors
    /// When no model is named and there is no default, or its provider is unknown.
    pub fn make(settings: &Settings) -> Result<Self> {
        let providers = Providers::load(&settings.values.providers)?;
        let explicit = settings.values.base_url.as_deref();
        let named = match &settings.values.model {
            Some(spec) => parse_model(spec, explicit, &providers, settings)?,
            None => default_model(explicit, &providers, settings)?,
        };
        Self::of(named, explicit, &providers, settings)
    }

    /// Chooses the model with this name, as the settings would name one; an explicit address is not for it.
    ///
    /// # Errors
    /// When its provider is unknown.
    pub(crate) fn named(spec: &str, settings: &Settings) -> Result<Self> {
        let providers = Providers::load(&settings.values.providers)?;
        let named = parse_model(spec, None, &providers, settings)?;
        Self::of(named, None, &providers, settings)
    }

    /// Returns the model with this full name as the settings know it; `None` if they know no such provider.
    pub fn known(full_name: &str, settings: &Settings) -> Option<Self> {
        let own = Self::make(settings).ok();
        let own = own.filter(|target| target.full_name() == full_name);
        own.or_else(|| Self::named(full_name, settings).ok())
    }

    /// Returns the fallback models of the settings, in order and without duplicates.
    ///
    /// An explicit address applies only to fallbacks at the same provider as this model.
    ///
    /// # Errors
    /// When a fallback does not name its provider, or its provider is unknown.
    pub fn fallbacks(&self, settings: &Settings) -> Result<Vec<Self>> {
        let providers = Providers::load(&settings.values.providers)?;
        let explicit = settings.values.base_url.as_deref();
        let mut all: Vec<Self> = Vec::new();
        for spec in settings.values.fallbacks.iter().flatten() {
            let named = parse_model(spec, explicit, &providers, settings)?;
            let is_same = name_of_today(&named.0) == name_of_today(&self.provider_name);
            let address = explicit.filter(|_| is_same);
            let target = Self::of(named, address, &providers, settings)?;
            let name = target.full_name();
            if self.full_name() != name && all.iter().all(|known| known.full_name() != name) {
                all.push(target);
            }
        }
        Ok(all)
    }

    fn of(
        (name, model): (String, String),
        explicit: Option<&str>,
        providers: &Providers,
        settings: &Settings,
    ) -> Result<Self> {
        let mut provider = providers.get(&name).cloned().unwrap_or_default();
        let base_url = base_url(explicit, &provider, settings)?;
        if name == OPENAI && is_loopback(&base_url) {
            // A server on this machine is not OpenAI; it gets the quirks of a local server.
            provider.quirks = providers
                .get(LOCALHOST)
                .map(|local| local.quirks.clone())
                .unwrap_or_default();
            let own = settings.values.providers.get(OPENAI);
            let own = own.map(|own| own.quirks.clone()).unwrap_or_default();
            provider.quirks.extend(own);
        }
        let mut facts = models::facts(&settings.values.models, &name, &model)?;
        let weights = match explicit {
            None if name == LOCAL => WeightsSource::parse(&model)?,
            _ => None,
        };
        let context = weights.as_ref().and_then(WeightsSource::context_tokens);
        facts.context_tokens = facts.context_tokens.or(context);
        Ok(Self {
            weights,
            provider_name: name,
            provider,
            model,
            base_url,
            facts,
        })
    }

    /// Returns `provider/model`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.provider_name, self.model)
    }

    /// Returns the base URL without its password and query, which may be secret.
    pub fn shown_url(&self) -> String {
        rondo_http::without_credentials(&self.base_url)
    }

    /// Returns the name of the provider's dialect.
    pub fn dialect(&self) -> &str {
        self.provider.dialect.as_deref().unwrap_or("openai-chat")
    }

    /// Returns the name of the dialect under a profile: the provider's own, or, if the profile writes calls
    /// as text, `react` on top of it.
    pub fn dialect_under(&self, profile: &Profile) -> &str {
        let own = self.dialect();
        if writes_calls_as_text(profile) {
            rondo_wire::react_over(own).unwrap_or(own)
        } else {
            own
        }
    }

    /// Checks, before any request, that the model can do what the profile needs.
    ///
    /// # Errors
    /// When the model is known not to call functions, or a budget in money is set and its price is
    /// not known.
    pub fn check(&self, profile: &Profile, tools: usize) -> Result<()> {
        let needs_functions = tools > 0 && !writes_calls_as_text(profile);
        if needs_functions && self.facts.function_calling == Some(false) {
            return Err(self.no_function_calling(profile));
        }
        if profile.limits.max_cost.is_some() && self.facts.price().is_none() {
            let name = self.full_name();
            return Err(SetupError::new(
                SetupErrorKind::Config,
                format_args!("the budget cannot be enforced: the price of `{name}` is not known"),
            )
            .hint(format!(
                "set `input_usd` and `output_usd` (for a million tokens) under `[models.\"{name}\"]` in the configuration, or bound the tokens with `--max-tokens-total`"
            )));
        }
        Ok(())
    }

    fn no_function_calling(&self, profile: &Profile) -> SetupError {
        let mut ways = Vec::new();
        if let Some(variable) = &self.provider.model_env {
            let example = self
                .provider
                .default_model
                .as_deref()
                .unwrap_or("another model");
            ways.push(format!(
                "set `{variable}` to a model that can, such as `{example}`"
            ));
        }
        ways.push("choose another model with `-m provider/model`".to_owned());
        ways.push("forbid every tool with `--disallowed-tools '*'`".to_owned());
        SetupError::new(
            SetupErrorKind::Config,
            format_args!(
                "model `{}` cannot call functions, and profile `{}` needs its tools",
                self.full_name(),
                profile.name
            ),
        )
        .hint(ways.join(", or "))
    }

    /// Returns the variables that may hold the key.
    pub fn key_variables(&self) -> &[String] {
        self.provider
            .api_key_env
            .as_ref()
            .map_or(&[], |names| names.0.as_slice())
    }

    /// Returns the key from the environment, if a variable holds one.
    pub fn key_in_env(&self, settings: &Settings) -> Option<String> {
        key_in_env(&self.provider, settings)
    }

    /// Returns whether the provider needs no key, as servers on this machine.
    pub fn keyless(&self) -> bool {
        self.weights.is_some() || self.provider.keyless == Some(true) || is_loopback(&self.base_url)
    }

    /// Finds the key; `None` if none is needed.
    ///
    /// # Errors
    /// When there is none and one is needed, or the command that prints it fails.
    ///
    /// # Cancel safety
    /// Cancel safe: the command is ended.
    pub async fn key(&self, settings: &Settings) -> Result<Option<String>> {
        if let Some(key) = self.key_in_env(settings) {
            return Ok(Some(key));
        }
        if let Some(command) = &self.provider.api_key_command {
            return run_key_command(&self.provider_name, command)
                .await
                .map(Some);
        }
        if self.keyless() {
            return Ok(None);
        }
        Err(self.missing_key())
    }

    /// Checks that there is a key or a way to one, if one is needed.
    ///
    /// # Errors
    /// When there is none.
    pub fn check_key(&self, settings: &Settings) -> Result<()> {
        if has_key(&self.provider, settings) || self.keyless() {
            Ok(())
        } else {
            Err(self.missing_key())
        }
    }

    fn missing_key(&self) -> SetupError {
        let name = &self.provider_name;
        match self.key_variables().first() {
            Some(variable) => SetupError::new(
                SetupErrorKind::Auth,
                format_args!("there is no API key for `{name}`: `{variable}` is not set"),
            )
            .hint(format!(
                "set it with `export {variable}=...`, or `api_key_command` under `[providers.{name}]` in the configuration"
            )),
            None => SetupError::new(SetupErrorKind::Auth, format_args!("there is no API key for `{name}`"))
                .hint(format!(
                    "set `api_key_env` or `api_key_command` under `[providers.{name}]` in the configuration, or `keyless = true` if it needs none"
                )),
        }
    }
}

/// Returns whether the profile writes calls as text, so that the model need not support function calling.
fn writes_calls_as_text(profile: &Profile) -> bool {
    profile.dialect.as_deref() == Some(REACT)
}

/// Returns whether a URL leads to this machine.
pub fn is_loopback(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
    let host_port = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let host = match host_port.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or(""),
        None => host_port.split(':').next().unwrap_or(""),
    };
    host.eq_ignore_ascii_case("localhost")
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

fn parse_model(
    spec: &str,
    explicit_url: Option<&str>,
    providers: &Providers,
    settings: &Settings,
) -> Result<(String, String)> {
    let tier = settings.values.tiers.get(spec);
    let spec = tier.map_or(spec, String::as_str);
    if explicit_url.is_none() {
        if spec == LOCAL
            && let Some(found) = default_in_the_box(settings)?
        {
            return Ok(found);
        }
        let is_weights = matches!(
            WeightsSource::parse(spec)?,
            Some(WeightsSource::File(_) | WeightsSource::Hub { .. })
        );
        if is_weights && !spec.starts_with("local/") {
            return Ok((LOCAL.to_owned(), spec.to_owned()));
        }
    }
    if let Some((name, model)) = spec.split_once('/')
        && providers.get(name).is_some()
        && !model.is_empty()
    {
        return Ok((name.to_owned(), model.to_owned()));
    }
    if let Some(url) = explicit_url {
        return Ok((provider_of_url(url).to_owned(), spec.to_owned()));
    }
    if let Some(provider) = providers.get(spec)
        && let Some(model) = default_of(provider, settings)
    {
        return Ok((spec.to_owned(), model));
    }
    if let Some(name) = provider_of_model(spec)
        && providers.get(name).is_some()
    {
        return Ok((name.to_owned(), spec.to_owned()));
    }
    let message = match spec.split_once('/') {
        Some((name, _)) => format!("there is no provider `{name}`, as in model `{spec}`"),
        None => format!("model `{spec}` does not name its provider"),
    };
    Err(
        SetupError::new(SetupErrorKind::Config, message).hint(format!(
            "write the model as `provider/model`; the providers are: {}",
            providers.names()
        )),
    )
}

/// Returns the provider of a model whose name only one vendor uses.
fn provider_of_model(model: &str) -> Option<&'static str> {
    const PREFIXES: [(&str, &str); 10] = [
        ("gpt-", OPENAI),
        ("chatgpt-", OPENAI),
        ("o1", OPENAI),
        ("o3", OPENAI),
        ("o4", OPENAI),
        ("gemini-", "gemini"),
        ("claude-", "anthropic"),
        ("deepseek-", "deepseek"),
        ("mistral-", "mistral"),
        ("codestral-", "mistral"),
    ];
    PREFIXES
        .iter()
        .find(|(prefix, _)| model.starts_with(prefix) && !model.contains('/'))
        .map(|(_, provider)| *provider)
}

fn provider_of_url(url: &str) -> &'static str {
    if is_loopback(url) { LOCALHOST } else { OPENAI }
}

/// Returns a provider's default model: from the vendor's variable, or else from the table.
fn default_of(provider: &Provider, settings: &Settings) -> Option<String> {
    let variable = provider.model_env.as_deref();
    variable
        .and_then(|variable| settings.env.text(variable))
        .or_else(|| provider.default_model.clone())
}

fn default_model(
    explicit_url: Option<&str>,
    providers: &Providers,
    settings: &Settings,
) -> Result<(String, String)> {
    if explicit_url.is_some() {
        return Err(
            SetupError::new(SetupErrorKind::Config, "a base URL is set, but no model")
                .hint("name the model with `-m NAME`, as the server calls it"),
        );
    }
    let named_by_variable = providers.iter().find(|(_, provider)| {
        let variable = provider.model_env.as_deref();
        variable.is_some_and(|variable| settings.env.get(variable).is_some())
            && has_key(provider, settings)
    });
    let chosen = named_by_variable.or_else(|| {
        providers
            .iter()
            .find(|(_, provider)| has_key(provider, settings) && provider.default_model.is_some())
    });
    let found = chosen
        .and_then(|(name, provider)| Some((name.to_owned(), default_of(provider, settings)?)));
    match found {
        Some(found) => Ok(found),
        None => default_in_the_box(settings)?.ok_or_else(no_model),
    }
}

/// Returns the built-in model, if its weights are on this machine or may be downloaded.
fn default_in_the_box(settings: &Settings) -> Result<Option<(String, String)>> {
    if !cfg!(feature = "local") {
        return Ok(None);
    }
    let wanted = WeightsSource::default(settings)?;
    let may_fetch = settings.values.offline != Some(true);
    let usable = wanted.filter(|wanted| may_fetch || Store::of(settings).find(wanted).is_some());
    Ok(usable.map(|wanted| (LOCAL.to_owned(), wanted.name())))
}

fn has_key(provider: &Provider, settings: &Settings) -> bool {
    key_in_env(provider, settings).is_some() || provider.api_key_command.is_some()
}

fn key_in_env(provider: &Provider, settings: &Settings) -> Option<String> {
    let names = provider.api_key_env.as_ref()?;
    names.0.iter().find_map(|name| settings.env.text(name))
}

fn no_model() -> SetupError {
    SetupError::new(
        SetupErrorKind::Auth,
        "there is no model to use: none is named, and no provider has a key",
    )
    .hint(
        "fetch the small model that runs inside Rondo with `rondo models pull`; or set a key such as `OPENAI_API_KEY`, `GEMINI_API_KEY` or `OPENROUTER_API_KEY`; or ask a server on this machine, as with `-m ollama/qwen3` or `--base-url http://127.0.0.1:8080/v1 -m NAME`; or set `model` in the configuration",
    )
}

fn base_url(explicit: Option<&str>, provider: &Provider, settings: &Settings) -> Result<String> {
    let variable = provider.base_url_env.as_deref();
    let from_env = variable.and_then(|name| Some((name, settings.env.get(name)?)));
    let url = match (explicit, from_env) {
        (Some(url), _) => url.to_owned(),
        (None, Some(("OLLAMA_HOST", host))) => ollama_url(host),
        (None, Some((_, url))) => url.to_owned(),
        (None, None) => provider.base_url.clone().unwrap_or_default(),
    };
    if url.starts_with("http://") || url.starts_with("https://") {
        return Ok(url.trim_end_matches('/').to_owned());
    }
    Err(SetupError::new(
        SetupErrorKind::Config,
        format_args!("`{url}` is not an address that starts with `http://` or `https://`"),
    ))
}

/// Ollama's variable may lack scheme, port or both, and never has the path of its compatible API.
fn ollama_url(host: &str) -> String {
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let rest = rest.trim_end_matches('/');
    let rest = rest.strip_suffix("/v1").unwrap_or(rest);
    let rest = match rest.strip_prefix("0.0.0.0") {
        Some(port) => format!("127.0.0.1{port}"),
        None => rest.to_owned(),
    };
    let has_port = rest
        .rsplit_once(':')
        .is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()));
    if has_port || scheme == "https" {
        format!("{scheme}://{rest}/v1")
    } else {
        format!("{scheme}://{rest}:{OLLAMA_PORT}/v1")
    }
}

async fn run_key_command(provider: &str, command: &OneOrMany) -> Result<String> {
    let failed = |why: String| {
        SetupError::new(
            SetupErrorKind::Auth,
            format_args!("the `api_key_command` of `{provider}` failed: {why}"),
        )
    };
    let mut child = key_process(command)
        .spawn()
        .map_err(|err| failed(err.to_string()))?;
    let mut group = EndedGroup::of(&child);
    let mut printed = String::new();
    let read = async {
        if let Some(stdout) = child.stdout.take() {
            stdout
                .take(KEY_BYTES_MAX)
                .read_to_string(&mut printed)
                .await?;
        }
        child.wait().await
    };
    let status = tokio::time::timeout(KEY_COMMAND_TIMEOUT, read)
        .await
        .map_err(|_| {
            failed(format!(
                "it ran longer than {}s",
                KEY_COMMAND_TIMEOUT.as_secs()
            ))
        })?
        .map_err(|err| failed(err.to_string()))?;
    // It has ended by itself, and its number may be another's.
    group.0 = None;
    let key = printed.trim();
    if !status.success() || key.is_empty() {
        return Err(failed(format!(
            "{status}, with {} bytes printed",
            key.len()
        )));
    }
    Ok(key.to_owned())
}

/// Ends a command with all that it started when this is dropped.
struct EndedGroup(Option<Pid>);

impl EndedGroup {
    /// Takes the process group that a child leads.
    fn of(child: &tokio::process::Child) -> Self {
        let id = child.id().and_then(|it| i32::try_from(it).ok());
        Self(id.and_then(Pid::from_raw))
    }
}

impl Drop for EndedGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // A process that has ended meanwhile needs no signal.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

fn key_process(command: &OneOrMany) -> tokio::process::Command {
    let (program, args) = match command.0.as_slice() {
        [line] => ("/bin/sh", vec!["-c", line.as_str()]),
        [program, args @ ..] => (program.as_str(), args.iter().map(String::as_str).collect()),
        [] => ("false", Vec::new()),
    };
    let mut process = tokio::process::Command::new(program);
    process
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    process
}

#[cfg(test)]
mod tests;
