//! Finds tools by words, as ranking of text does: rare words weigh more, and those of a name more than others.

use super::catalog::Entry;
use std::collections::{HashMap, HashSet};

/// The bound on words of a query.
const WORDS_MAX: usize = 32;
/// How much more a word in a name says than one in a description.
const NAME_WEIGHT: f64 = 3.0;
/// How much a word says that only begins like one that is asked for.
const PREFIX_WEIGHT: f64 = 0.5;
/// The shortest word of which a beginning is looked for.
const PREFIX_CHARS_MIN: usize = 4;

/// Returns the positions of the entries that fit best, at most `limit`, the best first.
pub(crate) fn search(entries: &[Entry], query: &str, limit: usize) -> Vec<usize> {
    let wanted: HashSet<String> = words(query).take(WORDS_MAX).collect();
    let texts: Vec<Text> = entries.iter().map(Text::of).collect();
    let weights: HashMap<&String, f64> = wanted
        .iter()
        .map(|word| (word, rarity(word, &texts)))
        .collect();
    let score = |text: &Text| {
        weights
            .iter()
            .map(|(word, weight)| text.fits(word) * weight)
            .sum::<f64>()
    };
    let mut scored: Vec<(usize, f64)> = texts
        .iter()
        .map(score)
        .enumerate()
        .filter(|it| it.1 > 0.0)
        .collect();
    // The order of equals is that of the servers.
    scored.sort_by(|one, other| other.1.total_cmp(&one.1));
    scored.into_iter().take(limit).map(|it| it.0).collect()
}

/// The words of a tool.
struct Text {
    name: HashSet<String>,
    rest: HashSet<String>,
}

impl Text {
    fn of(entry: &Entry) -> Self {
        let tool = &entry.offered;
        let arguments = tool.spec.parameters.get("properties");
        let arguments = arguments.and_then(serde_json::Value::as_object);
        let arguments = arguments.into_iter().flat_map(|it| it.keys());
        let rest = words(&tool.spec.description).chain(arguments.flat_map(|it| words(it)));
        let title = tool.definition.title.as_deref().unwrap_or_default();
        Self {
            name: words(&entry.server.name)
                .chain(words(&tool.definition.name))
                .chain(words(title))
                .collect(),
            rest: rest.collect(),
        }
    }

    fn fits(&self, word: &str) -> f64 {
        let begins = |words: &HashSet<String>| {
            word.chars().count() >= PREFIX_CHARS_MIN
                && words.iter().any(|it| {
                    it.starts_with(word)
                        || it.len() >= PREFIX_CHARS_MIN && word.starts_with(it.as_str())
                })
        };
        let in_part = |words: &HashSet<String>| match words.contains(word) {
            true => 1.0,
            false if begins(words) => PREFIX_WEIGHT,
            false => 0.0,
        };
        in_part(&self.name) * NAME_WEIGHT + in_part(&self.rest)
    }
}

fn rarity(word: &str, texts: &[Text]) -> f64 {
    let with = texts.iter().filter(|text| text.fits(word) > 0.0).count();
    // A word that is in every tool still counts a little.
    (texts.len() as f64 + 1.0).ln() - (with as f64 + 0.5).ln()
}

/// Returns the words of a text in lower case; `listIssues` and `list_issues` are two.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    for it in text.chars() {
        let begins = it.is_uppercase() && was_lower;
        if (begins || !it.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if it.is_alphanumeric() {
            word.extend(it.to_lowercase());
        }
        was_lower = it.is_lowercase() || it.is_numeric();
    }
    if !word.is_empty() {
        words.push(word);
    }
    words.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_apart_by_case_and_signs() {
        let all = |text: &str| words(text).collect::<Vec<_>>();
        assert_eq!(
            all("listIssues list_issues HTTPGet"),
            ["list", "issues", "list", "issues", "httpget"]
        );
        assert_eq!(all("Größe: 数据库!"), ["größe", "数据库"]);
        assert_eq!(all(""), [""; 0]);
    }
}
