//! Outcome of the calls that were in doubt.

use rondo_types::InDoubtDecision;
use std::collections::BTreeMap;
use std::fmt;

/// The tools that must be resolved: those of Rondo itself.
const BUILT_IN: [&str; 6] = [
    "edit_file",
    "exec",
    "list_files",
    "read_file",
    "search_files",
    "write_file",
];
/// How many of a hundred calls of theirs at least.
const RESOLVED_PERCENT_MIN: usize = 95;

/// When the process was killed, as a call sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Moment {
    /// The call was recorded as begun.
    Before,
    /// It was at it.
    Inside,
    /// It had returned, and its end was not recorded.
    After,
    /// Several times, or beside the call.
    Otherwise,
}

impl Moment {
    pub(crate) fn of(died_at: &[String]) -> Self {
        let [point] = died_at else {
            return Self::Otherwise;
        };
        let is_journal = |side: &str, kind: &str| point.starts_with(side) && point.contains(kind);
        if point.starts_with("tool before") || is_journal("journal after", "tool_started") {
            Self::Before
        } else if point.starts_with("tool inside") {
            Self::Inside
        } else if point.starts_with("tool after") || is_journal("journal before", "tool_finished") {
            Self::After
        } else {
            Self::Otherwise
        }
    }
}

/// Counts of decisions, by tool and moment.
#[derive(Default)]
pub(crate) struct Doubts(BTreeMap<(String, Moment), [usize; 3]>);

impl Doubts {
    pub(crate) fn add(&mut self, tool: &str, moment: Moment, decision: InDoubtDecision) {
        let index = match decision {
            InDoubtDecision::Done => 0,
            InDoubtDecision::Retry => 1,
            InDoubtDecision::Ask | InDoubtDecision::Fail => 2,
        };
        self.0.entry((tool.to_owned(), moment)).or_default()[index] += 1;
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (key, counts) in other.0 {
            let sums = self.0.entry(key).or_default();
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum += count;
            }
        }
    }

    /// Returns how many calls of built-in tools were in doubt, and how many of them were resolved.
    fn built_in(&self) -> (usize, usize) {
        let ours = self.0.iter();
        let ours = ours.filter(|((tool, _), _)| BUILT_IN.contains(&tool.as_str()));
        ours.fold((0, 0), |(all, resolved), (_, [done, again, unknown])| {
            (all + done + again + unknown, resolved + done + again)
        })
    }

    pub(crate) fn summary(&self) -> String {
        let (all, resolved) = self.built_in();
        format!("{resolved} of {all} interrupted calls of built-in tools resolved")
    }

    pub(crate) fn assert_resolved(&self) {
        let (all, resolved) = self.built_in();
        assert!(resolved * 100 >= all * RESOLVED_PERCENT_MIN, "{self}");
        for tool in BUILT_IN {
            for moment in [Moment::Before, Moment::Inside, Moment::After] {
                let counts = self.0.get(&(tool.to_owned(), moment));
                assert!(counts.is_some(), "`{tool}` was never killed: {moment:?}");
            }
        }
    }
}

impl fmt::Display for Doubts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<14}{:<12}{:>6}{:>7}{:>9}",
            "tool", "killed", "done", "again", "unknown"
        )?;
        for ((tool, moment), [done, again, unknown]) in &self.0 {
            let moment = format!("{moment:?}").to_lowercase();
            writeln!(f, "{tool:<14}{moment:<12}{done:>6}{again:>7}{unknown:>9}")?;
        }
        Ok(())
    }
}
