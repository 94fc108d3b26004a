//! Tests: bodies are framed alike however they are cut into pieces.

use super::any_body;
use std::path::Path;

#[test]
fn kept_bodies_are_framed_alike_however_they_are_cut() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/framing");
    let mut read = 0;
    for entry in std::fs::read_dir(corpus).unwrap() {
        any_body::check(&std::fs::read(entry.unwrap().path()).unwrap());
        read += 1;
    }
    assert!(read > 50, "the corpus is missing");
}
