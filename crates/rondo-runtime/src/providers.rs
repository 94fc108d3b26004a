//! The table of providers: `data/providers.toml`, which is compiled in, and the `[providers]` of the
//! configuration, which extend and override it.

use crate::error::SetupErrorKind;
use crate::error::{Result, SetupError};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::LazyLock;

const TABLE: &str = include_str!("../data/providers.toml");

/// The provider of a server on this machine.
pub(crate) const LOCALHOST: &str = "localhost";
/// The old name of [`LOCALHOST`], which sessions and configuration files may have. Before a name of weights it
/// means the built-in model.
pub(crate) const LOCAL: &str = "local";

/// Returns the other name of the same provider, if it has one.
pub(crate) fn other_name(provider: &str) -> Option<&'static str> {
    match provider {
        LOCALHOST => Some(LOCAL),
        LOCAL => Some(LOCALHOST),
        _ => None,
    }
}

/// Returns the current name of a provider.
pub(crate) fn name_of_today(provider: &str) -> &str {
    match provider {
        LOCAL => LOCALHOST,
        name => name,
    }
}

/// A provider, with the fields of `[providers.NAME]`. The configuration overrides single fields of a built-in
/// provider.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Provider {
    /// The dialect that it speaks.
    pub dialect: Option<String>,
    /// The address: with `/v1` for OpenAI-compatible servers, without a version path for Gemini.
    pub base_url: Option<String>,
    /// The vendor's own variable for the address.
    pub base_url_env: Option<String>,
    /// The variables that may hold the key, the first that is set wins.
    pub api_key_env: Option<OneOrMany>,
    /// A command that prints the key, run only when the key is needed.
    pub api_key_command: Option<OneOrMany>,
    /// Needs no key.
    pub keyless: Option<bool>,
    /// The header that carries the key; by default the dialect's.
    pub api_key_header: Option<String>,
    /// Further headers.
    pub headers: BTreeMap<String, String>,
    /// Further headers whose values are in variables, if these are set.
    pub headers_env: BTreeMap<String, String>,
    /// Further fields of every request body.
    pub extra_body: toml::Table,
    /// How it differs from its dialect.
    pub quirks: toml::Table,
    /// The bound on concurrent requests.
    pub max_concurrent_requests: Option<NonZeroUsize>,
    /// The vendor's own variable for the model.
    pub model_env: Option<String>,
    /// The model when none is named.
    pub default_model: Option<String>,
    /// The model that makes vectors of memories when none is named.
    pub embedding_model: Option<String>,
}

/// A string, or an array of strings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneOrMany(pub Vec<String>);

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;
        match toml::Value::deserialize(deserializer)? {
            toml::Value::String(one) => Ok(Self(vec![one])),
            many @ toml::Value::Array(_) => Vec::<String>::deserialize(many)
                .map(Self)
                .map_err(D::Error::custom),
            other => Err(D::Error::custom(format_args!(
                "expected a string or an array of strings, not {}",
                other.type_str()
            ))),
        }
    }
}

/// Those that are built in, in the order in which a default is chosen.
static BUILT_IN: LazyLock<Result<Vec<(String, Provider)>, toml::de::Error>> =
    LazyLock::new(built_in);

#[derive(Deserialize)]
struct Table {
    providers: toml::Table,
}

fn built_in() -> Result<Vec<(String, Provider)>, toml::de::Error> {
    let table: Table = toml::from_str(TABLE)?;
    let providers = table.providers.into_iter();
    providers
        .map(|(name, value)| Ok((name, Provider::deserialize(value)?)))
        .collect()
}

/// Providers by name, in the order in which a default is chosen.
#[derive(Debug, Clone)]
pub struct Providers {
    all: Vec<(String, Provider)>,
    /// [`LOCALHOST`] by its older name: found, and not listed.
    local: Option<Provider>,
}

impl Providers {
    /// Merges the configuration's providers into the built-in ones.
    ///
    /// # Errors
    /// When a provider that is not built in has no dialect or no address.
    pub fn load(configured: &BTreeMap<String, Provider>) -> Result<Self> {
        let built_in = BUILT_IN.as_ref().map_err(|err| unreadable(err.clone()))?;
        let own = |name: &str| configured.get(name).cloned().unwrap_or_default();
        let mut all = Vec::with_capacity(built_in.len());
        let mut local = None;
        for (name, shipped) in built_in {
            if name == LOCALHOST {
                local = Some(own(LOCAL).or(own(LOCALHOST)).or(shipped.clone()));
            }
            let by_other_name = other_name(name).map(own).unwrap_or_default();
            let merged = own(name).or(by_other_name).or(shipped.clone());
            all.push((name.clone(), merged));
        }
        for (name, own) in configured {
            if name != LOCAL && all.iter().all(|(known, _)| known != name) {
                check(name, own)?;
                all.push((name.clone(), own.clone()));
            }
        }
        Ok(Self { all, local })
    }

