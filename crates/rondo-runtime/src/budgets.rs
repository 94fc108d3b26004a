//! Budgets of a session, a day and a project, which processes share by the journal's file.

use crate::error::{Result, SetupError, SetupErrorKind};
use crate::paths::repository_root;
use crate::sessions;
use crate::settings::Settings;
use crate::target::ModelTarget;
use crate::usage::{UsageBy, UsageSum, midnight, of_one, usage_of};
use async_trait::async_trait;
use rondo_core::Budgets;
use rondo_core::clock::Clock;
use rondo_core::ports::{
    Amount, BudgetClaim, BudgetLimit, BudgetPlace, BudgetScope, ReservationRequest, Reserved,
};
use rondo_core::storage::Store;
use rondo_memory::calendar;
use rondo_types::{NanoUsd, SessionId};
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// Returns the budget that the settings set; none if they set none. `store` is where the session is kept.
///
/// # Errors
/// When a budget is in money and a model's price is not known, or the journal cannot be opened.
pub(crate) fn of(
    settings: &Settings,
    store: Option<&Store>,
    models: &[&ModelTarget],
) -> Result<Option<Arc<dyn Budgets>>> {
    let limits = limits(settings);
    if limits.is_empty() {
        return Ok(None);
    }
    if limits.iter().any(|it| it.cost.is_some()) {
        for model in models {
            check_price(model)?;
        }
    }
    // Usage that is not kept counts all the same.
    let store = match store.filter(|it| !it.is_in_memory()) {
        Some(store) => store.clone(),
        None => sessions::open(settings)?,
    };
    let directory = repository_root(&settings.directory).unwrap_or(&settings.directory);
    Ok(Some(Arc::new(SharedBudget {
        store,
        project: sessions::directory_name(directory),
        limits,
    })))
}

fn limits(settings: &Settings) -> Vec<BudgetLimit> {
    let values = &settings.values;
    let limits = [
        (
            BudgetScope::Session,
            values.max_session_tokens,
            values.max_session_usd,
        ),
        (
            BudgetScope::Day,
            values.max_daily_tokens,
            values.max_daily_usd,
        ),
        (
            BudgetScope::ProjectDay,
            values.max_project_daily_tokens,
            values.max_project_daily_usd,
        ),
    ];
    let limits = limits.into_iter().map(|(scope, tokens, usd)| BudgetLimit {
        scope,
        tokens,
        cost: usd.map(NanoUsd::from_usd),
    });
    limits
        .filter(|it| it.tokens.is_some() || it.cost.is_some())
        .collect()
}

fn check_price(model: &ModelTarget) -> Result<()> {
    if model.facts.price().is_some() {
        return Ok(());
    }
    let name = model.full_name();
    let message = format!("the budget cannot be enforced: the price of `{name}` is not known");
    Err(SetupError::new(SetupErrorKind::Config, message).hint(format!(
        "set `input_usd` and `output_usd` (for a million tokens) under `[models.\"{name}\"]` in the configuration, or set budgets in tokens, such as `max_daily_tokens`"
    )))
}

struct SharedBudget {
    store: Store,
    project: String,
    limits: Vec<BudgetLimit>,
}

#[async_trait]
impl Budgets for SharedBudget {
    async fn reserve(&self, request: &ReservationRequest) -> Reserved {
        let place = BudgetPlace {
            root: root(&request.session),
            project: self.project.clone(),
            day: today(),
        };
        // The usage of a request is counted in each scope, whichever has a limit.
        for scope in BudgetScope::ALL {
            if let Err(err) = self.count_before(scope, &place).await {
                tracing::warn!(%err, "what was used before there was a budget is not counted");
            }
        }
        let claim = BudgetClaim {
            session: request.session.clone(),
            id: request.id.clone(),
            place,
            estimate: request.estimate,
            beyond: request.beyond,
        };
        match self.store.hold_back(claim, self.limits.clone()).await {
            Ok(None) => Reserved::Granted,
            Ok(Some(limit)) => Reserved::Spent {
                reason: spent(limit),
            },
            Err(err) => Reserved::Spent {
                reason: format!("the budgets could not be read or written ({err})"),
            },
        }
    }

    async fn settle(&self, session: &SessionId, id: &str, used: Amount) {
        if let Err(err) = self.store.settle_held(session, id, used).await {
            tracing::warn!(%session, id, %err, "what a request used was not counted");
        }
    }
}

impl SharedBudget {
    /// Counts what the records say was used before there was a budget: once for each session and day.
    async fn count_before(&self, scope: BudgetScope, place: &BudgetPlace) -> Result<()> {
        let counted = self.store.is_counted(scope, place.clone()).await;
        if counted.map_err(sessions::failed)? {
            return Ok(());
        }
        let (store, at) = (self.store.clone(), place.clone());
        let used = spawn_blocking(move || recorded(&store, scope, &at)).await;
        let used = used.map_err(|err| SetupError::caused(SetupErrorKind::Journal, err))??;
        let amount = Amount {
            tokens: used.usage.total(),
            cost: Some(used.cost),
        };
        let counted = self.store.count_before(scope, place.clone(), amount).await;
        counted.map_err(|err| SetupError::caused(SetupErrorKind::Journal, err))
    }
}

/// Returns the recorded usage in a scope.
fn recorded(store: &Store, scope: BudgetScope, place: &BudgetPlace) -> Result<UsageSum> {
    // Usage recorded in a file from elsewhere is not of this user.
    let of_today = || usage_of(store, UsageBy::Project, midnight(), |info| !info.imported);
    Ok(match scope {
        BudgetScope::Session => of_one(store, &place.root)?,
        BudgetScope::Day => of_today()?
            .into_values()
            .fold(UsageSum::default(), UsageSum::plus),
        BudgetScope::ProjectDay => of_today()?.remove(&place.project).unwrap_or_default(),
    })
}

/// Returns the session for which this one was started, or itself.
fn root(session: &SessionId) -> SessionId {
    let mut root = session.clone();
    while let Some(parent) = root.parent() {
        root = parent;
    }
    root
}

/// Returns the day on this machine's clock and in its time zone, counted since 1970.
fn today() -> u32 {
    calendar::day_number(Clock::system().now())
}

fn spent(limit: BudgetLimit) -> String {
    let amount = match (limit.cost, limit.tokens) {
        (Some(cost), None) => format!("{} USD", cost.usd()),
        (None, Some(tokens)) => format!("{tokens} tokens"),
        (Some(cost), Some(tokens)) => format!("{} USD or {tokens} tokens", cost.usd()),
        (None, None) => String::new(),
    };
    let of = match limit.scope {
        BudgetScope::Session => "this session",
        BudgetScope::Day => "today",
        BudgetScope::ProjectDay => "today in this project",
    };
    format!("the budget of {amount} for {of} is spent")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_counts_as_the_session_that_it_was_started_for() {
        let id = |name: &str| SessionId::new(name);
        assert_eq!(root(&id("s.r00100100.r00100100")), id("s"));
        assert_eq!(root(&id("s")), id("s"));
    }

    #[test]
    fn a_refusal_names_its_budget() {
        let limit = |scope, tokens, usd: Option<f64>| BudgetLimit {
            scope,
            tokens,
            cost: usd.map(NanoUsd::from_usd),
        };
        assert_eq!(
            spent(limit(BudgetScope::Day, None, Some(0.5))),
            "the budget of 0.5 USD for today is spent"
        );
        assert_eq!(
            spent(limit(BudgetScope::Session, Some(9), None)),
            "the budget of 9 tokens for this session is spent"
        );
    }
}
