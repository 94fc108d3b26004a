//! The port to the accounts of budgets that turns of any process share.

use super::budget::Amount;
use crate::session_store::StoreError;
use async_trait::async_trait;
use rondo_types::{NanoUsd, SessionId};

/// Scope of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetScope {
    /// A session, with those that its calls started.
    Session,
    /// A day of the user.
    Day,
    /// A day of the user in one directory.
    ProjectDay,
}

impl BudgetScope {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Session, Self::Day, Self::ProjectDay];
}

/// A bound on the usage in a scope; `None` is not a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetLimit {
    /// Scope of the budget.
    pub scope: BudgetScope,
    /// Tokens of prompts and replies.
    pub tokens: Option<u64>,
    /// Money.
    pub cost: Option<NanoUsd>,
}

/// Session, project and day for which a request counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetPlace {
    /// The session, or the one that it was started for.
    pub root: SessionId,
    /// The directory.
    pub project: String,
    /// The day, counted since 1970.
    pub day: u32,
}

/// A request that is about to be sent, and what is held back for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetClaim {
    /// The session that sends it.
    pub session: SessionId,
    /// Names it within its session.
    pub id: String,
    /// Place for which it counts.
    pub place: BudgetPlace,
    /// Expected use.
    pub estimate: Amount,
    /// Counts it without refusing it.
    pub beyond: bool,
}

/// The port to the usage of budgets that turns of any process share.
///
/// The possible cost of a request is reserved before it is sent, in the transaction that checks whether it fits, so
/// that two processes cannot both take the last of it. The actual use replaces that afterwards. A process that dies in
/// between leaves it reserved until its session continues; if it leaves no session, the next request of any process
/// gives it back.
#[async_trait]
pub trait BudgetStore: Send + Sync {
    /// Holds back what a request is likely to use if it fits all limits; otherwise returns the first limit that it
    /// does not fit. The same claim again holds back nothing more.
    ///
    /// # Errors
    /// When the storage fails.
    ///
    /// # Cancel safety
    /// Not cancel safe: it may or may not be held back.
    async fn hold_back(
        &self,
        claim: BudgetClaim,
        limits: Vec<BudgetLimit>,
    ) -> Result<Option<BudgetLimit>, StoreError>;

    /// Replaces what is held back for a request by what it has used. Changes nothing if nothing is held back for it.
    ///
    /// # Errors
    /// When the storage fails.
    ///
    /// # Cancel safety
    /// Not cancel safe: it may or may not be settled.
    async fn settle_held(
        &self,
        session: &SessionId,
        id: &str,
        used: Amount,
    ) -> Result<(), StoreError>;

    /// Returns whether the amount used in a scope before anything was held back there is known.
    ///
    /// # Errors
    /// When the storage fails.
    ///
    /// # Cancel safety
    /// Cancel safe.
    async fn is_counted(&self, scope: BudgetScope, place: BudgetPlace) -> Result<bool, StoreError>;

    /// Adds the amount used in a scope before anything was held back there. Changes nothing if it is counted already.
    ///
    /// # Errors
    /// When the storage fails.
    ///
    /// # Cancel safety
    /// Not cancel safe: it may or may not be counted.
    async fn count_before(
        &self,
        scope: BudgetScope,
        place: BudgetPlace,
        used: Amount,
    ) -> Result<(), StoreError>;

    /// Returns the amount that is used or held back in a scope.
    ///
    /// # Errors
    /// When the storage fails.
    ///
    /// # Cancel safety
    /// Cancel safe.
    async fn committed(&self, scope: BudgetScope, place: BudgetPlace)
    -> Result<Amount, StoreError>;
}
