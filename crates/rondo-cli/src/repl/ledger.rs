//! Tokens, cost and steps of a session's turns, collected from their events.

use crate::exit::Exit;
use crate::render::{FinishedTurn, View};
use crate::story::{Item, Step, Turn};
use rondo_types::{CallId, EventBody, TimeMs, TurnEvent, Usage};
use serde_json::Value;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// The bound on calls that are kept of a turn; a turn of more was told as it ran.
const CALLS_MAX: usize = 1000;
/// The bound on steps that are kept of a turn.
const STEPS_MAX: usize = 1000;

/// What is known of the latest turn, and of all.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Tokens of all turns.
    pub(super) usage: Usage,
    /// Money of all turns, in dollars, as far as the prices are known.
    pub(super) cost_usd: f64,
    /// A price was not known.
    pub(super) is_cost_partial: bool,
    /// How many turns ran.
    pub(super) turns: u32,
    /// Tokens of the latest request and its reply: what the next one begins with.
    pub(super) context_tokens: Option<u64>,
    /// The steps of the latest turn.
    pub(super) steps: Vec<StepLog>,
}

/// A step.
#[derive(Debug)]
pub(super) struct StepLog {
    /// From 1.
    pub(super) number: u32,
    began: TimeMs,
    /// How long it took, once it is over.
    pub(super) took_ms: Option<u64>,
    /// Its tokens.
    pub(super) usage: Usage,
    /// Its money, where the price is known.
    pub(super) cost_usd: Option<f64>,
    /// Its calls, in order.
    pub(super) calls: Vec<CallLog>,
}

/// A call.
#[derive(Debug)]
pub(super) struct CallLog {
    id: CallId,
    /// The tool.
    pub(super) name: String,
    /// Its arguments.
    pub(super) arguments: Value,
    /// What the model reads, how long it took, and the error's code if it failed.
    pub(super) end: Option<(Value, u64, Option<String>)>,
}

/// The ledger, shared between the prompt and the view of a turn.
#[derive(Debug, Clone, Default)]
pub(super) struct Books(Arc<Mutex<Ledger>>);

impl Books {
    /// Opens the ledger.
    pub(super) fn open(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what was counted.
    pub(super) fn clear(&self) {
        *self.open() = Ledger::default();
    }
}

impl Ledger {
    /// Counts a turn of the session that another process ran, as its records tell it.
    pub(super) fn recall(&mut self, turn: &Turn) {
        if turn.number == 0 {
            return;
        }
        self.turns = self.turns.saturating_add(1);
        self.usage += turn.usage;
        match turn.cost_usd {
            Some(cost) => self.cost_usd += cost,
            None => self.is_cost_partial = true,
        }
        let ends = turn.steps.iter().skip(1).map(|step| step.asked_ms);
        let ends = ends.chain([turn.began_ms.after(Duration::from_millis(turn.took_ms))]);
        let steps = turn.steps.iter().zip(ends).take(STEPS_MAX);
        self.steps = steps.map(|(step, end)| recalled(step, end)).collect();
        let usage = turn.steps.iter().rev().find_map(|step| step.usage);
        self.context_tokens = usage.map(Usage::total);
    }

    fn note(&mut self, event: &TurnEvent) {
        match &event.body {
            EventBody::Init(_) => {
                self.turns = self.turns.saturating_add(1);
                self.steps.clear();
            }
            EventBody::StepStarted { step } if self.steps.len() < STEPS_MAX => {
                self.steps.push(StepLog {
                    number: *step,
                    began: event.at,
                    took_ms: None,
                    usage: Usage::default(),
                    cost_usd: None,
                    calls: Vec::new(),
                });
            }
            EventBody::Usage { cost_usd, .. } => {
                self.count(event.body.usage().unwrap_or_default(), *cost_usd);
            }
            EventBody::StepFinished { .. } => {
                if let Some(step) = self.steps.last_mut() {
                    let took = event.at.since(step.began).as_millis();
                    step.took_ms = u64::try_from(took).ok();
                }
            }
            _ => self.note_call(&event.body),
        }
    }

    fn note_call(&mut self, body: &EventBody) {
        let Some(step) = self.steps.last_mut() else {
            return;
        };
        match body {
            EventBody::ToolCallPending {
                id,
                name,
                arguments,
            } if step.calls.len() < CALLS_MAX => step.calls.push(CallLog {
                id: id.clone(),
                name: name.clone(),
                arguments: arguments.clone(),
                end: None,
            }),
            EventBody::ToolCallFinished {
                id,
                code,
                result,
                duration_ms,
                ..
            } => {
                if let Some(call) = self.call(id) {
                    let code = code.map(|code| code.to_string());
                    call.end = Some((result.clone(), *duration_ms, code));
                }
            }
            EventBody::ApprovalResolved {
                id,
                arguments: Some(changed),
                ..
            } => {
                if let Some(call) = self.call(id) {
                    call.arguments.clone_from(changed);
                }
            }
            _ => {}
        }
    }

    fn call(&mut self, id: &CallId) -> Option<&mut CallLog> {
        let calls = self.steps.iter_mut().rev().flat_map(|step| &mut step.calls);
        calls.into_iter().find(|call| call.id == *id)
    }

    fn count(&mut self, usage: Usage, cost_usd: Option<f64>) {
        self.usage += usage;
        self.context_tokens = Some(usage.total());
        match cost_usd {
            Some(cost) => self.cost_usd += cost,
            None => self.is_cost_partial = true,
        }
        if let Some(step) = self.steps.last_mut() {
            step.usage += usage;
            step.cost_usd = cost_usd;
        }
    }
}

fn recalled(step: &Step, end: TimeMs) -> StepLog {
    let calls = step.items.iter().filter_map(|item| match item {
        Item::Result {
            tool,
            arguments,
            error,
            text,
            took_ms,
        } => Some(CallLog {
            id: CallId::new(""),
            name: tool.clone(),
            arguments: arguments.clone(),
            end: Some((Value::from(text.as_str()), *took_ms, error.clone())),
        }),
        _ => None,
    });
    StepLog {
        number: step.number,
        began: step.asked_ms,
        took_ms: u64::try_from(end.since(step.asked_ms).as_millis()).ok(),
        usage: step.usage.unwrap_or_default(),
        cost_usd: step.cost_usd,
        calls: calls.take(CALLS_MAX).collect(),
    }
}

/// A view that keeps the books too.
pub(super) struct BookkeepingView<V> {
    inner: V,
    books: Books,
}

impl<V> BookkeepingView<V> {
    pub(super) fn new(inner: V, books: Books) -> Self {
        Self { inner, books }
    }
}

impl<V: View> View for BookkeepingView<V> {
    fn event(&mut self, event: TurnEvent) -> io::Result<()> {
        self.books.open().note(&event);
        self.inner.event(event)
    }

    fn tick(&mut self) {
        self.inner.tick();
    }

    fn changes(&self) -> Option<watch::Receiver<String>> {
        self.inner.changes()
    }

    fn finish(&mut self, ending: &FinishedTurn<'_>) -> io::Result<()> {
        self.inner.finish(ending)
    }

    fn park(&mut self, exit: Exit) -> io::Result<()> {
        self.inner.park(exit)
    }
}
