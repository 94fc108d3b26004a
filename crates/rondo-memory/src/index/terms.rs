//! Terms of a query: its words, their stems, and runs of characters of languages without spaces.

use std::collections::BTreeSet;

/// The bound on the words of a query; those beyond are left out.
const WORDS_MAX: usize = 32;
/// The bound on parts of words that are searched for.
const PARTS_MAX: usize = 64;
/// The bound on parts that no index finds: each is a look at all memories.
const SHORT_MAX: usize = 16;
/// The shortest part that an index of three characters in a row finds.
pub(super) const PART_CHARS: usize = 3;
/// The shortest stem, in characters.
const STEM_CHARS_MIN: usize = 4;

/// Words that say nothing about what is looked for.
const STOP_WORDS: &[&str] = &[
    "a", "about", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but",
    "by", "can", "could", "did", "do", "does", "for", "from", "had", "has", "have", "how", "i",
    "if", "in", "into", "is", "it", "its", "just", "may", "me", "my", "no", "not", "of", "on",
    "or", "our", "should", "so", "some", "that", "the", "their", "them", "then", "there", "these",
    "they", "this", "those", "to", "us", "was", "we", "were", "what", "when", "where", "which",
    "who", "whom", "why", "will", "with", "would", "you", "your",
];

/// Endings of English words, the longest first.
const ENDINGS: &[&str] = &[
    "isations", "izations", "isation", "ization", "ations", "ments", "ation", "ment", "ings",
    "ions", "ing", "ion", "ies", "ied", "ers", "ed", "er", "es", "ly", "al", "s", "e", "y",
];

/// Terms of a query. All in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Terms {
    /// Words as they are.
    pub(super) words: Vec<String>,
    /// Beginnings of words.
    pub(super) stems: Vec<String>,
    /// Three or more characters in a row.
    pub(super) parts: Vec<String>,
    /// One or two characters in a row.
    pub(super) short: Vec<String>,
}

impl Terms {
    pub(crate) fn of(query: &str) -> Self {
        let mut terms = Self::with(query, &|word| !STOP_WORDS.contains(&word));
        if terms.is_empty() {
            terms = Self::with(query, &|_| true);
        }
        terms
    }

    /// Returns whether there is nothing to search for.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.short.is_empty()
    }

    fn with(query: &str, counts: &dyn Fn(&str) -> bool) -> Self {
        let mut terms = Self::default();
        let mut small = Vec::new();
        for run in runs(query).into_iter().take(WORDS_MAX) {
            match run {
                Run::Spaceless(text) => terms.add_spaceless(&text),
                Run::Word(word) => {
                    let whole = word.to_lowercase();
                    if !counts(&whole) {
                        continue;
                    }
                    if whole.chars().count() < PART_CHARS {
                        small.push(whole.clone());
                    }
                    let inner = inner_words(&word);
                    terms.add_word(whole);
                    for word in inner.into_iter().filter(|it| counts(it)) {
                        terms.add_word(word);
                    }
                }
            }
        }
        if terms.parts.is_empty() && terms.short.is_empty() {
            // Only if there is nothing better: `go` is in `category` too.
            terms.short = small;
        }
        for list in [
            &mut terms.words,
            &mut terms.stems,
            &mut terms.parts,
            &mut terms.short,
        ] {
            let mut seen = BTreeSet::new();
            list.retain(|it| seen.insert(it.clone()));
            list.truncate(PARTS_MAX);
        }
        terms.short.truncate(SHORT_MAX);
        terms
    }

    fn add_word(&mut self, word: String) {
        let stem = stem(&word);
        if stem.chars().count() >= PART_CHARS {
            self.stems.push(stem.clone());
            self.parts.push(word.clone());
            if stem.chars().count() >= STEM_CHARS_MIN {
                self.parts.push(stem);
            }
        }
        self.words.push(word);
    }

    fn add_spaceless(&mut self, text: &str) {
        let chars: Vec<char> = text.chars().collect();
        self.words.push(text.to_owned());
        for part in chars.windows(PART_CHARS) {
            self.parts.push(part.iter().collect());
        }
        match chars.len() {
            1 => self.short.push(text.to_owned()),
            _ => self
                .short
                .extend(chars.windows(2).map(|it| it.iter().collect::<String>())),
        }
    }
}

