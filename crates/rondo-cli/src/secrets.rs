//! What of the environment must not be told to models, nor kept.

use crate::settings::Settings;
use rondo_core::redact::Secrets;
use rondo_policy::Environment;

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
