//! Reads the errors of Gemini, as a response or within a stream.

use crate::Headers;
use crate::failure::{self, Failure, body_delay_ms, details};
use rondo_types::{ErrorClass, ModelError, TimeMs};
use serde_json::Value;

/// A longer delay means that a daily quota is used up: waiting does not mend it in time.
const RETRY_DELAY_MS_MAX: u64 = 300_000;

/// Reads a response whose status is not 2xx.
pub(super) fn of_response(
    status: u16,
    headers: &Headers<'_>,
    body: &[u8],
    now: TimeMs,
) -> ModelError {
    let value = serde_json::from_slice::<Value>(body).ok();
    let mut failure = value
        .as_ref()
        .map_or_else(|| failure::of_foreign_body(status, body), of_value);
    failure.status = Some(status);
    let delay = failure.retry_after_ms;
    let error = failure::of_response(failure, status, headers, now);
    class_quota(error, value.as_ref(), delay)
}

/// Reads an error inside a stream.
pub(super) fn of_text(text: &str) -> ModelError {
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        let message = text.to_owned();
        return Failure {
            message,
            ..Failure::default()
        }
        .into_error();
    };
    let failure = of_value(&value);
    let delay = failure.retry_after_ms;
    class_quota(failure.into_error(), Some(&value), delay)
}

/// Reads `{"error": {code, message, status, details}}`, or a list of one such object.
fn of_value(value: &Value) -> Failure {
    let error = error_of(value);
    let text = |field: &str| Some(error.get(field)?.as_str()?.to_owned());
    let message = text("message").unwrap_or_default();
    let code = error.get("code").and_then(Value::as_u64);
    Failure {
        status: code.and_then(|code| u16::try_from(code).ok()),
        codes: reasons(error).chain(text("status")).collect(),
        retry_after_ms: body_delay_ms(error, &message),
        message,
    }
}

fn error_of(value: &Value) -> &Value {
    let value = value.get(0).unwrap_or(value);
    value.get("error").unwrap_or(value)
}

/// `google.rpc.ErrorInfo`: a wrong key is a 400 that only this tells.
fn reasons(error: &Value) -> impl Iterator<Item = String> {
    details(error).filter_map(|detail| Some(detail.get("reason")?.as_str()?.to_owned()))
}

/// Turns a rate limit that will not heal soon into a quota error.
fn class_quota(mut error: ModelError, body: Option<&Value>, delay_ms: Option<u64>) -> ModelError {
    if error.class != ErrorClass::RateLimited {
        return error;
    }
    let daily = body.is_some_and(|body| details(error_of(body)).any(has_daily_violation));
    let none_at_all = error.message.contains("limit: 0");
    if daily || none_at_all || delay_ms.is_some_and(|ms| ms > RETRY_DELAY_MS_MAX) {
        error.class = ErrorClass::Quota;
        error.retryable = false;
    }
    error
}

fn has_daily_violation(detail: &Value) -> bool {
    let violations = detail.get("violations").and_then(Value::as_array);
    violations.into_iter().flatten().any(|violation| {
        let id = violation.get("quotaId").and_then(Value::as_str);
        id.is_some_and(|id| id.contains("PerDay") || id.contains("Daily"))
    })
}
