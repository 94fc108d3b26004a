//! Tokens and cost of all turns of a session.

use super::{Fold, Note, TurnView};
use rondo_types::{TurnEvent, Usage};

/// Usage of a session's turns, and its latest turn.
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

    /// Returns the latest turn with its calls.
    #[must_use]
    pub fn fold(&self) -> &Fold {
        &self.latest
    }

    /// Returns the turn that is not over, if the latest one is not.
    #[must_use]
    pub fn running(&self) -> Option<&TurnView> {
        self.latest().filter(|turn| turn.ending.is_none())
    }

    /// Returns the money of all turns as far as the prices are known, that of the running turn included.
    #[must_use]
    pub fn cost_so_far_usd(&self) -> f64 {
        self.cost_usd + self.running().map_or(0.0, |turn| turn.known_cost_usd)
    }

    /// Adds the usage of the turns before these.
    pub fn precede(&mut self, earlier: &Self) {
        self.usage += earlier.usage;
        self.cost_usd += earlier.cost_so_far_usd();
        self.is_cost_partial |= earlier.is_cost_partial;
        self.turns = self.turns.saturating_add(earlier.turns);
    }

    /// Takes an event of a turn that runs, and returns the line that it is worth beside the answer.
    pub fn event(&mut self, event: &TurnEvent) -> Option<Note> {
        let is_over = |totals: &Self| totals.latest().is_some_and(|turn| turn.ending.is_some());
        let was_over = is_over(self);
        let note = self.latest.event(event);
        if !was_over && is_over(self) {
            self.count();
        }
        if let Some(usage) = event.body.usage() {
            self.context_tokens = Some(usage.total());
        }
        note
    }

    /// Takes a turn that is over, from its records.
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
        let (usage, known) = (turn.usage, turn.known_cost_usd);
        self.is_cost_partial |= turn.cost_usd.is_none();
        self.turns = self.turns.saturating_add(1);
        self.usage += usage;
        self.cost_usd += known;
    }
}
