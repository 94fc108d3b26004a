//! How fast recorded streams are decoded, next to a copy of the same bytes and to `serde_json`.
//!
//! Prints a line for each dialect, separated by tabs: its name, the bytes of a round, the
//! nanoseconds of the median and of the fastest round of decoding, and of the fastest round of
//! copying and of parsing every payload into a `serde_json::Value`. Rounds are short, so that some
//! are not disturbed on a busy machine. `cargo xtask bench` makes a table of it.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark talks on the terminal and fails like a test does"
)]

use rondo_types::{ModelEvent, Origin};
use rondo_wire::{Bounds, Dialect, Target, dialect, dialect_names};
use serde_json::Value;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Bytes that arrive at once, as a connection delivers them.
const PIECE_BYTES: usize = 16 * 1024;
/// Bytes of a round: the deltas of the recordings are repeated up to there.
const ROUND_BYTES: usize = 1024 * 1024;
/// Rounds that count; one more is run first.
const ROUNDS: usize = 100;
/// Events of a recording that is worth to be measured.
const EVENTS_MIN: usize = 8;

fn main() {
    for name in dialect_names() {
        measure(name, &streams(name));
    }
    measure("react", &text_calls());
}

fn measure(name: &str, recorded: &[Vec<u8>]) {
    assert!(!recorded.is_empty(), "no recordings of `{name}`");
    let streams = &lengthened(name, recorded);
    let bytes: usize = streams.iter().map(Vec::len).sum();
    let payloads: Vec<&str> = streams.iter().flat_map(|body| payloads(body)).collect();
    let target = target(name);
    let dialect = dialect(name).unwrap();
    let mut events = Vec::new();
    let decoded = rounds(|| {
        for body in streams {
            decode(dialect, &target, body, &mut events);
        }
    });
    let mut copy = vec![0; PIECE_BYTES];
    let copied = rounds(|| {
        for piece in streams.iter().flat_map(|body| body.chunks(PIECE_BYTES)) {
            copy[..piece.len()].copy_from_slice(black_box(piece));
            black_box(&copy);
        }
    });
    let parsed = rounds(|| {
        for payload in &payloads {
            black_box(serde_json::from_str::<Value>(payload).unwrap());
        }
    });
    let times = [decoded[ROUNDS / 2], decoded[0], copied[0], parsed[0]];
    let nanos = times.map(|time| time.as_nanos().to_string());
    println!("{name}\t{bytes}\t{}", nanos.join("\t"));
}

/// Returns the times of the rounds, the least first.
fn rounds(mut work: impl FnMut()) -> Vec<Duration> {
    let mut times: Vec<Duration> = (0..=ROUNDS)
        .map(|_| {
            let started = Instant::now();
            work();
            started.elapsed()
        })
        .skip(1)
        .collect();
    times.sort_unstable();
    times
}

/// Repeats what makes up most of a long answer, the deltas of text, reasoning and arguments, until
/// the streams have the bytes of a round. Deltas that follow each other are repeated as they do, so
/// that none is like the one before it that was not; everything else comes once, but for what says the whole text
/// again, which is not the repeated one.
fn lengthened(name: &str, recorded: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let recorded: Vec<Vec<u8>> = recorded.iter().map(|it| without_wholes(it)).collect();
    let streams: Vec<Vec<(&[u8], bool)>> = recorded.iter().map(|it| events(name, it)).collect();
    let deltas = streams.iter().flatten().filter(|(_, is_delta)| *is_delta);
    let bytes: usize = deltas.map(|(event, _)| event.len()).sum();
    assert!(bytes > 0, "no deltas in the recordings of `{name}`");
    let repeats = ROUND_BYTES.div_ceil(bytes);
    let long = |run: &[(&[u8], bool)]| {
        let bytes: Vec<u8> = run.iter().flat_map(|(event, _)| *event).copied().collect();
        bytes.repeat(if run[0].1 { repeats } else { 1 })
    };
    let lengthened = |events: &Vec<(&[u8], bool)>| {
        let runs = events.chunk_by(|one, next| one.1 && next.1);
        runs.flat_map(long).collect()
    };
    streams.iter().map(lengthened).collect()
}

/// Leaves out what says the whole text again in the Responses API: the ends of parts and items, and the items of
/// the whole response.
fn without_wholes(body: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(body).unwrap();
    let mut lines = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let data = line.strip_prefix("data: ").map(str::trim_end);
        let value = data.and_then(|data| serde_json::from_str::<Value>(data).ok());
        let kind = value.as_ref().and_then(|it| it["type"].as_str());
        match (kind, value.clone()) {
            (Some(kind), _) if kind.starts_with("response.") && kind.ends_with(".done") => {}
            (Some("response.completed"), Some(mut value)) => {
                value["response"]["output"] = Value::Array(Vec::new());
                lines.push_str(&format!("data: {value}\n"));
            }
            _ => lines.push_str(line),
        }
    }
    lines.into_bytes()
}

