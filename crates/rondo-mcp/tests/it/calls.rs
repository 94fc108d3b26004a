//! Calls: progress, time, cancellation, questions, and what results hold.

use crate::scripted::*;
use futures_util::future::BoxFuture;
use rondo_core::ports::{Asker, NotAnswered, ProgressSink};
use rondo_types::{
    AnswerValue, ContentBlock, QuestionKind, ToolErrorCode, ToolOutcome, ToolProgress,
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

fn progress(of: &Value, done: u32) -> Value {
    let token = &of["params"]["_meta"]["progressToken"];
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {
        "progressToken": token, "progress": done, "total": 5, "message": format!("at {done}\u{1b}[2J")
    }})
}

/// Reports progress every 90 seconds, so often, and then ends the call.
fn slow(beats: u32) -> impl Fn(Value, Out) -> BoxFuture<'static, ()> + Send + Sync {
    move |message, out| {
        Box::pin(async move {
            for beat in 1..=beats {
                tokio::time::sleep(Duration::from_secs(90)).await;
                out.send(progress(&message, beat)).await;
            }
            tokio::time::sleep(Duration::from_secs(90)).await;
            out.reply(&message, text_result("done")).await;
        })
    }
}

#[tokio::test(start_paused = true)]
async fn progress_is_passed_on_and_gives_a_call_more_time() {
    let (servers, ..) = one(server(Speaks::Initialize, json!([tool("t")]), slow(4))).await;
    let source = source(&servers);
    let seen = Arc::new(Mutex::new(Vec::<ToolProgress>::new()));
    let sink = Arc::clone(&seen);
    let mut invocation = invocation(json!({}));
    invocation.progress = ProgressSink::new(move |it| sink.lock().unwrap().push(it));
    let outcome = find(&source, "mcp__s__t").call(invocation).await;
    assert_eq!(text(&outcome), "done");
    let seen = seen.lock().unwrap().clone();
    assert_eq!(seen.len(), 4);
    assert_eq!((seen[3].done, seen[3].total), (Some(4.0), Some(5.0)));
    assert_eq!(seen[3].message.as_deref(), Some("at 4\\u{1b}[2J"));
}

#[tokio::test(start_paused = true)]
async fn a_call_without_progress_ends_in_time_and_its_server_is_told() {
    let (servers, scripts, _) = one(server(Speaks::Initialize, json!([tool("t")]), |_, _| {
        Box::pin(async {})
    }))
    .await;
    let source = source(&servers);
    let before = Instant::now();
    let outcome = call(&source, "mcp__s__t").await;
    assert_eq!(outcome.code(), Some(ToolErrorCode::Timeout));
    assert_eq!(before.elapsed().as_secs(), 120);
    tokio::time::sleep(Duration::from_millis(10)).await;
    let called = scripts.received("s", "tools/call").pop().unwrap();
    let cancelled = scripts
        .received("s", "notifications/cancelled")
        .pop()
        .unwrap();
    assert_eq!(cancelled["params"]["requestId"], called["id"]);
}

#[tokio::test(start_paused = true)]
async fn no_progress_is_enough_to_go_on_for_ever() {
    let (servers, ..) = one(server(Speaks::Initialize, json!([tool("t")]), slow(10_000))).await;
    let source = source(&servers);
    let before = Instant::now();
    let outcome = call(&source, "mcp__s__t").await;
    assert_eq!(outcome.code(), Some(ToolErrorCode::Timeout));
    assert_eq!(before.elapsed().as_secs(), 600);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_ends_at_once_and_its_server_is_told() {
    for speaks in [Speaks::Initialize, Speaks::Discover] {
        let (servers, scripts, _) =
            one(server(
                speaks,
                json!([tool("t")]),
                |_, _| Box::pin(async {}),
            ))
            .await;
        let source = source(&servers);
        let invocation = invocation(json!({}));
        let cancel = invocation.cancel.clone();
        let tool = find(&source, "mcp__s__t");
        let calling = tokio::spawn(async move { tool.call(invocation).await });
        tokio::time::sleep(Duration::from_secs(1)).await;
        cancel.cancel();
        let outcome = calling.await.unwrap();
        assert_eq!(outcome.code(), Some(ToolErrorCode::Cancelled));
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(
            scripts.received("s", "notifications/cancelled").len(),
            1,
            "{speaks:?}"
        );
    }
}

const SCHEMA: &str =
    r#"{"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}"#;

/// The kinds and words of questions.
type AskedOf = Arc<Mutex<Vec<(QuestionKind, String)>>>;

/// Answers with a value, and notes the question.
fn person(value: Value) -> (Asker, AskedOf) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&asked);
    let asker = Asker::new(move |_, kind, prompt| {
        heard.lock().unwrap().push((kind, prompt));
        let answer: Result<AnswerValue, NotAnswered> = Ok(AnswerValue::value(value.clone()));
        Box::pin(std::future::ready(answer))
    });
    (asker, asked)
}

/// Asks by a request of its own, as servers of the older lifecycle do, and answers the call with what it was told.
fn asks_by_request() -> Handle {
    let calls: Arc<Mutex<Option<Value>>> = Arc::default();
    Arc::new(move |message, out| {
        let calls = Arc::clone(&calls);
        Box::pin(async move {
            if begin(Speaks::Initialize, &json!([tool("t")]), &message, &out).await {
                return;
            }
            if message["method"] == "tools/call" {
                *calls.lock().unwrap() = Some(message);
                let schema: Value = serde_json::from_str(SCHEMA).unwrap();
                let params = json!({"message": "Who are you?", "requestedSchema": schema});
                out.send(json!({"jsonrpc": "2.0", "id": 77, "method": "elicitation/create", "params": params})).await;
            } else if message["id"] == 77 {
                let call = calls.lock().unwrap().take().unwrap();
                out.reply(&call, text_result(&message["result"].to_string()))
                    .await;
            }
        })
    })
}

