//! Finds the secrets in the environment: values that are redacted, and variables that commands do not get.

use crate::env::Env;
use crate::providers::Providers;
use crate::settings::Settings;
use rondo_core::redact::Secrets;
use rondo_policy::{CommandEnvironment, Variables};

/// The shortest key, in bytes, that is looked for in the values of other variables. A shorter one, such as the
/// dummy key of a local server, may be part of any path.
const KEY_BYTES_MIN: usize = 16;

/// Recognizes variables that hold a key, by their names.
#[derive(Debug, Clone)]
pub struct KeyNames {
    rules: CommandEnvironment,
    named: Vec<String>,
}

impl KeyNames {
    /// Recognizes the usual names of keys, and the variables from which a provider takes a key or a header.
    pub fn of(settings: &Settings) -> Self {
        Self::new(variables(settings).cloned().collect())
    }

    /// Recognizes the usual names of keys, and these.
    pub fn new(named: Vec<String>) -> Self {
        let rules = CommandEnvironment {
            // These are withheld for their effect on programs and hold no keys.
            withheld: Vec::new(),
            ..CommandEnvironment::default()
        };
        Self { rules, named }
    }

    /// Returns whether a variable holds a key.
    pub fn has(&self, name: &str, value: &str) -> bool {
        self.rules.is_withheld_with(name, value) || self.named.iter().any(|it| it == name)
    }
}

/// Collects the values of all variables that hold a key.
pub fn of_env(settings: &Settings) -> Secrets {
    named(&KeyNames::of(settings), &settings.env)
}

/// Collects the values of the variables whose names are usual for keys, before the settings are known.
pub(crate) fn of_usual_names(env: &Env) -> Secrets {
    named(&KeyNames::new(Vec::new()), env)
}

fn named(names: &KeyNames, env: &Env) -> Secrets {
    let secret = env.iter().filter(|(name, value)| names.has(name, value));
    Secrets::new(secret.map(|(_, value)| value.to_owned()))
}

/// Returns the variables from which any provider takes a key or a header.
fn variables(settings: &Settings) -> impl Iterator<Item = &String> {
    let providers = settings.values.providers.values();
    providers.flat_map(|provider| {
        let keys = provider.api_key_env.iter().flat_map(|names| &names.0);
        keys.chain(provider.headers_env.values())
    })
}

/// Returns the variables to withhold from commands and Python sessions regardless of their names: those from
/// which any provider takes a key or a header, and those of `env` and `shell` that hold the same key, alone
/// or in an address.
pub fn withheld(settings: &Settings, env: &Env, shell: Option<&Variables>) -> Vec<String> {
    let providers = Providers::load(&settings.values.providers);
    let known = providers.iter().flat_map(Providers::iter);
    let known = known.flat_map(|(_, provider)| provider.api_key_env.iter());
    let named = known.flat_map(|names| &names.0).chain(variables(settings));
    let keys = named.filter_map(|name| env.get(name)).map(str::trim);
    let keys: Vec<&str> = keys.filter(|key| key.len() >= KEY_BYTES_MIN).collect();
    let own = env.iter();
    let own = own.map(|(name, value)| (name.as_str(), value.as_str()));
    let shell = shell.into_iter().flat_map(Variables::iter);
    let shell = shell.filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
    let holds = |value: &str| keys.iter().any(|key| value.contains(key));
    let holding = own.chain(shell).filter(|(_, value)| holds(value));
    let mut names: Vec<String> = holding.map(|(name, _)| name.to_owned()).collect();
    names.extend(variables(settings).cloned());
    names.sort();
    names.dedup();
    names
}
