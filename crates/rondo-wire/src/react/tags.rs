//! Tags as models write them: any case, spaces, namespaces, attributes, a missing `>`.

/// The bound on one tag, in bytes: what may be held back while it is not known whether it is one.
pub(super) const TAG_BYTES_MAX: usize = 256;
/// Spaces that models put after `<` and `/`.
const SPACES_MAX: usize = 2;

/// Reading of the beginning of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TagMatch<T> {
    /// More text decides.
    More,
    /// Something else.
    No,
    /// This.
    Yes(T),
}

/// A tag at the beginning of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tag {
    /// In lower case, with `_` for `:`.
    pub(super) name: String,
    /// As it was written.
    pub(super) raw_name: String,
    pub(super) closing: bool,
    /// Set for a tag that closes itself.
    pub(super) empty: bool,
    pub(super) attributes: String,
    /// Its length in bytes.
    pub(super) len: usize,
}

/// Reads the tag that a text begins with.
///
/// `known` is asked whether a name is one to look for, or, with `false`, can become one.
pub(super) fn read_tag(text: &str, known: &dyn Fn(&str, bool) -> bool) -> TagMatch<Tag> {
    let Some(inner) = text.strip_prefix('<') else {
        return TagMatch::No;
    };
    let inner = spaces(inner);
    let (closing, inner) = match inner.strip_prefix('/') {
        Some(inner) => (true, spaces(inner)),
        None => (false, inner),
    };
    let Some(name_len) = inner.find(|c: char| !is_name(c)) else {
        let possible = text.len() <= TAG_BYTES_MAX && known(&normal(inner), false);
        return if possible {
            TagMatch::More
        } else {
            TagMatch::No
        };
    };
    let (raw_name, attributes) = inner.split_at(name_len);
    let name = normal(raw_name);
    if name.is_empty() || !known(&name, true) {
        return TagMatch::No;
    }
    let before = text.len() - attributes.len();
    let Some((attributes_len, end_len)) = end(attributes, closing) else {
        return TagMatch::More;
    };
    let attributes = attributes.get(..attributes_len).unwrap_or_default();
    TagMatch::Yes(Tag {
        name,
        raw_name: raw_name.to_owned(),
        closing,
        empty: attributes.ends_with('/'),
        attributes: attributes.to_owned(),
        len: before + attributes_len + end_len,
    })
}

/// Accepts every name.
pub(super) fn any_name(_: &str, _: bool) -> bool {
    true
}

/// Returns the value of an attribute `name`, in any quotes, or of the form `<tag=value>`.
pub(super) fn name_attribute(attributes: &str) -> Option<String> {
    let text = attributes.trim().trim_end_matches('/').trim_end();
    let value = match text.strip_prefix('=') {
        Some(value) => value,
        None => {
            let (_, after) = text.split_once("name")?;
            after.trim_start().strip_prefix('=')?
        }
    };
    let value = value.trim_start();
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
    let value = match quote {
        Some(quote) => value.get(1..)?.split(quote).next()?,
        None => value.split_whitespace().next()?,
    };
    (!value.is_empty()).then(|| value.to_owned())
}

/// Returns how long the attributes are, and the end of the tag behind them. A closing tag whose
/// `>` is missing ends with its line, any tag where the next one begins or where it is too long.
fn end(attributes: &str, closing: bool) -> Option<(usize, usize)> {
    let ends = |c: char| matches!(c, '>' | '<') || (closing && c == '\n');
    let window = attributes
        .char_indices()
        .take_while(|(at, _)| *at < TAG_BYTES_MAX);
    let found = window
        .into_iter()
        .find(|(_, c)| ends(*c))
        .map(|(at, c)| (at, usize::from(c == '>')));
    match found {
        Some(found) => Some(found),
        None if attributes.len() >= TAG_BYTES_MAX => Some((0, 0)),
        None => None,
    }
}

fn spaces(text: &str) -> &str {
    let trimmed = text.trim_start_matches(' ');
    if text.len() - trimmed.len() > SPACES_MAX {
        return text;
    }
    trimmed
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-' | '.')
}

fn normal(name: &str) -> String {
    name.to_ascii_lowercase().replace(':', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_of_a_tag_are_read() {
        let cases = [
            ("<tool_code>x", Some(11)),
            ("</Tool_Code >x", Some(13)),
            ("< / tool_code>x", Some(14)),
            ("<tool:code a='b'>x", Some(17)),
            ("<tool_code <name>", Some(11)),
            ("</tool_code\nx", Some(11)),
            ("<tool_codex>", None),
            ("<   tool_code>", None),
        ];
        let known = |name: &str, _: bool| name == "tool_code";
        for (text, len) in cases {
            let read = match read_tag(text, &known) {
                TagMatch::Yes(tag) => Some(tag.len),
                TagMatch::More | TagMatch::No => None,
            };
            assert_eq!(read, len, "{text}");
        }
    }

    #[test]
    fn names_are_read_from_attributes() {
        let cases = [
            (r#" name="a.b""#, Some("a.b")),
            (r" xmlns='x' name='a' /", Some("a")),
            ("=a", Some("a")),
            (" id='1'", None),
        ];
        for (attributes, name) in cases {
            assert_eq!(name_attribute(attributes).as_deref(), name, "{attributes}");
        }
    }
}
