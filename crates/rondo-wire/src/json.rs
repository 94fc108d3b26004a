//! Borrowed JSON in both directions.
//!
//! Reading is tolerant: a value of an unexpected type counts as absent, since servers that call
//! themselves compatible differ in exactly such things. Writing keeps raw values byte for byte,
//! which a `serde_json::Value` tree would not.

use crate::halves::stand_in;
use serde::de::{
    Deserialize, DeserializeOwned, Deserializer, Error, MapAccess, SeqAccess, Visitor,
};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// A string field that may hold anything; numbers are read as their text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

/// A list without what was null in it.
struct Present<T>(Vec<T>);

/// A count that may be missing, null, negative or fractional.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) u64);

/// The fields of an object in their order, values raw.
#[derive(Debug, Clone, Default)]
pub(crate) struct RawObject<'a>(pub(crate) Vec<(Cow<'a, str>, &'a RawValue)>);

/// JSON to write, borrowing what it can.
#[derive(Debug)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    Int(u64),
    Float(f64),
    Str(Cow<'a, str>),
    Raw(&'a RawValue),
    Value(&'a Value),
    List(Vec<Json<'a>>),
    Object(Fields<'a>),
}

/// The fields of an object to write, in order.
pub(crate) type Fields<'a> = Vec<(Cow<'a, str>, Json<'a>)>;

impl Count {
    /// Returns the count as an index, if it can be one.
    pub(crate) fn index(self) -> Option<u32> {
        u32::try_from(self.0).ok()
    }
}

impl Text<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns the text of a field, if there is one and it is not empty.
pub(crate) fn nonempty<'t>(text: Option<&'t Text<'_>>) -> Option<&'t str> {
    text.map(|text| text.0.as_ref())
        .filter(|text| !text.is_empty())
}

impl<'a> Json<'a> {
    pub(crate) fn str(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Str(text.into())
    }

    pub(crate) fn object<const N: usize>(fields: [(&'a str, Json<'a>); N]) -> Self {
        Self::Object(
            fields
                .into_iter()
                .map(|(key, value)| (Cow::Borrowed(key), value))
                .collect(),
        )
    }

    /// Writes it as JSON text.
    pub(crate) fn write_to(&self, out: &mut Vec<u8>) {
        // Keys are strings, numbers are checked and memory takes all, so there is no way to fail; a
        // body that is cut off would be refused by any server.
        let _ = serde_json::to_writer(out, self);
    }
}

/// Sets a field, replacing an earlier one of that name.
pub(crate) fn set<'a>(fields: &mut Fields<'a>, key: impl Into<Cow<'a, str>>, value: Json<'a>) {
    let key = key.into();
    match fields.iter_mut().find(|(have, _)| *have == key) {
        Some((_, slot)) => *slot = value,
        None => fields.push((key, value)),
    }
}

/// Merges `extra` into `fields`: objects field by field, lists behind what is in ours, anything else
/// replaces what was there.
///
/// Recursion is as deep as objects overlap, and only this crate's own objects overlap.
pub(crate) fn merge<'a>(fields: &mut Fields<'a>, extra: &'a Map<String, Value>) {
    for (key, value) in extra {
        let slot = fields.iter_mut().find(|(have, _)| have == key);
        match (slot, value) {
            (Some((_, Json::Object(inner))), Value::Object(more)) => merge(inner, more),
            (Some((_, Json::List(inner))), Value::Array(more)) => {
                inner.extend(more.iter().map(Json::Value));
            }
            (Some((_, slot)), value) => *slot = Json::Value(value),
            (None, value) => fields.push((Cow::Borrowed(key), Json::Value(value))),
        }
    }
}

/// Returns the text of a field that holds JSON as a string; some servers send the JSON itself.
pub(crate) fn json_text(raw: Option<&RawValue>) -> Cow<'_, str> {
    match raw.map(RawValue::get) {
        None | Some("null") => Cow::Borrowed(""),
        Some(raw) if raw.starts_with('"') => {
            let text: Option<Text<'_>> = serde_json::from_str(raw).ok();
            text.unwrap_or_default().0
        }
        Some(raw) => Cow::Borrowed(raw),
    }
}

/// Reads JSON text as one raw value, if it is JSON.
pub(crate) fn raw(text: &str) -> Option<&RawValue> {
    serde_json::from_str(text).ok()
}

/// Reads JSON text as an object of raw values, if it is one.
pub(crate) fn raw_object(text: &str) -> Option<RawObject<'_>> {
    serde_json::from_str(text).ok()
}

/// Reads JSON text as an object, kept raw, if it is one.
pub(crate) fn raw_if_object(text: &str) -> Option<&RawValue> {
    raw(text).filter(|raw| raw.get().starts_with('{'))
}

/// Elements of one list that are read into structs of their own: a list of nothings would take
/// many times its bytes.
const LIST_LEN_MAX: usize = 4096;

/// Reads a list and leaves out what is null in it.
pub(crate) fn present<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let list: Option<Present<T>> = Deserialize::deserialize(deserializer)?;
    Ok(list.map(|list| list.0))
}

/// Reads a field whose value counts as absent when it is not an object.
pub(crate) fn object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let raw: Option<&RawValue> = Deserialize::deserialize(deserializer)?;
    let object = raw.filter(|raw| raw.get().starts_with('{'));
    let object = object.map(|raw| serde_json::from_str(raw.get()));
    object.transpose().map_err(D::Error::custom)
}

