//! Responses whose status is not 2xx. All bodies here are synthetic.

use rondo_types::{ErrorClass, ModelError, TimeMs};
use rondo_wire::dialect;

/// 2026-01-01T00:00:00Z.
const NOW: TimeMs = TimeMs(1_767_225_600_000);

fn error(name: &str, status: u16, headers: &[(&str, &str)], body: &str) -> ModelError {
    let find = |wanted: &str| {
        let found = headers.iter().find(|(header, _)| *header == wanted);
        found.map(|(_, value)| (*value).to_owned())
    };
    dialect(name)
        .unwrap()
        .error(status, &find, body.as_bytes(), NOW)
}

fn class(name: &str, status: u16, body: &str) -> (ErrorClass, bool) {
    let error = error(name, status, &[], body);
    assert_eq!(error.status, Some(status));
    (error.class, error.retryable)
}

#[test]
fn statuses_without_a_readable_body_have_a_class() {
    for name in ["openai-chat", "gemini"] {
        for (status, expected) in [
            (400, (ErrorClass::BadRequest, false)),
            (401, (ErrorClass::Auth, false)),
            (402, (ErrorClass::Quota, false)),
            (403, (ErrorClass::Auth, false)),
            (404, (ErrorClass::NotFound, false)),
            (408, (ErrorClass::Server, true)),
            (409, (ErrorClass::BadRequest, true)),
            (413, (ErrorClass::ContextTooLong, false)),
            (429, (ErrorClass::RateLimited, true)),
            (500, (ErrorClass::Server, true)),
            (503, (ErrorClass::Overloaded, true)),
            (504, (ErrorClass::Server, true)),
            (529, (ErrorClass::Overloaded, true)),
        ] {
            assert_eq!(class(name, status, ""), expected, "{name} {status}");
        }
    }
}

#[test]
fn delays_are_read_from_headers() {
    let delay = |headers: &[(&str, &str)]| error("openai-chat", 429, headers, "").retry_after_ms;
    assert_eq!(delay(&[("retry-after", "2")]), Some(2000));
    assert_eq!(delay(&[("retry-after", "0.25")]), Some(250));
    assert_eq!(
        delay(&[("retry-after", "5"), ("retry-after-ms", "70.5")]),
        Some(71)
    );
    assert_eq!(
        delay(&[("retry-after", "Thu, 01 Jan 2026 00:00:03 GMT")]),
        Some(3000)
    );
    assert_eq!(
        delay(&[("retry-after", "Wed, 31 Dec 2025 00:00:00 GMT")]),
        Some(0)
    );
    assert_eq!(delay(&[("retry-after", "soon")]), None);
    assert_eq!(delay(&[("retry-after", "-1")]), None);
    assert_eq!(delay(&[("retry-after", "inf")]), None);
}

#[test]
fn the_server_decides_on_retries_when_it_says_so() {
    let retryable =
        |status, say| error("openai-chat", status, &[("x-should-retry", say)], "").retryable;
    assert!(retryable(400, "true"));
    assert!(!retryable(503, "false"));
    assert!(retryable(503, "maybe"));
}

#[test]
fn openai_shapes_are_classed_by_code_type_and_message() {
    for (status, body, expected) in [
        (
            429,
            r#"{"error":{"message":"m","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            ErrorClass::Quota,
        ),
        (
            401,
            r#"{"error":{"message":"m","type":"invalid_request_error","code":"invalid_api_key"}}"#,
            ErrorClass::Auth,
        ),
        (
            401,
            r#"{"error":{"message":"m","type":"invalid_request_error","code":null}}"#,
            ErrorClass::Auth,
        ),
        (
            400,
            r#"{"error":{"message":"m","code":"context_length_exceeded"}}"#,
            ErrorClass::ContextTooLong,
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#,
            ErrorClass::ContextTooLong,
        ),
        (
            400,
            r#"{"error":{"message":"Failed to call a function","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=f>"}}"#,
            ErrorClass::InvalidToolCall,
        ),
        (
            400,
            r#"{"error":"registry.ollama.ai/library/gemma does not support tools"}"#,
            ErrorClass::Unsupported,
        ),
        (
            404,
            r#"{"object":"error","message":"The model `x` does not exist.","type":"NotFoundError","code":404}"#,
            ErrorClass::NotFound,
        ),
        (
            422,
            r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#,
            ErrorClass::BadRequest,
        ),
        (
            400,
            r#"{"error":{"message":"m","code":"content_filter"}}"#,
            ErrorClass::ContentFilter,
        ),
    ] {
        assert_eq!(
            class("openai-chat", status, body),
            (expected, false),
            "{body}"
        );
    }
}

#[test]
fn gemini_shapes_are_classed_by_reason_status_and_message() {
    for (status, body, expected) in [
        (
            400,
            r#"{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}"#,
            (ErrorClass::Auth, false),
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"Function calling is not enabled for models/gemma-3-12b-it","status":"INVALID_ARGUMENT"}}"#,
            (ErrorClass::Unsupported, false),
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (8).","status":"INVALID_ARGUMENT"}}"#,
            (ErrorClass::ContextTooLong, false),
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"User location is not supported","status":"FAILED_PRECONDITION"}}"#,
            (ErrorClass::BadRequest, false),
        ),
        (
            503,
            r#"[{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}]"#,
            (ErrorClass::Overloaded, true),
        ),
        (
            500,
            r#"{"error":{"code":500,"message":"m","status":"INTERNAL"}}"#,
            (ErrorClass::Server, true),
        ),
        (
            504,
            r#"{"error":{"code":504,"message":"m","status":"DEADLINE_EXCEEDED"}}"#,
            (ErrorClass::Server, true),
        ),
        (
            499,
            r#"{"error":{"code":499,"message":"m","status":"CANCELLED"}}"#,
            (ErrorClass::Server, true),
        ),
    ] {
        assert_eq!(class("gemini", status, body), expected, "{body}");
    }
}

