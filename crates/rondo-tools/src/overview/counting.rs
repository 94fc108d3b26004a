//! How many files, directories or lines there are, if a question asks for that alone.
//!
//! A listing with bounds does not tell, and a small model that is shown one takes any number in it for the answer; told which
//! command would count, it often makes up a number. A question that asks for more, such as which files were changed today,
//! has no answer here: a count of too much is worse than none.

use super::looking::one_line;
use crate::blocking::Call;
use crate::walk::{Order, Walk, WalkEntry};
use crate::workspace::{Access, Workspace};
use std::io::{BufReader, Read as _};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time that counting may take, places that are counted in, and bytes of a file whose lines are counted.
const TIME_MAX: Duration = Duration::from_secs(1);
const PLACES_MAX: usize = 4;
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;
/// Words that ask for a count.
const ASKING: [[&str; 2]; 3] = [["how", "many"], ["how", "often"], ["number", "of"]];
/// Words of a question; a longer one asks for more than a count.
const WORDS_MAX: usize = 40;
/// Words around what is counted that change nothing.
const FILLERS: &str = "a all altogether and are at below beneath can contain contained contains count current currently \
    directories directory do does end ending ends entire exist exists extension file files folder folders format has have here \
    i in inside into is it its kind kinds located me my named now of or our please project recursively repo repository s see \
    stored subdirectories subfolders tell that the their there these this those tree type under underneath we whole with \
    within workspace you";
/// Words for files, and for directories.
const FILES: [&str; 2] = ["file", "files"];
const DIRECTORIES: [&str; 6] = [
    "directories",
    "directory",
    "folder",
    "folders",
    "subdirectories",
    "subfolders",
];
/// Words between a kind and `files` that change nothing.
const OF_CODE: [&str; 3] = ["source", "code", "script"];
/// Words by which all levels are meant where directories are counted.
const ALL_LEVELS: [&str; 4] = ["altogether", "below", "recursively", "under"];
/// Kinds of files: how they are called, and how their names end.
const KINDS: [(&str, &str); 28] = [
    ("c", "c"),
    ("c++", "cpp cc cxx"),
    ("css", "css"),
    ("csv", "csv"),
    ("gif", "gif"),
    ("go", "go"),
    ("header", "h hpp"),
    ("html", "html htm"),
    ("image images picture pictures", "png jpg jpeg gif svg webp"),
    ("java", "java"),
    ("javascript js", "js mjs cjs"),
    ("jpg jpeg", "jpg jpeg"),
    ("json", "json"),
    ("log", "log"),
    ("lua", "lua"),
    ("markdown md", "md"),
    ("pdf", "pdf"),
    ("php", "php"),
    ("png", "png"),
    ("python py", "py"),
    ("ruby rb", "rb"),
    ("rust rs", "rs"),
    ("shell bash sh", "sh"),
    ("sql", "sql"),
    ("text txt", "txt"),
    ("toml", "toml"),
    ("typescript ts", "ts tsx"),
    ("yaml yml", "yaml yml"),
];

/// Counted files and lines.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Statements about the counts, one per line.
    pub(super) facts: Vec<String>,
    /// Files whose lines were counted.
    pub(super) files: Vec<String>,
}

/// Counts what a question asks for, if that is nothing but how many files, directories or lines there are. Hidden and
/// ignored ones are left out, and so are links. Blocks for about a second at most.
pub(super) fn count(question: &str, workspace: &Arc<Workspace>) -> Counts {
    let asked = asked(question, workspace);
    let facts = asked.as_ref().and_then(|asked| asked.facts(workspace));
    let files = asked.filter(|it| it.thing == CountedThing::Lines && facts.is_some());
    Counts {
        facts: facts.unwrap_or_default(),
        files: files.map(|it| it.places).unwrap_or_default(),
    }
}

