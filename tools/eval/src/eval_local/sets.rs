//! The questions, and the projects that they are about: `eval/*.toml`.

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A set of sixteen questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Set {
    /// The one that prompts are tuned on.
    First,
    /// One that nothing is tuned on.
    Second,
    /// Another one that nothing is tuned on.
    Third,
}

/// The questions of a set, and their projects.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Questions {
    #[serde(rename = "question")]
    pub(crate) questions: Vec<Question>,
    #[serde(rename = "project")]
    projects: BTreeMap<String, Project>,
}

/// One question whose answer is known.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Question {
    pub(crate) name: String,
    /// The project it is about.
    pub(crate) project: String,
    pub(crate) ask: String,
    /// Of each list, the answer must hold one; in lower case. A number, and what begins with `=`, must
    /// be a word of its own.
    expect: Vec<Vec<String>>,
    /// Words that the answer must not hold.
    #[serde(default)]
    avoid: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Project {
    files: BTreeMap<String, String>,
    /// Messages of its commits, if it is a repository; all files are in the first one.
    #[serde(default)]
    commits: Vec<String>,
    /// The branch that is checked out, if not `main`.
    branch: Option<String>,
}

impl Set {
    /// Reads the set.
    ///
    /// # Errors
    /// When its file is not as described here.
    pub(crate) fn read(self) -> Result<Questions> {
        let text = match self {
            Self::First => include_str!("../../eval/first.toml"),
            Self::Second => include_str!("../../eval/second.toml"),
            Self::Third => include_str!("../../eval/third.toml"),
        };
        toml::from_str(text).with_context(|| format!("the set {self:?} cannot be read"))
    }
}

impl Question {
    /// Returns whether an answer is right.
    pub(crate) fn is_right(&self, answer: &str) -> bool {
        let answer = answer.to_lowercase().replace(',', "");
        let holds = |part: &String| {
            let word = part.strip_prefix('=');
            if word.is_some() || part.chars().all(|it| it.is_ascii_digit()) {
                let mut words = answer.split(|it: char| !it.is_alphanumeric());
                words.any(|found| found == word.unwrap_or(part))
            } else {
                answer.contains(part.as_str())
            }
        };
        let expected = self.expect.iter().all(|any_of| any_of.iter().any(holds));
        expected && !self.avoid.iter().any(holds)
    }
}

impl Questions {
    /// Makes the directory that a question is about.
    ///
    /// # Errors
    /// When a file cannot be written, or git fails.
    pub(crate) fn prepare(&self, question: &Question, dir: &Path) -> Result<()> {
        let project = self.projects.get(&question.project);
        let project = project.with_context(|| format!("no project `{}`", question.project))?;
        for (path, text) in &project.files {
            let path = dir.join(path);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(path, text.strip_prefix('\n').unwrap_or(text))?;
        }
        if project.commits.is_empty() {
            return Ok(());
        }
        git(dir, &["init", "--quiet", "--initial-branch", "main"])?;
        git(dir, &["add", "."])?;
        for message in &project.commits {
            git(dir, &["commit", "--quiet", "--allow-empty", "-m", message])?;
        }
        if let Some(branch) = &project.branch {
            git(dir, &["switch", "--quiet", "-c", branch])?;
        }
        Ok(())
    }
}

fn git(dir: &Path, arguments: &[&str]) -> Result<()> {
    let identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
    let status = Command::new("git")
        .current_dir(dir)
        .args(identity)
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdin(Stdio::null())
        .status()
        .context("failed to start git")?;
    ensure!(status.success(), "git failed: {arguments:?}");
    if !dir.join(".git").exists() {
        bail!("git made no repository");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const ALL: [Set; 3] = [Set::First, Set::Second, Set::Third];

    #[test]
    fn each_set_has_sixteen_questions_of_one_name_about_five_projects() {
        let mut asked = HashSet::new();
        for set in ALL {
            let questions = set.read().unwrap();
            let names: HashSet<_> = questions.questions.iter().map(|it| &it.name).collect();
            assert_eq!((names.len(), questions.projects.len()), (16, 5), "{set:?}");
            for question in &questions.questions {
                assert!(asked.insert(question.ask.clone()), "{}", question.ask);
                assert!(questions.projects.contains_key(&question.project));
            }
        }
    }

    #[test]
    fn the_prepared_files_hold_the_answers() {
        let first = Set::First.read().unwrap();
        let prepared = |questions: &Questions, name: &str| {
            let dir = tempfile::tempdir().unwrap();
            let mut all = questions.questions.iter();
            let question = all.find(|it| it.name == name).unwrap();
            questions.prepare(question, dir.path()).unwrap();
            dir
        };
        let server = prepared(&first, "count-404");
        let log = fs::read_to_string(server.path().join("access.log")).unwrap();
        assert_eq!(log.matches(" 404 ").count(), 7);
        let sales = prepared(&first, "sum");
        let table = fs::read_to_string(sales.path().join("sales.csv")).unwrap();
        let units = table
            .lines()
            .filter_map(|it| it.rsplit(',').next()?.parse::<u32>().ok());
        assert_eq!(units.sum::<u32>(), 423);
        let third = Set::Third.read().unwrap();
        let trip = prepared(&third, "count-photos");
        assert_eq!(fs::read_dir(trip.path().join("photos")).unwrap().count(), 6);
        let raytrace = prepared(&third, "branch");
        let head = fs::read_to_string(raytrace.path().join(".git/HEAD")).unwrap();
        assert_eq!(head, "ref: refs/heads/feature/shadows\n");
        let books = prepared(&third, "count-books");
        let books = fs::read_to_string(books.path().join("books.csv")).unwrap();
        assert_eq!(books.lines().count(), 15);
    }

    #[test]
    fn a_number_inside_another_and_what_is_to_be_avoided_are_wrong() {
        let find = |set: Set, name: &str| {
            let mut all = set.read().unwrap().questions.into_iter();
            all.find(|it| it.name == name).unwrap()
        };
        let count = find(Set::First, "count-chapters");
        assert!(count.is_right("There are 4 chapters."));
        assert!(!count.is_right("There are 14 chapters."));
        let restart = find(Set::Third, "restart");
        assert!(restart.is_right("Yes, at 05:33."));
        assert!(!restart.is_right("No, it did not restart. Yes?"));
        let gold = find(Set::Third, "gold");
        assert!(gold.is_right("It is Au."));
        assert!(!gold.is_right("Gold was caught."));
    }
}
