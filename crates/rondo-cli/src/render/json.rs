//! The formats `json` and `stream-json`: one object on each line, always with a `result` as the last.

use super::view::{DeniedCall, FinishedTurn, View};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::Output;
use rondo_core::shown::is_hidden;
use rondo_types::{
    EventBody, ModelError, ResultEvent, SessionId, StopReason, TimeMs, TurnEvent, TurnId, Usage,
};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;

/// Shows a turn as JSON.
pub(crate) struct JsonView {
    output: Output,
    /// Every event, or the result only.
    stream: bool,
    /// The last event, which is shown with how the process ends.
    last: Option<TurnEvent>,
}

impl JsonView {
    /// Builds the view of `json`, or of `stream-json`.
    pub(crate) fn new(output: Output, stream: bool) -> Self {
        Self {
            output,
            stream,
            last: None,
        }
    }
}

impl View for JsonView {
    fn event(&mut self, event: TurnEvent) -> io::Result<()> {
        if matches!(event.body, EventBody::Result(_) | EventBody::Parked { .. }) {
            self.last = Some(event);
            return Ok(());
        }
        if let EventBody::Warning { text } = &event.body {
            self.output.warning(text);
        }
        if self.stream {
            self.output.json(&line(&event))
        } else {
            Ok(())
        }
    }

    fn tick(&mut self) {}

    fn finish(&mut self, ending: &FinishedTurn<'_>) -> io::Result<()> {
        let Some(event) = self.last.take() else {
            return Ok(());
        };
        let value = result_of_process(event, ending.exit, ending.denied)?;
        self.output.json(&format!("{value}\n"))
    }

    fn park(&mut self, exit: Exit) -> io::Result<()> {
        let Some(event) = self.last.take() else {
            return Ok(());
        };
        let mut value = serde_json::to_value(&event).map_err(io::Error::other)?;
        if let Some(fields) = value.as_object_mut() {
            fields.insert("exit_code".to_owned(), exit.code().into());
        }
        self.output.json(&format!("{value}\n"))
    }
}

/// Returns a `result` with what the process adds to it.
///
/// # Errors
/// When the event is not data.
pub(crate) fn result_of_process(
    mut event: TurnEvent,
    exit: Exit,
    denied: &[DeniedCall],
) -> io::Result<Value> {
    if let EventBody::Result(result) = &mut event.body {
        result.exit_code = Some(i32::from(exit.code()));
    }
    let mut value = serde_json::to_value(&event).map_err(io::Error::other)?;
    if let (Some(fields), false) = (value.as_object_mut(), denied.is_empty()) {
        let denied = serde_json::to_value(denied).map_err(io::Error::other)?;
        fields.insert("needed_approval".to_owned(), denied);
    }
    Ok(value)
}

/// Returns the `result` line of a run that failed before its turn began.
pub(crate) fn early_result(error: &CliError, at: TimeMs) -> String {
    let result = ResultEvent {
        text: String::new(),
        stop_reason: StopReason::Error,
        model: None,
        degraded: true,
        findings: Vec::new(),
        usage: Usage::default(),
        cost_usd: None,
        delegated: None,
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
        // There is neither yet, and an id that is made up could not be looked up. Readers take a name only.
        session: SessionId::new("none"),
        turn: TurnId::new("none"),
        seq: 0,
        at,
        body: EventBody::Result(Box::new(result)),
    })
}

fn line(event: &TurnEvent) -> String {
    let mut line = serde_json::to_string(event).unwrap_or_default();
    line.push('\n');
    line
}

/// Returns JSON whose hidden characters are escaped: a terminal that shows it takes no orders from it, and
/// a parser reads the same value.
///
/// They can only be in strings, but for the line breaks between lines.
pub(crate) fn escaped(json: &str) -> Cow<'_, str> {
    let is_escaped = |c: char| is_hidden(c) && c != '\n';
    if !json.contains(is_escaped) {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if is_escaped(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(c);
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn hidden_characters_are_escaped_and_the_value_is_the_same() {
        let hostile =
            "a\u{9b}2J\u{1b}]52;c;\u{7}\u{7f}\u{ad}\u{202e}\u{2028}\u{e0041}\"é\n語\u{10fffd}";
        let value = json!({hostile: [hostile, 1, null, {}]});
        for text in [value.to_string(), format!("{value:#}")] {
            let shown = escaped(&text);
            assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
            assert!(!shown.chars().any(|c| c != '\n' && is_hidden(c)), "{shown}");
        }
        assert_eq!(
            escaped("\"\u{9b}\u{e0041}é\"\n"),
            "\"\\u009b\\udb40\\udc41é\"\n"
        );
    }
}
