//! Parser of the test runner's output.

use std::fmt;

/// The tests that are remembered; what is past it is only counted.
const TESTS_MAX: usize = 100_000;

/// The lines of failed tests that are kept, and the bytes of each.
const FAILURE_LINES_MAX: usize = 400;
const FAILURE_LINE_BYTES_MAX: usize = 1_000;
/// Text of the runner around the name of a test before its output, if it failed.
const OUTPUT_OF: (&str, &str) = ("---- ", " stdout ----");

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Passed,
    Failed,
    Ignored,
}

impl Status {
    const ALL: [Self; 3] = [Self::Passed, Self::Failed, Self::Ignored];

    /// Returns the word of the runner for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Passed => "ok",
            Self::Failed => "FAILED",
            Self::Ignored => "ignored",
        }
    }

    /// Returns the status that begins with the runner's word, if one does.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|status| text.starts_with(status.word()))
    }
}

/// The runner's own counts, summed over all its binaries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) ignored: u64,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.ignored > 0 {
            write!(f, ", {} ignored", self.ignored)?;
        }
        Ok(())
    }
}

/// Everything that was understood so far.
#[derive(Debug, Default)]
pub(crate) struct TestOutput {
    pub(crate) tests: Vec<(String, Status)>,
    pub(crate) totals: Totals,
    /// Output of the failed tests, each after its name.
    pub(crate) failures: Vec<String>,
    is_in_failure: bool,
}

impl TestOutput {
    /// Takes one line of the runner's standard output.
    pub(crate) fn line(&mut self, line: &str) {
        let (before, after) = OUTPUT_OF;
        self.is_in_failure = (self.is_in_failure && line != "failures:")
            || (line.starts_with(before) && line.ends_with(after));
        if self.is_in_failure && self.failures.len() < FAILURE_LINES_MAX {
            let end = line.floor_char_boundary(FAILURE_LINE_BYTES_MAX);
            self.failures
                .push(line.get(..end).unwrap_or_default().to_owned());
        }
        if let Some((_, counts)) = line.split_once("test result: ") {
            self.totals.passed += count_before(counts, " passed");
            self.totals.failed += count_before(counts, " failed");
            self.totals.ignored += count_before(counts, " ignored");
        } else if let Some(test) = test_line(line)
            && self.tests.len() < TESTS_MAX
        {
            self.tests.push(test);
        }
    }
}

/// A child's own output may be before or inside the runner's line, so that a name that does not
/// begin the line is looked for, and the status at the end as well.
fn test_line(line: &str) -> Option<(String, Status)> {
    let rest = line
        .strip_prefix("test ")
        .or_else(|| line.rsplit_once("test ").map(|(_, rest)| rest))?;
    let (name, status) = rest.split_once(" ... ")?;
    let status = Status::parse(status)
        .or_else(|| Status::ALL.into_iter().find(|s| status.ends_with(s.word())))?;
    Some((name.to_owned(), status))
}

fn count_before(text: &str, word: &str) -> u64 {
    text.split_once(word)
        .and_then(|(before, _)| before.rsplit([' ', ';']).next())
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> TestOutput {
        let mut output = TestOutput::default();
        text.lines().for_each(|line| output.line(line));
        output
    }

    #[test]
    fn names_states_and_counts_are_read() {
        let output = read(
            "running 2 tests\ntest machine::fa_7_x ... ok\ntest gs_1_y ... FAILED\n\
             test result: FAILED. 1 passed; 1 failed; 3 ignored; 0 measured; 9 filtered out\n\
             test result: ok. 40 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n",
        );
        assert_eq!(
            output.tests,
            [
                ("machine::fa_7_x".to_owned(), Status::Passed),
                ("gs_1_y".to_owned(), Status::Failed)
            ]
        );
        assert_eq!(
            output.totals,
            Totals {
                passed: 41,
                failed: 1,
                ignored: 3
            }
        );
        assert_eq!(output.totals.to_string(), "41 passed, 1 failed, 3 ignored");
    }

    #[test]
    fn a_childs_output_does_not_hide_a_test() {
        let output = read("hello from a childtest pty::gs_11_live ... noiseok\n");
        assert_eq!(
            output.tests,
            [("pty::gs_11_live".to_owned(), Status::Passed)]
        );
    }

    #[test]
    fn what_failed_tests_wrote_is_kept() {
        let output = read(
            "test a ... FAILED\n\nfailures:\n\n---- a stdout ----\n\nthread 'a' panicked at b.rs:1:2:\nno\n\n\n\
             failures:\n    a\n\ntest result: FAILED. 0 passed; 1 failed\ntest b ... ok\n",
        );
        let lines: Vec<&str> = output.failures.iter().map(String::as_str).collect();
        let lines: Vec<&str> = lines.into_iter().filter(|it| !it.is_empty()).collect();
        assert_eq!(
            lines,
            [
                "---- a stdout ----",
                "thread 'a' panicked at b.rs:1:2:",
                "no"
            ]
        );
    }

    #[test]
    fn other_lines_are_no_tests() {
        assert!(
            read("running 0 tests\n\n   Doc-tests rondo\ntest\n")
                .tests
                .is_empty()
        );
    }
}
