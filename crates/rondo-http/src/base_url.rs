//! The base URL of requests, and its form in messages, without secrets.

use crate::address::{self, Address};
use crate::{HttpError, Network, Secret};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::http::Uri;
use hyper::http::uri::Scheme;
use percent_encoding::percent_decode_str;
use rondo_types::ServerAddress;
use std::net::IpAddr;

/// Target of requests, and its name in messages: without path, query or credentials.
#[derive(Debug, Clone)]
pub(crate) struct BaseUrl {
    base: Uri,
    /// Name and password that the address had, percent-encoded.
    user: Option<(String, String)>,
    name: String,
}

impl BaseUrl {
    pub(crate) fn parse(
        base_url: &str,
        provider: &str,
        network: &Network,
    ) -> Result<Self, HttpError> {
        let fail = || HttpError::BaseUrl {
            provider: provider.to_owned(),
        };
        let Address { uri: base, user } = Address::parse(base_url.trim()).ok_or_else(fail)?;
        let proxied = if base.scheme() == Some(&Scheme::HTTP) {
            network.proxies.http.is_some()
        } else {
            network.proxies.https.is_some()
        };
        let origin = address::origin(&base).ok_or_else(fail)?;
        let host = origin.split_once("://").map(|(_, host)| host);
        let mut name = format!("`{}`", host.unwrap_or_default());
        if proxied {
            name.push_str(" (a proxy is configured)");
        }
        Ok(Self { base, user, name })
    }

    /// Returns the address of `path` below the base, whose own query is kept.
    ///
    /// `None` when it is too long to be sent: a model's name is part of some.
    pub(crate) fn uri(&self, path: &str) -> Option<Uri> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let path = path.trim_start_matches('/');
        let prefix = without_version_of(path, self.base.path().trim_end_matches('/'));
        let queries = [self.base.query().unwrap_or_default(), query];
        let query = queries.into_iter().filter(|query| !query.is_empty());
        let query = query.collect::<Vec<_>>().join("&");
        let path = match query.as_str() {
            "" => format!("{prefix}/{path}"),
            query => format!("{prefix}/{path}?{query}"),
        };
        let authority = self.base.authority()?.clone();
        address::join(self.base.scheme()?.clone(), authority, &path)
    }

    /// Returns whether the server is on this machine, where only the user starts it.
    pub(crate) fn is_this_machine(&self) -> bool {
        let host = self.base.host().unwrap_or_default();
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// Returns the possible keys in the base URL: its password and the values of its query.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        let query = self.base.query().unwrap_or_default();
        let values = query.split('&').filter_map(|pair| {
            let (_, value) = pair.split_once('=')?;
            Some(value.replace('+', " "))
        });
        let password = self.user.iter().map(|(_, password)| password.clone());
        let encoded = password.chain(values).filter(|text| !text.is_empty());
        encoded
            .flat_map(|text| [Secret::new(decoded(&text)), Secret::new(text)])
            .collect()
    }

    /// Returns the text behind `Basic` in the `Authorization` header, which the address asks for by itself.
    pub(crate) fn user(&self) -> Option<Secret> {
        let (name, password) = self.user.as_ref()?;
        let user = format!("{}:{}", decoded(name), decoded(password));
        Some(Secret::new(BASE64_STANDARD.encode(user)))
    }

    /// Returns host and port.
    pub(crate) fn server(&self) -> Option<ServerAddress> {
        let host = self.base.host()?.trim_matches(['[', ']']);
        let port = self.base.port_u16();
        let port = port.unwrap_or_else(|| address::usual_port(&self.base));
        Some(ServerAddress {
            host: host.to_owned(),
            port,
        })
    }

    /// Returns the host, with its port if it is not the usual one, in backticks.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Takes a version path off the base that the path begins with too: if the path carries the