fn asked(question: &str, workspace: &Workspace) -> Option<CountQuestion> {
    let words = words(question)?;
    let mut rest = words.get(behind_asking(&words)?..)?.iter();
    let (thing, endings) = thing(rest.by_ref())?;
    let mut asked = CountQuestion {
        thing,
        endings,
        places: Vec::new(),
        all_levels: thing == CountedThing::Files,
    };
    for word in rest {
        asked.take(word, workspace)?;
    }
    let is_clear = asked.places.len() <= PLACES_MAX;
    is_clear.then_some(asked)
}

/// Returns the words of a question; `None` if it is long.
fn words(question: &str) -> Option<Vec<Word>> {
    let words = question.split_whitespace().filter_map(Word::new);
    let words: Vec<Word> = words.take(WORDS_MAX + 1).collect();
    (words.len() <= WORDS_MAX).then_some(words)
}

/// Returns the place of the word behind the phrase that asks for a count.
fn behind_asking(words: &[Word]) -> Option<usize> {
    let places = ASKING.iter().filter_map(|phrase| {
        let mut pairs = words.windows(phrase.len());
        let place = pairs.position(|pair| pair.iter().map(|word| &word.lower).eq(phrase))?;
        Some(place + phrase.len())
    });
    places.min()
}

/// A word of a question, as it is written there and in lower case.
struct Word {
    text: String,
    lower: String,
}

impl Word {
    fn new(word: &str) -> Option<Self> {
        let text = word.trim_matches(|it: char| "\"'`?!,;:()“”‘’".contains(it));
        let text = text.strip_suffix("'s").unwrap_or(text);
        let text = text
            .trim_end_matches(['.', '?', '`', '"', '\''])
            .trim_end_matches('/');
        (!text.is_empty()).then(|| Self {
            text: text.to_owned(),
            lower: text.to_lowercase(),
        })
    }

    fn is_one_of(&self, words: &[&str]) -> bool {
        words.contains(&self.lower.as_str())
    }

    /// Returns the endings of names that it stands for, as `Rust`, `.rs` and `*.rs` do.
    fn endings(&self) -> Option<Vec<String>> {
        let kinds = KINDS.iter();
        let mut kinds = kinds.filter(|(names, _)| names.split(' ').any(|it| it == self.lower));
        if let Some((_, endings)) = kinds.next() {
            return Some(endings.split(' ').map(str::to_owned).collect());
        }
        let ending = self.text.trim_start_matches('*').strip_prefix('.')?;
        let is_ending = !ending.is_empty() && ending.chars().all(char::is_alphanumeric);
        is_ending.then(|| vec![ending.to_owned()])
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CountedThing {
    Files,
    Directories,
    Lines,
}

/// Takes the words up to the one that says what is counted, and returns the endings of names that those before it mean.
fn thing<'a>(words: impl Iterator<Item = &'a Word>) -> Option<(CountedThing, Vec<String>)> {
    let mut endings = Vec::new();
    for word in words {
        let thing = if word.is_one_of(&FILES) {
            CountedThing::Files
        } else if word.is_one_of(&DIRECTORIES) {
            CountedThing::Directories
        } else if word.lower == "lines" {
            CountedThing::Lines
        } else if let Some(more) = word.endings() {
            endings.extend(more);
            continue;
        } else if is_filler(word) || !endings.is_empty() && word.is_one_of(&OF_CODE) {
            continue;
        } else {
            return None;
        };
        let fits = thing == CountedThing::Files || endings.is_empty();
        return fits.then_some((thing, endings));
    }
    None
}

/// Requested count, with its directory.
struct CountQuestion {
    thing: CountedThing,
    /// Of the files' names; any, if there are none.
    endings: Vec<String>,
    /// Directories, or files where lines are counted, as the question names them.
    places: Vec<String>,
    all_levels: bool,
}

impl CountQuestion {
    /// Takes a word behind the one that says what is counted; `None` if it asks for more than a count.
    fn take(&mut self, word: &Word, workspace: &Workspace) -> Option<()> {
        self.all_levels |= word.is_one_of(&ALL_LEVELS);
        // A directory called `project` is not meant by `this project`.
        if is_filler(word) {
            return Some(());
        }
        let metadata = metadata(workspace, &word.text);
        let is_place = metadata.is_some_and(|it| match self.thing {
            CountedThing::Lines => it.is_file(),
            CountedThing::Files | CountedThing::Directories => it.is_dir(),
        });
        if is_place {
            self.places.push(word.text.clone());
        } else {
            let endings = word
                .endings()
                .filter(|_| self.thing == CountedThing::Files)?;
            self.endings.extend(endings);
        }
        Some(())
    }

