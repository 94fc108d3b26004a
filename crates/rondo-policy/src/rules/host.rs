//! The host of the page that a call fetches, as rules name it.

use serde_json::Value;

/// The argument of tools that read the web which names the page.
const URL_ARGUMENT: &str = "url";

/// Host of the page that a call names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Page {
    /// The call names none.
    None,
    /// A known host.
    At(String),
    /// The host is not known without the rules of browsers.
    Hidden,
}

impl Page {
    /// Returns the page of a call. A host counts only if it is written as all readers of addresses read it: in
    /// letters, digits, dots and hyphens, behind `http://` or `https://`, and is no number.
    pub(super) fn of(arguments: &Value) -> Self {
        let Some(url) = arguments.get(URL_ARGUMENT).and_then(Value::as_str) else {
            return Self::None;
        };
        plain_host(url).map_or(Self::Hidden, Self::At)
    }
}

fn plain_host(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    if !["http", "https"]
        .iter()
        .any(|it| scheme.eq_ignore_ascii_case(it))
    {
        return None;
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = rest.get(..end)?;
    let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || it == b'-' || it == b'.';
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let last = host.rsplit('.').next()?;
    let is_host = !last.is_empty()
        && host.bytes().all(is_plain)
        && port.bytes().all(|it| it.is_ascii_digit())
        // A name that ends in a number is one of the many forms of an address.
        && !last.starts_with(|it: char| it.is_ascii_digit());
    is_host.then_some(host)
}

/// Returns whether a pattern names a host: `docs.rs` that one, `*.docs.rs` those below it.
pub(super) fn fits(pattern: &str, host: &str) -> bool {
    let pattern = pattern.trim_end_matches('.').to_ascii_lowercase();
    match pattern.strip_prefix("*.") {
        Some(above) => {
            let below = host.strip_suffix(above);
            below.is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
        }
        None => host == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_plain_host_is_known() {
        for (url, expected) in [
            ("https://docs.rs/serde", Some("docs.rs")),
            ("HTTPS://Docs.RS.:443?x", Some("docs.rs")),
            ("http://a.b.example", Some("a.b.example")),
            ("https://docs.rs@evil.example/", None),
            ("https://docs.rs\\@evil.example/", None),
            ("https://docs.rs\\.evil.example/", None),
            ("https://docs.rs%2eevil.example/", None),
            ("https://docs.rs\t.evil.example/", None),
            (" https://docs.rs/", None),
            ("https:docs.rs/", None),
            ("https:///docs.rs/", None),
            ("https://docs\u{3002}rs/", None),
            ("http://2130706433/", None),
            ("http://127.0.0.1/", None),
            ("http://a.0x7f/", None),
            ("http://[::1]/", None),
            ("ftp://docs.rs/", None),
            ("https://docs.rs:80:90/", None),
            ("", None),
        ] {
            let page = Page::of(&json!({ "url": url }));
            let expected = expected.map_or(Page::Hidden, |it| Page::At(it.to_owned()));
            assert_eq!(page, expected, "{url:?}");
        }
        assert_eq!(Page::of(&json!({"query": "x"})), Page::None);
    }

    #[test]
    fn patterns_count_by_label() {
        assert!(fits("docs.rs", "docs.rs") && fits("*.docs.rs", "a.docs.rs"));
        assert!(fits("*.DOCS.rs.", "b.a.docs.rs"));
        for (pattern, host) in [
            ("docs.rs", "a.docs.rs"),
            ("*.docs.rs", "docs.rs"),
            ("*.docs.rs", "evildocs.rs"),
            ("docs.rs", "docs.rs.evil.example"),
            ("*.rs", ".rs"),
        ] {
            assert!(!fits(pattern, host), "{pattern} {host}");
        }
    }
}