fn exhausted(message: &str, quota: &str, delay: &str) -> ModelError {
    let body = format!(
        r#"{{"error":{{"code":429,"message":"{message}","status":"RESOURCE_EXHAUSTED","details":[
        {{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{{"quotaId":"{quota}"}}]}},
        {{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"{delay}"}}]}}}}"#
    );
    error("gemini", 429, &[], &body)
}

#[test]
fn gemini_delays_are_read_and_daily_quotas_do_not_heal() {
    let minute = exhausted("m", "RequestsPerMinutePerProject", "34.4s");
    assert_eq!(
        (minute.class, minute.retryable, minute.retry_after_ms),
        (ErrorClass::RateLimited, true, Some(34_400))
    );
    let millis = exhausted("Please retry in 250.5ms.", "PerMinute", "");
    assert_eq!(millis.retry_after_ms, Some(251));
    for gone in [
        exhausted("m", "RequestsPerDayPerProject", "3s"),
        exhausted("m", "PerMinute", "51820.638305887s"),
        exhausted("quota exceeded, limit: 0", "PerMinute", "3s"),
    ] {
        assert_eq!((gone.class, gone.retryable), (ErrorClass::Quota, false));
    }
}

#[test]
fn pages_and_plain_texts_become_one_line() {
    let page = "<!DOCTYPE html><html><head><TITLE>502\n Bad Gateway</TITLE></head><body>...";
    let error_page = error("openai-chat", 502, &[], page);
    assert_eq!(
        error_page.message,
        "http 502: the provider said: html page: 502 Bad Gateway"
    );
    assert_eq!(error_page.class, ErrorClass::Server);
    let plain = error("gemini", 503, &[], "upstream\nconnect   error");
    assert_eq!(
        plain.message,
        "http 503: the provider said: upstream connect error"
    );
}

#[test]
fn messages_are_bounded_and_hold_no_keys() {
    let long = format!(r#"{{"error":{{"message":"{}"}}}}"#, "é".repeat(10_000));
    let message = error("openai-chat", 400, &[], &long).message;
    assert!(message.len() < 600, "{}", message.len());
    let key = r#"{"error":{"message":"Incorrect API key provided: sk-proj-abc123. See docs."}}"#;
    let message = error("openai-chat", 401, &[], key).message;
    assert!(!message.contains("abc123"), "{message}");
    assert!(message.contains("See docs"), "{message}");
}

#[test]
fn a_delay_in_the_body_counts_in_the_compatible_dialect_too() {
    let info = r#"[{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.4s"}]}}]"#;
    let text = r#"{"error":{"code":429,"message":"Quota. Please retry in 850.2ms."}}"#;
    let delay = |body| error("openai-chat", 429, &[], body).retry_after_ms;
    assert_eq!((delay(info), delay(text)), (Some(34_400), Some(851)));
    let sooner = error("openai-chat", 429, &[("retry-after", "2")], info);
    assert_eq!(sooner.retry_after_ms, Some(2_000));
}

#[test]
fn a_key_in_brackets_is_left_out() {
    let body =
        r#"{"error":{"message":"keys (sk-abcdef12345), [gsk_abcdef12345],AIzaabcdef1 <xai-ab>"}}"#;
    let message = error("openai-chat", 401, &[], body).message;
    for key in ["abcdef", "xai-ab"] {
        assert!(!message.contains(key), "{message}");
    }
}

#[test]
fn a_request_larger_than_the_rate_allows_is_not_repeated() {
    let body = r#"{"error":{"message":"Request too large on tokens per minute (TPM): Limit 6000","type":"tokens","code":"rate_limit_exceeded"}}"#;
    let error = error("openai-chat", 413, &[], body);
    assert_eq!(
        (error.class, error.retryable),
        (ErrorClass::ContextTooLong, false)
    );
}

#[test]
fn what_an_upstream_provider_said_is_not_hidden() {
    let body = r#"{"error":{"code":400,"message":"Provider returned error","metadata":{"raw":"{\"detail\":\"tools are not supported\"}","provider_name":"Chutes"}}}"#;
    let error = error("openai-chat", 400, &[], body);
    assert!(error.message.contains("Chutes said"), "{error}");
    assert!(error.message.contains("tools are not supported"), "{error}");
}

#[test]
fn a_gemini_document_without_a_finish_reason_is_cut_and_its_call_not_complete() {
    use rondo_types::{ModelEvent, Origin};
    let origin = Origin {
        dialect: "gemini".into(),
        provider: "p".into(),
        model: "m".into(),
    };
    let target = rondo_wire::Target::new(origin);
    let call = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":1}}}]}END}]}"#;
    for (end, whole) in [("", false), (r#","finishReason":"STOP""#, true)] {
        let mut decoder = dialect("gemini")
            .unwrap()
            .decoder(&target, rondo_wire::Bounds::default());
        let mut events = Vec::new();
        decoder
            .push(call.replace("END", end).as_bytes(), &mut events)
            .unwrap();
        assert_eq!(decoder.finish(&mut events).is_ok(), whole);
        let finished = |it: &ModelEvent| matches!(it, ModelEvent::ToolCallFinished { .. });
        assert_eq!(events.iter().any(finished), whole);
    }
}
