//! Counts of the work and of problems.

use std::fmt;
use std::time::Duration;

/// Problems that are printed.
const SHOWN_MAX: usize = 20;

#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) cases: u64,
    pub(crate) kills: u64,
    /// Of these, those that took the power, too.
    pub(crate) cuts: u64,
    pub(crate) stops: u64,
    pub(crate) events: u64,
    pub(crate) answers: u64,
    /// Of these, tasks that were put aside after kills at the same place.
    pub(crate) aside: u64,
    /// Of these, those that replaced a draft.
    pub(crate) edits: u64,
    /// Drafts that were left standing: the hub was killed before it noted them.
    pub(crate) drafts: u64,
    /// Answers of scheduled jobs.
    pub(crate) timed: u64,
    /// Messages that were seen again.
    pub(crate) repeats: u64,
    /// Messages that the hub says it sent again although they may have been there.
    pub(crate) doubts: u64,
    /// Cases that are not possible here.
    pub(crate) not_run: u64,
    pub(crate) slowest: Duration,
    pub(crate) took: Duration,
    pub(crate) problems: Vec<String>,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Self) {
        self.cases += other.cases;
        self.kills += other.kills;
        self.cuts += other.cuts;
        self.stops += other.stops;
        self.events += other.events;
        self.answers += other.answers;
        self.aside += other.aside;
        self.edits += other.edits;
        self.drafts += other.drafts;
        self.timed += other.timed;
        self.repeats += other.repeats;
        self.doubts += other.doubts;
        self.not_run += other.not_run;
        self.slowest = self.slowest.max(other.slowest);
        self.problems.extend(other.problems);
    }

    pub(crate) fn problem(&mut self, problem: impl Into<String>) {
        self.problems.push(problem.into());
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} cases, {} not run, {} kills ({} with the power lost), {} stops; {} events, {} answered ({} put aside, {} in place of a \
             draft, {} drafts left), {} timed; {} seen again, {} times sent again in doubt; all was answered {:.1} s after the last fault at \
             the latest; {:.0} s",
            self.cases,
            self.not_run,
            self.kills,
            self.cuts,
            self.stops,
            self.events,
            self.answers,
            self.aside,
            self.edits,
            self.drafts,
            self.timed,
            self.repeats,
            self.doubts,
            self.slowest.as_secs_f64(),
            self.took.as_secs_f64()
        )?;
        for problem in self.problems.iter().take(SHOWN_MAX) {
            writeln!(f, "PROBLEM: {problem}")?;
        }
        Ok(())
    }
}
