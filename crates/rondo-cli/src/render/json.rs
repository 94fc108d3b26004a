//! `json` and `stream-json`: objects on lines of their own, a `result` last in every case.

use super::view::{Ending, View};
use crate::error::CliError;
use crate::output::Output;
use rondo_types::{
    EventBody, ModelError, ResultEvent, SessionId, StopReason, TimeMs, TurnEvent, TurnId, Usage,
};
use std::io;

/// Shows a turn as JSON.
pub(crate) struct JsonView {
    output: Output,
    /// Every event, or the result only.
    stream: bool,
    result: Option<TurnEvent>,
}

impl JsonView {
    /// Builds the view of `json`, or of `stream-json`.
    pub(crate) fn new(output: Output, stream: bool) -> Self {
        Self {
            output,
            stream,
            result: None,
        }
    }
}

impl View for JsonView {
    fn event(&mut self, event: TurnEvent) -> io::Result<()> {
        if matches!(event.body, EventBody::Result(_)) {
            self.result = Some(event);
            return Ok(());
        }
        if self.stream {
            self.output.stdout(&line(&event))
        } else {
            Ok(())
        }
    }

    fn tick(&mut self) {}

    fn finish(&mut self, ending: &Ending<'_>) -> io::Result<()> {
        let Some(mut event) = self.result.take() else {
            return Ok(());
        };
        if let EventBody::Result(result) = &mut event.body {
            result.exit_code = Some(i32::from(ending.exit.code()));
        }
        self.output.stdout(&line(&event))
    }
}

/// Returns the `result` line of a run that failed before its turn began.
pub(crate) fn early_result(error: &CliError, at: TimeMs, id: &str) -> String {
    let result = ResultEvent {
        text: String::new(),
        stop_reason: StopReason::Error,
        model: None,
        degraded: true,
        findings: Vec::new(),
        usage: Usage::default(),
        cost_usd: None,
        steps: 0,
        tool_calls: 0,
        elapsed_ms: 0,
        error: Some(ModelError {
            retryable: false,
            ..ModelError::new(error.class(), error.line())
        }),
        exit_code: Some(i32::from(error.exit.code())),
    };
    line(&TurnEvent {
        session: SessionId::new(id),
        turn: TurnId::new(id),
        seq: 0,
        at,
        body: EventBody::Result(Box::new(result)),
    })
}

/// U+2028 and its kin are fine inside a line: only LF ends it, and JSON escapes that.
fn line(event: &TurnEvent) -> String {
    let mut line = serde_json::to_string(event).unwrap_or_default();
    line.push('\n');
    line
}
