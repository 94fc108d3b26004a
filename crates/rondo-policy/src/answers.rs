//! Calls that say something to those who read the turn's answer.

use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// Test for calls that only address the readers of the turn's answer: they reveal no more than the answer could,
/// so that text from outside is no reason to ask about them.
#[derive(Clone, Default)]
pub struct Answers(Option<IsAnswer>);

type IsAnswer = Arc<dyn Fn(&str, &Value) -> bool + Send + Sync>;

impl Answers {
    /// Creates it from a test of the tool's name and the call's arguments.
    pub fn new(is_answer: impl Fn(&str, &Value) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(is_answer)))
    }

    pub(crate) fn hold(&self, tool: &str, arguments: &Value) -> bool {
        self.0.as_ref().is_some_and(|it| it(tool, arguments))
    }
}

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Answers").field(&self.0.is_some()).finish()
    }
}
