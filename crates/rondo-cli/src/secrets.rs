//! What of the environment must not be told to models, nor kept.

use crate::env::Env;
use crate::providers::Providers;
use crate::settings::Settings;
use rondo_core::redact::Secrets;
use rondo_policy::Environment;

/// Bytes of the shortest key that is looked for in the values of other variables: what is shorter, such
/// as the word that a local server wants for a key, may be part of any path.
const KEY_BYTES_MIN: usize = 16;

/// Collects the values of all variables whose names say that they hold a key.
pub(crate) fn of_env(settings: &Settings) -> Secrets {
    let names = Environment {
        // They are withheld for what they do, not for what they hold.
        withheld: Vec::new(),
        ..Environment::default()
    };
    let named: Vec<&String> = variables(settings).collect();
    let secret = settings
        .env
        .iter()
        .filter(|(name, _)| names.is_withheld(name) || named.iter().any(|it| it == name));
    Secrets::new(secret.map(|(_, value)| value.to_owned()))
}

/// Returns the variables from which any provider takes a key or a header.
pub(crate) fn variables(settings: &Settings) -> impl Iterator<Item = &String> {
    let providers = settings.values.providers.values();
    providers.flat_map(|provider| {
        let keys = provider.api_key_env.iter().flat_map(|names| &names.0);
        keys.chain(provider.headers_env.values())
    })
}

/// Returns the variables that are kept from commands and Python sessions whatever their names: those from
/// which any provider takes a key or a header, and those that hold the same key, alone or in an address.
pub(crate) fn withheld(settings: &Settings, env: &Env) -> Vec<String> {
    let providers = Providers::load(&settings.values.providers);
    let known = providers.iter().flat_map(Providers::iter);
    let known = known.flat_map(|(_, provider)| provider.api_key_env.iter());
    let named: Vec<&String> = known
        .flat_map(|names| &names.0)
        .chain(variables(settings))
        .collect();
    let keys = named.iter().filter_map(|name| env.get(name));
    let keys = keys.map(str::trim).filter(|key| key.len() >= KEY_BYTES_MIN);
    let keys: Vec<&str> = keys.collect();
    let holds = |value: &str| keys.iter().any(|key| value.contains(key));
    let holding = env.iter().filter(|(_, value)| holds(value));
    let mut names: Vec<String> = holding.map(|(name, _)| name.clone()).collect();
    names.extend(variables(settings).cloned());
    names.sort();
    names.dedup();
    names
}
