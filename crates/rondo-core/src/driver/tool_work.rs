//! One tool call as a task: its timeout, its cancel and grace period, and its idempotency key.

use super::Driver;
use super::ask::{RunningAsk, ask_of_running};
use crate::clock::Clock;
use crate::machine::{Input, PlannedCall};
use crate::ports::{Asker, CallEnd, OutputSink, ProgressSink, Tool, ToolInvocation};
use data_encoding::HEXUPPER;
use rondo_types::units::seconds;
use rondo_types::{
    CallId, EventBody, Question, QuestionSubject, RemainingLimits, SessionId, TimeMs,
    ToolErrorCode, ToolKind, ToolOutcome, TurnEvent, TurnId,
};
use sha2::{Digest as _, Sha256};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How long a call is given to end even if the turn has no time left for it.
const GRACE_MIN: Duration = Duration::from_millis(250);

/// Message to the model about a call that began too late.
const NO_TIME: &str = "there was no time left";

/// A call that waits for a session that it started.
pub(super) struct WaitingCall {
    pub(super) call: PlannedCall,
    pub(super) child: SessionId,
    pub(super) questions: Vec<Question>,
}

/// One tool call, ready to run.
pub(super) struct ToolWork {
    pub(super) tool: Arc<dyn Tool>,
    pub(super) kind: ToolKind,
    pub(super) session: SessionId,
    pub(super) turn: TurnId,
    pub(super) call: PlannedCall,
    pub(super) step: u32,
    pub(super) output: OutputSink,
    pub(super) progress: ProgressSink,
    pub(super) allowance: RemainingLimits,
    /// Channel for its questions.
    pub(super) asks: mpsc::Sender<Box<RunningAsk>>,
    pub(super) cancel: CancellationToken,
    pub(super) grace: Duration,
    pub(super) clock: Clock,
}

impl Driver {
    pub(super) fn tool_work(&mut self, tool: Arc<dyn Tool>, call: PlannedCall) -> ToolWork {
        let asks = self.asks.get_or_insert_with(|| mpsc::channel(1)).0.clone();
        let spec = self.setup.tools.spec(&call.name);
        ToolWork {
            tool,
            kind: spec.map(|spec| spec.kind).unwrap_or_default(),
            session: self.setup.session.clone(),
            turn: self.setup.turn.clone(),
            step: self.machine.steps(),
            output: self.output_sink(call.call_id.clone()),
            progress: self.progress_sink(call.call_id.clone()),
            allowance: self.machine.call_allowance(),
            asks,
            call,
            cancel: self.tasks_cancel.child_token(),
            grace: self.setup.profile.limits.cancel_grace,
            clock: self.clock,
        }
    }

    fn output_sink(&self, id: CallId) -> OutputSink {
        let (events, clock) = (self.events.clone(), self.clock);
        OutputSink::new(move |text| {
            let id = id.clone();
            events.send(clock.now(), EventBody::ToolOutputDelta { id, text });
        })
    }

    fn child_events(&self, call: CallId) -> impl Fn(TurnEvent) + use<> {
        let (events, clock) = (self.events.clone(), self.clock);
        move |event| {
            let (id, event) = (call.clone(), Box::new(event));
            events.send(clock.now(), EventBody::ChildEvent { id, event });
        }
    }

    fn progress_sink(&self, call: CallId) -> ProgressSink {
        let (events, clock) = (self.events.clone(), self.clock);
        let id = call.clone();
        ProgressSink::new(move |progress| {
            let id = id.clone();
            events.send(clock.now(), EventBody::ToolProgress { id, progress });
        })
        .with_events(self.child_events(call))
    }
}

