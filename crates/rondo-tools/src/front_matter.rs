//! The YAML front matter of Markdown files, such as skills and agents.

use serde_json::{Map, Value};

/// The bound on the front matter, in bytes.
pub const FRONT_MATTER_BYTES_MAX: usize = 16 << 10;

/// The bound on the events of YAML, aliases counted as often as they are used.
const EVENTS_MAX: usize = 2_000;
/// The bound on aliases.
const ALIASES_MAX: usize = 50;
/// How deep lists and maps may be in each other.
const DEPTH_MAX: usize = 16;
/// The line before and after the front matter.
const FENCE: &str = "---";

/// A Markdown file with front matter, in its two parts.
#[derive(Debug, Clone, PartialEq)]
pub struct FrontMatter<'a> {
    fields: Map<String, Value>,
    /// The text behind the front matter.
    pub body: &'a str,
}

impl<'a> FrontMatter<'a> {
    /// Splits a file and reads its front matter.
    ///
    /// Many files in use are not valid YAML, since a description has a colon in it. If YAML refuses the front matter,
    /// each `key: value` of its unindented lines counts, with the rest of the line as text.
    ///
    /// # Errors
    /// When there is no front matter, or it is too long, or it has no fields.
    pub fn parse(text: &'a str) -> Result<Self, String> {
        let text = text.trim_start_matches('\u{feff}');
        let (yaml, body) = split(text)?;
        if yaml.len() > FRONT_MATTER_BYTES_MAX {
            return Err(format!(
                "its front matter is longer than {FRONT_MATTER_BYTES_MAX} bytes"
            ));
        }
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! {
                max_events: EVENTS_MAX,
                max_aliases: ALIASES_MAX,
                max_anchors: ALIASES_MAX,
                max_recorded_anchor_events: EVENTS_MAX,
                max_depth: DEPTH_MAX,
            },
        };
        let fields = serde_saphyr::from_str_with_options::<Map<String, Value>>(yaml, options);
        let fields = fields.unwrap_or_else(|_| plain_fields(yaml));
        if fields.is_empty() {
            return Err("its front matter has no `key: value`".to_owned());
        }
        Ok(Self { fields, body })
    }

    /// Returns a field that is text, a number or a truth value, as text without space around it; `None` if it is
    /// absent or empty.
    pub fn text(&self, key: &str) -> Option<String> {
        let text = scalar(self.fields.get(key)?)?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Returns a field as it is, such as a list; `None` if it is absent.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.fields.get(key)
    }

    /// Returns a switch; `None` if it is absent or says neither `true` nor `false`.
    pub fn switch(&self, key: &str) -> Option<bool> {
        self.text(key)?.to_ascii_lowercase().parse().ok()
    }
}

/// Returns the front matter and what follows it.
fn split(text: &str) -> Result<(&str, &str), String> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if first.trim_end() != FENCE {
        return Err(format!("it does not begin with the line `{FENCE}`"));
    }
    let begin = first.len();
    let mut end = begin;
    for line in lines {
        let after = end + line.len();
        if line.trim_end() == FENCE {
            let yaml = text.get(begin..end).unwrap_or_default();
            return Ok((yaml, text.get(after..).unwrap_or_default()));
        }
        end = after;
    }
    Err(format!("no line `{FENCE}` ends its front matter"))
}

fn plain_fields(yaml: &str) -> Map<String, Value> {
    let fields = yaml.lines().filter_map(|line| {
        let (key, value) = line.split_once(':')?;
        let is_key = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_');
        let is_plain = !key.is_empty() && key.chars().all(is_key);
        is_plain.then(|| {
            let value = Value::String(unquoted(value.trim()).to_owned());
            (key.to_owned(), value)
        })
    });
    fields.collect()
}

fn unquoted(text: &str) -> &str {
    ['"', '\'']
        .iter()
        .find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote))
        .unwrap_or(text)
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(switch) => Some(switch.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_body_are_told_apart() {
        let text = "\u{feff}---\r\nname: pdf\ndescription: >\n  Fills in\n  forms.\nmetadata:\n  version: 1.0\ndisable-model-invocation: true\n---\r\n# Body\n---\nrest\n";
        let read = FrontMatter::parse(text).unwrap();
        assert_eq!(read.text("name").as_deref(), Some("pdf"));
        assert_eq!(read.text("description").as_deref(), Some("Fills in forms."));
        assert_eq!(read.switch("disable-model-invocation"), Some(true));
        assert_eq!(read.text("metadata"), None);
        assert_eq!(read.body, "# Body\n---\nrest\n");
    }

    #[test]
    fn a_description_with_a_colon_needs_no_quotes() {
        let text = "---\nname: pdf\ndescription: Use it for: forms\nother: \"a: b\"\n---\n";
        let read = FrontMatter::parse(text).unwrap();
        assert_eq!(
            read.text("description").as_deref(),
            Some("Use it for: forms")
        );
        assert_eq!(read.text("other").as_deref(), Some("a: b"));
    }

    #[test]
    fn what_has_no_front_matter_says_so() {
        for (text, expected) in [
            ("", "it does not begin with the line `---`"),
            ("# Title\n---\n", "it does not begin with the line `---`"),
            ("---\nname: x\n", "no line `---` ends its front matter"),
            ("---\n---\nbody", "its front matter has no `key: value`"),
            (
                "---\n- a\n- b\n---\n",
                "its front matter has no `key: value`",
            ),
        ] {
            assert_eq!(FrontMatter::parse(text).unwrap_err(), expected, "{text:?}");
        }
    }

    #[test]
    fn the_bound_holds_to_the_byte() {
        let of = |bytes: usize| {
            let value = "x".repeat(bytes - "name: \n".len());
            FrontMatter::parse(&format!("---\nname: {value}\n---\n")).is_ok()
        };
        let max = FRONT_MATTER_BYTES_MAX;
        assert_eq!([of(max - 1), of(max), of(max + 1)], [true, true, false]);
    }

    #[test]
    fn aliases_that_multiply_are_refused() {
        let mut yaml = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let below = vec![format!("*a{}", level - 1); 10].join(", ");
            yaml.push_str(&format!("a{level}: &a{level} [{below}]\n"));
        }
        let text = format!("---\n{yaml}name: x\n---\n");
        let read = FrontMatter::parse(&text).unwrap();
        assert_eq!(read.text("name").as_deref(), Some("x"));
    }
}
