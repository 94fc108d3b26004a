//! Changes that a provider may make without notice: the order of fields, white space, and fields, events
//! and values of enumerations that are new. None of it changes what a reply says.

use crate::support::{decode_pieces, recordings, target};
use proptest::prelude::*;
use rondo_types::ModelEvent;
use rondo_wire::dialect_names;
use serde_json::{Map, Value, json};

/// Cases of each property; every case goes over all recordings of one dialect.
const CASES: u32 = 12;

/// Bodies above this are left to the tests that go over them once.
const BODY_BYTES_MAX: usize = 12_000;

/// Objects that go back to the provider as they came, so that a field added there is kept.
const KEPT: [&str; 8] = [
    "args",
    "parts",
    "tool_calls",
    "item",
    "output",
    "content_block",
    "reasoning_details",
    "input",
];

/// How a body is written again.
#[derive(Debug, Clone)]
struct Writing {
    /// A field that no protocol has.
    key: String,
    value: Value,
    /// Rotation of the fields of an object.
    turn: usize,
    /// White space between the tokens.
    pretty: bool,
    /// The name of an event that no protocol has, or of a role.
    name: String,
    /// Bytes of the pieces.
    piece: usize,
}

fn writing() -> impl Strategy<Value = Writing> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::hash_map("[a-z\"\\\\]{1,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    let words = ("zz_[a-z]{1,6}", "zz[a-z._]{1,10}");
    (words, value, 0usize..7, any::<bool>(), 1usize..90).prop_map(
        |((key, name), value, turn, pretty, piece)| Writing {
            key,
            value,
            turn,
            pretty,
            name,
            piece,
        },
    )
}

impl Writing {
    /// Writes a stream or a document again.
    fn rewrite(&self, body: &str) -> String {
        if !body.contains("data:") {
            let value: Value = serde_json::from_str(body).unwrap();
            return self.json(value);
        }
        let mut out = String::from(": comment\n\n");
        let mut event = "";
        for line in body.lines() {
            if let Some(name) = line.strip_prefix("event:") {
                event = name.trim();
            }
            let Some(payload) = line.strip_prefix("data:") else {
                continue;
            };
            out.push_str(&self.unknown_event());
            if !event.is_empty() {
                out.push_str(&format!("event: {event}\n"));
            }
            let payload = payload.trim();
            let payload = match serde_json::from_str(payload) {
                Ok(value) => self.json(value),
                Err(_) => payload.to_owned(),
            };
            for line in payload.lines() {
                out.push_str(&format!("data: {line}\n"));
            }
            out.push_str("id: 7\nretry: 3\nzz: 1\n\n");
        }
        out
    }

    /// An event of a kind that is new, and one that says nothing.
    fn unknown_event(&self) -> String {
        let mut fields = json!({"type": self.name});
        fields[&self.key] = self.value.clone();
        format!("event: {}\ndata: {fields}\n\ndata:\n\n", self.name)
    }

    fn json(&self, value: Value) -> String {
        let value = self.value_anew(value);
        if self.pretty {
            serde_json::to_string_pretty(&value).unwrap()
        } else {
            value.to_string()
        }
    }

    fn value_anew(&self, value: Value) -> Value {
        match value {
            Value::Object(fields) => Value::Object(self.fields_anew(fields)),
            Value::Array(list) => list.into_iter().map(|it| self.value_anew(it)).collect(),
            value => value,
        }
    }

    fn fields_anew(&self, fields: Map<String, Value>) -> Map<String, Value> {
        let mut anew: Vec<(String, Value)> = fields
            .into_iter()
            .map(|(key, value)| match value {
                value if KEPT.contains(&key.as_str()) => (key, value),
                Value::String(role) if key == "role" && role != "user" => {
                    (key, Value::from(self.name.as_str()))
                }
                value => (key, self.value_anew(value)),
            })
            .collect();
        anew.push((self.key.clone(), self.value.clone()));
        let turn = self.turn % anew.len();
        anew.rotate_left(turn);
        anew.into_iter().collect()
    }
}

