//! URLs of pages: how they are read, and which hosts they may name.

use crate::WebError;
use rondo_http::not_public;
use std::net::IpAddr;
use url::{Host, Url};

/// The bound on a URL, in bytes.
const URL_BYTES_MAX: usize = 8 << 10;
/// Characters of a URL that an error shows.
const SHOWN_CHARS_MAX: usize = 200;
/// The ends of names that only mean something on this machine or in its network.
const LOCAL_NAMES: [&str; 8] = [
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "home.arpa",
    "lan",
    "corp",
];

/// A host that the user allows although it is not public: `localhost:8080`, `10.0.0.7`, `*.corp.example`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHost {
    host: Host,
    has_subdomains: bool,
    port: Option<u16>,
}

impl AllowedHost {
    /// Reads a host, with a port or for all ports; `*.` before a name allows the names below it and not itself.
    ///
    /// # Errors
    /// When the text is not a host.
    pub fn parse(text: &str) -> Result<Self, WebError> {
        let wrong = |reason: &str| WebError::Url {
            text: shortened(text),
            reason: reason.to_owned(),
        };
        let (name, has_subdomains) = match text.trim().strip_prefix("*.") {
            Some(rest) => (rest, true),
            None => (text.trim(), false),
        };
        // A port that no scheme has by default, so that it is never left out.
        let url = Url::parse(&format!("ws://{name}"));
        let url = url.map_err(|err| wrong(&err.to_string()))?;
        let port = name
            .rsplit_once(':')
            .and_then(|(_, port)| port.parse().ok());
        let is_host = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let host = url.host().filter(|_| is_host && url.username().is_empty());
        let host = host.ok_or_else(|| wrong("a host is `name`, `name:port` or `*.name`"))?;
        Ok(Self {
            host: host.to_owned(),
            has_subdomains,
            port,
        })
    }

    fn fits(&self, host: &Host<&str>, port: u16) -> bool {
        if self.port.is_some_and(|own| own != port) {
            return false;
        }
        match (&self.host, host) {
            (Host::Domain(own), Host::Domain(name)) if self.has_subdomains => {
                let below = plain(name).strip_suffix(plain(own));
                below.is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            (Host::Domain(own), Host::Domain(name)) => plain(own) == plain(name),
            (Host::Ipv4(own), Host::Ipv4(address)) => own == address,
            (Host::Ipv6(own), Host::Ipv6(address)) => own == address,
            _ => false,
        }
    }
}

/// A URL whose host may be reached, as far as its name says.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) url: Url,
    /// Without brackets, and without a dot at its end.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The IP address, if the host is one.
    pub(crate) literal: Option<IpAddr>,
    /// Set if the user allows this host, wherever it leads.
    pub(crate) is_allowed: bool,
}

impl Target {
    /// Reads a URL by the rules of browsers (https://url.spec.whatwg.org), so that it names the same host for
    /// this check and for the request.
    ///
    /// # Errors
    /// [`WebError::Url`] if it is neither `http` nor `https`, or holds a user or a password, and
    /// [`WebError::Forbidden`] if its host is not public.
    pub(crate) fn parse(text: &str, allowed: &[AllowedHost]) -> Result<Self, WebError> {
        let wrong = |reason: &str| WebError::Url {
            text: shortened(text),
            reason: reason.to_owned(),
        };
        if text.len() > URL_BYTES_MAX {
            return Err(wrong(&format!("it is longer than {URL_BYTES_MAX} bytes")));
        }
        let url = Url::parse(text.trim()).map_err(|err| wrong(&err.to_string()))?;
        Self::check(url, allowed)
    }

    /// Returns the target of a redirect.
    ///
    /// # Errors
    /// As [`Target::parse`].
    pub(crate) fn redirected(
        &self,
        location: &str,
        allowed: &[AllowedHost],
    ) -> Result<Self, WebError> {
        let wrong = |reason: String| WebError::Url {
            text: shortened(location),
            reason,
        };
        if location.len() > URL_BYTES_MAX {
            return Err(wrong(format!("it is longer than {URL_BYTES_MAX} bytes")));
        }
        let url = self
            .url
            .join(location)
            .map_err(|err| wrong(err.to_string()))?;
        Self::check(url, allowed)
    }

    fn check(mut url: Url, allowed: &[AllowedHost]) -> Result<Self, WebError> {
        let wrong = |reason: &str| WebError::Url {
            text: shortened(url.as_str()),
            reason: reason.to_owned(),
        };
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("only `http` and `https` are read"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            let reason = "it holds a user name or a password".to_owned();
            return Err(WebError::Url {
                // The URL is left out: it holds a secret.
                text: url.host_str().unwrap_or_default().to_owned(),
                reason,
            });
        }
        let host = url.host().ok_or_else(|| wrong("it has no host"))?;
        let port = url.port_or_known_default().unwrap_or_default();
        let is_allowed = allowed.iter().any(|it| it.fits(&host, port));
        let literal = match host {
            Host::Domain(_) => None,
            Host::Ipv4(address) => Some(IpAddr::V4(address)),
            Host::Ipv6(address) => Some(IpAddr::V6(address)),
        };
        let name = match &host {
            Host::Domain(name) => plain(name).to_owned(),
            Host::Ipv4(_) | Host::Ipv6(_) => literal.map_or_else(String::new, |it| it.to_string()),
        };
        let reason = match literal {
            Some(address) => not_public(address).map(|it| format!("the address is for {it}")),
            None => local_name(&name),
        };
        if let Some(reason) = reason.filter(|_| !is_allowed) {
            return Err(WebError::Forbidden { host: name, reason });
        }
        url.set_fragment(None);
        Ok(Self {
            url,
            host: name,
            port,
            literal,
            is_allowed,
        })
    }

    /// Returns whether another URL belongs to the same site: the same host, with or without `www.`.
    pub(crate) fn is_same_site(&self, other: &Self) -> bool {
        let bare = |host: &str| host.strip_prefix("www.").unwrap_or(host).to_owned();
        bare(&self.host) == bare(&other.host)
    }

    /// Returns whether an IP address that the host has may be connected to.
    ///
    /// # Errors
    /// When it is not public, and the user does not allow the host.
    pub(crate) fn may_connect(&self, address: IpAddr) -> Result<(), WebError> {
        match not_public(address).filter(|_| !self.is_allowed) {
            None => Ok(()),
            Some(purpose) => Err(WebError::Forbidden {
                host: self.host.clone(),
                reason: format!("its address {address} is for {purpose}"),
            }),
        }
    }
}

/// Names with a dot at their end are the same hosts.
fn plain(name: &str) -> &str {
    name.trim_end_matches('.')
}

fn local_name(name: &str) -> Option<String> {
    let is_local = LOCAL_NAMES.iter().any(|local| {
        let rest = name.strip_suffix(local);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    if is_local {
        return Some("the name is for the local network".to_owned());
    }
    // A name of one label is completed with the domain of this machine.
    (!name.contains('.')).then(|| "the name has no domain".to_owned())
}

fn shortened(text: &str) -> String {
    let clean = text.chars().filter(|it| !it.is_control());
    clean.take(SHOWN_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests;
