//! A timer for a limit that moves.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use tokio::task::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until};

/// A timer that is set again only if it would ring too late.
///
/// To set a timer of the runtime costs a lock and often a system call, and a limit moves with each piece of a reply. One
/// that moved away from the timer finds it ringing too early: then it is set for what is left.
#[derive(Default)]
pub(super) struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    /// Waits for an instant.
    ///
    /// # Cancel safety
    /// Cancel safe: the timer stays set.
    pub(super) async fn at(&mut self, instant: Instant) {
        poll_fn(|cx| self.poll(instant, cx)).await;
    }

    fn poll(&mut self, instant: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let timer = self.0.get_or_insert_with(|| Box::pin(sleep_until(instant)));
        if instant < timer.deadline() {
            timer.as_mut().reset(instant);
        }
        loop {
            // Input that is read before it may have used up the share of one turn that the runtime gives a task: a
            // server that always has more would put every limit off.
            ready!(pin!(unconstrained(timer.as_mut())).poll(cx));
            if timer.deadline() >= instant {
                return Poll::Ready(());
            }
            timer.as_mut().reset(instant);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::task::{consume_budget, coop};

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn it_rings_at_the_instant_wherever_that_moved_before() {
        let mut alarm = Alarm::default();
        let begun = Instant::now();
        for (first, then) in [(5, 9), (9, 5), (5, 5)] {
            let base = Instant::now();
            tokio::select! {
                biased;
                () = alarm.at(base + first * SECOND) => panic!("rang at once"),
                () = std::future::ready(()) => {}
            }
            alarm.at(base + then * SECOND).await;
            let late = (base + then * SECOND).elapsed();
            assert!(late < SECOND / 100, "{first} {then} {late:?}");
        }
        assert!(begun.elapsed() >= 19 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn an_instant_that_is_past_rings_at_once() {
        let mut alarm = Alarm::default();
        alarm.at(Instant::now() + SECOND).await;
        let now = Instant::now();
        alarm.at(now - SECOND / 2).await;
        assert_eq!(now.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn it_rings_for_a_task_that_has_done_all_it_may() {
        let mut alarm = Alarm::default();
        let begun = Instant::now();
        tokio::time::advance(SECOND).await;
        let rings = poll_fn(|cx| {
            while coop::has_budget_remaining() {
                assert!(pin!(consume_budget()).poll(cx).is_ready());
            }
            Poll::Ready(alarm.poll(begun + SECOND / 2, cx).is_ready())
        });
        assert!(rings.await);
    }
}