/// version, people write it into the address all the same.
fn without_version_of<'a>(path: &str, prefix: &'a str) -> &'a str {
    let first = path.split('/').next().unwrap_or_default();
    let is_version = first
        .strip_prefix('v')
        .is_some_and(|it| it.starts_with(|it: char| it.is_ascii_digit()));
    prefix
        .strip_suffix(first)
        .and_then(|rest| rest.strip_suffix('/'))
        .filter(|_| is_version)
        .unwrap_or(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Proxies;

    fn place(base_url: &str) -> BaseUrl {
        BaseUrl::parse(base_url, "p", &Network::default()).unwrap()
    }

    #[test]
    fn paths_join_with_and_without_slashes() {
        for base in ["http://h:1/v1", "http://h:1/v1/", " http://h:1/v1 "] {
            let url = place(base).uri("/chat/completions").unwrap();
            assert_eq!(url, "http://h:1/v1/chat/completions");
        }
        let url = place("https://h")
            .uri("/v1beta/models/m:streamGenerateContent?alt=sse")
            .unwrap();
        assert_eq!(
            url,
            "https://h/v1beta/models/m:streamGenerateContent?alt=sse"
        );
    }

    #[test]
    fn a_server_has_a_host_and_a_port() {
        let cases = [
            ("http://h:1/v1", "h", 1),
            ("https://api.h.example", "api.h.example", 443),
            ("http://[::1]/v1", "::1", 80),
        ];
        for (base, host, port) in cases {
            let server = place(base).server().unwrap();
            assert_eq!((server.host.as_str(), server.port), (host, port));
        }
    }

    #[test]
    fn the_query_of_the_base_is_kept() {
        let base = place("https://h/openai?api-version=1");
        assert_eq!(
            base.uri("/c?alt=sse").unwrap().query(),
            Some("api-version=1&alt=sse")
        );
        assert_eq!(base.uri("/c").unwrap().path(), "/openai/c");
    }

    #[test]
    fn the_name_holds_neither_path_nor_credentials() {
        assert_eq!(place("https://u:pw@h/v1?key=k").name(), "`h`");
        assert_eq!(place("http://127.0.0.1:8080/v1").name(), "`127.0.0.1:8080`");
    }

    #[test]
    fn what_may_be_a_key_is_known_in_both_of_its_forms() {
        let base = place("https://u:p%40w@h/v1?key=a%2Bb+c&x&y=");
        let secrets = base.secrets();
        let texts: Vec<&str> = secrets.iter().map(Secret::expose).collect();
        assert_eq!(texts, ["p@w", "p%40w", "a+b c", "a%2Bb c"]);
        assert_eq!(base.user().unwrap().expose(), "dTpwQHc=");
        assert_eq!(base.uri("/c").unwrap().authority().unwrap(), "h");
    }

    #[test]
    fn a_models_name_cannot_leave_its_place_in_the_path() {
        let uri = place("https://h")
            .uri("/v1beta/models/a b#c:generate")
            .unwrap();
        assert_eq!(uri, "https://h/v1beta/models/a%20b%23c:generate");
        assert_eq!(place("https://h").uri(&"x".repeat(70_000)), None);
    }

    #[test]
    fn a_proxy_is_named_where_it_may_be_the_cause() {
        let network = Network {
            proxies: Proxies {
                https: Some(Secret::new("http://proxy:1")),
                ..Proxies::default()
            },
            ..Network::default()
        };
        let place = BaseUrl::parse("https://h/v1", "p", &network).unwrap();
        assert_eq!(place.name(), "`h` (a proxy is configured)");
    }

    #[test]
    fn a_version_that_the_path_carries_is_not_said_twice() {
        let path = "/v1beta/models/m:generateContent";
        for base in [
            "https://h",
            "https://h/",
            "https://h/v1beta",
            "https://h/v1beta/",
        ] {
            let place = BaseUrl::parse(base, "p", &Network::default()).unwrap();
            assert_eq!(
                place.uri(path).unwrap(),
                "https://h/v1beta/models/m:generateContent"
            );
        }
        let place = BaseUrl::parse("https://h/v1", "p", &Network::default()).unwrap();
        assert_eq!(
            place.uri("/chat/completions").unwrap(),
            "https://h/v1/chat/completions"
        );
    }

    #[test]
    fn other_schemes_and_broken_addresses_are_refused() {
        for base in ["", "h:80", "ftp://h/", "unix:/x", "http://", "/v1"] {
            let error = BaseUrl::parse(base, "p", &Network::default()).unwrap_err();
            assert!(matches!(error, HttpError::BaseUrl { .. }), "{base}");
        }
    }
}
