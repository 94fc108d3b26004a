//! The table `[hub.channels.webhook]` of the user's configuration.

use crate::{Endpoint, Signer, Webhook};
use rondo_http::{Secret, Transport};
use rondo_runtime::Env;
use rondo_runtime::error::{Result, SetupError, SetupErrorKind};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

/// The port that it listens at if nothing else is configured, of loopback alone.
const PORT: u16 = 7457;

/// Configuration of the channel.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    /// The address that it listens at.
    #[serde(default = "loopback")]
    listen: SocketAddr,
    /// The programs, by name.
    endpoints: BTreeMap<String, ConfiguredEndpoint>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfiguredEndpoint {
    /// The environment variable that has the secret.
    secret_env: String,
    /// Address for its replies.
    reply_url: String,
}

fn loopback() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))
}

impl Webhook {
    /// Builds the channel by its table of the configuration.
    ///
    /// # Errors
    /// When the table is malformed, or an endpoint has no secret or a weak one. No error has a secret.
    pub fn configured(table: &toml::Table, env: &Env, transport: Transport) -> Result<Self> {
        let config: Config =
            toml::Value::Table(table.clone())
                .try_into()
                .map_err(|err: toml::de::Error| {
                    let context =
                        "the table `[hub.channels.webhook]` of the configuration is malformed";
                    SetupError::because(SetupErrorKind::Config, context, err.to_string().trim_end())
                })?;
        let mut endpoints = BTreeMap::new();
        for (name, configured) in config.endpoints {
            let endpoint = endpoint(&name, &configured, env)?;
            endpoints.insert(name, endpoint);
        }
        Ok(Self::new(config.listen, endpoints, transport))
    }
}

fn endpoint(name: &str, configured: &ConfiguredEndpoint, env: &Env) -> Result<Endpoint> {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || it == b'-' || it == b'_';
    if name.is_empty() || name.len() > 60 || !name.bytes().all(is_plain) {
        let message =
            format!("`{name}` is not a webhook name: use up to 60 letters, digits, `-` and `_`");
        return Err(SetupError::new(SetupErrorKind::Config, message));
    }
    let variable = &configured.secret_env;
    let secret = Secret::new(env.text(variable).unwrap_or_default());
    let signer = Signer::new(&secret).map_err(|err| {
        let context = format!("the secret of webhook `{name}` in `{variable}` is missing or wrong");
        SetupError::because(SetupErrorKind::Config, context, err)
    })?;
    let url = &configured.reply_url;
    if !url.starts_with("https://") && !url.starts_with("http://") {
        let message = format!("`reply_url` of webhook `{name}` is not an http or https address");
        return Err(SetupError::new(SetupErrorKind::Config, message));
    }
    Ok(Endpoint {
        signer,
        reply_url: url.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_http::Network;

    fn said(table: &str, secret: &str) -> String {
        let table: toml::Table = table.parse().unwrap();
        let transport = Transport::new(Network::default()).unwrap();
        let env = Env::of(&[("S", secret)]);
        match Webhook::configured(&table, &env, transport) {
            Ok(webhook) => format!("{webhook:?}"),
            Err(err) => format!("error: {err} {err:?}"),
        }
    }

    #[test]
    fn an_endpoint_needs_a_name_a_good_secret_and_an_address() {
        let table = |name: &str, url: &str| {
            format!("[endpoints.\"{name}\"]\nsecret_env = \"S\"\nreply_url = \"{url}\"")
        };
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let built = said(&table("ci", "https://x.example/"), secret);
        assert!(
            built.contains("127.0.0.1:7457") && !built.contains("MfKQ9r8"),
            "{built}"
        );
        for (table, secret, expected) in [
            (table("ci", "https://x.example/"), "", "missing or wrong"),
            (
                table("ci", "https://x.example/"),
                "whsec_AAAA",
                "missing or wrong",
            ),
            (
                table("a/b", "https://x.example/"),
                secret,
                "not a webhook name",
            ),
            (table("ci", "file:///x"), secret, "not an http"),
            ("colour = 5".to_owned(), secret, "malformed"),
        ] {
            let said = said(&table, secret);
            assert!(
                said.starts_with("error") && said.contains(expected),
                "{said}"
            );
            assert!(!said.contains("AAAA"), "{said}");
        }
    }
}
