//! Mixed blocks of a message: their order, what each dialect sends and what stands for the rest.

use crate::support::{assistant, request, target, tool_call, tool_result};
use proptest::collection::vec;
use proptest::prelude::*;
use rondo_types::{
    ContentBlock, Media, MediaKind, MediaSource, Message, ModelRequest, Part, ToolContent,
    ToolErrorCode,
};
use rondo_wire::{Encoded, Lowering, LoweringCause, dialect};
use std::sync::Arc;

const DIALECTS: [&str; 6] = [
    "openai-chat",
    "openai-responses",
    "gemini",
    "anthropic",
    "react",
    "react+anthropic",
];

/// The rows of the table of media in docs/providers.md.
const KINDS: [(&str, MediaKind, &str, bool); 8] = [
    ("PNG, JPEG, GIF, WebP", MediaKind::Image, "image/png", false),
    ("other images", MediaKind::Image, "image/tiff", false),
    ("image at an address", MediaKind::Image, "image/png", true),
    ("PDF", MediaKind::File, "application/pdf", false),
    (
        "PDF at an address",
        MediaKind::File,
        "application/pdf",
        true,
    ),
    ("other files", MediaKind::File, "text/csv", false),
    ("WAV, MP3", MediaKind::Audio, "audio/wav", false),
    ("other sound", MediaKind::Audio, "audio/flac", false),
];

fn media(kind: MediaKind, mime: &str, is_url: bool, mark: &str) -> Media {
    Media {
        kind,
        mime: mime.to_owned(),
        name: Some(format!("n{mark}")),
        source: if is_url {
            MediaSource::Url(format!("https://example.com/{mark}"))
        } else {
            MediaSource::Base64(mark.to_owned())
        },
    }
}

fn encoded(name: &str, request: &ModelRequest) -> Encoded {
    dialect(name).unwrap().encode(request, &target(name))
}

fn saying(parts: Vec<Part>) -> ModelRequest {
    let message = Message {
        parts,
        ..Message::user("")
    };
    ModelRequest {
        messages: vec![Arc::new(message)],
        ..request()
    }
}

#[test]
fn the_documented_table_is_what_each_dialect_does() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/providers.md");
    let page = std::fs::read_to_string(page).unwrap();
    for (row, kind, mime, is_url) in KINDS {
        let cells = ["openai-chat", "openai-responses", "gemini", "anthropic"].map(|name| {
            let request = saying(vec![Part::Media(media(kind, mime, is_url, "mark0001"))]);
            let encoded = encoded(name, &request);
            let body = String::from_utf8(encoded.body.to_vec()).unwrap();
            let notes: Vec<_> = encoded.notes.iter().map(|note| note.lowering).collect();
            match body.contains("cannot be read by this model") {
                true => {
                    assert!(notes.contains(&Lowering::MediaAsText), "{name}: {row}");
                    "as text"
                }
                false => {
                    assert!(!notes.contains(&Lowering::MediaAsText), "{name}: {row}");
                    assert!(body.contains("mark0001"), "{name}: {row}");
                    "sent"
                }
            }
        });
        let line = format!("| {row} | {} |", cells.join(" | "));
        assert!(page.lines().any(|it| it == line), "not documented: {line}");
    }
}

#[test]
fn what_no_provider_could_read_is_described_at_its_place() {
    let hostile = [
        ("", "QUJD", "(no media type, 3 bytes)"),
        ("image/png", "", "(image/png, 0 bytes)"),
        ("image/png", "no base64!", "(image/png, 7 bytes)"),
        (
            "image/png;base64,AA\n",
            "QUJD",
            "(image/png;base64,AA, 3 bytes)",
        ),
    ];
    for name in DIALECTS {
        for (mime, data, described) in hostile {
            let mut bad = media(MediaKind::Image, mime, false, data);
            bad.name = None;
            let parts = vec![Part::text("before"), Part::Media(bad), Part::text("after")];
            let encoded = encoded(name, &saying(parts));
            let body = String::from_utf8(encoded.body.to_vec()).unwrap();
            let found = ["before", described, "after"].map(|text| body.find(text));
            assert!(
                found.iter().all(Option::is_some) && found.is_sorted(),
                "{name}: {body}"
            );
            let note = encoded.notes.iter().find(|note| note.part == Some(1));
            let note = note.unwrap_or_else(|| panic!("{name}: {:?}", encoded.notes));
            assert_eq!(
                (note.lowering, note.cause, note.message),
                (Lowering::MediaAsText, LoweringCause::NotAllowed, Some(0))
            );
        }
    }
}

