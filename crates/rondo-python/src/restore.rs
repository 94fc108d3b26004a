//! Restores the variables of an earlier interpreter by running its cells again, and lists what that did
//! not restore.

use crate::cell::{CellEnd, CellLimits, LiveOutput};
use crate::error::{SessionError, Stop};
use crate::session::Session;
use rondo_core::ports::{CellEnding, CodeChange};
use rondo_core::redact::Secrets;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Text before an object's address in its `repr`.
const ADDRESS: &str = " at 0x";
/// Text before the number of a cell or an expression that an exception names.
const SOURCES: [&str; 2] = ["<cell ", "<expression "];

/// A cell that ran in an earlier interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedCell {
    /// Its number in the session.
    pub number: u32,
    /// The code, or the expression of an `eval_expr` call.
    pub code: String,
    /// Why the recorded code is not the code that ran; `None` if it is.
    pub changed: Option<CodeChange>,
    /// How it ended; `None` if its end is not recorded.
    pub ending: Option<CellEnding>,
    /// Set if it read input of the user.
    pub has_read_input: bool,
    /// How long it may run.
    pub timeout: Option<Duration>,
}

/// How cells are run again. The default skips those that are unlikely to run as they did.
#[derive(Debug, Clone, Default)]
pub struct RestoreOptions {
    /// Runs also cells that were interrupted, that ended their interpreter, that read input, or
    /// whose end is not recorded.
    pub force: bool,
    /// The secrets that were redacted from the recorded values.
    pub secrets: Secrets,
    /// Interrupts the running cell and skips the rest.
    pub stop: CancellationToken,
    /// Ends the running cell even if it ignores interrupts, and its interpreter with it.
    pub cancel: CancellationToken,
}

/// The result of [`Session::restore`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Restoration {
    /// The numbers of the cells that ran again, however they ended.
    pub repeated: Vec<u32>,
    /// The cells that were not restored, in order.
    pub not_restored: Vec<NotRestored>,
    /// Set if the interpreter ended, and everything restored with it.
    pub is_lost: bool,
    /// Set if restoring was stopped before the last cell.
    pub is_stopped: bool,
}

/// A cell whose effects on variables were not restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotRestored {
    /// Number of the cell.
    pub number: u32,
    /// Reason for which it was not restored.
    pub why: RestoreFailure,
}

/// Why a cell was not restored. It ran again, unless the variant says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RestoreFailure {
    /// Its start is recorded and its end is not: it was not run again.
    #[error("not run: its end is not recorded, so what it did is unknown")]
    EndNotRecorded,
    /// It was interrupted when it first ran: it was not run again.
    #[error("not run: it was stopped then, before its end")]
    StoppedThen,
    /// Its interpreter ended when it first ran: it was not run again.
    #[error("not run: it ended the interpreter then")]
    LostThen,
    /// It read input when it first ran: it was not run again.
    #[error("not run: it read what was typed then, and is given no input now")]
    ReadInput,
    /// The record holds only its beginning: it was not run again.
    #[error("not run: it was too long to be kept whole")]
    Cut,
    /// It held a secret, which was not recorded: it was not run again.
    #[error("not run: it held a key, which is not kept")]
    Redacted,
    /// It was not reached.
    #[error("not run: this was stopped before it")]
    NotReached,
    /// It could not be run.
    #[error("not run: {0}")]
    NotRun(String),
    /// It raised the same exception both times.
    #[error("raised {0}, then as now")]
    RaisedAgain(String),
    /// It raised an exception, which it first did not, or another one.
    #[error("raised {now} (then: {then})")]
    Raises {
        /// How it ended then.
        then: String,
        /// Exception that it raised now.
        now: String,
    },
    /// It first raised an exception, and now none.
    #[error("raised {0} then, and nothing now")]
    RaisedThen(String),
    /// Its value differs.
    #[error("is {now} (then: {then})")]
    Differs {
        /// The first value's `repr`.
        then: String,
        /// The new value's `repr`.
        now: String,
    },
    /// It was stopped before its end.
    #[error("was stopped before its end, as {0}")]
    Stopped(Stop),
    /// The interpreter ended with it.
    #[error("{0}: nothing is restored")]
    Lost(String),
}

impl RestoreFailure {
    /// Returns whether [`RestoreOptions::force`] runs the cell all the same.
    #[must_use]
    pub fn can_be_forced(&self) -> bool {
        matches!(
            self,
            Self::EndNotRecorded | Self::StoppedThen | Self::LostThen | Self::ReadInput
        )
    }
}

impl Session {
    /// Runs recorded cells again in this interpreter, in order, and returns what that did not restore. Their
    /// output is discarded.
    ///
    /// This has all the effects that the code has: files are written, requests sent and processes
    /// started once more. Variables that this interpreter already has stay.
    ///
    /// # Errors
    /// When the interpreter cannot be started; then nothing has run.
    ///
    /// # Cancel safety
    /// Dropping the future interrupts the code under way; what ran before it stays.
    pub async fn restore(
        &self,
        cells: &[RecordedCell],
        options: &RestoreOptions,
    ) -> Result<Restoration, SessionError> {
        self.ensure_started().await?;
        let mut done = Restoration::default();
        for cell in cells {
            let why = match not_to_run(cell, options) {
                Run::Never => continue,
                Run::Not(why) => Some(why),
                Run::Again if done.is_lost || options.stop.is_cancelled() => {
                    done.is_stopped = true;
                    Some(RestoreFailure::NotReached)
                }
                Run::Again => self.again(cell, options, &mut done).await,
            };
            let number = cell.number;
            let missed = why.map(|why| NotRestored { number, why });
            done.not_restored.extend(missed);
        }
        Ok(done)
    }

