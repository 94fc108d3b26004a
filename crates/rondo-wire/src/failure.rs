//! Errors of all dialects: their class, retry delay, and a message that is safe to show.

use crate::Headers;
use rondo_types::text::first_bytes;
use rondo_types::{ErrorClass, ModelError, TimeMs};
use serde_json::Value;
use std::time::UNIX_EPOCH;

/// Bytes of a provider's own text in an error.
const MESSAGE_BYTES_MAX: usize = 512;

/// Bytes of a body that is not the protocol, in an error.
const SUMMARY_BYTES_MAX: usize = 200;

/// Text before the delay in messages without `RetryInfo`.
const RETRY_TEXT: &str = "Please retry in ";

/// How keys begin; a word that does is not repeated in an error.
const KEY_PREFIXES: [&str; 7] = ["sk-", "sk_", "AIza", "gsk_", "xai-", "hf_", "AQ."];

/// Characters that may be before a key.
const KEY_BOUNDARIES: [char; 13] = [
    ' ', '\n', '\t', '"', '\'', '`', '=', ':', ',', '(', '[', '<', '/',
];

/// Codes, types and statuses, lower case, that name a class whatever the HTTP status is.
const CODES: [(ErrorClass, &[&str]); 11] = [
    (ErrorClass::InvalidToolCall, &["tool_use_failed"]),
    (
        ErrorClass::Auth,
        &[
            "invalid_api_key",
            "api_key_invalid",
            "authentication_error",
            "unauthenticated",
            "permission_error",
            "permission_denied",
        ],
    ),
    (
        ErrorClass::Quota,
        &[
            "insufficient_quota",
            "billing_error",
            "billing_hard_limit",
            "insufficient_balance",
        ],
    ),
    (
        ErrorClass::ContextTooLong,
        &[
            "context_length_exceeded",
            "exceed_context_size",
            "request_too_large",
        ],
    ),
    (ErrorClass::NotFound, &["model_not_found", "not_found"]),
    (
        ErrorClass::RateLimited,
        &["rate_limit", "resource_exhausted", "too_many_requests"],
    ),
    (ErrorClass::Overloaded, &["overloaded", "unavailable"]),
    (
        ErrorClass::ContentFilter,
        &[
            "content_filter",
            "content_policy",
            "responsibleaipolicyviolation",
        ],
    ),
    (
        ErrorClass::Server,
        &[
            "server_error",
            "internal",
            "api_error",
            "deadline_exceeded",
            "timeout",
            "cancelled",
        ],
    ),
    (ErrorClass::Unsupported, &["unsupported_feature"]),
    (
        ErrorClass::BadRequest,
        &[
            "invalid_request_error",
            "invalid_argument",
            "failed_precondition",
        ],
    ),
];

/// Texts, lower case, that say more than the status of a refused request does.
const MESSAGES: [(ErrorClass, &[&str]); 3] = [
    (
        ErrorClass::ContextTooLong,
        &[
            "maximum context length",
            "context window",
            "context size",
            "input token count",
            "prompt is too long",
        ],
    ),
    (
        ErrorClass::Unsupported,
        &[
            "function calling is not enabled",
            "does not support tools",
            "does not support tool",
            "does not support function",
            "tool use is not supported",
            "tool calling is not supported",
            "no endpoints found that support tool use",
        ],
    ),
    (
        ErrorClass::Auth,
        &["incorrect api key", "api key not valid", "invalid api key"],
    ),
];

/// A failure as the provider reported it, before it is classed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failure {
    /// The HTTP status, or the number that the body gives in its place.
    pub(crate) status: Option<u16>,
    /// Code, type and status texts, in the order of their weight.
    pub(crate) codes: Vec<String>,
    pub(crate) message: String,
    pub(crate) retry_after_ms: Option<u64>,
}

impl Failure {
    /// Classes the failure and builds the error, without an HTTP status.
    pub(crate) fn into_error(self) -> ModelError {
        let class = self.class();
        let text = if self.message.trim().is_empty() {
            self.codes.join(", ")
        } else {
            self.message
        };
        let mut error = ModelError::new(class, format!("the provider said: {}", clip(&text)));
        error.retry_after_ms = self.retry_after_ms;
        error.retryable |= self.status == Some(409);
        error
    }

    fn class(&self) -> ErrorClass {
        let by_code = self.codes.iter().find_map(|code| class_in(&CODES, code));
        let by_status = self.status.map(class_of_status);
        let class = match (by_code, by_status) {
            // Groq calls a request that no wait makes small enough a matter of rates.
            (Some(ErrorClass::RateLimited), Some(ErrorClass::ContextTooLong)) => {
                ErrorClass::ContextTooLong
            }
            // A vague code on a telling status, such as `invalid_request_error` on a 401.
            (Some(ErrorClass::BadRequest | ErrorClass::Server), Some(status)) => status,
            (Some(code), _) => code,
            (None, Some(status)) => status,
            (None, None) => ErrorClass::Server,
        };
        match class {
            ErrorClass::BadRequest | ErrorClass::NotFound | ErrorClass::Server => {
                class_in(&MESSAGES, &self.message).unwrap_or(class)
            }
            _ => class,
        }
    }
}

