//! The jobs, and the files that they are about.

use anyhow::Result;
use std::fs;
use std::path::Path;

/// One question whose answer is known.
pub(crate) struct Job {
    pub(crate) name: &'static str,
    pub(crate) prompt: &'static str,
    /// Tool calls without which the answer is a guess.
    pub(crate) calls_min: u64,
    pub(crate) is_right: fn(&str) -> bool,
}

/// The questions.
pub(crate) const JOBS: [Job; 5] = [
    Job {
        name: "count-files",
        prompt: "How many Rust files are under this directory, and which is the longest?",
        calls_min: 1,
        is_right: |answer| has_word(answer, &["5", "five"]) && has(answer, &["orbit.rs"]),
    },
    Job {
        name: "read-number",
        prompt: "Read the file notes/launch.txt and tell me the launch code in it.",
        calls_min: 1,
        is_right: |answer| has_word(answer, &["7319"]),
    },
    Job {
        name: "run-command",
        prompt: "Run the command `wc -l notes/list.txt` and tell me how many lines it counts.",
        calls_min: 1,
        is_right: |answer| has_word(answer, &["23"]),
    },
    Job {
        name: "failing-command",
        prompt: "Run the command `cat notes/missing.txt` and tell me in one sentence whether it \
                 worked, and the error if not.",
        calls_min: 1,
        is_right: |answer| {
            has(
                answer,
                &[
                    "no such file",
                    "not exist",
                    "not found",
                    "fail",
                    "did not work",
                ],
            )
        },
    },
    Job {
        name: "no-tool",
        prompt: "What is 17 plus 25? Answer with the number only.",
        calls_min: 0,
        is_right: |answer| has_word(answer, &["42"]),
    },
];

/// Rust files and their lines: five, and `orbit.rs` is the longest, though not the largest.
const SOURCES: [(&str, usize); 5] = [
    ("src/main.rs", 12),
    ("src/engine.rs", 31),
    ("src/nav/mod.rs", 4),
    ("src/nav/orbit.rs", 87),
    ("src/nav/course.rs", 45),
];
/// Lines of the list that is counted.
const LIST_LINES: usize = 23;

/// Makes the directory that the questions are about.
pub(crate) fn prepare(dir: &Path) -> Result<()> {
    for (path, lines) in SOURCES {
        let width = if path.ends_with("course.rs") { 8 } else { 1 };
        let line = format!("// {}\n", "a line of code ".repeat(width));
        write(&dir.join(path), &line.repeat(lines))?;
    }
    write(
        &dir.join("notes/launch.txt"),
        "Meeting at nine.\nThe launch code is 7319.\nBring tea.\n",
    )?;
    write(&dir.join("notes/list.txt"), &"an item\n".repeat(LIST_LINES))?;
    write(&dir.join("README.txt"), "A small ship.\n")
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, text)?;
    Ok(())
}

fn has_word(answer: &str, any_of: &[&str]) -> bool {
    answer
        .to_lowercase()
        .split(|c: char| !c.is_alphanumeric())
        .any(|word| any_of.contains(&word))
}

fn has(answer: &str, any_of: &[&str]) -> bool {
    let answer = answer.to_lowercase();
    any_of.iter().any(|part| answer.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_right(name: &str, answer: &str) -> bool {
        let job = JOBS.iter().find(|job| job.name == name).unwrap();
        (job.is_right)(answer)
    }

    #[test]
    fn right_answers_are_told_from_wrong_ones() {
        assert!(is_right(
            "count-files",
            "There are 5; the longest is src/nav/orbit.rs."
        ));
        assert!(!is_right(
            "count-files",
            "There are 5; the longest is main.rs."
        ));
        assert!(!is_right(
            "count-files",
            "There are 15, orbit.rs being the longest."
        ));
        assert!(is_right(
            "failing-command",
            "It failed: No such file or directory."
        ));
        assert!(!is_right("read-number", "The code is 7391."));
    }

    #[test]
    fn the_prepared_files_hold_the_answers() {
        let dir = tempfile::tempdir().unwrap();
        prepare(dir.path()).unwrap();
        let list = fs::read_to_string(dir.path().join("notes/list.txt")).unwrap();
        assert_eq!(list.lines().count(), 23);
        let longest = SOURCES.iter().max_by_key(|(_, lines)| lines).unwrap();
        assert_eq!((SOURCES.len(), longest.0), (5, "src/nav/orbit.rs"));
    }
}