impl ToolWork {
    /// Returns the asker for the call's questions, which works until the call must end.
    fn asker(&self, own: &CancellationToken) -> Asker {
        let subject = QuestionSubject {
            session: self.session.clone(),
            turn: self.turn.clone(),
            step: self.step,
            record: 0,
            tool: self.call.name.clone(),
            arguments: self.call.arguments.clone(),
        };
        let call = (subject, self.call.call_id.clone());
        let (asks, own) = (self.asks.clone(), own.clone());
        Asker::new(move |number, kind, prompt| {
            let (asks, own, call) = (asks.clone(), own.clone(), call.clone());
            Box::pin(ask_of_running(asks, own, call, (number, kind, prompt)))
        })
    }

    /// Runs the call to its end, by itself, by its timeout or by a cancel; or until it waits for another session.
    ///
    /// Not an `async fn`, and neither is what it awaits: many calls may wait to begin, and each would hold all that
    /// it was given three times.
    pub(super) fn run(self) -> impl Future<Output = Result<Input, WaitingCall>> {
        let (clock, started) = (self.clock, self.clock.now());
        let (call, kind) = (Box::new(self.call.clone()), self.kind);
        let ended = self.begin().map(RunningCall::ended);
        async move {
            let ended = match ended {
                Some(running) => running.await,
                None => CallEnd::Done(ToolOutcome::error(ToolErrorCode::NotRun, NO_TIME)),
            };
            let outcome = match ended {
                CallEnd::Done(outcome) => marked(outcome, kind),
                CallEnd::Waiting { child, questions } => {
                    return Err(WaitingCall {
                        call: *call,
                        child,
                        questions,
                    });
                }
            };
            let duration_ms = super::millis(clock.now().since(started));
            let input = Input::ToolFinished {
                call_id: call.call_id,
                outcome,
                duration_ms,
            };
            super::spans::note_end(&input, duration_ms);
            Ok(input)
        }
    }

    /// Returns how long the call may run: what was planned, or what is left if it begins later
    /// than planned, as after a slow journal, a question or a crash.
    fn limit(&self) -> Option<Duration> {
        let left = self.call.end_by.map(|end| end.since(self.clock.now()));
        match (self.call.timeout, left) {
            (Some(planned), Some(left)) => Some(planned.min(left)),
            (planned, left) => planned.or(left),
        }
    }

    /// Returns the call ready to be polled; `None` if there is no time for it.
    fn begin(self) -> Option<RunningCall> {
        // The journal may have taken all the time there was: no effect begins after it.
        if self.call.end_by.is_some_and(|end| self.clock.now() >= end) {
            return None;
        }
        // The tool has a token of its own, so that a timeout can fire it without the turn's.
        let own = CancellationToken::new();
        let limit = self.limit();
        let asker = self.asker(&own);
        let invocation = ToolInvocation {
            idempotency_key: idempotency_key(&self.session, &self.call.call_id),
            session: self.session,
            turn: self.turn,
            call_id: self.call.call_id,
            arguments: self.call.arguments,
            timeout: limit,
            cancel: own.clone(),
            output: self.output,
            progress: self.progress,
            allowance: RemainingLimits {
                time: limit,
                ..self.allowance
            },
            asker,
        };
        let tool = self.tool;
        let work = super::guarded(async move { tool.run(invocation).await });
        Some(RunningCall {
            work: Box::pin(work),
            own,
            turn: self.cancel,
            limit,
            end_by: self.call.end_by,
            grace: self.grace,
            clock: self.clock,
        })
    }
}

/// A call under way, with what ends it.
struct RunningCall {
    /// Result of the tool, or the message of its panic.
    work: Pin<Box<dyn Future<Output = Result<CallEnd, String>> + Send>>,
    /// The tool's own token.
    own: CancellationToken,
    /// The turn's.
    turn: CancellationToken,
    limit: Option<Duration>,
    end_by: Option<TimeMs>,
    grace: Duration,
    clock: Clock,
}