/// Asks by its result, as servers of the newer lifecycle do.
fn asks_by_result() -> Handle {
    server(Speaks::Discover, json!([tool("t")]), |message, out| {
        Box::pin(async move {
            let params = &message["params"];
            if params.get("inputResponses").is_none() {
                let schema: Value = serde_json::from_str(SCHEMA).unwrap();
                let params =
                    json!({"mode": "form", "message": "Who are you?", "requestedSchema": schema});
                let request = json!({"method": "elicitation/create", "params": params});
                let result = json!({"resultType": "input_required", "inputRequests": {"q": request}, "requestState": "state"});
                out.reply(&message, result).await;
                return;
            }
            assert_eq!(params["requestState"], "state");
            let answer = params["inputResponses"]["q"].to_string();
            out.reply(&message, text_result(&answer)).await;
        })
    })
}

#[tokio::test(start_paused = true)]
async fn a_server_may_ask_the_user_in_either_lifecycle() {
    for handle in [asks_by_request(), asks_by_result()] {
        let (servers, ..) = one(handle).await;
        let source = source(&servers);
        let (asker, asked) = person(json!({"name": "Ada"}));
        let mut told = invocation(json!({}));
        told.asker = asker;
        let outcome = find(&source, "mcp__s__t").call(told).await;
        let answer: Value = serde_json::from_str(&text(&outcome)).unwrap();
        assert_eq!(
            (&answer["action"], &answer["content"]),
            (&json!("accept"), &json!({"name": "Ada"}))
        );
        let asked = asked.lock().unwrap().clone();
        let [(QuestionKind::Input { schema }, prompt)] = &asked[..] else {
            panic!("{asked:?}")
        };
        assert_eq!(prompt, "The server `s` asks: Who are you?");
        assert_eq!(schema["required"], json!(["name"]));
        // If there is no user, it is told so, and continues as it likes.
        let outcome = call(&source, "mcp__s__t").await;
        assert!(text(&outcome).contains("decline"), "{outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_only_asks_is_given_up() {
    let handle = server(Speaks::Discover, json!([tool("t")]), |message, out| {
        Box::pin(async move {
            let result = json!({"resultType": "input_required", "requestState": "again"});
            out.reply(&message, result).await;
        })
    });
    let (servers, scripts, _) = one(handle).await;
    let outcome = call(&source(&servers), "mcp__s__t").await;
    assert_eq!(outcome.code(), Some(ToolErrorCode::Failed));
    assert_eq!(scripts.received("s", "tools/call").len(), 8);
}

#[tokio::test(start_paused = true)]
async fn images_and_structured_content_reach_the_model_as_what_they_are() {
    let handle = server(Speaks::Initialize, json!([tool("t")]), |message, out| {
        Box::pin(async move {
            let content = json!([
                {"type": "text", "text": "{\"n\": 1}"},
                {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
            ]);
            out.reply(
                &message,
                json!({"content": content, "structuredContent": {"n": 1}}),
            )
            .await;
        })
    });
    let (servers, ..) = one(handle).await;
    let outcome = call(&source(&servers), "mcp__s__t").await;
    let ToolOutcome::Ok(output) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(output.value, json!({"n": 1}));
    assert!(output.from_outside);
    assert!(matches!(&output.blocks[..], [ContentBlock::Media(_)]));
}

#[tokio::test(start_paused = true)]
async fn resources_and_prompts_are_read_for_the_user() {
    let handle = server(Speaks::Initialize, json!([]), |message, out| {
        Box::pin(async move {
            match message["method"].as_str().unwrap_or_default() {
                "resources/read" => {
                    let uri = message["params"]["uri"].clone();
                    out.reply(
                        &message,
                        json!({"contents": [{"uri": uri, "text": "words"}]}),
                    )
                    .await;
                }
                "prompts/list" => {
                    let arguments = json!([{"name": "who", "required": true}]);
                    let prompts = json!([{"name": "greet", "description": "Greets.", "arguments": arguments}]);
                    out.reply(&message, json!({"prompts": prompts})).await;
                }
                "prompts/get" => {
                    let who = message["params"]["arguments"]["who"]
                        .as_str()
                        .unwrap()
                        .to_owned();
                    let content = json!({"type": "text", "text": format!("Greet {who}.")});
                    out.reply(
                        &message,
                        json!({"messages": [{"role": "user", "content": content}]}),
                    )
                    .await;
                }
                "resources/list" => {
                    out.reply(
                        &message,
                        json!({"resources": [{"uri": "x://a", "name": "a"}]}),
                    )
                    .await
                }
                other => out.refuse(&message, -32601, other).await,
            }
        })
    });
    let (servers, ..) = one(handle).await;
    let text = |parts: Vec<rondo_types::Part>| match &parts[..] {
        [rondo_types::Part::Text(text)] => text.text.clone(),
        parts => panic!("{parts:?}"),
    };
    assert_eq!(
        text(servers.resource("s", "x://a").await.unwrap()),
        "[resource x://a]\nwords"
    );
    let prompts = servers.prompts("s").await.unwrap();
    assert_eq!(prompts[0].arguments, [("who".to_owned(), true)]);
    let arguments = [("who".to_owned(), "Ada".to_owned())].into();
    assert_eq!(
        text(servers.prompt("s", "greet", arguments).await.unwrap()),
        "Greet Ada."
    );
    assert!(servers.resource("t", "x://a").await.is_err());
    let report = servers.report("s").await.unwrap();
    assert_eq!((report.prompts.len(), report.resources.len()), (1, 1));
}
