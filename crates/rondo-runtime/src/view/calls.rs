//! The calls of a turn, and how far each of them is.

use rondo_core::shown;
use rondo_types::CallId;
use serde_json::Value;

/// The bound on calls that are kept; of more, the latest.
const CALLS_MAX: usize = 1_024;

/// A call that a model asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct CallView {
    /// Id of the call.
    pub id: CallId,
    /// The tool.
    pub tool: String,
    /// The argument that says most, as text.
    pub summary: String,
    /// Its arguments; null once it is over.
    pub arguments: Value,
    /// How far it is.
    pub state: CallState,
}

/// How far a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallState {
    /// The model asked for it.
    Asked,
    /// It runs.
    Running,
    /// It is over.
    Ended {
        /// Set if it succeeded; a command also by its exit code.
        is_ok: bool,
        /// How long it ran.
        took_ms: u64,
    },
}

/// The calls of a turn, in the order in which the model asked for them.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<CallView>);

impl Calls {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn all(&self) -> &[CallView] {
        &self.0
    }

    pub(super) fn get(&self, id: &CallId) -> Option<&CallView> {
        self.0.iter().rev().find(|call| call.id == *id)
    }

    fn get_mut(&mut self, id: &CallId) -> Option<&mut CallView> {
        self.0.iter_mut().rev().find(|call| call.id == *id)
    }

    /// Adds a call, or replaces the one with its id.
    pub(super) fn ask(&mut self, id: &CallId, tool: &str, arguments: Value) {
        let call = CallView {
            id: id.clone(),
            tool: tool.to_owned(),
            summary: shown::summary(&arguments),
            arguments,
            state: CallState::Asked,
        };
        match self.get_mut(id) {
            Some(known) => *known = call,
            None => {
                if self.0.len() >= CALLS_MAX {
                    self.0.remove(0);
                }
                self.0.push(call);
            }
        }
    }

    /// Changes the arguments of a call.
    pub(super) fn change(&mut self, id: &CallId, arguments: &Value) {
        if let Some(call) = self.get_mut(id) {
            call.summary = shown::summary(arguments);
            call.arguments.clone_from(arguments);
        }
    }

    /// Records that a call runs.
    pub(super) fn start(&mut self, id: &CallId) {
        if let Some(call) = self.get_mut(id) {
            call.state = CallState::Running;
        }
    }

    /// Ends a call, and returns its tool and arguments; both empty for a call that is not known.
    pub(super) fn end(&mut self, id: &CallId, is_ok: bool, took_ms: u64) -> (String, Value) {
        let Some(call) = self.get_mut(id) else {
            return Default::default();
        };
        call.state = CallState::Ended { is_ok, took_ms };
        (call.tool.clone(), call.arguments.take())
    }
}

/// Returns how a command failed, from its result: the signal that ended it or its exit code, and whether its time limit passed.
/// Absent for one that succeeded, and for results of other calls.
#[must_use]
pub fn command_failure(result: &Value) -> Option<String> {
    let code = result.get("exitCode").and_then(Value::as_i64);
    let code = code.filter(|code| *code != 0);
    let signal = result.get("signal").and_then(Value::as_str);
    let late = result.get("timed_out") == Some(&Value::Bool(true));
    let end = match (signal, code) {
        (Some(signal), _) => Some(signal.to_owned()),
        (None, code) => code.map(|code| format!("exit {code}")),
    };
    let late = late.then(|| "timed out".to_owned());
    let parts: Vec<String> = late.into_iter().chain(end).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
