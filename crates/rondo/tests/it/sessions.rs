//! Surroundings of a turn: people, gates, other providers, quirks.

use crate::support::{Bench, FnTool, bodies, echo};
use rondo::{EventBody, StopReason, ToolErrorCode, ToolOutcome, Verdict};
use rondo_testkit::{CallScript, ReplyScript, Response, Server, gemini, openai};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::Notify;

fn answer(text: &str) -> Response {
    openai::streamed(&ReplyScript::text([text]))
}

fn look() -> Response {
    openai::streamed(&ReplyScript::calls([CallScript::new(
        "c",
        "look",
        &json!({}),
    )]))
}

#[tokio::test]
async fn what_a_user_says_meanwhile_follows_the_results() {
    let server = Server::start([look(), answer("in Italian")]).await;
    let said = Arc::new(Notify::new());
    let door = Arc::clone(&said);
    let waits = FnTool::running("look", json!({"type": "object"}), move |_| {
        let door = Arc::clone(&door);
        Box::pin(async move {
            door.notified().await;
            ToolOutcome::text("seen")
        })
    });
    let ran = Bench::chat("stream", &server)
        .tool(waits)
        .ask_beside("q", async |user| {
            user.sees(|event| matches!(event, EventBody::ToolCallStarted { .. }))
                .await;
            assert!(user.handle.steer("answer in Italian".to_owned()));
            // The turn takes what was said before it sees the call's end, which comes later.
            said.notify_one();
        })
        .await;
    assert_eq!(ran.outcome.text, "in Italian");
    let sent = bodies(&server).remove(1);
    let last: Vec<&Value> = sent["messages"]
        .as_array()
        .unwrap()
        .iter()
        .skip(2)
        .collect();
    assert_eq!(
        last,
        [
            &json!({"role": "tool", "tool_call_id": "c", "content": "seen"}),
            &json!({"role": "user", "content": "answer in Italian"}),
        ]
    );
    assert_eq!(
        ran.count(|event| matches!(event, EventBody::Steered { .. })),
        1
    );
}

#[tokio::test]
async fn a_call_that_is_denied_is_a_result_and_one_that_is_approved_runs() {
    let deny = Verdict::Deny {
        reason: "not today".to_owned(),
    };
    let ask = Verdict::Ask {
        prompt: "look?".to_owned(),
        reasons: Vec::new(),
    };
    for (verdict, code, questions) in [(deny, Some(ToolErrorCode::Denied), 0), (ask, None, 1)] {
        let server = Server::start([look(), answer("fine")]).await;
        let mut bench = Bench::chat("stream", &server).tool(echo("look"));
        bench.verdict = verdict;
        let ran = bench.ask("q").await;
        assert_eq!(
            (ran.outcome.text.as_str(), ran.codes()),
            ("fine", vec![code])
        );
        let asked = ran.count(|event| matches!(event, EventBody::ApprovalRequested { .. }));
        let resolved =
            ran.count(|event| matches!(event, EventBody::ApprovalResolved { approved: true, .. }));
        assert_eq!((asked, resolved), (questions, questions));
        assert_eq!(bodies(&server).len(), 2);
    }
}

#[tokio::test]
async fn a_session_goes_from_one_provider_to_another_and_back() {
    let signed = CallScript::without_id("look", &json!({"at": 1})).signed("c2lnbmF0dXJl");
    let first = Server::start([
        gemini::whole(&ReplyScript::calls([signed]).thinking("hm")),
        gemini::whole(&ReplyScript::text(["one"])),
    ])
    .await;
    let tools = || [echo("look")];
    let ran = Bench::gemini(&first).tools(tools()).ask("q1").await;

    let elsewhere = Server::start([look(), answer("two")]).await;
    let there = Bench::chat("stream", &elsewhere).tools(tools());
    let ran = there.after(ran.outcome.transcript).ask("q2").await;
    let told = &bodies(&elsewhere)[0]["messages"];
    let envelope = json!({"ok": true, "result": r#"look did {"at":1}"#}).to_string();
    assert_eq!(
        *told,
        json!([
            {"role": "user", "content": "q1"},
            {"role": "assistant", "content": null, "tool_calls": [{
                "id": "r00100100", "type": "function",
                "function": {"name": "look", "arguments": r#"{"at":1}"#},
            }]},
            {"role": "tool", "tool_call_id": "r00100100", "content": envelope},
            {"role": "assistant", "content": "one"},
            {"role": "user", "content": "q2"},
        ])
    );

    let back = Server::start(gemini::whole(&ReplyScript::text(["three"]))).await;
    let mut here = Bench::gemini(&back)
        .tools(tools())
        .after(ran.outcome.transcript);
    here.turn_number = 3;
    // The profile keeps no history by itself.
    here.profile.compaction.max_messages = None;
    here.ask("q3").await;
    let contents = &bodies(&back)[0]["contents"];
    let kept = json!({
        "functionCall": {"name": "look", "args": {"at": 1}},
        "thoughtSignature": "c2lnbmF0dXJl",
    });
    let own: Vec<&Value> = contents[1]["parts"].as_array().unwrap().iter().collect();
    assert_eq!(own.last(), Some(&&kept));
    let foreign = &contents[5]["parts"][0];
    assert_eq!(
        *foreign,
        json!({"functionCall": {"name": "look", "args": {}}})
    );
    let roles: Vec<&Value> = (0..9).map(|at| &contents[at]["role"]).collect();
    assert_eq!(
        roles,
        [
            "user", "model", "user", "model", "user", "model", "user", "model", "user"
        ]
    );
}

#[tokio::test]
async fn a_call_written_as_text_is_run_only_where_the_quirk_is_on() {
    let written = r#"{"name": "look", "arguments": {"at": 1}}"#;
    for lenient in [false, true] {
        let server = Server::start([answer(written), answer("done")]).await;
        let mut bench = Bench::chat("stream", &server).tool(echo("look"));
        bench.endpoint.quirks.lenient_tool_calls = lenient;
        let ran = bench.ask("q").await;
        let expected = if lenient { ("done", 1) } else { (written, 0) };
        assert_eq!(
            (ran.outcome.text.as_str(), ran.outcome.tool_calls),
            expected
        );
        assert_eq!(ran.shown(), expected.0);
    }
}

#[tokio::test]
async fn a_refusal_is_the_answer_and_says_so() {
    let message = json!({"role": "assistant", "content": null, "refusal": "I will not."});
    let body = json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]});
    let server = Server::start(Response::json(200, &body)).await;
    let ran = Bench::chat("default", &server).ask("q").await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Refused);
    assert_eq!(ran.outcome.text, "I will not.");
    assert_eq!(bodies(&server).len(), 1);
}

#[tokio::test]
async fn a_reply_is_read_by_what_it_is_not_by_what_was_asked_for() {
    for (profile, response) in [
        ("stream", openai::whole(&ReplyScript::text(["fi", "ne"]))),
        ("hub", answer("fine")),
    ] {
        let server = Server::start(response).await;
        let ran = Bench::chat(profile, &server).ask("q").await;
        assert_eq!(
            (ran.outcome.text.as_str(), ran.shown().as_str()),
            ("fine", "fine"),
            "{profile}"
        );
    }
}