    fn facts(&self, workspace: &Arc<Workspace>) -> Option<Vec<String>> {
        let started = Instant::now();
        let here = [".".to_owned()];
        let places: &[String] = match (self.thing, self.places.is_empty()) {
            (CountedThing::Lines, true) => return None,
            (_, true) => &here,
            (_, false) => &self.places,
        };
        let facts = places.iter().map(|place| match self.thing {
            CountedThing::Lines => lines(workspace, place, started),
            CountedThing::Files | CountedThing::Directories => {
                self.entries(workspace, place, started)
            }
        });
        facts.collect()
    }

    /// Counts the files or directories of one.
    fn entries(&self, workspace: &Arc<Workspace>, place: &str, started: Instant) -> Option<String> {
        let call = Call::looking(workspace);
        let located = workspace.locate(place, Access::Read).ok()?;
        let walk = Walk {
            place: &located,
            glob: None,
            depth: (!self.all_levels).then_some(1),
            order: Order::Depth,
            call: &call,
        };
        let (mut count, mut is_cut) = (0_usize, false);
        let hit_bound = walk.each(|found| {
            count += usize::from(self.counts(found));
            is_cut = started.elapsed() >= TIME_MAX;
            Ok(if is_cut {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            })
        });
        let is_cut = hit_bound.ok()? || is_cut;
        let more = if is_cut { "more than " } else { "" };
        let what = match self.thing {
            CountedThing::Directories => "directories",
            CountedThing::Files | CountedThing::Lines => "files",
        };
        let kinds: String = self.endings.iter().map(|it| format!(" *.{it}")).collect();
        let levels = if self.all_levels {
            ", in it and below"
        } else {
            ""
        };
        let name = match place {
            "." => "This directory".to_owned(),
            place => format!("{}/", one_line(place)),
        };
        Some(format!("{name} has {more}{count} {what}{kinds}{levels}"))
    }

    fn counts(&self, found: &WalkEntry) -> bool {
        if self.thing == CountedThing::Directories {
            return found.metadata.is_dir();
        }
        let ending = found.relative.extension().and_then(|it| it.to_str());
        let is_kind = |it: &String| ending.is_some_and(|ending| ending.eq_ignore_ascii_case(it));
        found.metadata.is_file() && (self.endings.is_empty() || self.endings.iter().any(is_kind))
    }
}

/// Counts the lines of a file; `None` if it cannot be read, or is too large for that.
fn lines(workspace: &Workspace, path: &str, started: Instant) -> Option<String> {
    let place = workspace.locate(path, Access::Read).ok()?;
    let (file, metadata) = place.open_file().ok()?;
    if metadata.len() > FILE_BYTES_MAX {
        return None;
    }
    let mut reader = BufReader::new(file.take(FILE_BYTES_MAX));
    let (mut lines, mut last) = (0_usize, b'\n');
    let mut buffer = vec![0; READ_BYTES];
    while started.elapsed() < TIME_MAX {
        let read = reader.read(&mut buffer).ok()?;
        let Some(bytes) = buffer.get(..read).filter(|bytes| !bytes.is_empty()) else {
            let lines = lines + usize::from(last != b'\n');
            return Some(format!("{} has {lines} lines", one_line(path)));
        };
        lines += bytes.iter().filter(|byte| **byte == b'\n').count();
        last = bytes.last().copied().unwrap_or(last);
    }
    None
}

fn is_filler(word: &Word) -> bool {
    FILLERS.split_whitespace().any(|it| it == word.lower)
}

fn metadata(workspace: &Workspace, path: &str) -> Option<cap_std::fs::Metadata> {
    let place = workspace.locate(path, Access::Read).ok()?;
    place.dir().symlink_metadata(&place.relative).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn directory() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for path in [
            "crates/one/src/lib.rs",
            "crates/one/src/deep/er/more/and/more/main.rs",
            "crates/one/Cargo.toml",
            "crates/two/LIB.RS",
            "crates/two/target/made.rs",
            "crates/.hidden/lib.rs",
            "docs/a.md",
            "docs/b.yml",
            "docs/c.yaml",
            "project/a.txt",
        ] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        fs::write(dir.path().join(".gitignore"), "target\n").unwrap();
        fs::write(dir.path().join("README.md"), "One.\nTwo.\nThree.").unwrap();
        dir
    }