#[test]
fn a_model_that_reads_only_text_reads_what_was_attached() {
    for name in DIALECTS {
        let mut target = target(name);
        target.quirks.omit_media = true;
        let shot = Part::Media(media(MediaKind::Image, "image/png", false, "mark0001"));
        let encoded = dialect(name).unwrap().encode(&saying(vec![shot]), &target);
        let body = String::from_utf8(encoded.body.to_vec()).unwrap();
        assert!(!body.contains("mark0001\""), "{name}: {body}");
        let described = "[image `nmark0001` (image/png, 6 bytes) cannot be read by this model]";
        assert!(body.contains(described), "{name}: {body}");
        let note = encoded.notes.first().unwrap();
        assert_eq!(
            (note.lowering, note.cause),
            (Lowering::MediaAsText, LoweringCause::Refused)
        );
    }
}

/// A result of a text, an image, a text and an image.
fn with_result(error: Option<ToolErrorCode>) -> ModelRequest {
    let call = tool_call(None, "shot", "{}");
    let mut result = tool_result(&call, ToolContent::Text("block-a".to_owned()));
    result.error = error;
    let image = |mark| media(MediaKind::Image, "image/png", false, mark);
    result.blocks = vec![
        image("block001").into(),
        ContentBlock::text("block-c"),
        image("block002").into(),
    ];
    let called = assistant(vec![Part::ToolCall(call)], None);
    let messages = [
        Message::user("go"),
        called,
        Message::tool_results(vec![result]),
    ];
    ModelRequest {
        messages: messages.into_iter().map(Arc::new).collect(),
        ..request()
    }
}

#[test]
fn blocks_of_a_result_keep_their_order_or_are_named_at_their_place() {
    for name in DIALECTS {
        let body = encoded(name, &with_result(None)).body;
        let body = String::from_utf8(body.to_vec()).unwrap();
        let places = |texts: [&str; 4]| {
            let found = texts.map(|text| body.find(text));
            found.iter().all(Option::is_some) && found.is_sorted()
        };
        let in_order = places(["block-a", "block001", "block-c", "block002"]);
        let named = "[image `nblock001` (image/png, 6 bytes): see below]";
        let by_name = places(["block-a", named, "block-c", "`nblock002`"]);
        let data =
            |mark: &str| body.matches(mark).count() - body.matches(&format!("n{mark}")).count();
        assert_eq!(
            (data("block001"), data("block002")),
            (1, 1),
            "{name}: {body}"
        );
        match name {
            "openai-responses" | "anthropic" => assert!(in_order && !body.contains("see below")),
            _ => assert!(by_name, "{name}: {body}"),
        }
    }
}

#[test]
fn a_failed_result_is_text_where_the_protocol_allows_nothing_else() {
    let body = encoded("anthropic", &with_result(Some(ToolErrorCode::Failed))).body;
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let blocks = body["messages"][2]["content"].as_array().unwrap();
    assert_eq!(
        blocks[0]["content"],
        "block-a\n[image `nblock001` (image/png, 6 bytes): see below]\nblock-c\n\
         [image `nblock002` (image/png, 6 bytes): see below]"
    );
    let kinds: Vec<_> = blocks.iter().map(|it| &it["type"]).collect();
    assert_eq!(kinds, ["tool_result", "text", "image", "image"]);
}

fn block() -> impl Strategy<Value = Option<usize>> {
    proptest::option::of(0..KINDS.len())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn blocks_of_a_message_keep_their_order_on_every_dialect(blocks in vec(block(), 1..8)) {
        let mark = |index: usize| format!("mark{index:04}");
        let parts = blocks.iter().enumerate().map(|(index, block)| match block {
            None => Part::text(format!("{} ", mark(index))),
            Some(row) => {
                let (_, kind, mime, is_url) = KINDS[*row];
                Part::Media(media(kind, mime, is_url, &mark(index)))
            }
        });
        let request = saying(parts.collect());
        for name in DIALECTS {
            let body = String::from_utf8(encoded(name, &request).body.to_vec()).unwrap();
            let places: Vec<_> = (0..blocks.len()).map(|index| body.find(&mark(index))).collect();
            prop_assert!(places.iter().all(Option::is_some), "{name}: {body}");
            prop_assert!(places.is_sorted(), "{name}: {body}");
        }
    }
}
