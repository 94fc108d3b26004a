//! The original text of a call, kept to be sent back as the model wrote it.

use rondo_types::{Opaque, ToolCall};
use serde::{Deserialize, Serialize};

/// How a call was written, kept as the call's own provider data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SourceText {
    /// The block, from its opening tag to its closing one.
    pub(super) text: String,
    /// How many calls behind it were dropped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) ignored_calls: u32,
}

impl SourceText {
    /// Reads it back from a call that this dialect read, by whatever way it came.
    pub(super) fn of(call: &ToolCall) -> Option<Self> {
        let opaque: &Opaque = call.opaque.as_ref()?;
        if !is_react(&opaque.origin.dialect) {
            return None;
        }
        serde_json::from_str(&opaque.json).ok()
    }

    pub(super) fn to_json(&self) -> String {
        // Strings and numbers have no way to fail; without it the canonical form goes back.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Returns whether a dialect is this one, over whatever.
pub(super) fn is_react(dialect: &str) -> bool {
    dialect
        .strip_prefix(super::NAME)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('+'))
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &u32) -> bool {
    *count == 0
}