/// Cuts a stream behind its blank lines, and tells which events are nothing but deltas.
fn events<'b>(name: &str, body: &'b [u8]) -> Vec<(&'b [u8], bool)> {
    let text = std::str::from_utf8(body).unwrap();
    let blank = if text.contains("\r\n\r\n") {
        "\r\n\r\n"
    } else {
        "\n\n"
    };
    let mut decoder = dialect(name)
        .unwrap()
        .decoder(&target(name), Bounds::default());
    text.split_inclusive(blank)
        .map(|event| {
            let mut read = Vec::new();
            decoder.push(event.as_bytes(), &mut read).unwrap();
            (event.as_bytes(), is_plain(&read))
        })
        .collect()
}

/// Returns whether an event of the stream was a delta and, for some providers, counts beside it.
fn is_plain(read: &[ModelEvent]) -> bool {
    let counts = |event: &ModelEvent| matches!(event, ModelEvent::Usage(_));
    read.iter().any(is_delta) && read.iter().all(|event| is_delta(event) || counts(event))
}

fn is_delta(event: &ModelEvent) -> bool {
    match event {
        ModelEvent::TextDelta { text, .. } | ModelEvent::ReasoningDelta { text, .. } => {
            !text.is_empty()
        }
        ModelEvent::ToolCallDelta { arguments, .. } => !arguments.is_empty(),
        _ => false,
    }
}

/// Decodes a body and gives its events away piece by piece, as a driver does.
fn decode(dialect: &dyn Dialect, target: &Target, body: &[u8], events: &mut Vec<ModelEvent>) {
    let mut decoder = dialect.decoder(target, Bounds::default());
    for piece in body.chunks(PIECE_BYTES) {
        decoder.push(black_box(piece), events).unwrap();
        black_box(&events);
        events.clear();
    }
    decoder.finish(events).unwrap();
    black_box(&events);
    events.clear();
}

fn target(name: &str) -> Target {
    Target::new(Origin {
        dialect: name.to_owned(),
        provider: "recorded".to_owned(),
        model: "some-model".to_owned(),
    })
}

/// Returns the recorded bodies of a dialect that were streamed in at least a few events.
fn streams(name: &str) -> Vec<Vec<u8>> {
    let mut streams = Vec::new();
    for path in files(name) {
        let text = std::fs::read_to_string(&path).unwrap();
        let path = path.to_str().unwrap();
        if path.ends_with(".cassette.json") {
            let cassette: Value = serde_json::from_str(&text).unwrap();
            let exchanges = cassette["exchanges"].as_array().unwrap().iter();
            let bodies = exchanges.filter_map(|it| it["response"]["body"].as_str());
            streams.extend(bodies.map(|body| body.as_bytes().to_vec()));
        } else if path.ends_with(".chunks.txt") {
            let lines = text.lines().map(|line| format!("data: {line}\n\n"));
            streams.push(lines.collect::<String>().into_bytes());
        } else if path.ends_with(".txt") {
            streams.push(text.into_bytes());
        }
    }
    streams.retain(|body| payloads(body).len() >= EVENTS_MIN);
    streams
}

/// Returns published conversations of small deltas with calls in their text.
fn text_calls() -> Vec<Vec<u8>> {
    let conversations = files("text-xml").into_iter().filter(|path| {
        let extension = path.extension();
        extension.is_some_and(|extension| extension == "json")
    });
    conversations
        .map(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            let conversation: Value = serde_json::from_str(&text).unwrap();
            let chunks = conversation["generate_stream"].as_array().unwrap().iter();
            let lines =
                chunks.map(|chunk| format!("data: {}\n\n", chunk["data"].as_str().unwrap()));
            let mut body: String = lines.collect();
            if !body.contains("[DONE]") {
                body.push_str("data: [DONE]\n\n");
            }
            body.into_bytes()
        })
        .collect()
}

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/wire")
        .join(folder);
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Returns the payloads of an event stream that are JSON.
fn payloads(body: &[u8]) -> Vec<&str> {
    let lines = std::str::from_utf8(body).unwrap().lines();
    let data = lines.filter_map(|line| line.strip_prefix("data:"));
    data.map(str::trim)
        .filter(|payload| payload.starts_with('{'))
        .collect()
}
