//! The nearest vectors, as they were made and by bytes.

use super::*;
use crate::folder::Folder;
use crate::index::{schema, sync};
use crate::scope::Scope;
use sha2::{Digest as _, Sha256};

const MODEL: &str = "test/m";
const DIMENSION: usize = 24;

/// Numbers of a seed, from -1 to 1.
fn vector(seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let numbers = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % 2001) as f32 / 1000.0 - 1.0
    });
    numbers.take(DIMENSION).collect()
}

/// An index of `count` memories with vectors, and the ids of its folders.
fn index(count: u64) -> (tempfile::TempDir, Connection, String) {
    let home = tempfile::tempdir().unwrap();
    let content: String = (0..count)
        .map(|it| format!("- memory number {it}\n"))
        .collect();
    std::fs::create_dir(home.path().join("memory")).unwrap();
    std::fs::write(home.path().join("memory/MEMORY.md"), content).unwrap();
    let folder = Folder::new(Scope::User, home.path().to_owned(), &["memory"]);
    let mut connection = schema::in_memory().unwrap();
    sync::refresh(&mut connection, &[&folder]).unwrap();
    let of = |it| {
        let text = format!("memory number {it}");
        (Sha256::digest(text).to_vec(), vector(it))
    };
    keep(&mut connection, MODEL, &(0..count).map(of).collect()).unwrap();
    let folders = sync::folder_ids(&connection, &[&folder]).unwrap();
    (home, connection, folders)
}

#[test]
fn beyond_the_bound_bytes_find_the_same() {
    let (_home, connection, folders) = index(300);
    let near = |exact_max: usize, query: &[f32]| {
        let mut quantised = None;
        let found = nearest(
            &connection,
            &mut quantised,
            &folders,
            MODEL,
            query,
            (exact_max, 1000),
        )
        .unwrap();
        (found, quantised.is_some())
    };
    for seed in [7, 100, 299, 1000] {
        let (exact, by_bytes) = near(301, &vector(seed));
        assert!(!by_bytes);
        let (same, by_bytes) = near(300, &vector(seed));
        assert_eq!((&same, by_bytes), (&exact, false), "at the bound");
        let (bytes, by_bytes) = near(299, &vector(seed));
        assert!(by_bytes, "beyond the bound");
        assert_eq!(bytes[..10], exact[..10]);
    }
    assert_eq!(
        near(1000, &vector(41)).0[0],
        42,
        "a text is nearest to itself"
    );
}

#[test]
fn only_vectors_of_the_same_model_and_dimension_are_compared() {
    let (_home, connection, folders) = index(5);
    let near = |model: &str, query: &[f32]| {
        nearest(&connection, &mut None, &folders, model, query, (10, 10))
            .unwrap()
            .len()
    };
    assert_eq!(near(MODEL, &vector(1)), 5);
    assert_eq!(near("other/m", &vector(1)), 0);
    assert_eq!(near(MODEL, &vector(1)[..8]), 0);
    assert_eq!(near(MODEL, &[0.0; DIMENSION]), 0, "it has no direction");
    assert_eq!(near(MODEL, &[f32::NAN; DIMENSION]), 0);
}

/// Returns what is nearest to a vector, with what is held in memory.
fn nearest_to(
    query: &[f32],
    (connection, folders): (&Connection, &str),
    quantised: &mut Option<Quantised>,
    bounds: (usize, usize),
) -> Vec<i64> {
    nearest(connection, quantised, folders, MODEL, query, bounds).unwrap()
}

#[test]
fn the_latest_take_part_where_there_are_too_many() {
    let (_home, connection, folders) = index(50);
    for (rows_max, expected) in [(49, 49), (50, 50), (51, 50)] {
        let mut quantised = None;
        let query = vector(1);
        nearest_to(
            &query,
            (&connection, &folders),
            &mut quantised,
            (10, rows_max),
        );
        let held = quantised.unwrap();
        assert_eq!(held.rows.len(), expected);
        assert_eq!(held.rows[0], 50);
    }
}

#[test]
fn what_is_held_in_memory_follows_the_file() {
    let (_home, mut connection, folders) = index(20);
    let mut quantised = None;
    let query = vector(500);
    nearest_to(&query, (&connection, &folders), &mut quantised, (10, 100));
    let text = Sha256::digest("memory number 3").to_vec();
    keep(&mut connection, MODEL, &vec![(text, query.clone())]).unwrap();
    let found = nearest_to(&query, (&connection, &folders), &mut quantised, (10, 100));
    assert_eq!(found[0], 4);
}

#[test]
fn texts_without_a_vector_are_pending_until_they_have_one() {
    let (_home, mut connection, folders) = index(3);
    assert_eq!(pending(&connection, &folders, MODEL, 10).unwrap(), []);
    let missing = pending(&connection, &folders, "other/m", 2).unwrap();
    assert_eq!(missing.len(), 2);
    let vectors = missing
        .into_iter()
        .map(|it| (it.content, vector(1)))
        .collect();
    keep(&mut connection, "other/m", &vectors).unwrap();
    assert_eq!(
        pending(&connection, &folders, "other/m", 10).unwrap().len(),
        1
    );
}
