//! One running command, followed to its end.

use crate::live::LiveText;
use rondo_core::ports::ToolInvocation;
use rondo_launch::{
    COMMAND_END_MAX, CallStatus, CommandEvent, Ender, NOTICE_MAX, StartError, SupervisedCommand,
};
use std::convert::Infallible;
use std::future::pending;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often a supervisor is woken meanwhile, which its command may stop again and again.
const WAKE_EVERY: Duration = Duration::from_millis(100);

/// Why a command was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopCause {
    /// Its own time was up.
    TimedOut,
    /// The call was cancelled.
    Cancelled,
}

/// End of a command.
pub(crate) enum CommandOutcome {
    /// It ended, and so did what it started.
    Ended(Box<CallStatus>),
    /// It was not started.
    Refused(StartError),
    /// Its supervisor is gone. The processes it started were ended.
    Lost {
        cause: StartError,
        cut: Option<StopCause>,
    },
}

/// Relays output until the end. The reader is never dropped between two parts of a frame: a cancel
/// only tells the supervisor to end the command, which is then waited for.
///
/// The supervisor keeps the `limit` on the command's time. It is kept here as well, since a command
/// can stop its supervisor.
pub(crate) async fn follow(
    mut running: SupervisedCommand,
    invocation: &ToolInvocation,
    limit: Option<Duration>,
) -> CommandOutcome {
    let mut live = LiveText::new(&invocation.output);
    let cut = OnceLock::new();
    let ender = match running.ender() {
        Ok(ender) => ender,
        Err(cause) => {
            running.end_rest().await;
            return CommandOutcome::Lost { cause, cut: None };
        }
    };
    let watch = watch(ender, invocation, limit, &cut);
    tokio::pin!(watch);
    let cause = loop {
        let next = running.next();
        tokio::pin!(next);
        let event = tokio::select! {
            event = &mut next => event,
            never = &mut watch => match never {},
        };
        match event {
            Ok(CommandEvent::Output(bytes)) => live.push(&bytes),
            Ok(CommandEvent::Status(mut status)) => {
                live.finish();
                // One that was stopped does not know how late it is.
                if status.cancelled && cut.get() == Some(&StopCause::TimedOut) {
                    (status.timed_out, status.cancelled) = (true, false);
                }
                return CommandOutcome::Ended(status);
            }
            Err(err @ StartError::Lost(_)) => break err,
            Err(err) => return CommandOutcome::Refused(err),
        }
    };
    live.finish();
    running.end_rest().await;
    let cut = cut.get().copied();
    CommandOutcome::Lost { cause, cut }
}

/// Ends the command when its time is up or the agent says so; by its supervisor, or without it where
/// that does not answer.
async fn watch(
    mut ender: Ender,
    invocation: &ToolInvocation,
    limit: Option<Duration>,
    cut: &OnceLock<StopCause>,
) -> Infallible {
    let is_late = async {
        match limit {
            Some(limit) => sleep(limit.saturating_add(NOTICE_MAX)).await,
            None => pending().await,
        }
    };
    let why = tokio::select! {
        () = invocation.cancel.cancelled() => StopCause::Cancelled,
        () = is_late => StopCause::TimedOut,
    };
    let _ = cut.set(why);
    ender.end();
    let until = Instant::now() + COMMAND_END_MAX;
    while Instant::now() < until {
        sleep(WAKE_EVERY).await;
        ender.wake();
    }
    ender.kill_supervisor();
    pending().await
}
