//! Every exit code of Rondo's own, in one place; a script's own are `ScriptExit` in `commands/script`.

use rondo_core::ports::{ProcessEnd, StoppedBy};
use rondo_runtime::SetupErrorKind;
use rondo_types::{ErrorClass, Outcome, StopReason};

/// How the process ends. The numbers are documented in `docs/exit-codes.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// There is an answer.
    Answer = 0,
    /// Something failed.
    Error = 1,
    /// The arguments make no sense.
    Usage = 2,
    /// There is an answer, but a degraded one, and `--strict-complete` was asked for.
    Degraded = 3,
    /// A replay is not what was recorded, and it was asked for strictly.
    Differs = 4,
    /// The key is missing or refused.
    Auth = 41,
    /// The input cannot be read.
    Input = 42,
    /// There is no such session, or nothing in it to continue.
    NoSession = 45,
    /// Another process works on the session.
    SessionInUse = 46,
    /// A call needed approval, and there was no terminal to ask on.
    ApprovalNeeded = 44,
    /// The turn waits for an answer.
    Parked = 47,
    /// The configuration makes no sense.
    Config = 52,
    /// A limit on steps, calls, tokens or money was reached without an answer.
    Limit = 53,
    /// The journal cannot be read or written.
    Journal = 54,
    /// Time ran out without an answer.
    Deadline = 124,
    /// Interrupted.
    Interrupted = 130,
    /// The reader of standard output is gone.
    PipeClosed = 141,
    /// Terminated.
    Terminated = 143,
}

/// Facts about a turn beyond its outcome.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ExitFacts {
    /// A degraded answer is not good enough.
    pub(crate) strict_complete: bool,
    /// A call was denied because there was no terminal.
    pub(crate) approval_missing: bool,
    /// Something was not recorded.
    pub(crate) journal_failed: bool,
    /// The signal that stopped the turn.
    pub(crate) stopped_by: Option<Stop>,
}

/// Outside cause that stopped a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Ctrl-C.
    Interrupt,
    /// `SIGTERM`, `SIGHUP`, or another signal that ends a program.
    Terminate,
    /// The reader of standard output is gone.
    PipeClosed,
}

impl ExitFacts {
    /// Returns those that were recorded.
    pub(crate) fn recorded(process: &ProcessEnd) -> Self {
        Self {
            strict_complete: process.strict_complete,
            approval_missing: !process.needed_approval.is_empty(),
            // Then nothing of the end would be recorded.
            journal_failed: false,
            stopped_by: process.stopped_by.map(Stop::recorded),
        }
    }
}

impl Stop {
    /// Returns its form in records.
    pub(crate) fn record(self) -> StoppedBy {
        match self {
            Self::Interrupt => StoppedBy::Interrupt,
            Self::Terminate => StoppedBy::Terminate,
            Self::PipeClosed => StoppedBy::PipeClosed,
        }
    }

    fn recorded(by: StoppedBy) -> Self {
        match by {
            StoppedBy::Interrupt => Self::Interrupt,
            StoppedBy::Terminate => Self::Terminate,
            StoppedBy::PipeClosed => Self::PipeClosed,
        }
    }
}

impl Exit {
    /// All of them.
    const ALL: [Self; 18] = [
        Self::Answer,
        Self::Error,
        Self::Usage,
        Self::Degraded,
        Self::Differs,
        Self::Auth,
        Self::Input,
        Self::ApprovalNeeded,
        Self::NoSession,
        Self::SessionInUse,
        Self::Parked,
        Self::Config,
        Self::Limit,
        Self::Journal,
        Self::Deadline,
        Self::Interrupted,
        Self::PipeClosed,
        Self::Terminated,
    ];

    /// Returns the number the process ends with.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    /// Returns the one of a process that has ended; an error if it ended in another way.
    pub(crate) fn of_code(code: Option<i32>) -> Self {
        let found = Self::ALL
            .into_iter()
            .find(|it| code == Some(i32::from(it.code())));
        found.unwrap_or(Self::Error)
    }

    /// Decides how a failure to set something up ends the process.
    pub(crate) fn of_setup(kind: SetupErrorKind) -> Self {
        match kind {
            SetupErrorKind::Usage => Self::Usage,
            SetupErrorKind::Auth => Self::Auth,
            SetupErrorKind::Input => Self::Input,
            SetupErrorKind::ApprovalNeeded => Self::ApprovalNeeded,
            SetupErrorKind::NoSession => Self::NoSession,
            SetupErrorKind::SessionInUse => Self::SessionInUse,
            SetupErrorKind::Parked => Self::Parked,
            SetupErrorKind::Config => Self::Config,
            SetupErrorKind::Journal => Self::Journal,
            SetupErrorKind::Deadline => Self::Deadline,
            // Kinds of later versions have their own code when they come.
            _ => Self::Error,
        }
    }

    /// Decides how a turn's outcome ends the process.
    pub(crate) fn of_outcome(outcome: &Outcome, circumstances: ExitFacts) -> Self {
        if outcome.stop_reason == StopReason::Cancelled {
            return circumstances.stopped_by.map_or(Self::Error, Self::of_stop);
        }
        if circumstances.journal_failed {
            return Self::Journal;
        }
        let exit = Self::of_end(outcome, circumstances.strict_complete);
        let outweighed = matches!(exit, Self::Answer | Self::Degraded | Self::Limit);
        if circumstances.approval_missing && outweighed {
            Self::ApprovalNeeded
        } else {
            exit
        }
    }

    /// Returns whether a turn that ended so got to its end, well or not, so that another may follow.
    pub(crate) fn is_an_end(self) -> bool {
        matches!(
            self,
            Self::Answer | Self::Degraded | Self::ApprovalNeeded | Self::Limit | Self::Deadline
        )
    }

