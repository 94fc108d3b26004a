//! Which lines of files answer a question most likely.

use super::words::Word;
use std::collections::BTreeMap;

/// Bonus for a word in a file's path, added to the score of the file and of its lines with words of their own.
const IN_PATH: f64 = 1.5;
const IN_PATH_OF_LINE: f64 = 0.7;
/// Bonus for a file that the question names.
const IS_NAME: f64 = 3.0;
/// Lines from which on it says something how few of them have a word.
const LINES_MIN: usize = 30;
/// Scores below which a file, and a line, say nothing about the question.
const FILE_SCORE_MIN: f64 = 2.0;
const LINE_SCORE_MIN: f64 = 1.5;

/// A text file that was read.
#[derive(Debug)]
pub(super) struct TextFile {
    /// As the model may name it.
    pub(super) path: String,
    pub(super) text: String,
}

/// A line that has words of the question.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Hit {
    /// The file's index.
    pub(super) file: usize,
    /// From 0.
    pub(super) line: usize,
    pub(super) score: f64,
    /// The words' indices.
    words: Vec<usize>,
}

/// The lines of a file that have all words of its best line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MatchingLines {
    pub(super) file: usize,
    pub(super) words: Vec<String>,
    pub(super) lines: Vec<usize>,
}

/// Ranked findings.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Ranking {
    /// The file that fits best.
    pub(super) best: Option<usize>,
    /// Set if the question names the file.
    pub(super) is_named: bool,
    /// Lines, the likeliest first.
    pub(super) hits: Vec<Hit>,
    /// One for each file that has such lines, that with the likeliest line first.
    pub(super) together: Vec<MatchingLines>,
    /// Words that no line and no path has.
    pub(super) absent: Vec<String>,
}

/// Ranks files and their lines. A word counts the more the fewer lines have it.
pub(super) fn rank(words: &[Word], files: &[TextFile]) -> Ranking {
    let hits = hits(words, files);
    let mut scores: Vec<f64> = files
        .iter()
        .map(|file| IN_PATH * path_words(words, &file.path) + named(words, &file.path))
        .collect();
    let mut best_hits: Vec<&Hit> = Vec::new();
    for hit in &hits {
        if best_hits.iter().all(|it| it.file != hit.file) {
            best_hits.push(hit);
            if let Some(score) = scores.get_mut(hit.file) {
                *score += hit.score;
            }
        }
    }
    let ranked = scores
        .iter()
        .enumerate()
        .filter(|(_, score)| **score >= FILE_SCORE_MIN);
    // The first of several alike.
    let best = ranked
        .rev()
        .max_by(|(_, one), (_, other)| one.total_cmp(other));
    let together = best_hits
        .into_iter()
        .map(|best| together(best, &hits, words));
    let best = best.map(|(file, _)| file);
    let best_file = best.and_then(|file| files.get(file));
    Ranking {
        best,
        is_named: best_file.is_some_and(|file| named(words, &file.path) > 0.0),
        together: together.collect(),
        absent: absent(words, files),
        hits,
    }
}

/// Returns the lines with words that say something, the likeliest first.
fn hits(words: &[Word], files: &[TextFile]) -> Vec<Hit> {
    let lower: Vec<String> = files.iter().map(|file| file.text.to_lowercase()).collect();
    let total: usize = lower.iter().map(|text| text.lines().count()).sum();
    let mut found: BTreeMap<(usize, usize), (f64, Vec<usize>)> = BTreeMap::new();
    for (index, word) in words.iter().enumerate() {
        let places = places(word, &lower);
        let weight = weight(total, places.len());
        for place in places {
            let (score, words) = found.entry(place).or_default();
            *score += weight;
            words.push(index);
        }
    }
    let of_paths: Vec<f64> = files
        .iter()
        .map(|file| path_words(words, &file.path))
        .collect();
    let hit = |((file, line), (score, words)): ((usize, usize), (f64, Vec<usize>))| {
        let in_path = of_paths.get(file).copied().unwrap_or_default();
        Hit {
            file,
            line,
            score: score + IN_PATH_OF_LINE * in_path,
            words,
        }
    };
    let mut hits: Vec<Hit> = found.into_iter().map(hit).collect();
    hits.retain(|hit| hit.score >= LINE_SCORE_MIN);
    // Stable: of two alike, the first one in its file comes first.
    hits.sort_by(|one, other| other.score.total_cmp(&one.score));
    hits
}

fn absent(words: &[Word], files: &[TextFile]) -> Vec<String> {
    let mut lower = files
        .iter()
        .map(|file| format!("{}\n{}", file.path, file.text).to_lowercase());
    let mut absent: Vec<&Word> = words.iter().collect();
    while !absent.is_empty()
        && let Some(text) = lower.next()
    {
        absent.retain(|word| !text.contains(&word.text));
    }
    absent.into_iter().map(|word| word.text.clone()).collect()
}

