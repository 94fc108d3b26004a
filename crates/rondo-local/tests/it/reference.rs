//! Agreement with llama.cpp, whose answers are recorded in `tests/reference`.
//!
//! Kernels round differently on different processors, so no text is compared whole: at each
//! position the recorded tokens are given, and only the likeliest next one is compared.

use crate::support::{engine, top};
use serde::Deserialize;

const RECORDED: &str = include_str!("../reference/smollm2-135m.json");
/// Positions at which the reference's second choice is this far behind (in log probability) must
/// agree without exception.
const CLEAR: f32 = 1.0;

#[derive(Deserialize)]
struct Recorded {
    prompts: Vec<Prompt>,
    texts: Vec<Text>,
}

#[derive(Deserialize)]
struct Prompt {
    tokens: Vec<u32>,
    /// The likeliest token, its lead, and the token taken (another one if the reply would end).
    top: Vec<(u32, f32, u32)>,
}

#[derive(Deserialize)]
struct Text {
    text: String,
    tokens: Vec<u32>,
}

fn recorded() -> Recorded {
    serde_json::from_str(RECORDED).unwrap()
}

#[test]
fn the_likeliest_token_is_the_references() {
    let (mut positions, mut agreed) = (0, 0);
    for prompt in recorded().prompts {
        let mut engine = engine();
        let mut logits = engine.extend(&prompt.tokens).unwrap();
        for (expected, lead, taken) in prompt.top {
            let (found, _) = top(&logits);
            positions += 1;
            agreed += u32::from(found == expected);
            assert!(
                found == expected || lead < CLEAR,
                "position {} of a prompt: {found}, not {expected}, which leads by {lead}",
                engine.sequence().len()
            );
            logits = engine.extend(&[taken]).unwrap();
        }
    }
    assert!(positions >= 90, "{positions}");
    assert!(agreed * 100 >= positions * 95, "{agreed} of {positions}");
}

#[test]
fn text_becomes_the_references_tokens_and_comes_back() {
    let engine = engine();
    let vocabulary = engine.vocabulary();
    for text in recorded().texts {
        let tokens = vocabulary.encode(&text.text).unwrap();
        assert_eq!(vocabulary.decode(&tokens), text.text.as_bytes());
        assert_eq!(tokens, text.tokens, "{}", text.text);
    }
}
