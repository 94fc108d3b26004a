//! How connections are made: timeout, proxies and certificates.

use crate::Secret;
use std::path::PathBuf;
use std::time::Duration;

/// How long a connection, its TLS handshake included, may take to come about.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How connections are made.
///
/// All of it is values: the client never looks at the environment for proxies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// How long a connection may take to come about, its TLS handshake included.
    pub connect_timeout: Duration,
    /// The proxies.
    pub proxies: Proxies,
    /// A PEM file of certificate authorities to trust besides the system's.
    pub ca_file: Option<PathBuf>,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            connect_timeout: CONNECT_TIMEOUT,
            proxies: Proxies::default(),
            ca_file: None,
        }
    }
}

/// Which proxy to use for what. The addresses may hold passwords.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Proxies {
    /// The proxy of `http` requests.
    pub http: Option<Secret>,
    /// The proxy of `https` requests.
    pub https: Option<Secret>,
    /// The hosts that are reached directly, separated by commas: names with their subdomains,
    /// addresses, networks, or `*`.
    pub except: Option<String>,
}

impl Proxies {
    /// Reads the usual variables of the environment, as [`Proxies::from_lookup`] does.
    #[must_use]
    pub fn from_env() -> Self {
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    /// Reads `https_proxy`, `http_proxy`, `all_proxy` and `no_proxy`, also in upper case, from
    /// `lookup`. Empty values count as absent.
    ///
    /// `HTTP_PROXY` in upper case is not read where `REQUEST_METHOD` is set: a CGI server puts a
    /// client's header there.
    #[must_use]
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let get = |name: &str| lookup(name).filter(|value| !value.trim().is_empty());
        let either = |name: &str| get(name).or_else(|| get(&name.to_ascii_uppercase()));
        let all = either("all_proxy");
        let http = if get("REQUEST_METHOD").is_some() {
            get("http_proxy")
        } else {
            either("http_proxy")
        };
        Self {
            http: http.or_else(|| all.clone()).map(Secret::new),
            https: either("https_proxy").or(all).map(Secret::new),
            except: either("no_proxy"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Proxies {
        Proxies::from_lookup(|name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn each_scheme_has_its_variable_and_all_fills_the_gaps() {
        let found = proxies(&[
            ("HTTPS_PROXY", "http://s:1"),
            ("ALL_PROXY", "http://a:2"),
            ("NO_PROXY", "localhost"),
        ]);
        let expected = Proxies {
            http: Some(Secret::new("http://a:2")),
            https: Some(Secret::new("http://s:1")),
            except: Some("localhost".to_owned()),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn lower_case_wins_and_empty_is_absent() {
        let found = proxies(&[
            ("https_proxy", "http://low:1"),
            ("HTTPS_PROXY", "http://up:1"),
            ("http_proxy", " "),
        ]);
        assert_eq!(found.https, Some(Secret::new("http://low:1")));
        assert_eq!(found.http, None);
    }

    #[test]
    fn a_cgi_client_cannot_name_the_proxy() {
        let found = proxies(&[("REQUEST_METHOD", "GET"), ("HTTP_PROXY", "http://evil:1")]);
        assert_eq!(found, Proxies::default());
    }
}
