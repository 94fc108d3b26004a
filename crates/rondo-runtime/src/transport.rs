//! Builds the model port of a provider over HTTP.

use crate::error::SetupErrorKind;
use crate::error::{Result, SetupError};
use crate::settings::Settings;
use crate::target::ModelTarget;
use crate::values::WebSearchChoice;
use rondo_http::{Auth, Endpoint, HttpModel, ModelCard, Network, Proxies, Secret, Transport};
use rondo_wire::Quirks;
use serde::Deserialize as _;
use serde_json::{Map, Value};

/// Builds the model port, without a bound on concurrent requests. It connects at the first request.
///
/// # Errors
/// When the provider's settings are invalid.
pub fn http_model(
    target: &ModelTarget,
    key: Option<String>,
    dialect: &str,
    streaming: bool,
    settings: &Settings,
) -> Result<HttpModel> {
    let mut endpoint = Endpoint::new(
        target.provider_name.clone(),
        dialect.to_owned(),
        target.base_url.clone(),
    );
    endpoint.auth = auth(target, key);
    endpoint.headers = headers(target, settings);
    endpoint.extra_body = extra_body(target)?;
    endpoint.quirks = quirks(target)?;
    endpoint.quirks.omit_media |= target.facts.image_input == Some(false);
    endpoint.streaming = streaming;
    endpoint.web_search = settings.values.web_search == Some(WebSearchChoice::Model);
    endpoint.network = network(settings);
    let card = ModelCard {
        name: target.model.clone(),
        price: target.facts.price(),
        context_tokens: target.facts.context_tokens,
    };
    HttpModel::new(&endpoint, card).map_err(|err| SetupError::caused(SetupErrorKind::Config, err))
}

/// Opens connections that are not to a model, such as to a messenger: by the proxies and certificate authorities that the
/// user has set.
///
/// # Errors
/// When a proxy's address or the file of certificate authorities is invalid.
pub fn connections(settings: &Settings) -> Result<Transport> {
    Transport::new(network(settings)).map_err(|err| SetupError::caused(SetupErrorKind::Config, err))
}

/// Returns how connections are made: the proxies of the environment, and the certificate authorities of the settings.
/// Returns how connections are made: by which proxies, and with which authorities.
#[must_use]
pub fn network(settings: &Settings) -> Network {
    Network {
        proxies: Proxies::from_lookup(|name| settings.env.text(name)),
        ca_file: settings.values.ca_file.clone(),
        ..Network::default()
    }
}

fn headers(target: &ModelTarget, settings: &Settings) -> Vec<(String, Secret)> {
    let fixed = target
        .provider
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), Secret::new(value)));
    let from_env = target
        .provider
        .headers_env
        .iter()
        .filter_map(|(name, variable)| {
            Some((name.clone(), Secret::new(settings.env.get(variable)?)))
        });
    fixed.chain(from_env).collect()
}

fn auth(target: &ModelTarget, key: Option<String>) -> Auth {
    let Some(key) = key else {
        return Auth::None;
    };
    // A key with a space in it brings its own scheme, such as `Basic`.
    let names_scheme = key.contains(' ');
    let secret = Secret::new(key);
    match &target.provider.api_key_header {
        None => Auth::Key(secret),
        Some(name) if name.eq_ignore_ascii_case("authorization") && !names_scheme => {
            Auth::Bearer(secret)
        }
        Some(name) => Auth::Header {
            name: name.clone(),
            secret,
        },
    }
}

fn extra_body(target: &ModelTarget) -> Result<Map<String, Value>> {
    match serde_json::to_value(&target.provider.extra_body) {
        Ok(Value::Object(fields)) => Ok(fields),
        _ => Err(SetupError::new(
            SetupErrorKind::Config,
            format_args!(
                "the `extra_body` of provider `{}` cannot be sent as JSON",
                target.provider_name
            ),
        )),
    }
}

fn quirks(target: &ModelTarget) -> Result<Quirks> {
    let table = toml::Value::Table(target.provider.quirks.clone());
    Quirks::deserialize(table).map_err(|err| {
        let context = format!(
            "the `quirks` of provider `{}` are invalid",
            target.provider_name
        );
        SetupError::because(SetupErrorKind::Config, context, err.message().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::Providers;
    use std::collections::BTreeMap;

    fn target(name: &str) -> ModelTarget {
        let providers = Providers::load(&BTreeMap::new()).unwrap();
        ModelTarget {
            provider_name: name.to_owned(),
            provider: providers.get(name).unwrap().clone(),
            model: "m".into(),
            base_url: "http://127.0.0.1:1/v1".into(),
            facts: crate::models::ModelFacts::default(),
            weights: None,
        }
    }

    #[test]
    fn every_shipped_provider_has_known_quirks_and_dialect() {
        let providers = Providers::load(&BTreeMap::new()).unwrap();
        for (name, _) in providers.iter() {
            let target = target(name);
            quirks(&target).unwrap();
            assert!(rondo_wire::dialect(target.dialect()).is_some(), "{name}");
        }
    }

    #[test]
    fn the_key_goes_where_the_dialect_has_it_unless_a_header_is_named() {
        let mut target = target("gemini");
        let key = || Some("k".to_owned());
        assert_eq!(auth(&target, key()), Auth::Key(Secret::new("k")));
        assert_eq!(auth(&target, None), Auth::None);
        let mut named = |name: &str, key: &str| {
            target.provider.api_key_header = Some(name.to_owned());
            auth(&target, Some(key.to_owned()))
        };
        let header = |name: &str, key: &str| Auth::Header {
            name: name.to_owned(),
            secret: Secret::new(key),
        };
        assert_eq!(named("x-key", "k"), header("x-key", "k"));
        assert_eq!(named("Authorization", "k"), Auth::Bearer(Secret::new("k")));
        let basic = "Basic a2V5";
        assert_eq!(
            named("authorization", basic),
            header("authorization", basic)
        );
    }

    #[test]
    fn an_unknown_quirk_is_named() {
        let mut target = target("groq");
        target
            .provider
            .quirks
            .insert("wobbly".into(), toml::Value::Boolean(true));
        let error = quirks(&target).unwrap_err();
        assert!(error.line().contains("wobbly"), "{}", error.line());
    }
}
