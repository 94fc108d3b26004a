//! Recorded bodies that are cut, or end, at every offset. A clone of the decoder goes its own way
//! behind each byte, which keeps the tests linear.

use super::BodyDecoder;
use crate::anthropic::decode::AnthropicPayloadDecoder;
use crate::gemini::decode::GeminiPayloadDecoder;
use crate::openai_chat::decode::ChatPayloadDecoder;
use crate::openai_responses::decode::ResponsesPayloadDecoder;
use crate::react::decode::ReactDecoder;
use crate::{Bounds, Decoder, Target};
use rondo_types::{ErrorClass, ModelEvent, Origin};
use serde_json::Value;
use std::fmt::Debug;
use std::path::Path;

/// Bytes that a clone reads at once: about an event.
const PIECE_BYTES: usize = 200;

/// A decoder that can be forked and compared.
trait Fork: Decoder + Clone + PartialEq + Debug {}

impl<D: Decoder + Clone + PartialEq + Debug> Fork for D {}

fn target(dialect: &str) -> Target {
    Target::new(Origin {
        dialect: dialect.to_owned(),
        provider: "recorded".to_owned(),
        model: "some-model".to_owned(),
    })
}

fn chat() -> BodyDecoder<ChatPayloadDecoder> {
    let payloads = ChatPayloadDecoder::new(&target("openai-chat"), Bounds::default());
    BodyDecoder::new(payloads, Bounds::default())
}

fn gemini() -> BodyDecoder<GeminiPayloadDecoder> {
    let payloads = GeminiPayloadDecoder::new(&target("gemini"), Bounds::default());
    BodyDecoder::new(payloads, Bounds::default())
}

fn responses() -> BodyDecoder<ResponsesPayloadDecoder> {
    let payloads = ResponsesPayloadDecoder::new(&target("openai-responses"), Bounds::default());
    BodyDecoder::new(payloads, Bounds::default())
}

fn anthropic() -> BodyDecoder<AnthropicPayloadDecoder> {
    let payloads = AnthropicPayloadDecoder::new(&target("anthropic"), Bounds::default());
    BodyDecoder::new(payloads, Bounds::default())
}

fn react() -> ReactDecoder<BodyDecoder<ChatPayloadDecoder>> {
    ReactDecoder::new(chat(), &target("react"), Bounds::default())
}

/// Returns the bodies of all recorded 200 responses of a dialect.
fn bodies(dialect: &str) -> Vec<(String, String)> {
    let mut bodies = Vec::new();
    for (name, text) in files(dialect) {
        if name.ends_with(".cassette.json") {
            let cassette: Value = serde_json::from_str(&text).unwrap();
            let exchanges = cassette["exchanges"].as_array().unwrap();
            let responses = exchanges.iter().map(|exchange| &exchange["response"]);
            let good = responses.filter(|response| response["status"] == 200);
            bodies.extend(good.map(|it| (name.clone(), it["body"].as_str().unwrap().to_owned())));
        } else if name.ends_with(".chunks.txt") {
            let lines = text.lines().filter(|line| !line.is_empty());
            bodies.push((
                name,
                lines.map(|line| format!("data: {line}\n\n")).collect(),
            ));
        } else if name.ends_with(".txt") || name.starts_with("fire__vertexai") {
            bodies.push((name, text));
        }
    }
    assert!(bodies.len() >= 8, "the fixtures are missing");
    bodies
}

/// Returns the conversations with calls in their text.
fn conversations() -> Vec<(String, String)> {
    let files = files("text-xml").into_iter();
    files
        .filter(|(name, _)| name.ends_with(".json"))
        .map(|(name, text)| {
            let conversation: Value = serde_json::from_str(&text).unwrap();
            let chunks = conversation["generate_stream"].as_array().unwrap().iter();
            let lines =
                chunks.map(|chunk| format!("data: {}\n\n", chunk["data"].as_str().unwrap()));
            (name, lines.collect())
        })
        .collect()
}

