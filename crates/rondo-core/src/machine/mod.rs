//! The turn as a state machine: every decision and every bound, no await.
//!
//! One input at a time, with the time as a value; out come actions. No clock, no randomness, no
//! IO: given the same inputs it yields the same actions, which is what makes replay, recovery,
//! forks and exhaustive tests cheap. It serializes between any two inputs.
//!
//! # Layout
//! - `turn`: the machine, its inputs and the step cycle.
//! - `io`: the inputs and actions as types.
//! - `budget`: the amount left, and the part held back for the last answer.
//! - `judge`: sorts a reply into answer, calls, refusal or unusable.
//! - `plan_calls`: the calls of a reply that may run, and their stages.
//! - `batch`: the tool calls of one reply, from the gate to committed results.
//! - `compact`: when older messages are summarized, dropped or shortened.
//! - `failure`: the reaction to a failed request: a retry and its wait, a fallback, or the end.
//! - `refused`: parts of a conversation that are left out after the provider refused to read it.
//! - `guard`: detects calls that are repeated without progress.
//! - `doubt`: calls whose end is not known after a crash, and those that are asked about again.
//! - `held`: a request that is not sent before all checks let it pass.
//! - `equip`: tools that change between two steps.
//! - `intercept`: decisions of interceptors.
//! - `finish`: the outcome, and the answer that the runtime builds when the model gave none.
//! - `render`: tool results as the model reads them.
//! - `waiting`: how long people were waited for.
//! - `written_call`: detects calls that a model wrote into its text.

mod batch;
mod budget;
mod compact;
mod doubt;
mod equip;
mod failure;
mod finish;
mod guard;
mod held;
mod intercept;
mod io;
pub(crate) mod judge;
mod plan_calls;
mod refused;
pub(crate) mod render;
mod turn;
mod waiting;
mod written_call;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use batch::finished_event;
pub(crate) use doubt::IN_DOUBT;
pub use io::{
    Action, Arguments, Input, ModelCall, PlannedCall, PreparedCall, RequestCheck, StepEnd,
    TurnConfig,
};
pub use turn::TurnMachine;
pub(crate) use turn::{PAUSES_MAX, assign_ids};