    /// Returns the provider of that name.
    pub fn get(&self, name: &str) -> Option<&Provider> {
        let mut known = self.iter().filter(|(known, _)| *known == name);
        let found = known.next().map(|(_, provider)| provider);
        found.or_else(|| self.local.as_ref().filter(|_| name == LOCAL))
    }

    /// Iterates over names and providers.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Provider)> {
        self.all
            .iter()
            .map(|(name, provider)| (name.as_str(), provider))
    }

    /// Returns all names, for display.
    pub fn names(&self) -> String {
        let names: Vec<_> = self.iter().map(|(name, _)| name).collect();
        names.join(", ")
    }
}

impl Provider {
    /// Fills in unset fields from `other`.
    pub fn or(self, other: Self) -> Self {
        let mut headers = other.headers;
        headers.extend(self.headers);
        let mut headers_env = other.headers_env;
        headers_env.extend(self.headers_env);
        let mut extra_body = other.extra_body;
        extra_body.extend(self.extra_body);
        let mut quirks = other.quirks;
        quirks.extend(self.quirks);
        Self {
            dialect: self.dialect.or(other.dialect),
            base_url: self.base_url.or(other.base_url),
            base_url_env: self.base_url_env.or(other.base_url_env),
            api_key_env: self.api_key_env.or(other.api_key_env),
            api_key_command: self.api_key_command.or(other.api_key_command),
            keyless: self.keyless.or(other.keyless),
            api_key_header: self.api_key_header.or(other.api_key_header),
            headers,
            headers_env,
            extra_body,
            quirks,
            max_concurrent_requests: self
                .max_concurrent_requests
                .or(other.max_concurrent_requests),
            model_env: self.model_env.or(other.model_env),
            default_model: self.default_model.or(other.default_model),
            embedding_model: self.embedding_model.or(other.embedding_model),
        }
    }
}

fn check(name: &str, provider: &Provider) -> Result<()> {
    for (field, missing) in [
        ("dialect", provider.dialect.is_none()),
        ("base_url", provider.base_url.is_none()),
    ] {
        if missing {
            let message = format!("provider `{name}` has no `{field}`");
            return Err(SetupError::new(SetupErrorKind::Config, message)
                .hint(format!("set `{field}` under `[providers.{name}]`")));
        }
    }
    Ok(())
}

fn unreadable(err: toml::de::Error) -> SetupError {
    let context = "failed to read the provider table";
    SetupError::because(SetupErrorKind::Other, context, err)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configured(text: &str) -> BTreeMap<String, Provider> {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn every_shipped_provider_has_a_dialect_an_address_and_a_way_to_its_key() {
        let providers = Providers::load(&BTreeMap::new()).unwrap();
        for name in [
            "openai",
            "gemini",
            "openrouter",
            "groq",
            "mistral",
            "deepseek",
            "ollama",
        ] {
            let provider = providers.get(name).unwrap();
            check(name, provider).unwrap();
            assert!(
                provider.api_key_env.is_some() || provider.keyless == Some(true),
                "{name}"
            );
        }
    }

    #[test]
    fn the_configuration_overrides_single_fields_and_adds_providers() {
        let own = configured(
            "[groq]\nbase_url = 'http://mirror/v1'\n\
             [mine]\ndialect = 'openai-chat'\nbase_url = 'http://x/v1'\napi_key_command = ['pass', 'x']",
        );
        let providers = Providers::load(&own).unwrap();
        let groq = providers.get("groq").unwrap();
        assert_eq!(groq.base_url.as_deref(), Some("http://mirror/v1"));
        assert_eq!(groq.dialect.as_deref(), Some("openai-chat"));
        let mine = providers.get("mine").unwrap();
        assert_eq!(
            mine.api_key_command,
            Some(OneOrMany(vec!["pass".into(), "x".into()]))
        );
    }

    #[test]
    fn the_older_name_of_a_server_on_this_machine_is_found_and_not_listed() {
        let address = |own: &str, name: &str| {
            let providers = Providers::load(&configured(own)).unwrap();
            assert!(providers.names().contains("localhost"));
            assert!(!providers.names().contains("local,"), "{own}");
            providers.get(name).unwrap().base_url.clone().unwrap()
        };
        let usual = "http://127.0.0.1:8080/v1";
        let older = "[local]\nbase_url = 'http://127.0.0.1:1/v1'";
        let both = format!("{older}\n[localhost]\nbase_url = 'http://127.0.0.1:2/v1'");
        for (own, local, localhost) in [
            ("", usual, usual),
            (older, "http://127.0.0.1:1/v1", "http://127.0.0.1:1/v1"),
            (&both, "http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1"),
        ] {
            assert_eq!(address(own, LOCAL), local, "{own}");
            assert_eq!(address(own, LOCALHOST), localhost, "{own}");
        }
    }

    #[test]
    fn an_own_provider_without_an_address_is_refused() {
        let error = Providers::load(&configured("[mine]\ndialect = 'gemini'")).unwrap_err();
        assert_eq!(error.kind, SetupErrorKind::Config);
        assert!(error.line().contains("`mine` has no `base_url`"));
    }
}