    async fn again(
        &self,
        cell: &RecordedCell,
        options: &RestoreOptions,
        done: &mut Restoration,
    ) -> Option<RestoreFailure> {
        let until = CellLimits {
            timeout: cell.timeout,
            cancel: options.cancel.clone(),
            ..CellLimits::default()
        };
        let running = self.run_cell(cell.code.trim_start(), LiveOutput::discard(), until);
        let mut running = std::pin::pin!(running);
        let ended = tokio::select! {
            biased;
            ended = &mut running => ended,
            () = options.stop.cancelled() => {
                self.interrupt();
                running.await
            }
        };
        done.is_stopped |= options.stop.is_cancelled() || options.cancel.is_cancelled();
        match ended {
            Ok(end) => {
                done.repeated.push(cell.number);
                compared(cell, &end, options)
            }
            Err(SessionError::Lost(loss)) => {
                done.repeated.push(cell.number);
                done.is_lost = true;
                Some(RestoreFailure::Lost(loss.how))
            }
            Err(error) => Some(RestoreFailure::NotRun(error.to_string())),
        }
    }
}

enum Run {
    /// It did not run then.
    Never,
    Not(RestoreFailure),
    Again,
}

fn not_to_run(cell: &RecordedCell, options: &RestoreOptions) -> Run {
    let why = match (&cell.changed, &cell.ending) {
        (_, Some(CellEnding::NotRun { .. })) => return Run::Never,
        (Some(CodeChange::Cut), _) => return Run::Not(RestoreFailure::Cut),
        (Some(CodeChange::Redacted), _) => return Run::Not(RestoreFailure::Redacted),
        (None, None) => RestoreFailure::EndNotRecorded,
        (None, Some(CellEnding::Interrupted)) => RestoreFailure::StoppedThen,
        (None, Some(CellEnding::Lost { .. })) => RestoreFailure::LostThen,
        (None, Some(_)) if cell.has_read_input => RestoreFailure::ReadInput,
        (None, Some(CellEnding::Returned { .. } | CellEnding::Raised { .. })) => return Run::Again,
    };
    match options.force {
        true => Run::Again,
        false => Run::Not(why),
    }
}

/// Compares how a cell ended now and at first; `None` if it was restored.
fn compared(
    cell: &RecordedCell,
    end: &CellEnd,
    options: &RestoreOptions,
) -> Option<RestoreFailure> {
    if let Some(stop) = end.stopped {
        return Some(RestoreFailure::Stopped(stop));
    }
    if options.stop.is_cancelled()
        && end
            .exception
            .as_ref()
            .is_some_and(crate::Exception::is_interrupt)
    {
        return Some(RestoreFailure::Stopped(Stop::Cancelled));
    }
    let seen = |text: String| options.secrets.text(text);
    let raised = |it: &crate::Exception| seen(exception(&it.exc_type, &it.message));
    let now = end.exception.as_ref().map(raised);
    let value = end.value_repr.clone().map(seen);
    match (&cell.ending, now) {
        (Some(CellEnding::Raised { exc_type, message }), now) => {
            let then = exception(exc_type, message);
            Some(match now {
                Some(now) if is_same(&now, &then) => RestoreFailure::RaisedAgain(then),
                Some(now) => RestoreFailure::Raises { then, now },
                None => RestoreFailure::RaisedThen(then),
            })
        }
        (ending, Some(now)) => {
            let then = match ending {
                Some(CellEnding::Returned { .. }) => "nothing was raised",
                _ => "its end is not known",
            };
            let then = then.to_owned();
            Some(RestoreFailure::Raises { then, now })
        }
        (Some(CellEnding::Returned { value_repr }), None) => {
            let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "None".to_owned());
            let (then, now) = (shown(value_repr), shown(&value));
            (!is_same(&then, &now)).then_some(RestoreFailure::Differs { then, now })
        }
        (_, None) => None,
    }
}

fn exception(exc_type: &str, message: &str) -> String {
    match message {
        "" => exc_type.to_owned(),
        message => format!("{exc_type}: {message}"),
    }
}

/// Objects are new ones, so their addresses say nothing; and an interpreter counts its cells from 1, so
/// neither do the names under which their code is known to it.
fn is_same(one: &str, other: &str) -> bool {
    let bare = |text: &str| {
        let text = without_digits(text, ADDRESS, |c| c.is_ascii_hexdigit());
        let [cell, expression] = SOURCES;
        let text = without_digits(&text, cell, |c| c.is_ascii_digit());
        without_digits(&text, expression, |c| c.is_ascii_digit())
    };
    one == other || bare(one) == bare(other)
}

/// Returns a text without the digits behind each mark.
fn without_digits(text: &str, mark: &str, is_digit: fn(char) -> bool) -> String {
    let mut parts = text.split(mark);
    let first = parts.next().unwrap_or_default();
    let rest = parts.flat_map(|part| [mark, part.trim_start_matches(is_digit)]);
    std::iter::once(first).chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_an_interpreter_gives_by_itself_make_no_difference() {
        for (then, now, same) in [
            (
                "SyntaxError: invalid syntax (<cell 3>, line 1)",
                "SyntaxError: invalid syntax (<cell 12>, line 1)",
                true,
            ),
            (
                "SyntaxError: invalid syntax (<expression 1>, line 1)",
                "SyntaxError: invalid syntax (<expression 2>, line 1)",
                true,
            ),
            (
                "SyntaxError: invalid syntax (<cell 3>, line 1)",
                "SyntaxError: invalid syntax (<cell 3>, line 2)",
                false,
            ),
            ("<T object at 0x1f>", "<T object at 0x2e>", true),
            ("cell 3", "cell 4", false),
        ] {
            assert_eq!(is_same(then, now), same, "{then} {now}");
        }
    }
}
