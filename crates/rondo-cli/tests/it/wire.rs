use crate::harness::{TestEnv, calls, says};
use rondo_testkit::{gemini, openai};
use serde_json::{Value, json};

fn stream(frames: &[bytes::Bytes]) -> Vec<u8> {
    frames.concat()
}

async fn decode(body: &[u8], args: &[&str]) -> Value {
    let env = TestEnv::new();
    env.write("body", body);
    let mut all = vec!["wire", "decode"];
    all.extend(args);
    all.push("body");
    let shown = env.run(&all).await;
    assert_eq!(
        (shown.code, shown.stderr.as_str()),
        (Some(0), ""),
        "{shown:?}"
    );
    let mut lines = shown.lines();
    assert_eq!(lines.len(), 1);
    lines.remove(0)
}

#[tokio::test]
async fn a_body_is_decoded_to_one_object() {
    let body = stream(&openai::frames(
        &calls("add", &json!({"x": 1})).saying("I add."),
    ));
    let decoded = decode(&body, &["--dialect", "openai-chat"]).await;
    assert_eq!(
        decoded,
        json!({
            "text": "I add.",
            "reasoning": "",
            "refusal": "",
            "tool_calls": [{
                "id": "call_1",
                "name": "add",
                "arguments": {"x": 1},
                "arguments_raw": "{\"x\":1}",
                "complete": true,
            }],
            "finish_reason": "tool_calls",
            "raw_finish_reasons": ["tool_calls"],
            "usage": {"input": 10, "output": 5, "reasoning": 0, "cache_read": 0},
            "error": null,
            "opaque_parts": 0,
            "ended_cleanly": true,
        })
    );
}

#[tokio::test]
async fn the_size_of_the_chunks_makes_no_difference() {
    let body = stream(&gemini::frames(&says("Grüße, 世界")));
    let whole = decode(&body, &["--dialect", "gemini"]).await;
    assert_eq!(whole["text"], "Grüße, 世界");
    for bytes in ["1", "3", "7"] {
        let args = ["--dialect", "gemini", "--chunk-bytes", bytes];
        assert_eq!(decode(&body, &args).await, whole);
    }
}

#[tokio::test]
async fn a_body_that_was_cut_ends_uncleanly_and_has_no_complete_call() {
    let body = stream(&openai::frames(&calls("add", &json!({"x": 1}))));
    let decoded = decode(&body[..body.len() / 2], &["--dialect", "openai-chat"]).await;
    assert_eq!(decoded["ended_cleanly"], false);
    assert_eq!(decoded["error"]["kind"], "network");
    let complete = |call: &Value| call["complete"] == true;
    assert!(
        !decoded["tool_calls"]
            .as_array()
            .unwrap()
            .iter()
            .any(complete)
    );
}

#[tokio::test]
async fn a_status_that_is_no_success_is_an_error() {
    let body = br#"{"error":{"message":"slow down","type":"rate_limit_error"}}"#;
    let decoded = decode(body, &["--dialect", "openai-chat", "--status", "429"]).await;
    assert_eq!(decoded["error"]["kind"], "rate_limited");
    assert_eq!(decoded["error"]["retryable"], true);
    assert_eq!(decoded["text"], "");
}

#[tokio::test]
async fn a_blocked_prompt_is_an_error_of_a_whole_body() {
    let body =
        br#"{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":4}}"#;
    let decoded = decode(body, &["--dialect", "gemini"]).await;
    assert_eq!(decoded["error"]["kind"], "content_filter");
    assert_eq!(decoded["ended_cleanly"], true);
    assert_eq!(decoded["usage"]["input"], 4);
}

#[tokio::test]
async fn a_transcript_is_encoded_to_the_request_body() {
    let env = TestEnv::new();
    let transcript = json!([
        {"role": "user", "parts": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "r00100100", "name": "add", "arguments": "{\"x\":1}", "complete": true}]},
        {"role": "tool", "parts": [{"type": "tool_result", "call_id": "r00100100", "name": "add", "content": {"type": "text", "value": "2"}}]},
    ]);
    env.write("transcript.json", transcript.to_string());
    let args = [
        "wire",
        "encode",
        "--dialect",
        "openai-chat",
        "transcript.json",
    ];
    let shown = env.run(&args).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let body = &shown.lines()[0];
    assert_eq!(
        body["messages"][0],
        json!({"role": "user", "content": "hi"})
    );
    assert_eq!(
        body["messages"][1]["tool_calls"][0]["function"]["arguments"],
        "{\"x\":1}"
    );
    assert_eq!(body["messages"][2]["tool_call_id"], "r00100100");
}

