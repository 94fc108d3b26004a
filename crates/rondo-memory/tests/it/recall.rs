//! Recall: 145 questions over 292 notes of a person's work and life, next to `grep` with the same words.
//!
//! The notes are in `tests/recall/notes`, the questions in `tests/recall/questions.tsv`, each with words that only its
//! note has. Every other question was used to choose weights; the figures below come from the other half.
//!
//! `grep` is ranked as one would read its output: `grep -i -F` with each word of the question, without the punctuation
//! around it; the notes in which the most different words are found come first, and of equal ones the first in the
//! order of files and lines.

use crate::support::Scene;
use rondo_memory::Memories;
use std::fs;
use std::path::{Path, PathBuf};

/// A question counts as answered if its note is among as many results.
const RESULTS: usize = 5;
/// How many times what `grep` recalls it must be at least.
const FACTOR_MIN: f64 = 1.2;
const QUESTIONS_MIN: usize = 100;
const NOTES_MIN: usize = 250;

struct Question {
    words: String,
    /// Words of the note that answers it.
    answer: String,
}

struct Recalled {
    ours: f64,
    grep: f64,
    missed: Vec<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recall")
}

fn questions() -> Vec<Question> {
    let table = fs::read_to_string(folder().join("questions.tsv")).unwrap();
    let question = |line: &str| {
        let (words, answer) = line.split_once('\t').unwrap();
        Question {
            words: words.to_owned(),
            answer: answer.to_owned(),
        }
    };
    table.lines().map(question).collect()
}

/// Copies the notes to where a user's are.
fn notes(scene: &Scene) -> Vec<String> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder().join("notes"))
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    files.sort();
    let mut notes = Vec::new();
    for file in files {
        let content = fs::read_to_string(&file).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        scene.write(&format!("data/memory/{name}"), &content);
        notes.extend(
            content
                .lines()
                .filter_map(|it| it.strip_prefix("- "))
                .map(str::to_owned),
        );
    }
    notes
}

fn grep<'a>(notes: &'a [String], question: &str) -> Vec<&'a str> {
    let lower = question.to_lowercase();
    let words: Vec<&str> = lower
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| c.is_ascii_punctuation() && !"_/-".contains(c)))
        .filter(|word| !word.is_empty())
        .collect();
    let mut found: Vec<(usize, &str)> = Vec::new();
    for note in notes {
        let text = note.to_lowercase();
        let count = words.iter().filter(|word| text.contains(*word)).count();
        if count > 0 {
            found.push((count, note));
        }
    }
    found.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    found
        .into_iter()
        .take(RESULTS)
        .map(|(_, note)| note)
        .collect()
}

async fn recall(memories: &Memories, notes: &[String], questions: &[&Question]) -> Recalled {
    let (mut ours, mut by_grep, mut missed) = (0.0, 0.0, Vec::new());
    let all = questions.len() as f64;
    for question in questions {
        let found = memories.search(&question.words, RESULTS).await.unwrap();
        if found
            .hits
            .iter()
            .any(|hit| hit.memory.text.contains(&question.answer))
        {
            ours += 1.0;
        } else {
            missed.push(question.words.clone());
        }
        if grep(notes, &question.words)
            .iter()
            .any(|note| note.contains(&question.answer))
        {
            by_grep += 1.0;
        }
    }
    Recalled {
        ours: ours / all,
        grep: by_grep / all,
        missed,
    }
}

#[test]
fn each_question_has_one_note_that_answers_it() {
    let scene = Scene::new();
    let notes = notes(&scene);
    let questions = questions();
    assert!(
        notes.len() >= NOTES_MIN && questions.len() >= QUESTIONS_MIN,
        "{} {}",
        notes.len(),
        questions.len()
    );
    for Question { words, answer } in questions {
        let count = notes.iter().filter(|note| note.contains(&answer)).count();
        assert_eq!(count, 1, "{words}: {answer}");
    }
    assert_eq!(scene.memories().list().unwrap().memories.len(), notes.len());
}

#[tokio::test]
async fn more_is_recalled_than_by_grep_with_the_same_words() {
    let scene = Scene::new();
    let notes = notes(&scene);
    let questions = questions();
    let half = |rest: usize| questions.iter().skip(rest).step_by(2).collect::<Vec<_>>();
    let memories = scene.memories();
    for (name, rest) in [("chosen on", 0), ("held out", 1)] {
        let half = half(rest);
        let recalled = recall(&memories, &notes, &half).await;
        let factor = recalled.ours / recalled.grep;
        println!(
            "{name}: {} questions over {} notes, recall at {RESULTS}: {:.3}, grep {:.3}, {factor:.2} times\nmissed: {:#?}",
            half.len(),
            notes.len(),
            recalled.ours,
            recalled.grep,
            recalled.missed
        );
        assert!(factor >= FACTOR_MIN, "{name}: {factor:.2} times grep");
    }
}
