//! The words of a question that a search of files makes sense for.

/// Words that say nothing about files, or name what a listing or a command tells.
const STOP_WORDS: &str = "a about all also an and any anywhere are as at be been by called can command compute contain \
    contains count current did directories directory do does each file files find folder for from \
    get give go got had has have here hold how i if in into is it its line lines list listed lists \
    made many me mean means most much must name named names no not number of on one or our out \
    please project python repository run say says set shell show since so tell text than that the \
    their them then there these they this those to under up us use used uses was we were what when \
    where which who whom whose why will with word words you your yours";
/// Endings that are cut, so that `failed` finds `fails`; what is left has three letters or more.
const ENDINGS: [&str; 5] = ["ies", "ing", "ed", "es", "s"];
const STEM_MIN: usize = 3;
/// Letters of a word; one with a digit may be shorter.
const LETTERS_MIN: usize = 3;
/// Words of one question; the rest is left out.
const WORDS_MAX: usize = 12;

/// A word to search for, in lower case and without its ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    /// A word with digits in it is looked for as a whole: `404` is not in `6404`, nor `S1` in `S12`.
    is_whole: bool,
}

/// Returns the words of a question, each once.
pub(super) fn words(question: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let parts = question.split(|it: char| !(it.is_alphanumeric() || "_-./'".contains(it)));
    for part in parts {
        let lower = part.to_lowercase();
        let trimmed = lower.trim_matches(|it: char| !it.is_alphanumeric() && it != '_');
        let bare = trimmed.strip_suffix("'s").unwrap_or(trimmed);
        let is_whole = bare.chars().any(char::is_numeric);
        let is_long = bare.chars().count() >= LETTERS_MIN || is_whole;
        if !is_long || STOP_WORDS.split(' ').any(|it| it == bare) {
            continue;
        }
        let text = stem(bare).to_owned();
        if words.len() < WORDS_MAX && words.iter().all(|word| word.text != text) {
            words.push(Word { text, is_whole });
        }
    }
    words
}

/// Returns a word without its ending.
pub(super) fn stem(word: &str) -> &str {
    if !word.chars().all(char::is_alphabetic) {
        return word;
    }
    let mut stems = ENDINGS
        .iter()
        .filter_map(|ending| word.strip_suffix(ending));
    stems
        .find(|stem| stem.chars().count() >= STEM_MIN)
        .unwrap_or(word)
}

impl Word {
    /// Returns whether a text, in lower case, has the word, at the beginning of one of its own.
    pub(super) fn is_in(&self, text: &str) -> bool {
        text.match_indices(&self.text).any(|(at, found)| {
            let before = text.get(..at).and_then(|it| it.chars().next_back());
            let after = text
                .get(at + found.len()..)
                .and_then(|it| it.chars().next());
            let inside = |it: Option<char>| it.is_some_and(char::is_alphanumeric);
            !(inside(before) || self.is_whole && inside(after))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(question: &str) -> Vec<String> {
        words(question).into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn words_that_say_nothing_and_endings_are_left_out() {
        assert_eq!(
            texts("How many lines of access.log have the status 404?"),
            ["access.log", "statu", "404"]
        );
        assert_eq!(
            texts("Which tests failed, and which test didn't?"),
            ["test", "fail", "didn't"]
        );
        assert_eq!(texts("What is Marta's phone number?"), ["marta", "phone"]);
        assert_eq!(texts("Did S4 go on?"), ["s4"]);
        assert_eq!(texts("What is it?"), Vec::<String>::new());
        assert_eq!(
            texts("Wie heißt die Größe 'Übermaß'?"),
            ["wie", "heißt", "die", "größe", "übermaß"]
        );
    }

    #[test]
    fn a_question_of_any_length_has_few_words() {
        let long: String = (0..1000).map(|it| format!("word{it} ")).collect();
        assert_eq!(words(&long).len(), WORDS_MAX);
    }

    #[test]
    fn a_word_begins_where_one_of_the_text_does_and_a_number_ends_there_too() {
        let is_in = |word: &str, text: &str| words(word)[0].is_in(text);
        assert!(is_in("port", "the ports") && is_in("port", "server_port"));
        assert!(!is_in("port", "support"));
        assert!(is_in("404", "\" 404 162") && !is_in("404", "200 6404") && !is_in("404", "4040"));
        assert!(is_in("sauce", "saucen") && is_in("ß1", "ß1"));
    }
}
