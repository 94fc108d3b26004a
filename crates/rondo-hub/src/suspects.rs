//! Which sessions may have ended the processes before this one, and how they are tried.
//!
//! A session is at stake from when it is taken up after the end of a process, or begins a request or a call of a tool,
//! until that is over. All that were at stake when a process ended are suspected of that, and it counts against one that
//! was so alone. So those that are suspected are tried one at a time, while all others wait.

use rondo_core::ports::HostRow;
use rondo_types::SessionId;
use serde::{Deserialize, Serialize};
use std::iter::successors;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The table of the sessions that are at stake, or were when a process ended.
pub(crate) const SUSPECTS: &str = "suspect";
/// Processes that ended while a session alone was at a request or a call: after so many, what it works on is put aside.
const AT_WORK_MAX: u32 = 3;
/// The same of those that ended after it alone was taken up, before any of that: what ends a process need not be a request
/// or a call. It is more, since it says less.
const TAKEN_UP_MAX: u32 = 6;
/// After so many ends of processes a session is tried alone. The first may be a power cut, after which no user should
/// wait.
const SUSPECTED_AFTER: u32 = 2;

/// Activity of a session at stake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stake {
    /// It was taken up.
    TakenUp,
    /// A request or a call is under way.
    AtWork,
}

/// How many processes ended while a session was where it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Suspicion {
    /// Its activity in the current process, or in the last; `None` if it is not at stake.
    stake: Option<Stake>,
    /// While it alone was at stake, at a request or a call.
    at_work: u32,
    /// While it alone was at stake, and had been taken up.
    taken_up: u32,
    /// While others were at stake, too.
    among_others: u32,
}

impl Suspicion {
    /// Reads a row; nothing is suspected by one that says something else.
    pub(crate) fn of_row(row: &str) -> Self {
        serde_json::from_str(row).unwrap_or_default()
    }

    pub(crate) fn row(self, session: &SessionId) -> HostRow {
        // Numbers can be written.
        let json = serde_json::to_string(&self).unwrap_or_default();
        HostRow::set(SUSPECTS, session.as_str(), json)
    }

    pub(crate) fn is_at_stake(self) -> bool {
        self.stake.is_some()
    }

    /// Returns the suspicion after the process ended.
    pub(crate) fn after_end(self, was_alone: bool) -> Self {
        let mut after = Self {
            stake: None,
            ..self
        };
        let count = match (self.stake, was_alone) {
            (None, _) => return after,
            (Some(_), false) => &mut after.among_others,
            (Some(Stake::AtWork), true) => &mut after.at_work,
            (Some(Stake::TakenUp), true) => &mut after.taken_up,
        };
        *count = count.saturating_add(1);
        after
    }

    /// Returns it as of a session that is taken up.
    pub(crate) fn as_taken_up(self) -> Self {
        Self {
            stake: Some(Stake::TakenUp),
            ..self
        }
    }

    /// Returns how often it was alone, and among others, as processes ended.
    pub(crate) fn weight(self) -> (u32, u32) {
        (
            self.at_work.saturating_add(self.taken_up),
            self.among_others,
        )
    }

    pub(crate) fn is_suspect(self) -> bool {
        let (alone, among_others) = self.weight();
        alone.saturating_add(among_others) >= SUSPECTED_AFTER
    }

    /// Returns whether it is put aside if it ends the process once more.
    pub(crate) fn is_last_try(self) -> bool {
        self.at_work + 1 == AT_WORK_MAX || self.taken_up + 1 == TAKEN_UP_MAX
    }

    /// Returns whether what the session works on is taken for what ends them.
    pub(crate) fn is_enough(self) -> bool {
        self.at_work >= AT_WORK_MAX || self.taken_up >= TAKEN_UP_MAX
    }
}

/// Returns the row that says that nothing is suspected of a session.
pub(crate) fn cleared(session: &SessionId) -> HostRow {
    HostRow::removed(SUSPECTS, session.as_str())
}

/// Notes while a turn runs when it is at stake: one that gets further is not what ends the hub.
#[derive(Default)]
pub(crate) struct SuspectWatch(Mutex<Suspicion>);

impl SuspectWatch {
    /// Of a turn that continues.
    pub(crate) fn after(known: Suspicion) -> Self {
        Self(Mutex::new(known))
    }

    fn known(&self) -> MutexGuard<'_, Suspicion> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the row to commit as a request or a call begins.
    pub(crate) fn begins(&self, session: &SessionId) -> HostRow {
        let at_work = Suspicion {
            stake: Some(Stake::AtWork),
            ..*self.known()
        };
        at_work.row(session)
    }