    fn facts(questions: &[&str]) -> Vec<String> {
        let dir = directory();
        let workspace = Arc::new(Workspace::open(dir.path()).unwrap());
        let facts = |question: &&str| count(question, &workspace).facts.join("; ");
        questions.iter().map(facts).collect()
    }

    #[test]
    fn files_of_a_kind_are_counted_on_all_levels_but_no_hidden_and_ignored_ones() {
        let questions = [
            "How many Rust files are under the directory crates?",
            "how many rust source files are in crates/",
            "How many files in `crates` are Rust?",
            "How many .rs files does crates contain?",
            "What is the number of files in the crates folder that end in .rs?",
            "Count: how many *.rs files are there in \"crates\"?",
        ];
        for (question, fact) in questions.iter().zip(facts(&questions)) {
            assert_eq!(
                fact, "crates/ has 3 files *.rs, in it and below",
                "{question}"
            );
        }
        let questions = [
            "How many files are in docs?",
            "How many YAML files are in docs?",
            "How many files are in crates/one/src and docs?",
            "How many files does this project have?",
            "How many Python files are there?",
        ];
        assert_eq!(
            facts(&questions),
            [
                "docs/ has 3 files, in it and below",
                "docs/ has 2 files *.yaml *.yml, in it and below",
                "crates/one/src/ has 2 files, in it and below; docs/ has 3 files, in it and below",
                "This directory has 9 files, in it and below",
                "This directory has 0 files *.py, in it and below",
            ]
        );
    }

    #[test]
    fn directories_and_lines_of_a_file_are_counted() {
        let questions = [
            "How many directories are in crates?",
            "How many folders are there under crates?",
            "How many subdirectories does this directory have?",
            "How many lines does README.md have?",
            "how many lines has docs/a.md?",
        ];
        assert_eq!(
            facts(&questions),
            [
                "crates/ has 2 directories",
                "crates/ has 8 directories, in it and below",
                "This directory has 3 directories",
                "README.md has 3 lines",
                "docs/a.md has 0 lines",
            ]
        );
    }

    #[test]
    fn a_question_for_more_than_a_count_is_not_answered() {
        let long = format!("How many files are in {}?", "crates ".repeat(WORDS_MAX));
        let questions = [
            "How many files were changed today?",
            "How many files are in nowhere?",
            "How many files are in ../?",
            "How many files are in crates, docs, crates/one, crates/two and crates/one/src?",
            "How many files are larger than 1 MB?",
            "How many test files are there?",
            "How many source files are there?",
            "How many lines of code are there?",
            "How many lines of README.md have the word One?",
            "How many tests are in crates?",
            "How many lamps were sold in March?",
            "How many Rust directories are there?",
            "Which files are in crates?",
            "How many",
            long.as_str(),
            "",
        ];
        for (question, fact) in questions.iter().zip(facts(&questions)) {
            assert_eq!(fact, "", "{question}");
        }
    }

    #[test]
    fn what_there_was_no_time_for_is_said() {
        let dir = directory();
        let workspace = Arc::new(Workspace::open(dir.path()).unwrap());
        let asked = asked("How many files are in docs?", &workspace).unwrap();
        let long_ago = Instant::now().checked_sub(TIME_MAX).unwrap();
        assert_eq!(
            asked.entries(&workspace, "docs", long_ago).unwrap(),
            "docs/ has more than 1 files, in it and below"
        );
        assert_eq!(lines(&workspace, "README.md", long_ago), None);
    }
}
