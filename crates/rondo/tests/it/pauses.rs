//! Replies that the provider pauses, over Anthropic event streams.

use crate::support::{Bench, bodies};
use rondo::StopReason;
use rondo_testkit::{Response, Script, Server};
use serde_json::{Value, json};

fn search(id: &str) -> Value {
    json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": "q"}})
}

fn found(id: &str) -> Value {
    json!({"type": "web_search_tool_result", "tool_use_id": id,
        "content": [{"type": "web_search_result", "encrypted_content": "e=="}]})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// An event stream of whole blocks.
fn reply(id: &str, stop_reason: &str, blocks: &[Value]) -> Response {
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": id, "content": [],
        "usage": {"input_tokens": 10, "output_tokens": 1}}}),
    ];
    for (index, block) in blocks.iter().enumerate() {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(
        json!({"type": "message_delta", "delta": {"stop_reason": stop_reason},
        "usage": {"output_tokens": 5}}),
    );
    events.push(json!({"type": "message_stop"}));
    let frame = |event: &Value| format!("data: {event}\n\n");
    Response::sse(events.iter().map(frame).collect::<Vec<_>>())
}

/// The messages of a request without its cache marks.
fn messages(body: &Value) -> Value {
    let mut messages = body["messages"].clone();
    for message in messages.as_array_mut().unwrap() {
        for block in message["content"].as_array_mut().unwrap() {
            block.as_object_mut().unwrap().remove("cache_control");
        }
    }
    messages
}

#[tokio::test]
async fn a_paused_reply_is_gone_on_with_and_its_blocks_go_back_unchanged() {
    let first = [text("I look."), search("s1")];
    let second = [found("s1"), search("s2")];
    let server = Server::start(vec![
        reply("m1", "pause_turn", &first),
        reply("m2", "pause_turn", &second),
        reply("m3", "end_turn", &[found("s2"), text("42")]),
    ])
    .await;
    let ran = Bench::anthropic("default", &server).ask("q").await;
    assert_eq!(ran.outcome.text, "42");
    assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
    assert_eq!(ran.outcome.steps, 3);
    let user = json!({"role": "user", "content": [text("q")]});
    let said = |blocks: &[Value]| json!({"role": "assistant", "content": blocks});
    let sent: Vec<_> = bodies(&server).iter().map(messages).collect();
    assert_eq!(
        sent,
        [
            json!([user]),
            json!([user, said(&first)]),
            json!([user, said(&first), said(&second)]),
        ]
    );
}

#[tokio::test]
async fn a_provider_that_always_pauses_does_not_hold_a_turn_for_ever() {
    let pause = reply("m", "pause_turn", &[text("still looking"), search("s")]);
    let server = Server::start(Script::repeat(pause)).await;
    let ran = Bench::anthropic("default", &server).ask("q").await;
    assert_eq!(ran.outcome.text, "still looking");
    assert_eq!(bodies(&server).len(), 9, "the question and eight times on");
}