/// Content of events: JSON inside of them is compared as JSON, since white space and order within
/// are the provider's.
fn said(events: &[ModelEvent]) -> Vec<Value> {
    let events = events
        .iter()
        .map(|event| serde_json::to_value(event).unwrap());
    events.map(parsed).collect()
}

fn parsed(value: Value) -> Value {
    match value {
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => inner,
            _ => Value::String(text),
        },
        Value::Array(list) => list.into_iter().map(parsed).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter();
            Value::Object(fields.map(|(key, value)| (key, parsed(value))).collect())
        }
        value => value,
    }
}

fn check(name: &str, below: &str, writing: &Writing) -> Result<(), TestCaseError> {
    for recorded in recordings(below) {
        if recorded.status != 200 || recorded.body.len() > BODY_BYTES_MAX {
            continue;
        }
        let target = target(name);
        let plain = decode_pieces(&target, &[&recorded.body]);
        let body = writing.rewrite(&String::from_utf8_lossy(&recorded.body));
        let pieces: Vec<&[u8]> = body.as_bytes().chunks(writing.piece).collect();
        let anew = decode_pieces(&target, &pieces);
        prop_assert_eq!(&anew.error, &plain.error, "{}: {}", recorded.name, body);
        prop_assert_eq!(said(&anew.events), said(&plain.events), "{}", recorded.name);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn chat_replies_say_the_same_in_another_writing(writing in writing()) {
        check("openai-chat", "openai-chat", &writing)?;
    }

    #[test]
    fn gemini_replies_say_the_same_in_another_writing(writing in writing()) {
        check("gemini", "gemini", &writing)?;
    }

    #[test]
    fn responses_say_the_same_in_another_writing(writing in writing()) {
        check("openai-responses", "openai-responses", &writing)?;
    }

    #[test]
    fn anthropic_messages_say_the_same_in_another_writing(writing in writing()) {
        check("anthropic", "anthropic", &writing)?;
    }

    #[test]
    fn text_calls_say_the_same_in_another_writing(writing in writing()) {
        for below in dialect_names() {
            let name = rondo_wire::react_over(below).unwrap();
            check(name, below, &writing)?;
        }
    }

    #[test]
    fn a_reason_that_is_new_ends_a_reply_and_its_text_stays(reason in "zz_[a-zA-Z_]{1,20}") {
        for name in ["openai-chat", "gemini", "anthropic"] {
            for recorded in recordings(name) {
                if recorded.status != 200 || recorded.body.len() > BODY_BYTES_MAX {
                    continue;
                }
                let body = String::from_utf8_lossy(&recorded.body).into_owned();
                let plain = decode_pieces(&target(name), &[body.as_bytes()]);
                let anew = with_reason(&body, &reason);
                let anew = decode_pieces(&target(name), &[anew.as_bytes()]);
                prop_assert_eq!(&anew.error, &plain.error, "{}", &recorded.name);
                prop_assert_eq!(anew.candidate().text(), plain.candidate().text());
                let (reasons, known) = (anew.candidate(), plain.candidate());
                let reasons = reasons.raw_finish_reasons;
                prop_assert_eq!(reasons.len(), known.raw_finish_reasons.len());
                prop_assert!(reasons.iter().all(|it| *it == reason));
            }
        }
    }
}

/// Puts another reason wherever there is one.
fn with_reason(body: &str, reason: &str) -> String {
    let mut body = body.to_owned();
    for field in ["finish_reason", "finishReason", "stop_reason"] {
        for colon in [":", ": "] {
            let name = format!("\"{field}\"{colon}\"");
            let mut pieces = body.split(&name).map(str::to_owned);
            let first = pieces.next().unwrap_or_default();
            let rest = pieces.map(|piece| match piece.split_once('"') {
                Some((_, behind)) => format!("{name}{reason}\"{behind}"),
                None => format!("{name}{piece}"),
            });
            body = first + &rest.collect::<String>();
        }
    }
    body
}
