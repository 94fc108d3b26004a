//! Decides whether a line is complete or continues on the next one.

use super::shared::Shared;
use crate::repl::mode::Mode;
use reedline::{ValidationResult, Validator};

/// Says whether a line is whole, or Enter begins another one below it.
pub(super) struct Whole {
    shared: Shared,
}

impl Whole {
    pub(super) fn new(shared: Shared) -> Self {
        Self { shared }
    }
}

impl Validator for Whole {
    fn validate(&self, line: &str) -> ValidationResult {
        let goes_on = match self.shared.mode() {
            Mode::Agent => ends_open(line),
            Mode::Shell if line.trim_start().starts_with('#') => ends_open(line),
            Mode::Shell => !rondo_policy::is_complete(line),
            Mode::Python => !line.trim().is_empty() && self.shared.is_cell_open(line),
        };
        match goes_on {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Complete,
        }
    }
}

/// Returns whether a line ends with a backslash that is not itself quoted by one.
fn ends_open(line: &str) -> bool {
    let backslashes = line.len() - line.trim_end_matches('\\').len();
    backslashes % 2 == 1
}
