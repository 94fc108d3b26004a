//! One turn on behalf of a design.

use async_trait::async_trait;
use rondo_core::history::last_turn;
use rondo_core::{
    EventReceiver, Gate, GateRequest, Model, ToolInvocation, Toolbox, TurnSetup, Verdict, control,
    events, run_turn,
};
use rondo_types::{
    ErrorClass, EventBody, Message, ModelError, Outcome, Profile, Role, SessionId, Transcript,
    TurnId,
};
use serde_json::Value;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio_util::sync::CancellationToken;

/// A run in the terms of all designs.
pub(crate) struct Run {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) tools: Toolbox,
    pub(crate) gate: Arc<dyn Gate>,
    pub(crate) profile: Profile,
    pub(crate) system: Vec<String>,
    pub(crate) history: Transcript,
    pub(crate) input: Message,
}

impl Run {
    /// Runs the turn, hands over its events as they come, and stops it when `cancel` fires.
    ///
    /// # Cancel safety
    /// As [`run_turn`]: dropping ends everything at once.
    pub(crate) async fn finish(
        self,
        cancel: &CancellationToken,
        mut on_event: impl FnMut(EventBody) + Send,
    ) -> Outcome {
        let (turn, mut listener) = self.begin(cancel.cancelled());
        let listen = async {
            while let Some(event) = listener.next().await {
                on_event(event.body);
            }
        };
        let (outcome, ()) = tokio::join!(turn, listen);
        outcome
    }

    /// Returns the turn, which is stopped when `stop` ends, and its events.
    pub(crate) fn begin<S>(
        self,
        stop: S,
    ) -> (impl Future<Output = Outcome> + Send + use<S>, EventReceiver)
    where
        S: Future<Output = ()> + Send,
    {
        let setup = TurnSetup {
            turn_number: free_turn_number(&self.history),
            seed: random(),
            tools: self.tools,
            gate: self.gate,
            system: self.system.into(),
            ..TurnSetup::new(
                fresh_session(&self.profile.name),
                TurnId::new("1"),
                self.model,
                self.profile.into(),
            )
        };
        let (sender, listener) = events::channel(setup.session.clone(), setup.turn.clone());
        let (history, input) = (self.history, self.input);
        let turn = async move {
            let (handle, control) = control();
            let turn = run_turn(setup, history, input, sender, control);
            tokio::pin!(turn);
            let end = tokio::select! {
                biased;
                () = stop => {
                    handle.cancel();
                    turn.await
                }
                end = &mut turn => end,
            };
            end.outcome().unwrap_or_else(parked)
        };
        (turn, listener)
    }
}

/// Parked turns have no form in a design: their approver answers at once, so that there are none.
fn parked() -> Outcome {
    let message = "the turn waits for an answer that the design has no way to give";
    Outcome::failed(ModelError::new(ErrorClass::Internal, message))
}

/// Lets every call run: the designs ask no one, so what a program registers is what may run.
pub(crate) struct AllowAll;

#[async_trait]
impl Gate for AllowAll {
    async fn check(&self, _: &GateRequest) -> Verdict {
        Verdict::Allow
    }
}

/// Returns a session that no other run has, since calls are known outside by their session.
pub(crate) fn fresh_session(design: &str) -> SessionId {
    SessionId::new(format!("{design}-{:016x}", random()))
}

/// Returns a call of a tool that belongs to no session.
pub(crate) fn invocation(
    tool: &str,
    arguments: Value,
    cancel: CancellationToken,
) -> ToolInvocation {
    ToolInvocation {
        cancel,
        ..ToolInvocation::new(fresh_session(tool), arguments)
    }
}

/// The standard library's hash keys are the only randomness that it offers.
fn random() -> u64 {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    RandomState::new().hash_one(RUNS.fetch_add(1, Ordering::Relaxed))
}

/// Returns a turn number of which no call in the history was made, as the history may have lost
/// messages at its beginning.
fn free_turn_number(history: &Transcript) -> u32 {
    let turns = history.iter().filter(|it| it.role == Role::User).count();
    let turns = u32::try_from(turns).unwrap_or(u32::MAX);
    turns.max(last_turn(history)).saturating_add(1)
}

/// Returns a result as text: itself, or compact JSON.
pub(crate) fn text_of(result: Value) -> String {
    match result {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// Shares the messages of a conversation.
pub(crate) fn transcript(messages: Vec<Message>) -> Transcript {
    messages.into_iter().map(Arc::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_types::{CallId, Part, ToolCall};

    fn called_in(turn: u32) -> Arc<Message> {
        let mut message = Message::assistant("");
        message.parts = vec![Part::ToolCall(ToolCall {
            id: CallId::generated(turn, 3, 1),
            wire_id: None,
            name: "f".to_owned(),
            arguments: "{}".to_owned(),
            complete: true,
            opaque: None,
        })];
        Arc::new(message)
    }

    #[test]
    fn turns_are_numbered_past_those_in_a_history_that_lost_its_beginning() {
        assert_eq!(free_turn_number(&vec![]), 1);
        let user = Arc::new(Message::user("q"));
        assert_eq!(free_turn_number(&vec![Arc::clone(&user)]), 2);
        let cut = vec![called_in(2), user, called_in(3)];
        assert_eq!(free_turn_number(&cut), 4);
    }

    #[test]
    fn sessions_are_all_different() {
        let sessions: std::collections::HashSet<_> = (0..1000).map(|_| random()).collect();
        assert_eq!(sessions.len(), 1000);
    }
}
