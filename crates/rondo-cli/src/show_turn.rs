//! Shows a running turn and stops it when told to.

use crate::exit::{Exit, Stop};
use crate::output;
use crate::render::{DeniedCall, FinishedTurn, View};
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
const TICK: Duration = Duration::from_millis(100);
/// How long output that is not read is waited for once the turn and its time are over.
const GRACE: Duration = Duration::from_secs(10);
/// How long it is waited for once the turn was stopped from outside.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// How long a process that was told to end may take; whatever keeps it then is not waited for.
const END_TIMEOUT: Duration = Duration::from_secs(30);

/// What the loop leaves behind.
pub(crate) struct Ended {
    /// The view, which has yet to show the end; none once its output was given up.
    view: Option<Box<dyn View>>,
    /// What stopped the turn, if anything did.
    pub(crate) stopped_by: Option<Stop>,
    signals: Signals,
    /// When the turn's time is over, if it has any.
    deadline: Option<Instant>,
}

/// Stops a turn, and keeps what did so first.
#[derive(Debug, Clone)]
pub(crate) struct Brake {
    handle: TurnHandle,
    stopped_by: Arc<OnceLock<Stop>>,
}

impl Brake {
    /// Begins with a turn that nothing has stopped.
    pub(crate) fn new(handle: TurnHandle) -> Self {
        Self {
            handle,
            stopped_by: Arc::default(),
        }
    }

    /// Returns what stopped the turn, if anything did.
    pub(crate) fn stopped_by(&self) -> Option<Stop> {
        self.stopped_by.get().copied()
    }

    /// It is known what stops the turn before the turn is over.
    fn stop(&self, by: Stop) {
        self.stopped_by.get_or_init(|| by);
        self.handle.cancel();
    }
}

/// Shows events until the last one. The first signal stops the turn, whose teardown is then waited
/// for; a second one ends the process at once.
///
/// The view has a thread of its own: a slow or absent reader must not hold up the
/// turn, its timers or the signals. Output that is not read is given up some time after `over` says that
/// the turn is over and recorded: a grace after its `timeout`, or a shorter one after a signal.
///
/// # Errors
/// When there can be no thread for the view; the turn is stopped then.
///
/// # Cancel safety
/// Not cancel safe: what was shown is not shown again.
pub(crate) async fn show(
    events: EventReceiver,
    view: Box<dyn View>,
    brake: Brake,
    mut over: oneshot::Receiver<()>,
    timeout: Option<Duration>,
) -> io::Result<Ended> {
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let mut signals = Signals::listen();
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
    loop {
        let give_up_at = patience(deadline, stopped_by).filter(|_| is_over);
        tokio::select! {
            biased;
            stop = signals.next() => match stopped_by.replace(stop) {
                None => brake.stop(stop),
                Some(_) => exit_now(stop),
            },
            shown = &mut shown_rx => {
                let view = Some(shown.map_err(io::Error::other)??);
                let stopped_by = brake.stopped_by();
                return Ok(Ended { view, stopped_by, signals, deadline });
            }
            _ = &mut over, if !is_over => is_over = true,
            () = until(give_up_at) => {
                output::give_up();
                let stopped_by = brake.stopped_by();
                return Ok(Ended { view: None, stopped_by, signals, deadline });
            }
        }
    }
}

/// Returns when output that is not read is given up, counted from now.
fn patience(deadline: Option<Instant>, stopped_by: Option<Stop>) -> Option<Instant> {
    let now = Instant::now();
    match stopped_by {
        Some(_) => now.checked_add(STOP_GRACE),
        None => deadline.and_then(|deadline| deadline.max(now).checked_add(GRACE)),
    }
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

impl Ended {
    /// Returns whether the output was not read for so long that it was given up.
    pub(crate) fn was_given_up(&self) -> bool {
        self.view.is_none()
    }

    /// Returns when output is given up.
    pub(crate) fn give_up_at(&self) -> Option<Instant> {
        patience(self.deadline, self.stopped_by)
    }

    /// Does work that may block, such as a write to a pipe without a reader, until the instant; any signal
    /// ends the process meanwhile.
    ///
    /// # Errors
    /// When the work panics, or takes longer; it goes on then, on its thread.
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

    /// Shows how the turn ended. Output that is not read is waited for as long as [`Self::give_up_at`]
    /// says; any signal ends the process meanwhile.
    ///
    /// # Errors
    /// When standard output takes nothing any more, or took nothing for so long.
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

/// Prints the last words before the process ends, on a thread of their own: who reads nothing does not keep
/// it. Returns whether they were taken.
pub(crate) fn say_last(words: impl FnOnce() + Send + 'static) -> bool {
    let (said_tx, said_rx) = std::sync::mpsc::sync_channel(1);
    let speak = move || {
        words();
        // The receiver is gone once the grace period is over.
        let _ = said_tx.send(());
    };
    let spawned = Builder::new().name("last words".to_owned()).spawn(speak);
    let is_said = spawned.is_ok() && said_rx.recv_timeout(STOP_GRACE).is_ok();
    if !is_said {
        output::give_up();
    }
    is_said
}

/// Has one `SIGTERM` end the process in any case: some time after it, whatever keeps it is not waited for.
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
    // Without the thread, what stands still on a stalled output is ended by a second signal.
    let _ = Builder::new().name("ending".to_owned()).spawn(watch);
}

/// Runs on the view's thread, and stops the turn once standard output takes nothing any more.
fn watch_turn(
    mut events: EventReceiver,
    mut view: Box<dyn View>,
    brake: &Brake,
) -> io::Result<Box<dyn View>> {
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
            // The reader is gone, and the answer with it.
            if view.event(event).is_err() && !pipe_closed {
                pipe_closed = true;
                brake.stop(Stop::PipeClosed);
            }
        }
    });
    Ok(view)
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
