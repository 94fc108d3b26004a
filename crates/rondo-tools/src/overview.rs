//! Overview of a directory that a small model gets before a question: a listing, and the findings of a search for the
//! question's own words.
//!
//! A small model chooses commands badly and reads well, so what a careful reader would look up first
//! is there already. All of it is bounded: in entries, files, bytes and time.

mod counting;
mod listing;
mod looking;
mod occurrences;
mod rank;
mod table;
#[cfg(test)]
mod tests;
mod words;

use crate::workspace::Workspace;
use counting::Counts;
use looking::{DirectoryContents, look};
pub use occurrences::Occurrences;
use rank::{MatchingLines, Ranking, TextFile, rank};
use std::fmt;
use std::sync::Arc;

/// Bytes up to which the file that fits best is shown whole.
const WHOLE_BYTES_MAX: usize = 700;
/// Lines of all files that are shown, characters of one, and characters of all that was found.
const HITS_MAX: usize = 6;
const LINE_CHARS_MAX: usize = 120;
const FOUND_CHARS_MAX: usize = 1_000;
/// Lines that score less than this share of the best are not shown.
const SHARE_MIN: f64 = 0.5;
/// Files of which the lines that have all words are shown or counted, and lines of a file that is shown
/// whole that are shown once more.
const TOGETHER_MAX: usize = 2;
const AGAIN_MAX: usize = 2;
/// Phrases by which a question asks for a count.
const COUNTING: [&str; 5] = ["how many", "how often", "count", "number of", "how much"];
/// Words that no file has which are named.
const ABSENT_MAX: usize = 6;
/// Instruction after the findings: without it, small models run a command all the same.
const ANSWER_NOW: &str = "(If <found> holds the answer, answer now.)";

/// Overlap of a question and a directory. Its text is [`Display`](fmt::Display).
#[derive(Debug, Default)]
pub struct Overview {
    seen: DirectoryContents,
    ranking: Ranking,
    /// Set if the question asks for a count.
    counts: bool,
    counted: Counts,
    /// Files that may not be shown.
    hidden: Vec<usize>,
}

impl Overview {
    /// Looks at the working directory of a workspace. Hidden and ignored files are left out, and so are
    /// links. Blocks for at most 150 milliseconds and one read, and about a second more if the question asks how many
    /// files there are.
    #[must_use]
    pub fn of(workspace: &Arc<Workspace>, question: &str) -> Self {
        let seen = look(workspace);
        let lower = question.to_lowercase();
        Self {
            ranking: rank(&words::words(question), &seen.files),
            counts: COUNTING.iter().any(|it| lower.contains(it)),
            counted: counting::count(question, workspace),
            hidden: Vec::new(),
            seen,
        }
    }

    /// Returns the files of which lines are shown, as `read_file` may name them.
    #[must_use]
    pub fn shown_files(&self) -> Vec<&str> {
        let hits = self.ranking.hits.iter().take(HITS_MAX).map(|hit| hit.file);
        let together = self
            .ranking
            .together
            .iter()
            .take(TOGETHER_MAX)
            .map(|it| it.file);
        let best = self.ranking.best.into_iter();
        let mut files: Vec<usize> = best.chain(hits).chain(together).collect();
        files.sort_unstable();
        files.dedup();
        let path = |file: usize| Some(self.seen.files.get(file)?.path.as_str());
        let counted = self.counted.files.iter().map(String::as_str);
        files.into_iter().filter_map(path).chain(counted).collect()
    }

    /// Shows nothing of a file but its name.
    #[must_use]
    pub fn without(mut self, path: &str) -> Self {
        let hidden = self.seen.files.iter().position(|file| file.path == path);
        self.hidden.extend(hidden);
        if self.counted.files.iter().any(|file| file == path) {
            self.counted = Counts::default();
        }
        self
    }

    fn may_show(&self, file: usize) -> bool {
        !self.hidden.contains(&file)
    }

    /// `true` if a count is requested that may need files which were not read.
    fn may_miss_some(&self) -> bool {
        let is_known =
            self.seen.is_whole || self.ranking.is_named || !self.counted.facts.is_empty();
        self.counts && !is_known
    }

