//! Shows a running turn, and handles signals: the first one cancels the turn, the second one ends the process
//! ([`exit_now`]).

use crate::exit::{Exit, Stop};
use crate::output;
use crate::process_end;
use crate::render::{DeniedCall, FinishedTurn, View};
use crate::screen::Typed;
pub(crate) use crate::signals::Signals;
use rondo_core::{EventReceiver, TurnHandle};
use rondo_types::Outcome;
use std::io;
use std::sync::{Arc, OnceLock};
use std::thread::Builder;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

/// How often the spinner turns.
pub(crate) const TICK: Duration = Duration::from_millis(100);
/// How long to wait for unread output after the turn has ended, if the process ends with it.
pub(crate) const GRACE: Duration = Duration::from_secs(10);
/// How long to wait for unread output after a signal.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// How long the process may take to end after `SIGTERM`, whatever it waits for.
const END_TIMEOUT: Duration = Duration::from_secs(30);

/// The state after [`show`].
pub(crate) struct Ended {
    /// The view, which has yet to show the end; `None` if its output was given up.
    view: Option<Box<dyn View>>,
    /// Tokens of the latest request and its reply: what the next one begins with.
    pub(crate) context_tokens: Option<u64>,
    /// What stopped the turn, if anything did.
    pub(crate) stopped_by: Option<Stop>,
    signals: Signals,
    /// Until when unread output is waited for; `None` if it is never given up.
    give_up_at: Option<Instant>,
}

/// Cancels a turn, and remembers the first reason.
#[derive(Debug, Clone)]
pub(crate) struct Brake {
    handle: TurnHandle,
    stopped_by: Arc<OnceLock<Stop>>,
}

impl Brake {
    /// Builds a brake for a running turn.
    pub(crate) fn new(handle: TurnHandle) -> Self {
        Self {
            handle,
            stopped_by: Arc::default(),
        }
    }

    /// Returns the reason for which the turn was stopped, if it was.
    pub(crate) fn stopped_by(&self) -> Option<Stop> {
        self.stopped_by.get().copied()
    }

    /// Cancels the turn. The reason is set first, so that it is known when the turn ends.
    fn stop(&self, by: Stop) {
        self.stopped_by.get_or_init(|| by);
        self.handle.cancel();
    }
}

/// Shows events until the last one. The first signal, which may have come before, cancels the turn and waits for it to
/// end; a second one ends the process at once.
///
/// The view has a thread of its own, so that a slow or absent reader cannot hold up the turn, its timers or
/// signals. Unread output is given up if `grace` has passed since `over` said that the turn is over and recorded,
/// [`STOP_GRACE`] if a signal stopped the turn, and at the deadline of the process at the latest.
///
/// # Errors
/// When no thread can be started for the view; the turn is cancelled then.
///
/// # Cancel safety
/// Not cancel safe: events that were shown are not shown again.
pub(crate) async fn show(
    events: EventReceiver,
    view: Box<dyn View>,
    brake: Brake,
    mut signals: Signals,
    mut over: oneshot::Receiver<()>,
    grace: Option<Duration>,
) -> io::Result<Ended> {
    let (shown_tx, mut shown_rx) = oneshot::channel();
    let on_pipe_closed = brake.clone();
    let spawned = Builder::new().name("view".to_owned()).spawn(move || {
        // The receiver is gone only when the process is about to end.
        let _ = shown_tx.send(watch_turn(events, view, &on_pipe_closed));
    });
    if let Err(err) = spawned {
        brake.handle.cancel();
        return Err(err);
    }
    let mut stopped_by = None;
    let mut is_over = false;
    let mut give_up_at = None;
    let shown = loop {
        tokio::select! {
            biased;
            stop = signals.next() => match stopped_by.replace(stop) {
                None => {
                    brake.stop(stop);
                    give_up_at = patience(Some(STOP_GRACE)).filter(|_| is_over);
                }
                Some(_) => exit_now(stop),
            },
            shown = &mut shown_rx => break Some(shown.map_err(io::Error::other)??),
            _ = &mut over, if !is_over => {
                is_over = true;
                give_up_at = patience(stopped_by.map(|_| STOP_GRACE).or(grace));
            }
            () = until(give_up_at) => {
                output::give_up();
                break None;
            }
        }
    };
    let (view, context_tokens) = shown.unzip();
    Ok(Ended {
        view,
        context_tokens: context_tokens.flatten(),
        stopped_by: brake.stopped_by(),
        signals,
        give_up_at: give_up_at.or_else(|| patience(stopped_by.map(|_| STOP_GRACE).or(grace))),
    })
}