    /// Returns the row to commit once it is over.
    pub(crate) fn is_over(&self, session: &SessionId) -> HostRow {
        *self.known() = Suspicion::default();
        cleared(session)
    }
}

/// Sessions that may begin or continue turns.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Admission {
    All,
    /// A session that is tried, and those that it started.
    Only(SessionId),
    None,
}

/// Keeps others waiting while a session is tried.
pub(crate) struct Trial(watch::Sender<Admission>);

impl Default for Trial {
    fn default() -> Self {
        Self(watch::Sender::new(Admission::All))
    }
}

impl Trial {
    pub(crate) fn admit_none(&self) {
        self.0.send_replace(Admission::None);
    }

    pub(crate) fn admit_only(&self, session: &SessionId) {
        self.0.send_replace(Admission::Only(session.clone()));
    }

    pub(crate) fn admit_all(&self) {
        self.0.send_replace(Admission::All);
    }

    /// Waits until a session may begin or continue with a turn.
    pub(crate) async fn admits(&self, session: &SessionId) {
        let mut admitted = self.0.subscribe();
        let is_admitted = |it: &Admission| match it {
            Admission::All => true,
            Admission::Only(tried) => {
                let mut above = successors(Some(session.clone()), SessionId::parent);
                above.any(|it| it == *tried)
            }
            Admission::None => false,
        };
        // The sender lives as long as this.
        let _ = admitted.wait_for(is_admitted).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use rondo_types::CallId;

    fn at(stake: Stake) -> Suspicion {
        Suspicion {
            stake: Some(stake),
            ..Suspicion::default()
        }
    }

    /// Suspicion after processes ended, in each of which it was alone or not.
    fn after(stake: Stake, alone: &[bool]) -> Suspicion {
        let once = |known: Suspicion, was_alone: &bool| {
            let begun = Suspicion {
                stake: Some(stake),
                ..known
            };
            begun.after_end(*was_alone)
        };
        alone.iter().fold(Suspicion::default(), once)
    }

    #[test]
    fn a_session_is_put_aside_only_for_what_ended_while_it_was_alone_at_stake() {
        let among_others = after(Stake::AtWork, &[false; 100]);
        assert!(among_others.is_suspect() && !among_others.is_enough());
        let twice = after(Stake::AtWork, &[false, false, true, true]);
        assert!(twice.is_last_try() && !twice.is_enough());
        assert!(after(Stake::AtWork, &[true; 3]).is_enough());
        let taken_up = after(Stake::TakenUp, &[true; 5]);
        assert!(taken_up.is_last_try() && !taken_up.is_enough());
        assert!(after(Stake::TakenUp, &[true; 6]).is_enough());
    }

    #[test]
    fn one_end_of_a_process_makes_nobody_wait_and_what_was_not_at_stake_is_not_counted() {
        for alone in [true, false] {
            assert!(!after(Stake::AtWork, &[alone]).is_suspect());
            assert!(after(Stake::AtWork, &[alone; 2]).is_suspect());
        }
        let known = after(Stake::AtWork, &[true]);
        assert_eq!(known.after_end(true), known);
    }

    #[test]
    fn what_gets_further_starts_from_none() {
        let session = SessionId::new("s");
        let turn = SuspectWatch::after(after(Stake::AtWork, &[true; 2]));
        let row = turn.begins(&session);
        let known = Suspicion::of_row(row.value.as_deref().unwrap());
        assert!(known.is_at_stake() && known.after_end(true).is_enough());
        assert_eq!(turn.is_over(&session), cleared(&session));
        assert_eq!(turn.begins(&session), at(Stake::AtWork).row(&session));
        assert_eq!(Suspicion::of_row("2"), Suspicion::default());
    }

    #[tokio::test]
    async fn a_session_that_is_tried_and_what_it_started_go_on_and_others_wait() {
        let trial = Trial::default();
        let [tried, other] = ["s", "t"].map(SessionId::new);
        let below = tried.child(&CallId::new("r0123456789abcdef")).unwrap();
        assert_eq!(below.parent().as_ref(), Some(&tried));
        let admits = |it: &SessionId| trial.admits(it).now_or_never().is_some();
        assert!(admits(&other));
        trial.admit_only(&tried);
        assert!(admits(&tried) && admits(&below) && !admits(&other));
        trial.admit_none();
        assert!(!admits(&tried));
        trial.admit_all();
        assert!(admits(&other));
    }
}