/// Builds the error of a response whose status is not 2xx.
pub(crate) fn of_response(
    failure: Failure,
    status: u16,
    headers: &Headers<'_>,
    now: TimeMs,
) -> ModelError {
    let mut error = failure.into_error();
    error.status = Some(status);
    error.message = format!("http {status}: {}", error.message);
    error.retry_after_ms = retry_after_ms(headers, now).or(error.retry_after_ms);
    match headers("x-should-retry").as_deref() {
        Some("true") => error.retryable = true,
        Some("false") => error.retryable = false,
        _ => {}
    }
    error
}

/// Builds the failure of a body that is not the protocol's JSON.
pub(crate) fn of_foreign_body(status: u16, body: &[u8]) -> Failure {
    Failure {
        status: Some(status),
        message: summary(body),
        ..Failure::default()
    }
}

/// Cuts a provider's text to what an error may carry, and leaves out what looks like a key.
pub(crate) fn clip(text: &str) -> String {
    let kept = first_bytes(text, MESSAGE_BYTES_MAX);
    if !KEY_PREFIXES.iter().any(|prefix| kept.contains(prefix)) {
        return kept.trim().to_owned();
    }
    let mut words = kept.split_inclusive(KEY_BOUNDARIES);
    let safe: String = words.by_ref().map(without_key).collect();
    safe.trim().to_owned()
}

/// Describes a body of any kind in one line: the title of an HTML page, or its first words.
pub(crate) fn summary(body: &[u8]) -> String {
    let head = body.get(..SUMMARY_BYTES_MAX * 8).unwrap_or(body);
    let text = String::from_utf8_lossy(head);
    let lower = text.to_ascii_lowercase();
    let title = lower
        .find("<title>")
        .map(|start| start + "<title>".len())
        .and_then(|start| Some((start, start + lower.get(start..)?.find("</title>")?)))
        .and_then(|(start, end)| text.get(start..end));
    if let Some(title) = title {
        return format!("html page: {}", clip(&one_line(title)));
    }
    if lower.trim_start().starts_with('<') {
        return "html page".to_owned();
    }
    clip(first_bytes(&one_line(&text), SUMMARY_BYTES_MAX))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn without_key(word: &str) -> &str {
    let is_key = KEY_PREFIXES.iter().any(|prefix| word.starts_with(prefix));
    if is_key { "[key] " } else { word }
}

fn class_in(table: &[(ErrorClass, &[&str])], text: &str) -> Option<ErrorClass> {
    let text = text.to_ascii_lowercase();
    table
        .iter()
        .find(|(_, needles)| needles.iter().any(|needle| text.contains(needle)))
        .map(|(class, _)| *class)
}

fn class_of_status(status: u16) -> ErrorClass {
    match status {
        401 | 403 => ErrorClass::Auth,
        402 => ErrorClass::Quota,
        404 => ErrorClass::NotFound,
        413 => ErrorClass::ContextTooLong,
        429 => ErrorClass::RateLimited,
        // 499 is what Google calls a request that its own side cancelled.
        408 | 499 => ErrorClass::Server,
        503 | 529 => ErrorClass::Overloaded,
        500.. => ErrorClass::Server,
        _ => ErrorClass::BadRequest,
    }
}

/// Returns how long the headers ask to wait: `retry-after-ms`, else `retry-after` as seconds or as
/// an HTTP date.
fn retry_after_ms(headers: &Headers<'_>, now: TimeMs) -> Option<u64> {
    if let Some(ms) = headers("retry-after-ms").and_then(|text| millis(&text, 1.0)) {
        return Some(ms);
    }
    let text = headers("retry-after")?;
    millis(&text, 1000.0).or_else(|| until(&text, now))
}

fn until(date: &str, now: TimeMs) -> Option<u64> {
    let at = httpdate::parse_http_date(date.trim()).ok()?;
    let since_epoch = at.duration_since(UNIX_EPOCH).ok()?.as_millis();
    Some(u64::try_from(since_epoch).ok()?.saturating_sub(now.0))
}

/// Reads a decimal number of a unit and returns it in milliseconds, rounded up.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float cast saturates, and the sign was checked"
)]
fn millis(text: &str, unit_ms: f64) -> Option<u64> {
    let number: f64 = text.trim().parse().ok()?;
    (number.is_finite() && number >= 0.0).then(|| (number * unit_ms).ceil() as u64)
}

/// Returns how long an error in Google's form asks to wait, also if it comes through an endpoint
/// of another protocol.
pub(crate) fn body_delay_ms(error: &Value, message: &str) -> Option<u64> {
    retry_delay(error).or_else(|| retry_text(message))
}

/// The `details` of an error in Google's form.
pub(crate) fn details(error: &Value) -> impl Iterator<Item = &Value> {
    let details = error.get("details").and_then(Value::as_array);
    details.into_iter().flatten()
}

/// `google.rpc.RetryInfo`.
fn retry_delay(error: &Value) -> Option<u64> {
    details(error).find_map(|detail| duration_ms(detail.get("retryDelay")?.as_str()?))
}

fn retry_text(message: &str) -> Option<u64> {
    let (_, behind) = message.split_once(RETRY_TEXT)?;
    let number = |c: char| c.is_ascii_digit() || c == '.';
    let unit = behind.trim_start_matches(number);
    let end = behind.len() - unit.len();
    let letters = unit.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    duration_ms(behind.get(..end + unit.len() - letters.len())?)
}

/// Reads `34.4s` and `250ms`.
fn duration_ms(text: &str) -> Option<u64> {
    match text.strip_suffix("ms") {
        Some(number) => millis(number, 1.0),
        None => millis(text.strip_suffix('s')?, 1000.0),
    }
}
