//! Shows a running turn and stops it when told to.

use crate::exit::{Exit, Stop};
use crate::render::{Ending, View};
pub(crate) use crate::signals::Signals;
use rondo_core::{EventReceiver, TurnHandle};
use rondo_types::Outcome;
use std::io;
use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

/// How often the spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// What the loop leaves behind.
pub(crate) struct Ended {
    /// The view, which has yet to show the end.
    pub(crate) view: Box<dyn View>,
    /// What stopped the turn, if anything did.
    pub(crate) stopped_by: Option<Stop>,
    signals: Signals,
}

/// Shows events until the last one. The first signal stops the turn, whose teardown is then waited
/// for; a second one ends the process at once.
///
/// The view has a thread of its own: whoever reads slowly, or not at all, must not hold up the
/// turn, its timers or the signals.
///
/// # Errors
/// When there can be no thread for the view; the turn is stopped then.
///
/// # Cancel safety
/// Not cancel safe: what was shown is not shown again.
pub(crate) async fn show(
    events: EventReceiver,
    view: Box<dyn View>,
    handle: TurnHandle,
) -> io::Result<Ended> {
    let mut signals = Signals::listen();
    let (shown_tx, mut shown_rx) = oneshot::channel();
    let on_pipe_closed = handle.clone();
    let spawned = Builder::new().name("view".to_owned()).spawn(move || {
        // Nobody waits any more only when the process is about to end.
        let _ = shown_tx.send(watch_turn(events, view, &on_pipe_closed));
    });
    if let Err(err) = spawned {
        handle.cancel();
        return Err(err);
    }
    let mut stopped_by = None;
    loop {
        tokio::select! {
            biased;
            stop = signals.next() => match stopped_by.replace(stop) {
                None => handle.cancel(),
                Some(_) => exit_now(stop),
            },
            shown = &mut shown_rx => {
                let (view, pipe_closed) = shown.map_err(io::Error::other)??;
                let stopped_by = stopped_by.or(pipe_closed.then_some(Stop::PipeClosed));
                return Ok(Ended { view, stopped_by, signals });
            }
        }
    }
}

impl Ended {
    /// Does work that may block, a write to a pipe that nobody reads for one; any signal ends the
    /// process meanwhile.
    ///
    /// # Errors
    /// When the work panics.
    pub(crate) async fn block_on<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        unless_signalled(&mut self.signals, work).await
    }

    /// Shows how the turn ended. Output that nobody takes is waited for, as every program does; any
    /// signal ends the process then.
    ///
    /// # Errors
    /// When standard output takes nothing any more.
    pub(crate) async fn finish(
        mut self,
        outcome: Outcome,
        exit: Exit,
    ) -> (Outcome, io::Result<()>) {
        let mut view = self.view;
        let outcome = Arc::new(outcome);
        let shared = Arc::clone(&outcome);
        let show = move || {
            view.finish(&Ending {
                outcome: &shared,
                exit,
            })
        };
        let shown = unless_signalled(&mut self.signals, show).await.flatten();
        (Arc::unwrap_or_clone(outcome), shown)
    }
}

async fn unless_signalled<T: Send + 'static>(
    signals: &mut Signals,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let working = spawn_blocking(work);
    tokio::select! {
        biased;
        stop = signals.next() => exit_now(stop),
        done = working => done.map_err(io::Error::other),
    }
}

/// Runs on the view's thread. Returns the view, and whether standard output took nothing any more.
fn watch_turn(
    mut events: EventReceiver,
    mut view: Box<dyn View>,
    handle: &TurnHandle,
) -> io::Result<(Box<dyn View>, bool)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let mut pipe_closed = false;
    runtime.block_on(async {
        let mut ticks = interval(TICK);
        let mut changes = view.changes();
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            let event = tokio::select! {
                biased;
                event = events.next() => event,
                () = changed(&mut changes) => {
                    view.tick();
                    continue;
                }
                _ = ticks.tick() => {
                    view.tick();
                    continue;
                }
            };
            let Some(event) = event else { break };
            // Nobody reads any more, so nobody waits for the answer.
            if view.event(event).is_err() && !pipe_closed {
                pipe_closed = true;
                handle.cancel();
            }
        }
    });
    Ok((view, pipe_closed))
}

async fn changed(changes: &mut Option<watch::Receiver<String>>) {
    let changed = match changes {
        Some(changes) => changes.changed().await.is_ok(),
        None => false,
    };
    if !changed {
        std::future::pending::<()>().await;
    }
}

#[expect(
    clippy::exit,
    reason = "the user asked twice: whatever is still being torn down is not waited for"
)]
fn exit_now(stop: Stop) -> ! {
    std::process::exit(i32::from(Exit::of_stop(stop).code()))
}
