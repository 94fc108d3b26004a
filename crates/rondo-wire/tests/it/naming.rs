//! The provider's name of a response, and the model that answered.

use crate::support::{decode, recordings, sse};
use rondo_types::{ModelEvent, ResponseName};
use serde_json::Value;

/// Places of the id and the model in a payload of each dialect.
const PLACES: [(&str, &[&str], &str, &str); 4] = [
    ("openai-chat", &[""], "id", "model"),
    ("gemini", &[""], "responseId", "modelVersion"),
    ("openai-responses", &["/response", ""], "id", "model"),
    ("anthropic", &["/message", ""], "id", "model"),
];

fn payloads(body: &str) -> Vec<Value> {
    if let Ok(Value::Array(list)) = serde_json::from_str(body) {
        return list;
    }
    if let Ok(whole) = serde_json::from_str(body) {
        return vec![whole];
    }
    let data = body.lines().filter_map(|line| line.strip_prefix("data:"));
    data.filter_map(|payload| serde_json::from_str(payload).ok())
        .collect()
}

/// Returns the first text that is not empty at any of the places.
fn first(payloads: &[Value], places: &[&str], field: &str) -> Option<String> {
    let texts = payloads.iter().flat_map(|payload| {
        let objects = places.iter().filter_map(|place| payload.pointer(place));
        objects.filter_map(|object| object.get(field)?.as_str())
    });
    texts
        .into_iter()
        .find(|text| !text.is_empty())
        .map(str::to_owned)
}

#[test]
fn every_recorded_reply_tells_its_id_and_who_answered() {
    for (dialect, places, id, model) in PLACES {
        let mut named = 0;
        for recorded in recordings(dialect).iter().filter(|it| it.status == 200) {
            let body = String::from_utf8_lossy(&recorded.body);
            let payloads = payloads(&body);
            let expected = ResponseName {
                id: first(&payloads, places, id),
                model: first(&payloads, places, model),
            };
            let decoded = decode(dialect, &body);
            assert_eq!(decoded.reply.response, expected, "{}", recorded.name);
            named += usize::from(!expected.is_unknown());
        }
        assert!(named >= 8, "{dialect}: {named}");
    }
}

#[test]
fn a_name_is_told_once_and_the_first_that_is_one_counts() {
    let body = sse(&[
        r#"{"id":"","model":"","choices":[]}"#,
        r#"{"id":7,"model":null,"choices":[{"delta":{"content":"a"}}]}"#,
        r#"{"id":"8","model":"m-1","choices":[{"delta":{"content":"b"}}]}"#,
        r#"{"id":"9","model":"m-2","choices":[{"delta":{},"finish_reason":"stop"}]}"#,
    ]);
    let decoded = decode("openai-chat", &body);
    let named = |event: &&ModelEvent| matches!(event, ModelEvent::ResponseNamed(_));
    assert_eq!(decoded.events.iter().filter(named).count(), 2);
    let expected = ResponseName {
        id: Some("7".to_owned()),
        model: Some("m-1".to_owned()),
    };
    assert_eq!(decoded.reply.response, expected);
}

#[test]
fn a_name_past_its_bound_is_none() {
    for (bytes, is_told) in [(511, true), (512, true), (513, false)] {
        let id = "i".repeat(bytes);
        let body = sse(&[&format!(
            r#"{{"id":"{id}","choices":[{{"delta":{{"content":"a"}},"finish_reason":"stop"}}]}}"#
        )]);
        let told = decode("openai-chat", &body).reply.response.id;
        assert_eq!(told, is_told.then_some(id));
    }
}