#[tokio::test]
async fn an_unknown_dialect_lists_the_known_ones() {
    let shown = TestEnv::new()
        .run(&["wire", "decode", "--dialect", "morse"])
        .await;
    let known = rondo_wire::dialect_names();
    for name in ["openai-chat", "gemini", "openai-responses", "anthropic"] {
        assert!(known.contains(&name), "{name}");
    }
    let known = known.join(", ");
    let hint = format!("hint: the dialects are: {known}, and `react+DIALECT` over each\n");
    shown.check(
        "",
        &format!("error: there is no dialect `morse`\n\n{hint}"),
        2,
    );
}

#[tokio::test]
async fn only_what_goes_back_counts_as_opaque() {
    let chunk = |parts: Value, end: Value| {
        let candidate = json!({"content": {"role": "model", "parts": parts}, "finishReason": end});
        format!("data: {}\r\n\r\n", json!({"candidates": [candidate]}))
    };
    // The signed part is separate from the text before it, which carries nothing itself.
    let text = chunk(json!([{"text": "a"}]), Value::Null);
    let signed = chunk(
        json!([{"text": "", "thoughtSignature": "s"}]),
        json!("STOP"),
    );
    let decoded = decode((text + &signed).as_bytes(), &["--dialect", "gemini"]).await;
    assert_eq!(
        (&decoded["text"], &decoded["opaque_parts"]),
        (&json!("a"), &json!(1))
    );
}

/// A transcript of gemini's: thinking with a signature, an answer, and a question.
fn thoughtful() -> Value {
    let gemini = json!({"dialect": "gemini", "provider": "google", "model": "gemini-3-pro"});
    let signature = json!({"origin": gemini, "json": r#"{"thoughtSignature":"c2ln"}"#});
    json!([
        {"role": "user", "parts": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "origin": gemini, "parts": [
            {"type": "reasoning", "text": "hm"},
            {"type": "text", "text": "hello", "opaque": signature}]},
        {"role": "user", "parts": [{"type": "text", "text": "and now?"}]},
    ])
}

async fn explain(dialect: &str, more: &[&str]) -> crate::harness::Shown {
    let env = TestEnv::new();
    env.write("transcript.json", thoughtful().to_string());
    let mut args = vec!["wire", "encode", "--dialect", dialect, "--explain"];
    args.extend(more);
    args.push("transcript.json");
    env.run(&args).await
}

#[tokio::test]
async fn what_a_dialect_leaves_out_is_explained() {
    explain("openai-chat", &[]).await.check(
        "message 1, part 0: reasoning left out: it came from gemini\n\
         message 1, part 1: provider data left out: it came from gemini\n",
        "",
        0,
    );
    let shown = explain("openai-chat", &["--json"]).await;
    assert_eq!(
        shown.lines(),
        [
            json!({"lowering": "reasoning_dropped", "cause": "elsewhere", "message": 1, "part": 0,
                "from": "gemini"}),
            json!({"lowering": "opaque_dropped", "cause": "elsewhere", "message": 1, "part": 1,
                "from": "gemini"}),
        ]
    );
}

#[tokio::test]
async fn where_nothing_is_left_out_that_is_said() {
    explain("gemini", &[])
        .await
        .check("", "note: everything is sent unchanged\n", 0);
}

#[tokio::test]
async fn it_is_the_latest_model_of_the_dialect_that_is_asked_again() {
    let env = TestEnv::new();
    let said = |dialect: &str, provider: &str, model: &str, id: &str| {
        let call = json!({"type": "tool_call", "id": id, "wire_id": format!("wire_{id}"),
            "name": "f", "arguments": "{}", "complete": true});
        json!({"role": "assistant", "parts": [call],
            "origin": {"dialect": dialect, "provider": provider, "model": model}})
    };
    let transcript = json!([
        {"role": "user", "parts": [{"type": "text", "text": "hi"}]},
        said("gemini", "google", "gemini-3-pro", "a"),
        said("openai-chat", "openrouter", "glm", "b"),
        said("gemini", "google", "gemini-3-pro", "c"),
    ]);
    env.write("transcript.json", transcript.to_string());
    let dialect = "openai-chat";
    let shown = env
        .run(&["wire", "encode", "--dialect", dialect, "transcript.json"])
        .await;
    let body = &shown.lines()[0];
    assert_eq!(body["model"], "glm");
    let ids = [1, 2, 3].map(|at| body["messages"][at]["tool_calls"][0]["id"].clone());
    assert_eq!(ids, ["a", "wire_b", "c"]);
}

#[tokio::test]
async fn headers_say_how_long_to_wait() {
    let args = [
        "--dialect",
        "openai-chat",
        "--status",
        "429",
        "--header",
        "Retry-After: 5",
    ];
    let decoded = decode(b"{}", &args).await;
    assert_eq!(decoded["error"]["retry_after_ms"], 5000);
    let env = TestEnv::new();
    let args = [
        "wire",
        "decode",
        "--dialect",
        "gemini",
        "--header",
        "nonsense",
    ];
    assert_eq!(env.run(&args).await.code, Some(2));
}