impl RunningCall {
    async fn ended(mut self) -> CallEnd {
        let why = tokio::select! {
            biased;
            ended = &mut self.work => return ended_outcome(ended),
            () = self.turn.cancelled() => ToolErrorCode::Cancelled,
            () = sleep_some(self.limit) => ToolErrorCode::Timeout,
        };
        self.own.cancel();
        let left = self
            .end_by
            .map(|end| end.since(self.clock.now()).max(GRACE_MIN));
        let grace = left.map_or(self.grace, |left| left.min(self.grace));
        let limit = self.limit;
        CallEnd::Done(match timeout(grace, self.work).await {
            Ok(ended) => match ended_outcome(ended) {
                CallEnd::Done(outcome) => recoded(outcome, why),
                CallEnd::Waiting { .. } => {
                    stopped(why, limit, ", and its session waits for an answer")
                }
            },
            Err(_) => stopped(why, limit, ", and it did not stop when asked to"),
        })
    }
}

/// Bytes of a session's name that its keys begin with as they are. A file name has room for more, and
/// for what a tool adds.
const PLAIN_NAME_MAX: usize = 100;

/// Returns the key of a call towards the outside: unique to it, and safe as a file name. A session
/// whose name is not safe has its hash in its place.
pub(super) fn idempotency_key(session: &SessionId, call_id: &CallId) -> String {
    let name = session.as_str();
    let is_plain = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || b"-_".contains(&it);
    if name.len() <= PLAIN_NAME_MAX && name.bytes().all(is_plain) {
        format!("{name}-{call_id}")
    } else {
        // No plain name has upper case.
        let hash = HEXUPPER.encode(&Sha256::digest(name));
        format!("{hash}-{call_id}")
    }
}

fn ended_outcome(ended: Result<CallEnd, String>) -> CallEnd {
    ended.unwrap_or_else(|panic| {
        let failed = format!("the tool failed: {panic}");
        CallEnd::Done(ToolOutcome::error(ToolErrorCode::Internal, failed))
    })
}

/// Brings an output within its bounds, and marks what was fetched as text from outside.
pub(super) fn marked(outcome: ToolOutcome, kind: ToolKind) -> ToolOutcome {
    match outcome {
        ToolOutcome::Ok(output) => {
            let mut output = output.within_bounds();
            output.from_outside |= kind == ToolKind::Fetch;
            ToolOutcome::Ok(output)
        }
        error @ ToolOutcome::Error(_) => error,
    }
}

/// A tool that was asked to end says `cancelled`; the reason is known here. One that had
/// finished in the meantime keeps its result.
fn recoded(outcome: ToolOutcome, why: ToolErrorCode) -> ToolOutcome {
    match outcome {
        ToolOutcome::Error(mut error) if error.code == ToolErrorCode::Cancelled => {
            error.code = why;
            ToolOutcome::Error(error)
        }
        other => other,
    }
}

fn stopped(why: ToolErrorCode, limit: Option<Duration>, how: &str) -> ToolOutcome {
    let text = match (why, limit) {
        (ToolErrorCode::Timeout, Some(limit)) => {
            format!("the call did not end within {}{how}", seconds(limit))
        }
        _ => format!("the call was cancelled{how}"),
    };
    ToolOutcome::error(why, text)
}

async fn sleep_some(duration: Option<Duration>) {
    match duration {
        Some(duration) => sleep(duration).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_whose_names_are_no_file_names_have_keys_of_their_own() {
        let long = "x".repeat(300);
        let longer = "x".repeat(301);
        let names = [
            "a", "a-b", "a_b", "a.b", "a/b", "A", "..", "", &long, &longer,
        ];
        let key =
            |name: &&str| idempotency_key(&SessionId::new(*name), &CallId::generated(1, 2, 3));
        let keys: std::collections::BTreeSet<String> = names.iter().map(key).collect();
        assert_eq!(keys.len(), names.len());
        assert!(keys.contains("a-b-r00100203"), "{keys:?}");
        let is_safe = |it: char| it.is_ascii_alphanumeric() || "-_".contains(it);
        assert!(
            keys.iter()
                .all(|key| key.chars().all(is_safe) && key.len() < 128)
        );
    }
}
