//! Usage of the recorded sessions: tokens and cost, by day, model, project or session.

use crate::error::{Result, SetupError, SetupErrorKind};
use crate::sessions;
use crate::view::{Fold, StepView};
use rondo_core::clock::Clock;
use rondo_core::ports::{RecordBody, Seq};
use rondo_core::session_store::{SessionInfo, StoreError};
use rondo_core::storage::Store;
use rondo_memory::calendar;
use rondo_types::{NanoUsd, SessionId, TimeMs, Usage};
use std::collections::BTreeMap;

/// The kinds of records that say which model was asked at which price, and what its reply used.
const COUNTED: [&str; 4] = [
    "turn_started",
    "equipped",
    "model_requested",
    "model_replied",
];

/// Key of the sums of usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageBy {
    /// The day in this machine's time zone, as `2026-11-24`.
    Day,
    /// The model, as `provider/model`.
    Model,
    /// The directory.
    Project,
    /// The session; what a call of it started counts as its own.
    Session,
}

/// Usage under one key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsageSum {
    /// Replies of models. Requests without one are not counted.
    pub requests: u64,
    /// Their tokens, if the provider counted them.
    pub usage: Usage,
    /// Their cost by the price of the time, as far as it was known.
    pub cost: NanoUsd,
    /// Replies whose tokens or price are not known.
    pub uncounted: u64,
}

/// Returns when the day began on this machine's clock and in its time zone.
#[must_use]
pub fn midnight() -> TimeMs {
    calendar::midnight(Clock::system().now())
}

/// Sums up what the sessions used since a time.
///
/// # Errors
/// When the journal cannot be read. A damaged session fails it.
pub fn usage(store: &Store, by: UsageBy, since: TimeMs) -> Result<BTreeMap<String, UsageSum>> {
    usage_of(store, by, since, |_| true)
}

/// Sums up what some sessions used since a time.
pub(crate) fn usage_of(
    store: &Store,
    by: UsageBy,
    since: TimeMs,
    is_counted: impl Fn(&SessionInfo) -> bool,
) -> Result<BTreeMap<String, UsageSum>> {
    let mut sums = BTreeMap::new();
    let all = store.sessions(usize::MAX).map_err(sessions::failed)?;
    for info in sessions::with_children(store, all)? {
        if info.updated >= since && is_counted(&info) {
            match of_session(store, &info, (by, since), &mut sums) {
                // Another process removed it meanwhile.
                Err(error) if error.kind == SetupErrorKind::NoSession => {}
                counted => counted?,
            }
        }
    }
    Ok(sums)
}

/// Sums up what one session used, with those that its calls started; nothing if it has no records yet.
///
/// # Errors
/// When the journal cannot be read.
pub fn of_one(store: &Store, session: &SessionId) -> Result<UsageSum> {
    let info = match store.session(session) {
        Ok(info) => info,
        Err(StoreError::Unknown { .. }) => return Ok(UsageSum::default()),
        Err(error) => return Err(sessions::failed(error)),
    };
    let mut sums = BTreeMap::new();
    for info in sessions::with_children(store, vec![info])? {
        of_session(store, &info, (UsageBy::Model, TimeMs(0)), &mut sums)?;
    }
    let none = UsageSum::default();
    Ok(sums.into_values().fold(none, UsageSum::plus))
}

fn of_session(
    store: &Store,
    info: &SessionInfo,
    (by, since): (UsageBy, TimeMs),
    sums: &mut BTreeMap<String, UsageSum>,
) -> Result<()> {
    // Turns that a fork shares with its parent are the parent's.
    let own = info.parent.as_ref().map_or(1, |(_, at)| at.0 + 1);
    let mut fold = Fold::brief();
    store.each::<SetupError>(&info.id, Seq(1), |entry| {
        let is_own = entry.seq.0 >= own;
        if !COUNTED.contains(&entry.kind().as_str()) {
            return Ok(());
        }
        let Some(record) = entry.into_record() else {
            return Ok(());
        };
        fold.record(&record);
        let is_reply = matches!(record.body, RecordBody::ModelReplied { .. });
        let step = fold.turn().and_then(|turn| turn.steps.last());
        if let Some(step) = step.filter(|_| is_reply && is_own && record.at_ms >= since) {
            let key = key(by, info, &step.model, record.at_ms);
            sums.entry(key).or_default().add(step);
        }
        Ok(())
    })
}

fn key(by: UsageBy, info: &SessionInfo, model: &str, at: TimeMs) -> String {
    match by {
        UsageBy::Day => calendar::local(at).date().to_string(),
        UsageBy::Model => model.to_owned(),
        UsageBy::Project => match info.directory.is_empty() {
            true => "(none)".to_owned(),
            false => info.directory.clone(),
        },
        UsageBy::Session => {
            let mut root = info.id.clone();
            while let Some(parent) = root.parent() {
                root = parent;
            }
            root.to_string()
        }
    }
}

impl UsageSum {
    /// Counts a step that has its reply.
    fn add(&mut self, step: &StepView) {
        self.requests += 1;
        self.usage += step.usage.unwrap_or_default();
        match step.cost_usd {
            Some(cost) => self.cost += NanoUsd::from_usd(cost),
            None => self.uncounted += 1,
        }
    }

    /// Returns both together.
    #[must_use]
    pub fn plus(mut self, more: Self) -> Self {
        self.requests += more.requests;
        self.usage += more.usage;
        self.cost += more.cost;
        self.uncounted += more.uncounted;
        self
    }
}
