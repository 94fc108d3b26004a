//! Memory that decoders take, counted by the allocator. A test binary of its own with one test, as
//! the count covers the whole process.
#![expect(
    clippy::unwrap_used,
    reason = "the functions around the test fail like the test does"
)]

#[expect(dead_code, reason = "its checks are for other tests")]
#[path = "../it/any_body.rs"]
mod any_body;
mod peak;

use rondo_types::{ErrorClass, ModelError, ModelEvent, Origin};
use rondo_wire::{Bounds, Decoder, Target, dialect, dialect_names, react_over};
use std::path::Path;

/// Bytes that arrive at once.
const PIECE_BYTES: usize = 4096;
/// Pieces of an endless body: far past the bounds.
const PIECES_MAX: usize = 1000;
/// Memory of a decoder beside what it holds: its state, a piece, an error.
const FIXED_BYTES: usize = 64 * 1024;

const BOUNDS: Bounds = Bounds {
    line_bytes_max: 200_000,
    event_bytes_max: 200_000,
    response_bytes_max: 2_000_000,
    open_calls_max: 256,
    candidates_max: 16,
};

/// A buffer doubles as it grows, and both stand for a moment; what is parsed borrows from it.
const HELD_BYTES_MAX: usize = 4 * BOUNDS.event_bytes_max + FIXED_BYTES;

fn decoder(name: &str) -> Box<dyn Decoder> {
    let target = Target::new(Origin {
        dialect: name.to_owned(),
        provider: "any".to_owned(),
        model: "some-model".to_owned(),
    });
    dialect(name).unwrap().decoder(&target, BOUNDS)
}

/// Reads `start`, then `again` without an end, and returns how it ended and the peak.
fn endless(name: &str, start: &str, again: &str) -> (Result<(), ModelError>, usize) {
    let piece = again.repeat(PIECE_BYTES.div_ceil(again.len()));
    let mut ended = Ok(());
    let peak = peak::peak_bytes(|| {
        let mut decoder = decoder(name);
        let mut events: Vec<ModelEvent> = Vec::new();
        ended = decoder.push(start.as_bytes(), &mut events);
        for _ in 0..PIECES_MAX {
            events.clear();
            if ended.is_ok() {
                ended = decoder.push(piece.as_bytes(), &mut events);
            }
        }
    });
    (ended, peak)
}

fn names() -> impl Iterator<Item = &'static str> {
    let names = dialect_names().into_iter();
    names.clone().chain(names.filter_map(react_over))
}

/// An endless body ends with a typed error, and takes no more than what may be held.
fn check_endless(start: &str, again: &str) {
    for name in names() {
        let (ended, peak) = endless(name, start, again);
        let class = ended.unwrap_err().class;
        let beginning: String = again.chars().take(30).collect();
        assert_eq!(class, ErrorClass::TooLarge, "{name}: {start}{beginning}");
        assert!(peak <= HELD_BYTES_MAX, "{name}: {peak} for {beginning}");
    }
}

/// A text without an end is handed out and not held, up to the bound of the body.
fn check_text(name: &str, start: &str, delta: &str) {
    let (ended, peak) = endless(name, start, delta);
    assert_eq!(ended.unwrap_err().class, ErrorClass::TooLarge, "{name}");
    assert!(peak <= FIXED_BYTES, "{name}: {peak} for endless text");
}

/// Bodies kept by the fuzz targets take no more than their length explains.
fn check_corpora() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for name in dialect_names().into_iter().chain(["react"]) {
        let mut read = 0;
        for entry in std::fs::read_dir(corpora.join(name.replace('-', "_"))).unwrap() {
            peak::check(name, &std::fs::read(entry.unwrap().path()).unwrap());
            read += 1;
        }
        assert!(read > 15, "the corpus of `{name}` is missing");
    }
}

#[test]
fn memory_stays_bounded_whatever_arrives() {
    check_endless("data: {\"a\":\"", "x");
    check_endless("[{\"a\":\"", "x");
    check_endless("", "data: {\"a\":\n");
    check_endless("", "event: ping\ndata: {\"type\":\"ping\"}\n\n");
    check_endless("", ": keep alive\n\n");
    check_endless("data: ", "[");
    check_endless("data: ", "{\"a\":");
    check_endless("", "{\"a\":");
    check_text(
        "openai-chat",
        "",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word \"}}]}\n\n",
    );
    check_text(
        "react",
        "",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word \"}}]}\n\n",
    );
    check_text(
        "gemini",
        "",
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"word \"}]}}]}\r\n\r\n",
    );
    check_text(
        "openai-responses",
        "",
        "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"word \"}\n\n",
    );
    check_text(
        "anthropic",
        "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\"}}\n\n",
        "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"word \"}}\n\n",
    );
    check_corpora();
}