fn files(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/wire")
        .join(folder);
    let entries = std::fs::read_dir(folder).unwrap();
    entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .collect()
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

/// Ends `body` behind every byte and returns at how many offsets that was clean; elsewhere it must be an error of the
/// class `cut`, after which the request may be sent again.
fn ends(name: &str, body: &str, decoder: impl Fork, cut: ErrorClass) -> usize {
    let mut whole = Vec::new();
    let mut at_once = decoder.clone();
    at_once.push(body.as_bytes(), &mut whole).unwrap();
    at_once.finish(&mut whole).unwrap();

    let mut decoder = decoder;
    let mut events = Vec::new();
    let mut clean = 0;
    for (offset, byte) in body.bytes().enumerate() {
        let mut last = Vec::new();
        match decoder.clone().finish(&mut last) {
            Ok(()) => {
                let all = [events.as_slice(), &last].concat();
                assert_eq!(essence(&all), essence(&whole), "{name} at {offset}");
                clean += 1;
            }
            Err(error) => {
                let class = error.class;
                assert_eq!(class, cut, "{name} at {offset}: {error}");
                assert!(error.retryable);
                assert!(!any_finished_call(&last), "{name} at {offset}");
            }
        }
        decoder.push(&[byte], &mut events).unwrap();
        assert!(!any_finished_call(
            &events[events.len().saturating_sub(9)..]
        ));
    }
    clean
}

/// Cuts `body` at every offset: what a clone reads on from there in one piece must be what is read
/// byte by byte, and leave the decoder in the same state.
fn cuts(name: &str, body: &str, decoder: impl Fork) {
    let (mut behind, mut ahead) = (decoder.clone(), decoder);
    let (mut seen, mut events) = (Vec::new(), Vec::new());
    let bytes = body.as_bytes();
    let mut end = 0;
    for (offset, byte) in bytes.iter().enumerate() {
        while end < bytes.len().min(offset + PIECE_BYTES) {
            ahead.push(&bytes[end..=end], &mut events).unwrap();
            end += 1;
        }
        let mut fork = behind.clone();
        let mut read = Vec::new();
        fork.push(&bytes[offset..end], &mut read).unwrap();
        assert_eq!(read, events[seen.len()..], "{name} cut at {offset}");
        assert!(fork == ahead, "{name} cut at {offset}: {fork:?} {ahead:?}");
        behind.push(&[*byte], &mut seen).unwrap();
    }
}

#[test]
fn chat_bodies_are_read_alike_wherever_they_are_cut() {
    for (name, body) in bodies("openai-chat") {
        cuts(&name, &body, chat());
    }
}

#[test]
fn gemini_bodies_are_read_alike_wherever_they_are_cut() {
    for (name, body) in bodies("gemini") {
        cuts(&name, &body, gemini());
    }
}

#[test]
fn responses_bodies_are_read_alike_wherever_they_are_cut() {
    for (name, body) in bodies("openai-responses") {
        cuts(&name, &body, responses());
    }
}

#[test]
fn anthropic_bodies_are_read_alike_wherever_they_are_cut() {
    for (name, body) in bodies("anthropic") {
        cuts(&name, &body, anthropic());
    }
}

#[test]
fn text_calls_are_read_alike_wherever_they_are_cut() {
    for (name, body) in conversations().into_iter().chain(bodies("openai-chat")) {
        cuts(&name, &body, react());
    }
}

#[test]
fn a_chat_body_cut_anywhere_finishes_no_call_and_loses_nothing_silently() {
    for (name, body) in bodies("openai-chat") {
        let clean = ends(&name, &body, chat(), ErrorClass::Network);
        // Only where one of the few events behind the finish reason ends.
        assert!(clean <= 12, "{name}: {clean} clean ends");
    }
}

#[test]
fn a_gemini_body_cut_anywhere_finishes_no_call_and_loses_nothing_silently() {
    for (name, body) in bodies("gemini") {
        let clean = ends(&name, &body, gemini(), ErrorClass::Protocol);
        // The last event may lack its line ends; nothing else may be missing.
        assert!(clean <= "\r\n\r\n".len(), "{name}: {clean} clean ends");
    }
}

#[test]
fn a_responses_body_cut_anywhere_finishes_no_call_and_loses_nothing_silently() {
    for (name, body) in bodies("openai-responses") {
        let clean = ends(&name, &body, responses(), ErrorClass::Network);
        // A server may still say `[DONE]` behind the last event.
        let done = "\n\ndata: [DONE]\n\n".len();
        assert!(clean <= done, "{name}: {clean} clean ends");
    }
}

#[test]
fn an_anthropic_body_cut_anywhere_finishes_no_call_and_loses_nothing_silently() {
    for (name, body) in bodies("anthropic") {
        let clean = ends(&name, &body, anthropic(), ErrorClass::Network);
        let done = "\n\nevent: data\ndata: [DONE]\n\n".len();
        assert!(clean <= done, "{name}: {clean} clean ends");
    }
}

#[test]
fn text_calls_cut_anywhere_finish_no_call_and_lose_nothing_silently() {
    for (name, body) in conversations() {
        let clean = ends(&name, &body, react(), ErrorClass::Network);
        assert!(clean <= 12, "{name}: {clean} clean ends");
    }
}
