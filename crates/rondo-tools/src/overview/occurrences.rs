//! Hints after a search without findings: its words that occur in the files, and similar ones.

use super::looking::{DirectoryContents, look};
use super::words::stem;
use crate::workspace::Workspace;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Words of a search that are looked for, those of files that are compared with them, and those that are named.
const SEARCHED_MAX: usize = 8;
const COMPARED_MAX: usize = 50_000;
const NAMED_MAX: usize = 6;
/// Words like one that no file has which are named.
const LIKE_MAX: usize = 2;
/// Letters of a word that is looked for, and of one that is compared.
const LETTERS_MIN: usize = 3;
const LETTERS_MAX: usize = 40;
/// Letters from which on a word may have one letter otherwise, and two.
const ONE_OTHER_FROM: usize = 5;
const TWO_OTHER_FROM: usize = 8;
/// Programs that search, and those that are run beside them: no words of a search.
const PROGRAMS: &str = "ack awk cat cut echo egrep fgrep find git grep head log print rg sed sort tail tr uniq wc xargs";

/// Words of files that a search without a result may have meant. Its text is [`Display`](fmt::Display).
#[derive(Debug, Default)]
pub struct Occurrences(Vec<Occurrence>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Occurrence {
    word: String,
    /// The first file that has it, as `read_file` may name it.
    file: String,
}

/// The words of all files, in lower case, each with its first place: the file's index, and the word as it is there.
type Words<'a> = HashMap<String, (usize, &'a str)>;

impl Occurrences {
    /// Looks in the working directory of a workspace for the words that a command line searches for. Hidden and ignored
    /// files are left out, and so are links. Blocks for at most 150 milliseconds and one read, and as long as it takes
    /// to compare 50,000 words.
    #[must_use]
    pub fn of(workspace: &Arc<Workspace>, command: &str) -> Self {
        let seen = look(workspace);
        let words = words_of(&seen);
        let mut found: Vec<Occurrence> = Vec::new();
        for searched in searched(command, &seen) {
            for (file, word) in like(&searched, &words) {
                let path = seen.files.get(file).map(|it| it.path.clone());
                let occurrence = Occurrence {
                    word: word.to_owned(),
                    file: path.unwrap_or_default(),
                };
                if found.len() < NAMED_MAX && !found.contains(&occurrence) {
                    found.push(occurrence);
                }
            }
        }
        Self(found)
    }

    /// Returns the files of which words are named, as `read_file` may name them.
    #[must_use]
    pub fn shown_files(&self) -> Vec<&str> {
        let mut files: Vec<&str> = self.0.iter().map(|it| it.file.as_str()).collect();
        files.sort_unstable();
        files.dedup();
        files
    }

    /// Leaves out all words of a file.
    #[must_use]
    pub fn without(mut self, path: &str) -> Self {
        self.0.retain(|it| it.file != path);
        self
    }

    /// Returns whether there is nothing to say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Occurrences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = self.0.iter();
        let each = each.map(|Occurrence { word, file }| format!("`{word}` in {file}"));
        let each: Vec<String> = each.collect();
        write!(f, "(Words that do occur: {})", each.join(", "))
    }
}

/// Returns the words of a command line that are not programs, options or files, in lower case.
fn searched(command: &str, seen: &DirectoryContents) -> Vec<String> {
    let arguments = shlex::split(command).unwrap_or_else(|| {
        let words = command.split_whitespace();
        words.map(str::to_owned).collect()
    });
    let patterns = arguments.iter().filter(|it| !is_place(it, seen));
    let words = patterns.flat_map(|it| it.split(|c: char| !c.is_alphanumeric()));
    let mut searched: Vec<String> = Vec::new();
    for word in words.map(str::to_lowercase) {
        let is_word = word.chars().count() >= LETTERS_MIN || word.chars().any(char::is_numeric);
        let is_program = PROGRAMS.split(' ').any(|it| it == word);
        if is_word && !is_program && !searched.contains(&word) && searched.len() < SEARCHED_MAX {
            searched.push(word);
        }
    }
    searched
}

/// `true` if an argument is an option, or names a place to search.
fn is_place(argument: &str, seen: &DirectoryContents) -> bool {
    let path = argument.trim_start_matches("./").trim_end_matches('/');
    argument.starts_with(['-', '*', '/', '.'])
        || seen.directories.contains_key(path)
        || seen.files.iter().any(|file| file.path == path)
        || path.contains("/*")
}

