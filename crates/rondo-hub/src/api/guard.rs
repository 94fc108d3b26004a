//! First checks of a request: it must be addressed to this hub, and not sent by a stranger's page.
//!
//! A page in a browser can send requests to a port of its own machine, and by a name that it rebinds it can even read
//! the answers. So the `Host` must be one of ours, and if a browser says which page a request is from, that must be
//! ours, too. That a request comes from the same machine counts for nothing.

use super::error::ApiError;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use std::net::{IpAddr, SocketAddr};

/// The names that requests may be addressed to, each with its port unless that is the scheme's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hosts(Vec<String>);

impl Hosts {
    /// Returns the names of an address that is listened at, and others that the configuration lists.
    pub(super) fn new(listen: SocketAddr, others: &[String]) -> Self {
        let port = listen.port();
        let mut hosts = vec![listen.to_string()];
        if listen.ip().is_loopback() {
            hosts.extend(["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{name}:{port}")));
        }
        hosts.extend(others.iter().map(|it| it.to_ascii_lowercase()));
        Self(hosts)
    }

    fn has(&self, host: &str) -> bool {
        self.0.iter().any(|it| it.eq_ignore_ascii_case(host))
    }

    /// Returns whether a page of that origin is ours.
    fn has_origin(&self, origin: &str) -> bool {
        let host = origin
            .strip_prefix("https://")
            .or_else(|| origin.strip_prefix("http://"));
        host.is_some_and(|host| self.has(host))
    }
}

/// Refuses a request that is not addressed to this hub, or that a stranger's page sent.
pub(super) fn check(hosts: &Hosts, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
    let host = only(headers, &header::HOST)?;
    let named = [host, uri.authority().map(|it| it.as_str())];
    let is_ours = named.iter().flatten().all(|host| hosts.has(host)) && host.is_some();
    if !is_ours {
        let message =
            "this hub does not answer to that host; add it to `hosts` in `[hub.channels.api]`";
        return Err(ApiError::new(
            StatusCode::MISDIRECTED_REQUEST,
            "wrong_host",
            message,
        ));
    }
    let foreign = |message: &str| ApiError::new(StatusCode::FORBIDDEN, "foreign_page", message);
    if let Some(origin) = only(headers, &header::ORIGIN)?
        && !hosts.has_origin(origin)
    {
        return Err(foreign("the request was sent by a page of another origin"));
    }
    let site = headers.get("sec-fetch-site").map(|it| it.as_bytes());
    match site {
        None | Some(b"same-origin" | b"none") => Ok(()),
        // All of `localhost` is one site, whatever the port: another program's page is `same-site`.
        Some(_) => Err(foreign("the request was sent by a page of another site")),
    }
}

/// Returns a header that may be there once.
fn only<'a>(
    headers: &'a HeaderMap,
    name: &header::HeaderName,
) -> Result<Option<&'a str>, ApiError> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    let bad = || ApiError::bad_request(format!("the header `{name}` is malformed"));
    if values.next().is_some() {
        return Err(bad());
    }
    first.map(|it| it.to_str().map_err(|_| bad())).transpose()
}

/// Returns whether only programs of the same machine can reach an address.
pub(super) fn is_local(ip: IpAddr) -> bool {
    ip.is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(uri: &str, headers: &[(&str, &str)]) -> Option<u16> {
        let hosts = Hosts::new(
            "127.0.0.1:7456".parse().unwrap(),
            &["Hub.example.org".to_owned()],
        );
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: header::HeaderName = name.parse().unwrap();
            map.append(name, value.parse().unwrap());
        }
        let checked = check(&hosts, &uri.parse().unwrap(), &map);
        checked.err().map(|error| error.status.as_u16())
    }

    #[test]
    fn a_request_to_another_host_is_misdirected() {
        for host in [
            "127.0.0.1:7456",
            "localhost:7456",
            "LOCALHOST:7456",
            "[::1]:7456",
            "hub.example.org",
        ] {
            assert_eq!(checked("/v1/chats", &[("host", host)]), None, "{host}");
        }
        for host in [
            "evil.example:7456",
            "127.0.0.1",
            "localhost:80",
            "hub.example.org:7456",
            "hub.example.org.evil.example",
            "user@127.0.0.1:7456",
            "",
        ] {
            assert_eq!(checked("/v1/chats", &[("host", host)]), Some(421), "{host}");
        }
        assert_eq!(checked("/v1/chats", &[]), Some(421));
        let two = [("host", "localhost:7456"), ("host", "evil.example")];
        assert_eq!(checked("/v1/chats", &two), Some(400));
        let absolute = "http://evil.example:7456/v1/chats";
        assert_eq!(checked(absolute, &[("host", "localhost:7456")]), Some(421));
    }

    #[test]
    fn a_request_of_a_strangers_page_is_refused() {
        let sent = |name, value| checked("/v1/chats", &[("host", "localhost:7456"), (name, value)]);
        for origin in ["http://localhost:7456", "https://hub.example.org"] {
            assert_eq!(sent("origin", origin), None, "{origin}");
        }
        for origin in [
            "null",
            "http://evil.example",
            "http://localhost:3000",
            "http://localhost",
            "file://",
            "http://hub.example.org.evil.example",
        ] {
            assert_eq!(sent("origin", origin), Some(403), "{origin}");
        }
        assert_eq!(sent("sec-fetch-site", "same-origin"), None);
        assert_eq!(sent("sec-fetch-site", "none"), None);
        for site in ["cross-site", "same-site", "anything"] {
            assert_eq!(sent("sec-fetch-site", site), Some(403), "{site}");
        }
    }
}