enum Run {
    Word(String),
    /// Characters of a language that writes no spaces between words.
    Spaceless(String),
}

fn runs(query: &str) -> Vec<Run> {
    let mut runs = Vec::new();
    for c in query.chars() {
        let is_word = c.is_alphanumeric() || c == '_';
        match runs.last_mut() {
            _ if !is_word => runs.push(None),
            Some(Some(Run::Spaceless(run))) if is_spaceless(c) => run.push(c),
            Some(Some(Run::Word(run))) if !is_spaceless(c) => run.push(c),
            _ if is_spaceless(c) => runs.push(Some(Run::Spaceless(c.to_string()))),
            _ => runs.push(Some(Run::Word(c.to_string()))),
        }
    }
    runs.into_iter().flatten().collect()
}

/// Chinese and Japanese; Korean has spaces, but its endings stick to the words.
fn is_spaceless(c: char) -> bool {
    matches!(c,
        '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

/// Returns the words of an identifier: of `max_retries` or `maxRetries` both.
fn inner_words(word: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in word.chars() {
        if c == '_' || (was_lower && c.is_uppercase()) {
            words.push(String::new());
        }
        if c != '_'
            && let Some(last) = words.last_mut()
        {
            last.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase() || c.is_ascii_digit();
    }
    words.retain(|it| !it.is_empty());
    match words.len() {
        0 | 1 => Vec::new(),
        _ => words,
    }
}

/// Returns the common beginning of the forms of an English word: of `retries` and `retried`, `retr`. Too short a stem
/// is none.
fn stem(word: &str) -> String {
    let cut = ENDINGS.iter().find_map(|ending| {
        let stem = word.strip_suffix(ending)?;
        (stem.chars().count() >= STEM_CHARS_MIN && word.is_ascii()).then_some(stem)
    });
    let Some(stem) = cut else {
        return word.to_owned();
    };
    let mut back = stem.chars().rev();
    let (last, before) = (back.next(), back.next());
    let is_doubled = last == before && last.is_some_and(|it| !"aeiouls".contains(it));
    // `retrying` begins like `retries`, `running` like `runs`.
    let is_consonant = before.is_some_and(|it| !"aeiou".contains(it));
    let is_changed = last == Some('y') && is_consonant && stem.len() > STEM_CHARS_MIN;
    match is_doubled || is_changed {
        true => stem.get(..stem.len() - 1).unwrap_or(stem).to_owned(),
        false => stem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(items: &[&str]) -> Vec<String> {
        items.iter().map(|it| (*it).to_owned()).collect()
    }

    #[test]
    fn words_lose_what_says_nothing_and_keep_their_stems() {
        let terms = Terms::of("How do we DEPLOYED the \"retries\"?");
        assert_eq!(terms.words, list(&["deployed", "retries"]));
        assert_eq!(terms.stems, list(&["deploy", "retr"]));
        assert_eq!(terms.short, list(&[]));
    }

    #[test]
    fn an_identifier_is_also_its_words() {
        let expected = list(&[
            "max_retries",
            "max",
            "retries",
            "readtimeout",
            "read",
            "timeout",
        ]);
        assert_eq!(Terms::of("max_retries readTimeout").words, expected);
    }

    #[test]
    fn chinese_is_searched_by_two_and_three_characters() {
        let terms = Terms::of("数据库端口 is 5432");
        assert_eq!(terms.words, list(&["数据库端口", "5432"]));
        assert_eq!(terms.parts, list(&["数据库", "据库端", "库端口", "5432"]));
        assert_eq!(terms.short, list(&["数据", "据库", "库端", "端口"]));
    }

    #[test]
    fn words_that_say_nothing_count_where_there_are_no_others() {
        assert_eq!(Terms::of("who is it").words, list(&["who", "is", "it"]));
        assert_eq!(Terms::of("go").short, list(&["go"]));
        assert!(Terms::of("?! -- \"*").is_empty());
    }

    #[test]
    fn the_words_of_a_query_are_bounded() {
        let words = |count: usize| (0..count).map(|it| format!("w{it}x ")).collect::<String>();
        for count in [WORDS_MAX - 1, WORDS_MAX] {
            assert_eq!(Terms::of(&words(count)).words.len(), count);
        }
        assert_eq!(Terms::of(&words(WORDS_MAX + 1)).words.len(), WORDS_MAX);
    }
}