/// Reads a field whose value counts as absent when it has an unexpected type.
pub(crate) fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let raw: Option<&RawValue> = Deserialize::deserialize(deserializer)?;
    Ok(raw.and_then(|raw| serde_json::from_str(raw.get()).ok()))
}

/// Replaces escaped halves of surrogate pairs by the characters that [stand for them](crate::halves), if there are any.
/// Servers that cut strings by UTF-16 units send them, and no string here can hold them.
pub(crate) fn mend_surrogates(json: &str) -> Option<String> {
    let bytes = json.as_bytes();
    let half = |at: usize| matches!(bytes.get(at + 1..at + 3), Some(b"ud" | b"uD"));
    if !memchr::memchr_iter(b'\\', bytes).any(half) {
        return None;
    }
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some((before, escape)) = rest.split_once('\\') {
        out.push_str(before);
        let low = escape.get(5..).and_then(|more| more.strip_prefix('\\'));
        let (half, len) = match (code_unit(escape), low.and_then(code_unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (None, 11),
            (Some(unit @ 0xD800..=0xDFFF), _) => (Some(unit), 5),
            _ => (None, escape.chars().next().map_or(0, char::len_utf8)),
        };
        let (escape, tail) = escape.split_at(len);
        if let Some(unit) = half {
            out.push(stand_in(unit));
        } else {
            out.push('\\');
            out.push_str(escape);
        }
        rest = tail;
    }
    out.push_str(rest);
    Some(out)
}

/// Reads the `uXXXX` of an escape.
fn code_unit(escape: &str) -> Option<u16> {
    u16::from_str_radix(escape.strip_prefix('u')?.get(..4)?, 16).ok()
}

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Int(value) => serializer.serialize_u64(*value),
            Self::Float(value) => serializer.serialize_f64(*value),
            Self::Str(text) => serializer.serialize_str(text),
            Self::Raw(raw) => raw.serialize(serializer),
            Self::Value(value) => value.serialize(serializer),
            Self::List(list) => list.serialize(serializer),
            Self::Object(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (key, value) in fields {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw: &'de RawValue = Deserialize::deserialize(deserializer)?;
        let raw = raw.get();
        let text = match raw.as_bytes() {
            [b'"', text @ .., b'"'] if memchr::memchr(b'\\', text).is_none() => {
                Cow::Borrowed(raw.trim_matches('"'))
            }
            [b'"', ..] => serde_json::from_str(raw)
                .map(Cow::Owned)
                .map_err(D::Error::custom)?,
            [b'-' | b'0'..=b'9', ..] => Cow::Borrowed(raw),
            _ => Cow::Borrowed(""),
        };
        Ok(Self(text))
    }
}

impl<'de> Deserialize<'de> for Count {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float cast saturates, and a wrong count is no reason to fail"
    )]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Text(text) = Text::deserialize(deserializer)?;
        let fraction = || text.parse().ok().filter(|it: &f64| it.is_finite());
        let count = text.parse();
        Ok(Self(
            count.unwrap_or_else(|_| fraction().unwrap_or(0.0) as u64),
        ))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawObject<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RawObjectVisitor)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Present<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list = deserializer.deserialize_seq(PresentVisitor(PhantomData))?;
        Ok(Self(list))
    }
}

struct PresentVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for PresentVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = seq.next_element::<Option<T>>()? {
            if list.len() >= LIST_LEN_MAX {
                return Err(A::Error::custom(format_args!(
                    "a list has more than {LIST_LEN_MAX} elements"
                )));
            }
            if list.is_empty() {
                // Most lists in a reply have one element.
                list.reserve_exact(1);
            }
            list.extend(element);
        }
        Ok(list)
    }
}

struct RawObjectVisitor;

impl<'de> Visitor<'de> for RawObjectVisitor {
    type Value = RawObject<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(Text(key)) = map.next_key()? {
            fields.push((key, map.next_value()?));
        }
        Ok(RawObject(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_read_from_whatever_is_a_number() {
        let counts = [
            ("7", 7),
            ("\"7\"", 7),
            ("7.9", 7),
            ("-7", 0),
            ("18446744073709551616", u64::MAX),
            ("1e999", 0),
            ("\"inf\"", 0),
            ("null", 0),
            ("true", 0),
            ("[7]", 0),
            ("{\"a\": 7}", 0),
        ];
        for (json, expected) in counts {
            let Count(count) = serde_json::from_str(json).unwrap();
            assert_eq!(count, expected, "{json}");
        }
    }

    #[test]
    fn a_text_is_read_from_a_string_or_a_number_and_borrowed_if_nothing_is_escaped() {
        let texts = [
            ("\"a\"", "a", true),
            ("\"\"", "", true),
            (r#""\"a\"\n""#, "\"a\"\n", false),
            ("1.5", "1.5", true),
            ("null", "", true),
            ("false", "", true),
            ("[\"a\"]", "", true),
            ("{\"a\": \"b\"}", "", true),
        ];
        for (json, expected, is_borrowed) in texts {
            let Text(text) = serde_json::from_str(json).unwrap();
            assert_eq!(text, expected, "{json}");
            assert_eq!(matches!(text, Cow::Borrowed(_)), is_borrowed, "{json}");
        }
        for json in ["\"a", "\"\\x\"", "\"\\ud800\""] {
            assert!(serde_json::from_str::<Text<'_>>(json).is_err(), "{json}");
        }
    }
}