fn together(best: &Hit, hits: &[Hit], words: &[Word]) -> MatchingLines {
    let of_file = hits.iter().filter(|hit| hit.file == best.file);
    let all = of_file.filter(|hit| best.words.iter().all(|word| hit.words.contains(word)));
    let mut lines: Vec<usize> = all.map(|hit| hit.line).collect();
    lines.sort_unstable();
    let names = best
        .words
        .iter()
        .filter_map(|word| Some(words.get(*word)?.text.clone()));
    MatchingLines {
        file: best.file,
        words: names.collect(),
        lines,
    }
}

fn places(word: &Word, lower: &[String]) -> Vec<(usize, usize)> {
    let of_file = |(file, text): (usize, &String)| {
        let lines = text.lines().enumerate();
        let lines = lines.filter(|(_, line)| word.is_in(line));
        lines.map(|(line, _)| (file, line)).collect::<Vec<_>>()
    };
    lower.iter().enumerate().flat_map(of_file).collect()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "lines are far fewer than a float counts exactly"
)]
fn weight(total: usize, found: usize) -> f64 {
    (1.0 + total.max(LINES_MIN) as f64 / found.max(1) as f64).ln()
}

#[expect(clippy::cast_precision_loss, reason = "a question has few words")]
fn path_words(words: &[Word], path: &str) -> f64 {
    let path = path.to_lowercase();
    words.iter().filter(|word| word.is_in(&path)).count() as f64
}

fn named(words: &[Word], path: &str) -> f64 {
    let path = path.to_lowercase();
    let name = path.rsplit('/').next().unwrap_or(&path);
    let is_named = words
        .iter()
        .any(|word| word.text == path || word.text == name);
    if is_named { IS_NAME } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::super::words::words;
    use super::*;

    fn ranked(question: &str, files: &[(&str, &str)]) -> Ranking {
        let files: Vec<_> = files
            .iter()
            .map(|(path, text)| TextFile {
                path: (*path).to_owned(),
                text: (*text).to_owned(),
            })
            .collect();
        rank(&words(question), &files)
    }

    const LOGS: [(&str, &str); 3] = [
        (
            "a.log",
            "start\npump stopped\nstart\nvalve open\nstart\nstart\n",
        ),
        (
            "b.log",
            "start\nThe valve of the pump leaks\nstart\nstart\n",
        ),
        ("readme.txt", "Logs of the plant.\n"),
    ];

    #[test]
    fn a_line_with_more_and_rarer_words_comes_first() {
        let found = ranked("Does the valve of the pump leak?", &LOGS);
        assert_eq!(found.best, Some(1));
        assert_eq!((found.hits[0].file, found.hits[0].line), (1, 1));
        let others: Vec<_> = found.hits[1..]
            .iter()
            .map(|hit| (hit.file, hit.line))
            .collect();
        assert_eq!(others, [(0, 1), (0, 3)]);
    }

    #[test]
    fn lines_that_have_all_words_of_the_best_one_are_found_together() {
        let together = |question: &str| {
            let found = ranked(question, &LOGS).together;
            let each = found
                .into_iter()
                .map(|it| (it.file, it.words.join(" "), it.lines));
            each.collect::<Vec<_>>()
        };
        assert_eq!(
            together("How often did it start?"),
            [
                (0, "start".to_owned(), vec![0, 2, 4, 5]),
                (1, "start".to_owned(), vec![0, 2, 3])
            ]
        );
        assert_eq!(
            together("How often did the valve of the pump leak?"),
            [
                (1, "valve pump leak".to_owned(), vec![1]),
                (0, "pump".to_owned(), vec![1])
            ]
        );
    }

    #[test]
    fn a_file_that_the_question_names_is_the_best_and_nothing_is_nothing() {
        let found = ranked("How long is readme.txt?", &LOGS);
        assert_eq!((found.best, found.is_named), (Some(2), true));
        assert!(!ranked("Are these logs of the plant?", &LOGS).is_named);
        let nothing = |absent: &[&str]| Ranking {
            absent: absent.iter().map(|it| (*it).to_owned()).collect(),
            ..Ranking::default()
        };
        assert_eq!(
            ranked("Who painted the Plants?", &LOGS[..2]),
            nothing(&["paint", "plant"])
        );
        assert_eq!(ranked("Is it?", &LOGS), nothing(&[]));
        assert_eq!(ranked("pump", &[]), nothing(&["pump"]));
    }
}
