//! Tokens and cost of all turns of a session.

use super::{Fold, TurnView};
use rondo_types::{TurnEvent, Usage};

/// What the turns of a session used, and its latest turn.
#[derive(Debug, Default)]
pub struct Totals {
    /// Tokens of all turns.
    pub usage: Usage,
    /// Money of all turns, in dollars, as far as the prices are known.
    pub cost_usd: f64,
    /// A price was not known.
    pub is_cost_partial: bool,
    /// How many turns ran.
    pub turns: u32,
    /// Tokens of the latest request and its reply: what the next one begins with.
    pub context_tokens: Option<u64>,
    latest: Fold,
}

impl Totals {
    /// Returns the latest turn.
    #[must_use]
    pub fn latest(&self) -> Option<&TurnView> {
        self.latest.turn()
    }

    /// Takes an event of a turn that runs.
    pub fn event(&mut self, event: &TurnEvent) {
        let is_over = |totals: &Self| totals.latest().is_some_and(|turn| turn.ending.is_some());
        let was_over = is_over(self);
        self.latest.event(event);
        if !was_over && is_over(self) {
            self.count();
        }
        if let Some(usage) = event.body.usage() {
            self.context_tokens = Some(usage.total());
        }
    }

    /// Takes a turn that is over, as its records tell it.
    pub fn recall(&mut self, turn: TurnView) {
        if turn.number == 0 {
            return;
        }
        let usage = turn.steps.iter().rev().find_map(|step| step.usage);
        self.context_tokens = usage.map(Usage::total);
        self.latest = Fold::of(turn);
        self.count();
    }

    fn count(&mut self) {
        let Some(turn) = self.latest.turn() else {
            return;
        };
        let (usage, cost) = (turn.usage, turn.cost_usd);
        self.turns = self.turns.saturating_add(1);
        self.usage += usage;
        match cost {
            Some(cost) => self.cost_usd += cost,
            None => self.is_cost_partial = true,
        }
    }
}