    /// Decides how the process ends if the turn's result was not read.
    pub(crate) fn unread(self, stopped_by: Option<Stop>) -> Self {
        match (self, stopped_by) {
            (
                Self::Answer | Self::Degraded | Self::ApprovalNeeded | Self::Limit | Self::Parked,
                stop,
            ) => stop.map_or(Self::PipeClosed, Self::of_stop),
            (other, _) => other,
        }
    }

    /// Decides how a signal ends the process.
    pub(crate) fn of_stop(stop: Stop) -> Self {
        match stop {
            Stop::Interrupt => Self::Interrupted,
            Stop::Terminate => Self::Terminated,
            Stop::PipeClosed => Self::PipeClosed,
        }
    }

    fn of_end(outcome: &Outcome, strict_complete: bool) -> Self {
        if outcome.answered {
            return if outcome.degraded && strict_complete {
                Self::Degraded
            } else {
                Self::Answer
            };
        }
        match outcome.stop_reason {
            StopReason::MaxSteps
            | StopReason::MaxToolCalls
            | StopReason::MaxTokens
            | StopReason::MaxCost
            | StopReason::BudgetSpent => Self::Limit,
            StopReason::Deadline => Self::Deadline,
            StopReason::Complete
            | StopReason::StepTimeout
            | StopReason::InvalidResponse
            | StopReason::NoProgress
            | StopReason::Refused
            | StopReason::Intercepted
            | StopReason::Cancelled
            | StopReason::Error => outcome
                .error
                .as_ref()
                .map_or(Self::Error, |error| Self::of_class(error.class)),
        }
    }

    /// Decides how a failed model request ends the process.
    pub(crate) fn of_class(class: ErrorClass) -> Self {
        match class {
            ErrorClass::Auth => Self::Auth,
            ErrorClass::Deadline => Self::Deadline,
            _ => Self::Error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_types::{ModelError, Usage};

    fn outcome(stop_reason: StopReason, answered: bool, degraded: bool) -> Outcome {
        Outcome {
            text: String::new(),
            stop_reason,
            model: None,
            degraded,
            answered,
            findings: Vec::new(),
            usage: Usage::default(),
            cost: None,
            delegated: None,
            steps: 1,
            tool_calls: 0,
            elapsed_ms: 0,
            finish_reason: None,
            error: None,
            undelivered_steering: Vec::new(),
            transcript: Vec::new(),
        }
    }

    #[track_caller]
    fn check(outcome: &Outcome, circumstances: ExitFacts, code: u8) {
        assert_eq!(Exit::of_outcome(outcome, circumstances).code(), code);
    }

    /// Each one, or the next is not in the list: the compiler says when one is missing here.
    fn index(exit: Exit) -> usize {
        match exit {
            Exit::Answer => 0,
            Exit::Error => 1,
            Exit::Usage => 2,
            Exit::Degraded => 3,
            Exit::Differs => 4,
            Exit::Auth => 5,
            Exit::Input => 6,
            Exit::ApprovalNeeded => 7,
            Exit::NoSession => 8,
            Exit::SessionInUse => 9,
            Exit::Parked => 10,
            Exit::Config => 11,
            Exit::Limit => 12,
            Exit::Journal => 13,
            Exit::Deadline => 14,
            Exit::Interrupted => 15,
            Exit::PipeClosed => 16,
            Exit::Terminated => 17,
        }
    }

    #[test]
    fn the_code_of_each_end_is_known_again() {
        for (at, exit) in Exit::ALL.into_iter().enumerate() {
            assert_eq!(index(exit), at);
            assert_eq!(Exit::of_code(Some(i32::from(exit.code()))), exit);
        }
        assert_eq!(Exit::of_code(Some(99)), Exit::Error);
        assert_eq!(Exit::of_code(None), Exit::Error);
    }

    #[test]
    fn an_answer_is_zero_and_a_degraded_one_three_under_strict_complete() {
        let strict = ExitFacts {
            strict_complete: true,
            ..ExitFacts::default()
        };
        check(&outcome(StopReason::Complete, true, false), strict, 0);
        let degraded = outcome(StopReason::MaxSteps, true, true);
        check(&degraded, ExitFacts::default(), 0);
        check(&degraded, strict, 3);
    }

    #[test]
    fn limits_without_an_answer_are_53_and_time_124() {
        let none = ExitFacts::default();
        for reason in [
            StopReason::MaxSteps,
            StopReason::MaxToolCalls,
            StopReason::MaxTokens,
            StopReason::MaxCost,
        ] {
            check(&outcome(reason, false, true), none, 53);
        }
        check(&outcome(StopReason::Deadline, false, true), none, 124);
        check(&outcome(StopReason::StepTimeout, false, true), none, 1);
    }

    #[test]
    fn a_missing_approval_outweighs_an_answer_but_not_an_error() {
        let missing = ExitFacts {
            approval_missing: true,
            ..ExitFacts::default()
        };
        check(&outcome(StopReason::Complete, true, false), missing, 44);
        let mut failed = outcome(StopReason::Error, false, true);
        failed.error = Some(ModelError::new(ErrorClass::Auth, "no"));
        check(&failed, missing, 41);
    }

    #[test]
    fn a_cancelled_turn_ends_as_its_signal_says() {
        for (stop, code) in [
            (Stop::Interrupt, 130),
            (Stop::Terminate, 143),
            (Stop::PipeClosed, 141),
        ] {
            let stopped = ExitFacts {
                stopped_by: Some(stop),
                ..ExitFacts::default()
            };
            check(&outcome(StopReason::Cancelled, false, true), stopped, code);
        }
    }
}
