//! Shows a running turn and stops it when told to.

use crate::exit::{Exit, Stop};
use crate::render::View;
use rondo_core::{EventReceiver, TurnHandle};
use rondo_types::TurnEvent;
use std::io;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Interval, MissedTickBehavior, interval};

/// How often the spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// What the loop leaves behind.
pub(crate) struct Ended {
    /// The view, which has yet to show the end.
    pub(crate) view: Box<dyn View>,
    /// What stopped the turn, if anything did.
    pub(crate) stopped_by: Option<Stop>,
}

#[expect(
    clippy::large_enum_variant,
    reason = "one at a time, taken apart where it was made"
)]
enum Happening {
    Event(Option<TurnEvent>),
    Signal(Stop),
    Tick,
}

/// Shows events until the last one. The first signal stops the turn, whose teardown is then waited
/// for; a second one ends the process at once.
///
/// # Cancel safety
/// Not cancel safe: what was shown is not shown again.
pub(crate) async fn show(
    mut events: EventReceiver,
    view: Box<dyn View>,
    handle: TurnHandle,
) -> Ended {
    let mut ended = Ended {
        view,
        stopped_by: None,
    };
    let mut signals = Signals::listen();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        match next(&mut events, &mut signals, &mut ticks).await {
            Happening::Event(None) => return ended,
            Happening::Event(Some(event)) => {
                // Nobody reads any more, so nobody waits for the answer.
                if ended.view.event(event).is_err() && ended.stopped_by.is_none() {
                    stop(&mut ended, Stop::PipeClosed, &handle);
                }
            }
            Happening::Signal(stop) if ended.stopped_by.is_some() => exit_now(stop),
            Happening::Signal(kind) => stop(&mut ended, kind, &handle),
            Happening::Tick => ended.view.tick(),
        }
    }
}

fn stop(ended: &mut Ended, kind: Stop, handle: &TurnHandle) {
    ended.stopped_by = Some(kind);
    handle.cancel();
}

async fn next(
    events: &mut EventReceiver,
    signals: &mut Signals,
    ticks: &mut Interval,
) -> Happening {
    tokio::select! {
        biased;
        stop = signals.next() => Happening::Signal(stop),
        event = events.next() => Happening::Event(event),
        _ = ticks.tick() => Happening::Tick,
    }
}

struct Signals {
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
    hangup: Option<Signal>,
}

impl Signals {
    /// A signal that cannot be listened to keeps its default effect, which ends the process.
    fn listen() -> Self {
        let listen = |kind| -> Option<Signal> { io::Result::ok(signal(kind)) };
        Self {
            interrupt: listen(SignalKind::interrupt()),
            terminate: listen(SignalKind::terminate()),
            hangup: listen(SignalKind::hangup()),
        }
    }

    async fn next(&mut self) -> Stop {
        tokio::select! {
            () = received(&mut self.interrupt) => Stop::Interrupt,
            () = received(&mut self.terminate) => Stop::Terminate,
            () = received(&mut self.hangup) => Stop::Terminate,
        }
    }
}

async fn received(signal: &mut Option<Signal>) {
    let heard = match signal {
        Some(signal) => signal.recv().await.is_some(),
        None => false,
    };
    if !heard {
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
