//! Runs the recorded calls of read-only tools again and compares their results.

use crate::outside_text::OutsideTextFold;
use crate::ports::{
    Asker, Gate, GateRequest, OutputSink, ProgressSink, Record, RecordBody, ToolInvocation, Verdict,
};
use crate::toolbox::Toolbox;
use rondo_types::{CallId, Effects, RemainingLimits, SessionId, ToolErrorCode, ToolOutcome};
use serde_json::Value;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long a call may take that is run again.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// A call that was run again, and its recorded result.
#[derive(Debug, Clone, PartialEq)]
pub struct Rerun {
    /// Id of the call.
    pub call_id: CallId,
    /// The tool.
    pub tool: String,
    /// Arguments of the call.
    pub arguments: Value,
    /// The recorded result.
    pub recorded: ToolOutcome,
    /// The result now; `None` if it was not run: the tool is not read-only, is not offered, or the gate would
    /// ask about the call.
    pub now: Option<ToolOutcome>,
}

impl Rerun {
    /// Returns whether the result differs now. The path of the full output does not count.
    #[must_use]
    pub fn has_drifted(&self) -> bool {
        match (&self.recorded, &self.now) {
            (_, None) => false,
            (ToolOutcome::Ok(recorded), Some(ToolOutcome::Ok(now))) => {
                (&recorded.value, &recorded.blocks) != (&now.value, &now.blocks)
            }
            (recorded, Some(now)) => recorded != now,
        }
    }
}

/// Runs the recorded calls of read-only tools again, one after another.
///
/// # Cancel safety
/// Dropping the future drops the running call.
pub async fn rerun(
    session: &SessionId,
    records: &[Record],
    tools: &Toolbox,
    gate: &dyn Gate,
) -> Vec<Rerun> {
    let mut started = HashMap::new();
    let mut all = Vec::new();
    let mut outside_text = OutsideTextFold::default();
    for record in records {
        outside_text.take(record);
        match &record.body {
            RecordBody::ToolStarted {
                call_id,
                name,
                arguments,
                ..
            } => {
                started.insert(call_id, (name, arguments));
            }
            RecordBody::ToolFinished {
                call_id, outcome, ..
            } => {
                let Some((name, arguments)) = started.remove(call_id) else {
                    continue;
                };
                let mut call = Rerun {
                    call_id: call_id.clone(),
                    tool: name.clone(),
                    arguments: arguments.clone(),
                    recorded: outcome.clone(),
                    now: None,
                };
                call.now = run(
                    session,
                    record,
                    &call,
                    (tools, gate),
                    outside_text.is_present(),
                )
                .await;
                all.push(call);
            }
            _ => {}
        }
    }
    all
}

async fn run(
    session: &SessionId,
    record: &Record,
    call: &Rerun,
    (tools, gate): (&Toolbox, &dyn Gate),
    has_outside_text: bool,
) -> Option<ToolOutcome> {
    let tool = tools.get(&call.tool)?;
    let spec = tools.spec(&call.tool)?;
    if spec.effects != Effects::ReadOnly || spec.runs_turns {
        return None;
    }
    let request = GateRequest {
        session: session.clone(),
        turn: record.turn.clone(),
        step: record.step,
        call_id: call.call_id.clone(),
        spec,
        arguments: call.arguments.clone(),
        has_outside_text,
    };
    if gate.check(&request).await != Verdict::Allow {
        return None;
    }
    let invocation = ToolInvocation {
        session: session.clone(),
        turn: record.turn.clone(),
        call_id: call.call_id.clone(),
        idempotency_key: format!("replay-{}", call.call_id),
        arguments: call.arguments.clone(),
        timeout: Some(CALL_TIMEOUT),
        cancel: CancellationToken::new(),
        output: OutputSink::discard(),
        progress: ProgressSink::discard(),
        allowance: RemainingLimits::default(),
        asker: Asker::nobody(),
    };
    let late = || ToolOutcome::error(ToolErrorCode::Timeout, "the call did not end in time");
    let ended = timeout(CALL_TIMEOUT, tool.call(invocation)).await;
    Some(ended.unwrap_or_else(|_| late()))
}
