//! Parses, normalizes and resolves URLs of requests and redirects.

use hyper::http::Uri;
use hyper::http::uri::{Authority, Parts, PathAndQuery, Scheme};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// Characters that must be encoded in the path or query of a request line. `%` is not one: the input may already
/// be encoded.
const ENCODED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// An `http` or `https` address without credentials and fragment, and the credentials apart.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    pub(crate) uri: Uri,
    /// The user's name and password, percent-encoded, as they were before the host.
    pub(crate) user: Option<(String, String)>,
}

impl Address {
    /// Reads an address. `None` when it is not one of `http` or `https` with a host in ASCII.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.split('#').next().unwrap_or_default();
        let (scheme, rest) = text.split_once("://")?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::HTTP,
            "https" => Scheme::HTTPS,
            _ => return None,
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        let authority: Authority = host.to_ascii_lowercase().parse().ok()?;
        if authority.host().is_empty() || has_broken_port(&authority) {
            return None;
        }
        Some(Self {
            uri: join(scheme, authority, path)?,
            user: user.map(|user| {
                let (name, password) = user.split_once(':').unwrap_or((user, ""));
                (name.to_owned(), password.to_owned())
            }),
        })
    }
}

/// Puts an address together; `path` may have a query, begins with `/` or `?`, or is empty.
pub(crate) fn join(scheme: Scheme, authority: Authority, path: &str) -> Option<Uri> {
    let slash = if path.starts_with('/') { "" } else { "/" };
    let path = format!("{slash}{}", utf8_percent_encode(path, ENCODED));
    let mut parts = Parts::default();
    parts.scheme = Some(scheme);
    parts.authority = Some(authority);
    parts.path_and_query = Some(PathAndQuery::try_from(path).ok()?);
    Uri::from_parts(parts).ok()
}

/// Returns the address of a reference, such as that of a redirect, at `base` (RFC 3986, 5.2), but for
/// dots in paths, which the server takes out.
pub(crate) fn resolve(base: &Uri, reference: &str) -> Option<Uri> {
    let reference = reference.trim();
    if let Some(rest) = reference.strip_prefix("//") {
        return Some(Address::parse(&format!("{}://{rest}", base.scheme_str()?))?.uri);
    }
    if has_scheme(reference) {
        return Some(Address::parse(reference)?.uri);
    }
    let reference = reference.split('#').next().unwrap_or_default();
    let path = match reference.as_bytes().first() {
        None => base.path_and_query()?.to_string(),
        Some(b'/') => reference.to_owned(),
        Some(b'?') => format!("{}{reference}", base.path()),
        Some(_) => {
            let directory = base.path().rfind('/').map_or(0, |slash| slash + 1);
            format!("{}{reference}", base.path().get(..directory)?)
        }
    };
    join(base.scheme()?.clone(), base.authority()?.clone(), &path)
}

/// Returns scheme, host and port, without a port that the scheme implies.
pub(crate) fn origin(uri: &Uri) -> Option<String> {
    let scheme = uri.scheme_str()?;
    let host = uri.host()?;
    Some(
        match uri.port_u16().filter(|port| *port != usual_port(uri)) {
            Some(port) => format!("{scheme}://{host}:{port}"),
            None => format!("{scheme}://{host}"),
        },
    )
}

/// Returns the port that goes with the scheme.
pub(crate) fn usual_port(uri: &Uri) -> u16 {
    if uri.scheme() == Some(&Scheme::HTTPS) {
        443
    } else {
        80
    }
}

/// `http` reads ports when they are asked for, and takes one that is none for no port.
fn has_broken_port(authority: &Authority) -> bool {
    let port = authority.as_str().strip_prefix(authority.host());
    port.is_none_or(|port| !port.is_empty() && authority.port_u16().is_none())
}

fn has_scheme(reference: &str) -> bool {
    let scheme = reference.split([':', '/', '?', '#']).next();
    scheme.is_some_and(|scheme| {
        !scheme.is_empty() && reference.as_bytes().get(scheme.len()) == Some(&b':')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<String> {
        Address::parse(text).map(|address| address.uri.to_string())
    }

    #[test]
    fn an_address_is_brought_into_the_form_that_is_sent() {
        for (text, expected) in [
            ("http://h", "http://h/"),
            (
                "HTTPS://Host.Example:8443/V1?a=b c#f",
                "https://host.example:8443/V1?a=b%20c",
            ),
            ("http://h?key=k", "http://h/?key=k"),
            ("http://[::1]:1/v1", "http://[::1]:1/v1"),
            ("https://h/mod\u{e8}le/%20x", "https://h/mod%C3%A8le/%20x"),
        ] {
            assert_eq!(read(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "h:80",
            "ftp://h/",
            "unix:/x",
            "http://",
            "/v1",
            "http:///v1",
            "http://h:x/",
            "http://h:99999/",
            "http://a b/",
            "http://m\u{fc}nchen.example/",
            "http://@/",
            "http://:80/",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn credentials_are_kept_apart() {
        let address = Address::parse("https://u:p%40w@h/v1").unwrap();
        assert_eq!(address.uri, "https://h/v1");
        assert_eq!(address.user, Some(("u".to_owned(), "p%40w".to_owned())));
        let address = Address::parse("https://u@h").unwrap();
        assert_eq!(address.user, Some(("u".to_owned(), String::new())));
    }

    #[test]
    fn a_redirect_is_read_from_where_it_stands() {
        let base: Uri = "https://h:1/a/b?c=d".parse().unwrap();
        for (reference, expected) in [
            ("http://Other/x", Some("http://other/x")),
            ("//other/x", Some("https://other/x")),
            ("/x?y", Some("https://h:1/x?y")),
            ("x", Some("https://h:1/a/x")),
            ("x/y:z", Some("https://h:1/a/x/y:z")),
            ("?e", Some("https://h:1/a/b?e")),
            ("#f", Some("https://h:1/a/b?c=d")),
            ("mailto:x", None),
            ("ftp://h/", None),
        ] {
            let resolved = resolve(&base, reference).map(|uri| uri.to_string());
            assert_eq!(resolved.as_deref(), expected, "{reference}");
        }
    }

    #[test]
    fn an_origin_names_a_port_where_it_is_not_the_usual_one() {
        for (text, expected) in [
            ("http://h:80/x", "http://h"),
            ("https://h:443/x", "https://h"),
            ("https://h:80/x", "https://h:80"),
            ("http://[::1]:8080", "http://[::1]:8080"),
        ] {
            let uri = Address::parse(text).unwrap().uri;
            assert_eq!(origin(&uri).as_deref(), Some(expected));
        }
    }
}
