//! The bodies that fuzzing kept, through the same checks.

use crate::any_body;
use std::path::Path;

/// The folder of each corpus, and its dialect.
const CORPORA: [(&str, &str); 5] = [
    ("openai_chat", "openai-chat"),
    ("openai_responses", "openai-responses"),
    ("anthropic", "anthropic"),
    ("gemini", "gemini"),
    ("react", "react"),
];

#[test]
fn kept_bodies_keep_every_promise_of_the_decoders() {
    for (folder, dialect) in CORPORA {
        let inputs = inputs(folder);
        assert!(inputs.len() > 15, "the corpus `{folder}` is missing");
        for input in inputs {
            any_body::check(dialect, &input);
        }
    }
}

fn inputs(folder: &str) -> Vec<Vec<u8>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(folder);
    let entries = std::fs::read_dir(corpus).unwrap();
    entries
        .map(|entry| std::fs::read(entry.unwrap().path()).unwrap())
        .collect()
}