    /// Returns the lines of what was found.
    fn found(&self) -> Vec<String> {
        let mut found = Lines::default();
        let best = self.ranking.best.filter(|file| self.may_show(*file));
        let best = best.and_then(|file| Some((file, self.seen.files.get(file)?)));
        let whole = best.filter(|(_, file)| is_short(&file.text));
        if let Some((_, file)) = whole {
            found.push(&format!("{}:", file.path));
            for line in file.text.trim_matches('\n').lines() {
                found.push(line);
            }
        }
        if let Some((_, file)) = best {
            let facts = table::facts(&file.path, &file.text);
            if whole.is_none() && !facts.is_empty() {
                found.push(&format!("{}:1: {}", file.path, first_line(&file.text)));
            }
            facts.iter().for_each(|fact| found.push_whole(fact));
        }
        let whole = whole.map(|(file, _)| file);
        for (file, line) in self.likely_lines(whole) {
            found.push_hit(self.seen.files.get(file), line);
        }
        for together in self.ranking.together.iter().take(TOGETHER_MAX) {
            if self.may_show(together.file) {
                self.push_together(together, whole, &mut found);
            }
        }
        let absent = self.ranking.absent.iter().take(ABSENT_MAX);
        let absent: Vec<String> = absent.map(|word| format!("`{word}`")).collect();
        // Beside what was found it would read as if that did not count.
        if !absent.is_empty() && found.lines.is_empty() && self.seen.is_whole {
            found.push(&format!("No file has {}", absent.join(", ")));
        }
        found.lines
    }

    /// Returns the likeliest lines of files that are not shown whole, in the files' order.
    fn likely_lines(&self, whole: Option<usize>) -> Vec<(usize, usize)> {
        let hits = self.ranking.hits.iter();
        let mut hits = hits.filter(|hit| self.may_show(hit.file) && whole != Some(hit.file));
        let least = hits.clone().next().map_or(0.0, |hit| hit.score * SHARE_MIN);
        let likely = hits
            .by_ref()
            .take(HITS_MAX)
            .take_while(|hit| hit.score >= least);
        let mut lines: Vec<_> = likely.map(|hit| (hit.file, hit.line)).collect();
        lines.sort_unstable();
        lines
    }

    /// Shows the lines of a file that have all words of its best one, and says how many there are.
    fn push_together(&self, together: &MatchingLines, whole: Option<usize>, found: &mut Lines) {
        let Some(file) = self.seen.files.get(together.file) else {
            return;
        };
        let (lines, words) = (&together.lines, &together.words);
        if whole == Some(together.file) && words.len() > 1 && lines.len() <= AGAIN_MAX {
            let is_header =
                |line: usize| line == 0 && !table::facts(&file.path, &file.text).is_empty();
            for line in lines.iter().filter(|line| !is_header(**line)) {
                found.push_hit(Some(file), *line);
            }
        }
        if self.counts && !self.may_miss_some() && lines.len() > 1 {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            let (count, words) = (lines.len(), words.join(" and "));
            found.push_whole(&format!("{count} lines of {} with {words}", file.path));
        }
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// `true` if a file is shown whole.
fn is_short(text: &str) -> bool {
    let text = text.trim_matches('\n');
    !text.is_empty() && text.len() <= WHOLE_BYTES_MAX
}

/// Lines within their bound.
#[derive(Default)]
struct Lines {
    lines: Vec<String>,
    chars: usize,
}

impl Lines {
    /// Adds a line, cut to its bound, while there is room.
    fn push(&mut self, line: &str) {
        let line: String = line.trim_end().chars().take(LINE_CHARS_MAX).collect();
        self.push_whole(&line);
    }

    fn push_whole(&mut self, line: &str) {
        self.chars += line.chars().count() + 1;
        if self.chars <= FOUND_CHARS_MAX {
            self.lines.push(line.to_owned());
        }
    }

    fn push_hit(&mut self, file: Option<&TextFile>, line: usize) {
        if let Some(file) = file
            && let Some(text) = file.text.lines().nth(line)
        {
            let text: String = text.trim().chars().take(LINE_CHARS_MAX).collect();
            self.push_whole(&format!("{}:{}: {text}", file.path, line + 1));
        }
    }
}

impl fmt::Display for Overview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        listing::write(f, &self.seen)?;
        // If it was counted, what was found says nothing more.
        let counted = &self.counted.facts;
        let found = self.found();
        let found = if counted.is_empty() { &found } else { counted };
        if !found.is_empty() {
            write!(f, "\n<found>\n{}\n</found>", found.join("\n"))?;
        }
        if found.is_empty() || self.may_miss_some() {
            return Ok(());
        }
        write!(f, "\n{ANSWER_NOW}")
    }
}