fn words_of(seen: &DirectoryContents) -> Words<'_> {
    let mut words = Words::new();
    for (index, file) in seen.files.iter().enumerate() {
        for word in file.text.split(|c: char| !c.is_alphanumeric()) {
            let letters = word.chars().take(LETTERS_MAX + 1).count();
            if (1..=LETTERS_MAX).contains(&letters) && words.len() < COMPARED_MAX {
                words.entry(word.to_lowercase()).or_insert((index, word));
            }
        }
    }
    words
}

/// Returns the word itself, or another form of it, or what has nearly its letters, with the file's index.
fn like<'a>(searched: &str, words: &Words<'a>) -> Vec<(usize, &'a str)> {
    if let Some(found) = words.get(searched) {
        return vec![*found];
    }
    let distances = words
        .iter()
        .filter_map(|(word, found)| Some((distance(searched, word)?, word, *found)));
    let mut near: Vec<_> = distances.collect();
    near.sort_unstable();
    near.truncate(LIKE_MAX);
    near.into_iter().map(|(_, _, found)| found).collect()
}

/// Returns how many letters two words differ by, 0 for forms of one word; nothing if they are others.
fn distance(searched: &str, word: &str) -> Option<usize> {
    if searched.chars().chain(word.chars()).any(char::is_numeric) {
        return None;
    }
    if stem(searched) == stem(word) {
        return Some(0);
    }
    let letters = searched.chars().count();
    let others_max = match letters {
        TWO_OTHER_FROM.. => 2,
        ONE_OTHER_FROM.. => 1,
        _ => 0,
    };
    if letters.abs_diff(word.chars().count()) > others_max {
        return None;
    }
    let distance = strsim::osa_distance(searched, word);
    (distance <= others_max).then_some(distance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn occurrences(command: &str) -> Occurrences {
        let directory = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("sales.csv", "Month,Product,Units\nMarch,lamps,58\n");
        write("web/theme.css", "body { color: teal; max_width: 404px }\n");
        write(".secret", "parchment\n");
        Occurrences::of(
            &Arc::new(Workspace::open(directory.path()).unwrap()),
            command,
        )
    }

    #[test]
    fn words_of_a_search_that_occur_are_named_with_their_files() {
        for (command, expected) in [
            (
                "grep -n 'March lamps' sales.csv",
                "`March` in sales.csv, `lamps` in sales.csv",
            ),
            ("grep -rni lamp. .", "`lamps` in sales.csv"),
            (
                "grep -rn \"colour\\|widths\" web | wc -l",
                "`color` in web/theme.css, `width` in web/theme.css",
            ),
            ("grep 'products", "`Product` in sales.csv"),
        ] {
            let found = occurrences(command).to_string();
            assert_eq!(
                found,
                format!("(Words that do occur: {expected})"),
                "{command}"
            );
        }
    }

    #[test]
    fn what_is_far_from_all_words_and_what_is_no_word_names_none() {
        for command in [
            "grep -rn typescript .",
            // A program, an option, files and a directory.
            "grep --color=teal zzz sales.csv ./web web/*.css | sort | head -n 3",
            // Other numbers, and hidden files.
            "grep 405 web/theme.css",
            "grep -rn parchment .",
            "grep -rn mar .",
            "",
        ] {
            let found = occurrences(command);
            assert!(found.is_empty(), "{command}: {found}");
        }
    }

    #[test]
    fn a_file_that_may_not_be_read_is_left_out() {
        let found = occurrences("grep 'March colour'");
        assert_eq!(found.shown_files(), ["sales.csv", "web/theme.css"]);
        let found = found.without("sales.csv");
        assert_eq!(
            found.to_string(),
            "(Words that do occur: `color` in web/theme.css)"
        );
        assert!(found.without("web/theme.css").is_empty());
    }

    #[test]
    fn a_search_of_any_length_names_few_words() {
        let directory = tempfile::tempdir().unwrap();
        let words: Vec<String> = (0..1_000).map(|it| format!("word{it}")).collect();
        fs::write(directory.path().join("a.txt"), words.join(" ")).unwrap();
        let workspace = Arc::new(Workspace::open(directory.path()).unwrap());
        let found = Occurrences::of(&workspace, &format!("grep '{}'", words.join(" ")));
        assert_eq!(found.0.len(), NAMED_MAX);
    }
}
