//! However a sequence came about, its logits are the same within a tolerance.

use crate::support::{engine, top, weights};
use rondo_local::{CpuEngine, Engine, Instructions, LocalError};

/// How far two logits of one token may differ: other chunks are other matrix shapes, which are
/// summed in another order and quantised in other rows.
const TOLERANCE: f32 = 0.5;

const TEXT: &str = "The harbour master counted the ships twice, wrote the number into the book, \
                    closed it, and went home to his";

fn assert_alike(left: &[f32], right: &[f32]) {
    let furthest = left
        .iter()
        .zip(right)
        .map(|(left, right)| (left - right).abs())
        .fold(0.0, f32::max);
    assert!(furthest <= TOLERANCE, "{furthest}");
    let ((one, lead), (other, _)) = (top(left), top(right));
    assert!(one == other || lead <= TOLERANCE, "{one} and {other}");
}

fn tokens(engine: &dyn Engine) -> Vec<u32> {
    engine.vocabulary().encode(TEXT).unwrap()
}

#[test]
fn chunks_agree_with_the_whole() {
    let mut whole = engine();
    let tokens = tokens(whole.as_ref());
    let expected = whole.extend(&tokens).unwrap();
    let mut chunked = engine();
    let mut logits = Vec::new();
    for chunk in tokens.chunks(5) {
        logits = chunked.extend(chunk).unwrap();
    }
    assert_eq!(chunked.sequence(), whole.sequence());
    assert_alike(&expected, &logits);
    let (last, before) = tokens.split_last().unwrap();
    let mut silent = engine();
    silent.advance(before).unwrap();
    assert_eq!(silent.sequence(), before);
    assert_alike(&expected, &silent.extend(&[*last]).unwrap());
}

#[test]
fn all_instructions_that_the_processor_has_agree() {
    let mut fastest = engine();
    let tokens = tokens(fastest.as_ref());
    let expected = fastest.extend(&tokens).unwrap();
    for instructions in Instructions::available() {
        let mut engine = CpuEngine::load_with(instructions, &weights(), 64).unwrap();
        let (last, before) = tokens.split_last().unwrap();
        engine.extend(before).unwrap();
        assert_alike(&expected, &engine.extend(&[*last]).unwrap());
    }
}

#[test]
fn texts_of_one_meaning_have_vectors_that_are_nearer_than_others() {
    let engine = CpuEngine::load(&weights(), 64).unwrap();
    let embed = |text: &str| {
        let vector = engine.embed(text).unwrap();
        let length = vector.iter().map(|it| it * it).sum::<f32>().sqrt();
        vector.iter().map(|it| it / length).collect::<Vec<f32>>()
    };
    let likeness =
        |left: &[f32], right: &[f32]| left.iter().zip(right).map(|(a, b)| a * b).sum::<f32>();
    let [dog, puppy, tax] = [
        "The dog sleeps on the sofa.",
        "A dog is asleep on the couch.",
        "Taxes are due at the end of the quarter.",
    ]
    .map(embed);
    assert!((likeness(&dog, &embed("The dog sleeps on the sofa.")) - 1.0).abs() < 1e-4);
    assert!(likeness(&dog, &puppy) > likeness(&dog, &tax) + 0.01);
    assert!(engine.sequence().is_empty());
}

#[test]
fn what_was_truncated_leaves_no_trace() {
    let mut engine = engine();
    let tokens = tokens(engine.as_ref());
    let expected = engine.extend(&tokens).unwrap();
    engine.truncate(4);
    engine.extend(&[1, 2, 3, 4, 5, 6, 7]).unwrap();
    engine.truncate(4);
    let again = engine.extend(&tokens[4..]).unwrap();
    assert_alike(&expected, &again);
}

#[test]
fn a_fork_goes_its_own_way() {
    let mut engine = engine();
    let tokens = tokens(engine.as_ref());
    engine.extend(&tokens[..6]).unwrap();
    let mut fork = engine.fork().unwrap();
    fork.extend(&[9, 8, 7]).unwrap();
    let kept = engine.extend(&tokens[6..]).unwrap();
    fork.truncate(6);
    let caught_up = fork.extend(&tokens[6..]).unwrap();
    assert_alike(&kept, &caught_up);
}

#[test]
fn the_context_is_never_exceeded() {
    let mut engine = engine();
    let most = engine.context_tokens();
    let refused = engine.extend(&vec![5; most + 1]).unwrap_err();
    assert!(matches!(refused, LocalError::ContextTooLong { needed, .. } if needed == most + 1));
    assert!(engine.advance(&vec![5; most + 1]).is_err());
    assert!(engine.sequence().is_empty());
}
