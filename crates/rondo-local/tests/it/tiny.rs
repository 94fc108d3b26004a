//! Agreement with llama.cpp on tiny models of random weights, one of each architecture, and what is not
//! of these is refused. The files and the records are made by `tests/reference/make_tiny.py`.

use crate::support::{ask, request};
use rondo_local::{CpuEngine, Engine, Gguf, Instructions, LocalModel, LocalOptions, Vocabulary};
use rondo_types::{ErrorClass, Message, ModelEvent};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

const RECORDED: &str = include_str!("../reference/tiny.json");
/// How far a logit may be from llama.cpp's, which keeps keys and values in half precision. They reach from
/// -4 to 4.
const TOLERANCE: f32 = 0.01;

#[derive(Deserialize)]
struct Recorded {
    text: String,
    tokens: Vec<u32>,
    /// Logits after the last token.
    logits: Vec<f32>,
}

fn recorded() -> BTreeMap<String, Vec<Recorded>> {
    serde_json::from_str(RECORDED).unwrap()
}

pub(crate) fn file(family: &str) -> PathBuf {
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference");
    PathBuf::from(here).join(format!("tiny-{family}.gguf"))
}

/// Returns a file like that of a family, with some bytes replaced by as many others.
fn altered(family: &str, from: &str, to: &str) -> (tempfile::TempDir, PathBuf) {
    assert_eq!(from.len(), to.len());
    let mut bytes = std::fs::read(file(family)).unwrap();
    let mut at = 0;
    while let Some(found) = bytes[at..]
        .windows(from.len())
        .position(|it| it == from.as_bytes())
    {
        bytes[at + found..at + found + to.len()].copy_from_slice(to.as_bytes());
        at += found + to.len();
    }
    assert!(at > 0, "{from}");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.gguf");
    std::fs::write(&path, bytes).unwrap();
    (directory, path)
}

#[test]
fn logits_of_each_architecture_are_the_references() {
    let recorded = recorded();
    assert_eq!(
        recorded.keys().collect::<Vec<_>>(),
        ["llama", "qwen2", "qwen3"]
    );
    for (family, texts) in recorded {
        for instructions in Instructions::available() {
            for text in &texts {
                let mut engine = CpuEngine::load_with(instructions, &file(&family), 256).unwrap();
                let logits = engine.extend(&text.tokens).unwrap();
                assert_eq!(logits.len(), text.logits.len());
                let apart = logits
                    .iter()
                    .zip(&text.logits)
                    .map(|(one, other)| (one - other).abs());
                let furthest = apart.fold(0.0, f32::max);
                assert!(
                    furthest <= TOLERANCE,
                    "{family} with {instructions}: {furthest}"
                );
            }
        }
    }
}

#[test]
fn texts_become_the_references_tokens() {
    for (family, texts) in recorded() {
        let vocabulary = Vocabulary::read(&Gguf::open(&file(&family)).unwrap()).unwrap();
        for text in texts {
            assert_eq!(
                vocabulary.encode(&text.text).unwrap(),
                text.tokens,
                "{family}"
            );
            assert_eq!(vocabulary.decode(&text.tokens), text.text.as_bytes());
        }
    }
}

#[test]
fn a_model_of_each_architecture_can_be_asked() {
    for family in ["llama", "qwen2", "qwen3"] {
        let model = LocalModel::start(LocalOptions::new(file(family), family)).unwrap();
        let mut request = request(vec![Message::user("hello")], Vec::new());
        request.sampling.max_output_tokens = Some(40);
        let events = ask(&model, request).unwrap();
        assert!(
            matches!(events.last(), Some(ModelEvent::Finished { .. })),
            "{family}: {events:?}"
        );
    }
}

#[test]
fn what_is_of_another_kind_is_refused_with_the_list_of_what_can_be_asked() {
    for (from, to, found, known) in [
        (
            "llama",
            "gemma",
            "the architecture `gemma`",
            "`llama`, `qwen2` and `qwen3`",
        ),
        ("gpt2", "bert", "tokenizer `bert`", "`gpt2`"),
        (
            "{{- bos_token }}",
            "{% if nothing %} ",
            "a chat template that `fails",
            "templates that show",
        ),
    ] {
        let from = from.get(..to.len()).unwrap_or(from);
        let to = &to[..from.len()];
        let (_directory, path) = altered("llama", from, to);
        let model = LocalModel::start(LocalOptions::new(path, "x")).unwrap();
        let error = ask(&model, request(vec![Message::user("hello")], Vec::new())).unwrap_err();
        assert_eq!(error.class, ErrorClass::Unsupported, "{error}");
        assert!(
            error.message.contains(found) && error.message.contains(known),
            "{error}"
        );
    }
}
