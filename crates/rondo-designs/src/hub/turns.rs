//! One turn at a time in each chat.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Mutex as Queue, OwnedMutexGuard};

/// Lets the turns of a session begin one after the other, in the order in which they were asked for.
#[derive(Debug, Clone, Default)]
pub(super) struct Turns {
    queues: Arc<Mutex<HashMap<String, Arc<Queue<()>>>>>,
}

/// The right to work on a session, until it is dropped.
pub(super) struct Turn {
    turns: Turns,
    session: String,
    permit: Option<OwnedMutexGuard<()>>,
}

impl Turns {
    /// Waits until no other turn works on the session.
    ///
    /// # Cancel safety
    /// Cancel safe: the place in the queue is given up.
    pub(super) async fn begin(&self, session: &str) -> Turn {
        let queue = Arc::clone(self.queues().entry(session.to_owned()).or_default());
        let mut turn = Turn {
            turns: self.clone(),
            session: session.to_owned(),
            permit: None,
        };
        turn.permit = Some(queue.lock_owned().await);
        turn
    }

    fn queues(&self) -> MutexGuard<'_, HashMap<String, Arc<Queue<()>>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut queues = self.turns.queues();
        self.permit = None;
        // A session that nothing works on or waits for is forgotten.
        let is_unused = queues
            .get(&self.session)
            .is_some_and(|queue| Arc::strong_count(queue) == 1);
        if is_unused {
            queues.remove(&self.session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[tokio::test]
    async fn turns_of_a_session_wait_and_an_idle_one_is_forgotten() {
        let turns = Turns::default();
        let first = turns.begin("a").await;
        let other = turns.begin("b").await;
        let mut second = Box::pin(turns.begin("a"));
        assert!((&mut second).now_or_never().is_none());
        drop(first);
        let second = second.await;
        let given_up = Box::pin(turns.begin("a"));
        drop(given_up);
        drop((second, other));
        assert_eq!(turns.queues().len(), 0);
    }
}
