//! Errors in the format of `openai-chat`, `openai-responses` and `anthropic`: `{"error": {..}}` and what
//! gateways make of it.

use crate::Headers;
use crate::failure::{self, Failure};
use rondo_types::{ModelError, TimeMs};
use serde_json::Value;

/// Fields of an error object that say what kind it is, in the order of their weight.
const CODE_FIELDS: [&str; 3] = ["code", "type", "status"];

/// Reads a response whose status is not 2xx.
pub(crate) fn of_response(
    status: u16,
    headers: &Headers<'_>,
    body: &[u8],
    now: TimeMs,
) -> ModelError {
    let mut failure = serde_json::from_slice::<Value>(body).ok().map_or_else(
        || failure::of_foreign_body(status, body),
        |it| of_value(&it),
    );
    failure.status = Some(status);
    failure::of_response(failure, status, headers, now)
}

/// Reads an error inside a stream: JSON of any of the known shapes, or plain text.
pub(crate) fn of_text(text: &str) -> ModelError {
    let failure = match serde_json::from_str::<Value>(text) {
        Ok(value) => of_value(&value),
        Err(_) => Failure {
            message: text.to_owned(),
            ..Failure::default()
        },
    };
    failure.into_error()
}

/// Reads `{"error": {..}}`, `{"error": ".."}`, `[{"error": ..}]`, `{"object": "error", ..}`,
/// `{"message": ..}` and `{"detail": ..}`.
fn of_value(value: &Value) -> Failure {
    let value = value.get(0).unwrap_or(value);
    let inner = match value.get("error") {
        Some(inner) if !inner.is_null() => inner,
        _ => value,
    };
    let message = message(inner);
    let mut failure = Failure {
        codes: codes(inner),
        retry_after_ms: failure::body_delay_ms(inner, &message),
        message,
        ..Failure::default()
    };
    failure.status = inner
        .get("code")
        .or_else(|| inner.get("status"))
        .and_then(number)
        .and_then(|code| u16::try_from(code).ok())
        .filter(|code| (400..600).contains(code));
    failure
}

fn codes(inner: &Value) -> Vec<String> {
    let text = |field: &&str| Some(inner.get(field)?.as_str()?.to_owned());
    CODE_FIELDS.iter().filter_map(text).collect()
}

fn number(value: &Value) -> Option<u64> {
    value
        .as_u64()
        .or_else(|| value.as_str().and_then(|text| text.parse().ok()))
}

fn upstream(inner: &Value) -> Option<String> {
    let metadata = inner.get("metadata")?;
    let raw = metadata.get("raw").filter(|raw| !raw.is_null())?;
    let raw = raw.as_str().map_or_else(|| raw.to_string(), str::to_owned);
    Some(
        match metadata.get("provider_name").and_then(Value::as_str) {
            Some(name) => format!("{name} said {raw}"),
            None => raw,
        },
    )
}

fn message(inner: &Value) -> String {
    let text = ["message", "detail"]
        .into_iter()
        .find_map(|field| inner.get(field))
        .unwrap_or(inner);
    let text = text
        .as_str()
        .map_or_else(|| text.to_string(), str::to_owned);
    // OpenRouter says only that a provider failed; what that provider said is beside it.
    let text = match upstream(inner) {
        Some(raw) => format!("{text}: {raw}"),
        None => text,
    };
    // Groq gives the call that it could not read; a corrective message can quote it.
    match inner.get("failed_generation").and_then(Value::as_str) {
        Some(call) => format!("{text} (failed generation: {call})"),
        None => text,
    }
}
