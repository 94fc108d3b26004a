//! The address that requests go to, and its form without secrets for messages.

use crate::{HttpError, Network, Secret};
use reqwest::Url;
use rondo_types::ServerAddress;
use std::net::IpAddr;

/// Where requests go, and how it is called in messages: without path, query or credentials.
#[derive(Debug, Clone)]
pub(crate) struct BaseUrl {
    base: Url,
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
        let base = Url::parse(base_url.trim()).map_err(|_| fail())?;
        let host = base.host_str().ok_or_else(fail)?;
        let proxied = match base.scheme() {
            "http" => network.proxies.http.is_some(),
            "https" => network.proxies.https.is_some(),
            _ => return Err(fail()),
        };
        let mut name = match base.port() {
            Some(port) => format!("`{host}:{port}`"),
            None => format!("`{host}`"),
        };
        if proxied {
            name.push_str(" (a proxy is configured)");
        }
        Ok(Self { base, name })
    }

    /// Returns the address of `path` below the base, whose own query is kept.
    pub(crate) fn url(&self, path: &str) -> Url {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut url = self.base.clone();
        let path = path.trim_start_matches('/');
        let prefix = without_version_of(path, self.base.path().trim_end_matches('/'));
        url.set_path(&format!("{prefix}/{path}"));
        let queries = [self.base.query().unwrap_or_default(), query];
        let query = queries.into_iter().filter(|query| !query.is_empty());
        let query = query.collect::<Vec<_>>().join("&");
        url.set_query((!query.is_empty()).then_some(query.as_str()));
        url
    }

    /// Returns whether the server is on this machine, where nobody but the user starts it.
    pub(crate) fn is_this_machine(&self) -> bool {
        let host = self.base.host_str().unwrap_or_default();
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// Returns what in the base URL may be a key: its password and the values of its query.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        let values = self.base.query_pairs().map(|(_, value)| Secret::new(value));
        self.base
            .password()
            .map(Secret::new)
            .into_iter()
            .chain(values)
            .collect()
    }

    /// Returns host and port.
    pub(crate) fn server(&self) -> Option<ServerAddress> {
        let host = self.base.host_str()?.trim_matches(['[', ']']);
        let port = self.base.port_or_known_default()?;
        Some(ServerAddress {
            host: host.to_owned(),
            port,
        })
    }

    /// Returns the host, with its port where it is not the usual one, in backticks.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// Takes a version path off the base that the path begins with too: where the path carries the
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
            let url = place(base).url("/chat/completions");
            assert_eq!(url.as_str(), "http://h:1/v1/chat/completions");
        }
        let url = place("https://h").url("/v1beta/models/m:streamGenerateContent?alt=sse");
        assert_eq!(
            url.as_str(),
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
            base.url("/c?alt=sse").query(),
            Some("api-version=1&alt=sse")
        );
        assert_eq!(base.url("/c").path(), "/openai/c");
    }

    #[test]
    fn the_name_holds_neither_path_nor_credentials() {
        assert_eq!(place("https://u:pw@h/v1?key=k").name(), "`h`");
        assert_eq!(place("http://127.0.0.1:8080/v1").name(), "`127.0.0.1:8080`");
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
                place.url(path).as_str(),
                "https://h/v1beta/models/m:generateContent"
            );
        }
        let place = BaseUrl::parse("https://h/v1", "p", &Network::default()).unwrap();
        assert_eq!(
            place.url("/chat/completions").as_str(),
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
