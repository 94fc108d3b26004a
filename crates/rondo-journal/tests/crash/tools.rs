//! Tools of other classes than the built-in ones.

use async_trait::async_trait;
use rondo_core::ports::{Tool, ToolInvocation};
use rondo_types::{Concurrency, Effects, Recovery, ToolOutcome, ToolSpec};
use serde_json::json;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

/// Writes a line to the effects: `send` for good, `put` once for each key, as a target that honors
/// keys does.
pub(crate) struct Outside {
    pub(crate) name: &'static str,
    pub(crate) recovery: Recovery,
    pub(crate) effects: PathBuf,
}

#[async_trait]
impl Tool for Outside {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.to_owned(),
            description: String::new(),
            parameters: json!({"type": "object", "properties": {"token": {"type": "string"}}}),
            effects: Effects::Writes,
            concurrency: Concurrency::Exclusive,
            recovery: self.recovery,
            ..ToolSpec::default()
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        let token = invocation.arguments["token"].as_str().unwrap();
        let known = std::fs::read_to_string(&self.effects).unwrap_or_default();
        let honours_keys = self.recovery == Recovery::Idempotent;
        if !honours_keys || !known.lines().any(|line| line == token) {
            let mut options = OpenOptions::new();
            let file = options.create(true).append(true).open(&self.effects);
            writeln!(file.unwrap(), "{token}").unwrap();
        }
        ToolOutcome::text("sent")
    }
}
