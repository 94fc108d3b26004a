//! Bodies that end at every offset: a clone of the decoder is ended behind each byte, which keeps
//! the test linear.

use super::{BodyDecoder, Payloads};
use crate::gemini::decode::GeminiPayloads;
use crate::openai_chat::decode::ChatPayloads;
use crate::{Bounds, Decoder, Target};
use rondo_types::{ErrorClass, ModelEvent, Origin};
use serde_json::Value;
use std::path::Path;

fn target(dialect: &str) -> Target {
    Target::new(Origin {
        dialect: dialect.to_owned(),
        provider: "recorded".to_owned(),
        model: "some-model".to_owned(),
    })
}

/// Returns the bodies of all recorded 200 responses of a dialect.
fn bodies(dialect: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/wire")
        .join(dialect);
    let mut bodies = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        if name.ends_with(".cassette.json") {
            let cassette: Value = serde_json::from_str(&text).unwrap();
            let exchanges = cassette["exchanges"].as_array().unwrap();
            let responses = exchanges.iter().map(|exchange| &exchange["response"]);
            let good = responses.filter(|response| response["status"] == 200);
            bodies.extend(good.map(|it| (name.clone(), it["body"].as_str().unwrap().to_owned())));
        } else if name.ends_with(".chunks.txt") {
            let lines = text.lines().map(|line| format!("data: {line}\n\n"));
            bodies.push((name, lines.collect()));
        } else if name.starts_with("fire__vertexai") {
            bodies.push((name, text));
        }
    }
    assert!(bodies.len() > 10, "the fixtures are missing");
    bodies
}

/// Leaves what may still come behind a finish reason: counts, and the reason once more.
fn essence(events: &[ModelEvent]) -> Vec<&ModelEvent> {
    let late =
        |event: &&ModelEvent| !matches!(event, ModelEvent::Usage(_) | ModelEvent::Finished { .. });
    events.iter().filter(late).collect()
}

fn any_finished_call(events: &[ModelEvent]) -> bool {
    let finished = |event: &ModelEvent| matches!(event, ModelEvent::ToolCallFinished { .. });
    events.iter().any(finished)
}

/// Ends `body` behind every byte and returns at how many offsets that was clean.
fn check<P: Payloads + Clone>(name: &str, body: &str, payloads: P) -> usize {
    let mut whole = Vec::new();
    let mut decoder = BodyDecoder::new(payloads.clone(), Bounds::default());
    decoder.push(body.as_bytes(), &mut whole).unwrap();
    decoder.finish(&mut whole).unwrap();

    let mut decoder = BodyDecoder::new(payloads, Bounds::default());
    let mut events = Vec::new();
    let mut clean = 0;
    for (offset, byte) in body.bytes().enumerate() {
        let mut ended = decoder.clone();
        let mut all = events.clone();
        match ended.finish(&mut all) {
            Ok(()) => {
                assert_eq!(essence(&all), essence(&whole), "{name} at {offset}");
                clean += 1;
            }
            Err(error) => {
                assert_eq!(
                    error.class,
                    ErrorClass::Network,
                    "{name} at {offset}: {error}"
                );
                assert!(error.retryable);
                assert!(!any_finished_call(&all), "{name} at {offset}");
            }
        }
        decoder.push(&[byte], &mut events).unwrap();
    }
    clean
}

#[test]
fn a_chat_body_cut_anywhere_finishes_no_call_and_loses_nothing_silently() {
    for (name, body) in bodies("openai-chat") {
        let payloads = ChatPayloads::new(&target("openai-chat"), Bounds::default());
        let clean = check(&name, &body, payloads);
        // Only where one of the few events behind the finish reason ends.
        assert!(clean <= 12, "{name}: {clean} clean ends");
    }
}

#[test]
fn a_gemini_body_cut_anywhere_finishes_no_call_and_loses_nothing_silently() {
    for (name, body) in bodies("gemini") {
        let payloads = GeminiPayloads::new(&target("gemini"), Bounds::default());
        let clean = check(&name, &body, payloads);
        // The last event may lack its line ends; nothing else may be missing.
        assert!(clean <= "\r\n\r\n".len(), "{name}: {clean} clean ends");
    }
}