/// Returns when unread output is given up, counted from now.
fn patience(grace: Option<Duration>) -> Option<Instant> {
    grace.map(|grace| process_end::output_end(Instant::now() + grace))
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

impl Ended {
    /// Returns whether unread output was given up.
    pub(crate) fn was_given_up(&self) -> bool {
        self.view.is_none()
    }

    /// Returns when unread output is given up.
    pub(crate) fn give_up_at(&self) -> Option<Instant> {
        self.give_up_at
    }

    /// Runs work that may block, such as a write to a pipe without a reader, until the instant; any signal ends
    /// the process meanwhile.
    ///
    /// # Errors
    /// When the work panics, or takes longer; its thread then continues.
    pub(crate) async fn block_on<T: Send + 'static>(
        &mut self,
        give_up_at: Option<Instant>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let working = spawn_blocking(work);
        tokio::select! {
            biased;
            stop = self.signals.next() => exit_now(stop),
            done = working => done.map_err(io::Error::other),
            () = until(give_up_at) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// Shows that the turn waits for answers; otherwise as [`finish`](Self::finish).
    ///
    /// # Errors
    /// When standard output takes nothing any more, or took nothing for so long.
    pub(crate) async fn park(&mut self, exit: Exit) -> io::Result<()> {
        let park = move |view: &mut dyn View| view.park(exit);
        self.show_last(park).await
    }

    /// Shows the end of the turn. Waits for unread output until [`Self::give_up_at`]; any signal ends the
    /// process meanwhile.
    ///
    /// # Errors
    /// When standard output is closed, or unread for too long.
    pub(crate) async fn finish(
        &mut self,
        outcome: Outcome,
        exit: Exit,
        denied: Vec<DeniedCall>,
    ) -> (Arc<Outcome>, io::Result<()>) {
        let outcome = Arc::new(outcome);
        let shared = Arc::clone(&outcome);
        let show = move |view: &mut dyn View| {
            view.finish(&FinishedTurn {
                outcome: &shared,
                exit,
                denied: &denied,
            })
        };
        let shown = self.show_last(show).await;
        (outcome, shown)
    }

    async fn show_last(
        &mut self,
        show: impl FnOnce(&mut dyn View) -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let Some(mut view) = self.view.take() else {
            return Err(io::ErrorKind::TimedOut.into());
        };
        let show = move || {
            let shown = show(view.as_mut());
            (view, shown)
        };
        let give_up_at = self.give_up_at();
        let shown = match self.block_on(give_up_at, show).await {
            Ok((view, shown)) => {
                self.view = Some(view);
                shown
            }
            Err(err) => Err(err),
        };
        if self.was_given_up() {
            output::give_up();
        }
        shown
    }
}

/// Prints the last output before the process ends, on a thread of its own, so that unread output cannot delay
/// the end. Returns whether it was written.
pub(crate) fn say_last(words: impl FnOnce() + Send + 'static) -> bool {
    let (said_tx, said_rx) = std::sync::mpsc::sync_channel(1);
    let (words_tx, words_rx) = std::sync::mpsc::sync_channel(1);
    let speak = move || {
        let words: Result<Box<dyn FnOnce() + Send>, _> = words_rx.recv();
        if let Ok(words) = words {
            words();
        }
        // The receiver is gone once the grace period is over.
        let _ = said_tx.send(());
    };
    let spawned = Builder::new().name("last words".to_owned()).spawn(speak);
    if spawned.is_err() {
        // The system gives no thread: better late than unsaid.
        words();
        return true;
    }
    let _ = words_tx.send(Box::new(words));
    let is_said = said_rx.recv_timeout(STOP_GRACE).is_ok();
    if !is_said {
        output::give_up();
    }
    is_said
}

/// Makes one `SIGTERM` end the process in any case, [`END_TIMEOUT`] later.
pub(crate) fn end_when_told() {
    let watch = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            let mut signals = Signals::listen();
            while signals.next().await != Stop::Terminate {}
            tokio::time::sleep(END_TIMEOUT).await;
            exit_now(Stop::Terminate);
        });
    };
    // Without the thread, a process that hangs on unread output needs a second signal.
    let _ = Builder::new().name("ending".to_owned()).spawn(watch);
}

/// Runs on the view's thread, and cancels the turn once standard output is closed. Returns the view, and the tokens of the
/// latest request and its reply.
fn watch_turn(
    mut events: EventReceiver,
    mut view: Box<dyn View>,
    brake: &Brake,
) -> io::Result<(Box<dyn View>, Option<u64>)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let (mut pipe_closed, mut context_tokens) = (false, None);
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
            if let Some(usage) = event.body.usage() {
                context_tokens = Some(usage.total());
            }
            // Without a reader, the answer would be lost.
            if view.event(event).is_err() && !pipe_closed {
                pipe_closed = true;
                brake.stop(Stop::PipeClosed);
            }
        }
    });
    Ok((view, context_tokens))
}

async fn changed(changes: &mut Option<watch::Receiver<Typed>>) {
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
