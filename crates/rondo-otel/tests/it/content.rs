//! Content is sent only if requested, and secrets never are.

use crate::bench::{Bench, KEY};
use crate::collector::{Collector, attribute, shut_down};
use rondo_otel::{Exporter, Settings};
use rondo_testkit::{CallScript, ReplyScript, Script, Server, openai};
use serde_json::{Value, json};

async fn talkative() -> Server {
    let call = CallScript::new("c1", "left", &json!({"q": "argued"}));
    let first = ReplyScript::calls([call]).thinking("thought");
    Server::start(Script::from(vec![
        openai::streamed(&first),
        openai::error(503, "overloaded", &format!("echoes asked and {KEY}"))
            .header("retry-after", "0"),
        openai::streamed(&ReplyScript::text(["answered"])),
    ]))
    .await
}

async fn traced(change: impl FnOnce(&mut Settings)) -> Collector {
    let (collector, model) = (Collector::start().await, talkative().await);
    let mut settings = collector.settings();
    change(&mut settings);
    let exporter = Exporter::start(&settings).unwrap();
    let bench = Bench::chat(&model).tool("left", 0, None);
    let outcome = bench.ask("asked", exporter.telemetry()).await;
    assert_eq!(outcome.text, "answered");
    shut_down(exporter).await.unwrap();
    collector
}

#[tokio::test]
async fn nothing_of_what_was_said_is_sent_unless_asked_for() {
    let collector = traced(|_| {}).await;
    assert!(collector.holds("execute_tool left"));
    for said in [
        "asked",
        "answered",
        "argued",
        "thought",
        "found-by-left",
        "be-terse",
        KEY,
    ] {
        assert!(!collector.holds(said), "{said}");
    }
}

#[tokio::test]
async fn what_was_said_is_sent_when_asked_for_but_never_a_key() {
    let collector = traced(|settings| settings.content = true).await;
    let spans = collector.spans();
    let json = |at: usize, name: &str| -> Value {
        serde_json::from_str(&attribute(&spans[at], name).unwrap()).unwrap()
    };
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    let expected = [
        "invoke_agent default",
        "chat m-1",
        "execute_tool left",
        "chat m-1",
        "chat m-1",
    ];
    let mut sorted = names.clone();
    sorted.sort_unstable();
    let mut wanted = expected.to_vec();
    wanted.sort_unstable();
    assert_eq!(sorted, wanted);
    let asked = json!([{"role": "user", "parts": [{"type": "text", "content": "asked"}]}]);
    let text = |text: &str| json!({"type": "text", "content": text});
    let at = |name: &str| names.iter().position(|it| *it == name).unwrap();
    assert_eq!(
        json(at("invoke_agent default"), "gen_ai.input.messages"),
        asked
    );
    assert_eq!(
        json(at("invoke_agent default"), "gen_ai.output.messages"),
        json!([{"role": "assistant", "parts": [text("answered")], "finish_reason": "stop"}])
    );
    let first = at("chat m-1");
    assert_eq!(json(first, "gen_ai.input.messages"), asked);
    assert_eq!(
        json(first, "gen_ai.system_instructions"),
        json!([text("be-terse")])
    );
    assert_eq!(
        json(first, "gen_ai.tool.definitions")[0]["name"],
        json!("left")
    );
    let said = json(first, "gen_ai.output.messages");
    assert_eq!(said[0]["finish_reason"], "tool_call");
    assert_eq!(
        said[0]["parts"][0],
        json!({"type": "reasoning", "content": "thought"})
    );
    assert_eq!(said[0]["parts"][1]["arguments"], json!({"q": "argued"}));
    let call = &spans[at("execute_tool left")];
    assert_eq!(
        attribute(call, "gen_ai.tool.call.id").as_deref(),
        said[0]["parts"][1]["id"].as_str()
    );
    assert_eq!(
        attribute(call, "gen_ai.tool.call.arguments").as_deref(),
        Some(r#"{"q":"argued"}"#)
    );
    assert_eq!(
        attribute(call, "gen_ai.tool.call.result").as_deref(),
        Some("found-by-left")
    );
    assert!(!collector.holds(KEY));
}
