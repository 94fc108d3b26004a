//! The port to budgets that turns share: of a session, a day, a user.

use super::gate::agreed_hash;
use async_trait::async_trait;
use rondo_types::{
    NanoUsd, Question, QuestionId, QuestionKind, QuestionSubject, SessionId, TurnId,
};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a budget may take to answer once; then nothing is granted.
pub const BUDGET_TIMEOUT: Duration = Duration::from_secs(10);
/// Reservations that a [`MemoryBudget`] holds; beyond them, older ones count as used up in full.
pub const HELD_MAX: usize = 4096;

/// Something that turns spend from together. Limits of one turn are the profile's.
///
/// Each request to a model is reserved for before it is sent and settled when it has ended. The reservation is
/// recorded, so that a turn that is resumed does not reserve twice for one request; one that crashes before the
/// record was written asks again under the same id.
#[async_trait]
pub trait Budgets: Send + Sync {
    /// Holds back what a request may cost. The same id of the same session again is the same reservation, and holds
    /// back nothing more.
    ///
    /// One that panics or takes longer than [`BUDGET_TIMEOUT`] grants nothing.
    async fn reserve(&self, request: &ReservationRequest) -> Reserved;

    /// Replaces a reservation by what the request has used. Called again after a crash: an id that is
    /// not held any more changes nothing.
    async fn settle(&self, session: &SessionId, id: &str, used: Amount);
}

/// Tokens and money.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Amount {
    /// Tokens of prompt and reply.
    pub tokens: u64,
    /// Their cost; absent if the price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<NanoUsd>,
}

/// A request to a model that is about to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservationRequest {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// The step, from 1; 0 for a request before the first.
    pub step: u32,
    /// Names the reservation within its session.
    pub id: String,
    /// Expected use of the request.
    pub estimate: Amount,
    /// Set if a person let the turn exceed the budget: the request is counted, and not refused.
    pub beyond: bool,
}

/// Reply of a budget to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reserved {
    /// It may be sent.
    Granted,
    /// There is not enough left for it.
    Spent {
        /// Description of the spent budget, for people, as a clause without a full stop: "the budget of 5 USD for today
        /// is spent".
        reason: String,
    },
}

/// A reservation, as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Names it within its session.
    pub id: String,
    /// Expected use of the request.
    pub estimate: Amount,
    /// Set if a person let the turn exceed the budget; that holds for the rest of the turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub beyond: bool,
    /// Why nothing was granted, if nothing was: the turn ended instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// Returns the question whether a turn may continue although a budget is spent; a yes lets it, for as long as its own limits
/// do, and every other answer ends it. `id` names the reservation that was refused, `reason` says what is spent. The hash
/// is of what an answer agrees to: that this turn continues. What is left in a budget changes while a question waits, and
/// is not part of it.
#[must_use]
pub fn question_about_budget(subject: QuestionSubject, id: &str, reason: &str) -> Question {
    let of_budget = (QuestionId(id.to_owned()), QuestionKind::Budget);
    let prompt = format!("{reason}: may the turn go on beyond that?");
    let hash = agreed_hash(&(&subject.session, &subject.turn, id));
    Question::new(of_budget, None, prompt, hash, subject)
}

/// A budget in the memory of one process, for as many sessions as share it. It never grants more than its limits, but
/// what was reserved may turn out to be more.
#[derive(Debug, Default)]
pub struct MemoryBudget {
    limits: Limits,
    account: Mutex<Account>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Limits {
    tokens: Option<u64>,
    cost: Option<NanoUsd>,
}

#[derive(Debug, Default)]
struct Account {
    used: Amount,
    held: HashMap<(SessionId, String), Amount>,
}

impl MemoryBudget {
    /// Bounds tokens and money; `None` is not a bound.
    #[must_use]
    pub fn new(tokens: Option<u64>, cost: Option<NanoUsd>) -> Self {
        Self {
            limits: Limits { tokens, cost },
            account: Mutex::default(),
        }
    }

    /// Returns the amount used, without the amount that is only held back.
    #[must_use]
    pub fn used(&self) -> Amount {
        self.account().used
    }

    /// Returns the amount that is used or held back.
    #[must_use]
    pub fn committed(&self) -> Amount {
        self.account().committed()
    }

    fn account(&self) -> std::sync::MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Account {
    fn committed(&self) -> Amount {
        self.held.values().fold(self.used, |sum, it| sum.plus(*it))
    }
}

impl Amount {
    fn plus(self, other: Self) -> Self {
        let cost = match (self.cost, other.cost) {
            (Some(one), Some(two)) => Some(NanoUsd(one.0.saturating_add(two.0))),
            (one, two) => one.or(two),
        };
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            cost,
        }
    }
}

impl Limits {
    /// Returns the limit that is exceeded.
    fn exceeded(self, total: Amount, is_priced: bool) -> Option<String> {
        if let Some(tokens) = self.tokens.filter(|max| total.tokens > *max) {
            return Some(format!("the budget of {tokens} tokens is spent"));
        }
        let cost = self.cost?;
        if !is_priced {
            return Some("the budget is in money, and the model's price is not known".to_owned());
        }
        let is_spent = total.cost.is_some_and(|total| total > cost);
        is_spent.then(|| format!("the budget of {} dollars is spent", cost.usd()))
    }
}

#[async_trait]
impl Budgets for MemoryBudget {
    async fn reserve(&self, request: &ReservationRequest) -> Reserved {
        let key = (request.session.clone(), request.id.clone());
        let mut account = self.account();
        if account.held.contains_key(&key) {
            return Reserved::Granted;
        }
        let total = account.committed().plus(request.estimate);
        let is_priced = request.estimate.cost.is_some();
        let exceeded = self.limits.exceeded(total, is_priced);
        if let Some(reason) = exceeded.filter(|_| !request.beyond) {
            return Reserved::Spent { reason };
        }
        if account.held.len() >= HELD_MAX {
            account.used = account.committed();
            account.held.clear();
        }
        account.held.insert(key, request.estimate);
        Reserved::Granted
    }

    async fn settle(&self, session: &SessionId, id: &str, used: Amount) {
        let mut account = self.account();
        let held = account.held.remove(&(session.clone(), id.to_owned()));
        if held.is_some() {
            account.used = account.used.plus(used);
        }
    }
}
