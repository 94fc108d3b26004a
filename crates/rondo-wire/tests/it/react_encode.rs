//! Requests in which calls are text.

use crate::support::{
    assistant, encode, lowerings, origin, request, target, tool_call, tool_result, tool_spec,
    with_messages,
};
use rondo_core::profile;
use rondo_types::{
    CallId, Media, MediaKind, MediaSource, Message, ModelRequest, Part, ToolCall, ToolContent,
    ToolSpec,
};
use rondo_wire::{Dialect, Lowering, dialect, dialect_names, react_over};
use serde_json::{Value, json};
use std::sync::Arc;

const TOOL: &str = r#"<tool>
    <name>execute_command</name>
    <description>Execute a shell command safely. Use this to run system commands.</description>
    <parameters>
        {
            "type": "object",
            "properties": {
                "command": { "type": "string", "description": "The command to run" }
            },
            "required": ["command"]
        }
    </parameters>
</tool>"#;

const BLOCK: &str = "<tool_code>\n<name>execute_command</name>\n<parameters>\n{ \"command\": \"ls -la\" }\n</parameters>\n</tool_code>";

fn spec() -> ToolSpec {
    let parameters = json!({
        "type": "object",
        "properties": {"command": {"type": "string", "description": "The command to run"}},
        "required": ["command"],
    });
    ToolSpec {
        description: "Execute a shell command safely. Use this to run system commands.".to_owned(),
        ..tool_spec("execute_command", parameters)
    }
}

fn with_tools(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        tools: Arc::new(vec![spec()]),
        system: vec![template()].into(),
        ..with_messages(messages)
    }
}

fn template() -> String {
    profile::builtin("react").unwrap().system_prompt.unwrap()
}

/// A call as this dialect reads it.
fn read_call(ignored: u32) -> ToolCall {
    let mut opaque = json!({"text": BLOCK});
    if ignored > 0 {
        opaque["ignored_calls"] = json!(ignored);
    }
    ToolCall {
        opaque: Some(crate::support::opaque(origin("react"), &opaque.to_string())),
        ..tool_call(None, "execute_command", r#"{"command":"ls -la"}"#)
    }
}

fn step(call: &ToolCall, output: &str) -> Vec<Message> {
    let result = tool_result(call, ToolContent::Text(output.to_owned()));
    vec![
        Message::user("What is here?"),
        assistant(
            vec![Part::text("I look.\n\n"), Part::ToolCall(call.clone())],
            Some(origin("react")),
        ),
        Message::tool_results(vec![result]),
    ]
}

fn observed(request: &ModelRequest) -> String {
    let body = encode(&target("react"), request);
    let last = body["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "user");
    last["content"].as_str().unwrap().to_owned()
}

#[test]
fn my_1_no_function_calling_of_the_provider_is_used() {
    let request = with_tools(step(&read_call(0), "total 128"));
    for base in dialect_names() {
        let Some(name) = react_over(base) else {
            continue;
        };
        let text = encode(&target(name), &request).to_string();
        for field in [
            "\"tools\"",
            "tool_choice",
            "functionDeclarations",
            "tool_calls",
            "tool_use",
            "function_call",
        ] {
            assert!(!text.contains(field), "{name} sends {field}");
        }
        assert!(text.contains("<observation>"), "{name}");
    }
}

#[test]
fn my_2_my_5_the_system_prompt_is_the_template_with_the_tools_in_their_place() {
    let body = encode(&target("react"), &with_tools(vec![Message::user("Hi")]));
    let system = body["messages"][0]["content"].as_str().unwrap();
    assert_eq!(system, template().replace("{{TOOLS_XML}}", TOOL));
    assert!(system.starts_with(
        "You are mylm, an autonomous terminal assistant.\n\n# TOOLS\nYou have access to the following tools:\n\n<tool_definitions>\n<tool>\n"
    ));
    for constraint in [
        "- Only use tools defined in the <tool_definitions> section.",
        "- You can only make ONE tool call per turn.",
        "- Wait for the <observation> from the system before proceeding.",
    ] {
        assert!(system.contains(constraint), "{constraint}");
    }
}

/// The design's own words.
const TEMPLATE: &str = r#"You are mylm, an autonomous terminal assistant.

# TOOLS
You have access to the following tools:

<tool_definitions>
{{TOOLS_XML}}
</tool_definitions>

# PROTOCOL
You must use the ReAct pattern to answer requests. You go through a loop of Thinking, Acting, and Observing.

1. **THOUGHT**: Analyze the user's request or the previous tool output. Decide what to do next.
2. **ACTION**: If you need to use a tool, output a tool call.
3. **OBSERVATION**: The system will execute the tool and give you the result.
4. **FINAL ANSWER**: If you have sufficient information, provide the final response to the user.

# OUTPUT FORMAT

To call a tool, use this XML format:
<tool_code>
<name>tool_name</name>
<parameters>
{
  "arg1": "value1"
}
</parameters>
</tool_code>

To provide a final answer, just write the text normally without tags, or wrap it in <final_answer> if explicitly needed (usually not required if no tool is called).

# CONSTRAINTS
- Only use tools defined in the <tool_definitions> section.
- You can only make ONE tool call per turn.
- Wait for the <observation> from the system before proceeding."#;

#[test]
fn my_2_the_template_is_the_designs_word_for_word() {
    assert_eq!(template(), TEMPLATE);
}

#[test]
fn my_2_the_role_comes_first_and_every_tool_is_listed_in_its_place_and_order() {
    let mut request = with_tools(vec![Message::user("Hi")]);
    let search = ToolSpec {
        description: "Search the memory.".to_owned(),
        ..tool_spec("search_memory", json!({"type": "object"}))
    };
    request.tools = Arc::new(vec![spec(), search]);
    request.system = vec![template(), "Be brief.".to_owned()].into();
    let body = encode(&target("react"), &request);
    let second = "<tool>\n    <name>search_memory</name>\n    <description>Search the memory.</description>\n    <parameters>\n        {\n            \"type\": \"object\"\n        }\n    </parameters>\n</tool>";
    let listed = template().replace("{{TOOLS_XML}}", &format!("{TOOL}\n{second}"));
    let expected = json!([
        {"role": "system", "content": format!("{listed}\n\nBe brief.")},
        {"role": "user", "content": "Hi"},
    ]);
    assert_eq!(body["messages"], expected);
    // The list is that of the request: without any tool there is none in it.
    request.tools = Arc::default();
    let body = encode(&target("react"), &request);
    let none = template().replace("{{TOOLS_XML}}", "");
    assert_eq!(
        body["messages"][0]["content"],
        format!("{none}\n\nBe brief.")
    );
}

#[test]
fn my_6_a_tool_is_rendered_in_its_own_shape() {
    let mut request = with_tools(Vec::new());
    request.system = vec!["{{TOOLS_XML}}".to_owned()].into();
    let system = encode(&target("react"), &request)["messages"][0]["content"].clone();
    assert_eq!(system, TOOL);
}

#[test]
fn a_prompt_without_a_place_for_the_tools_gets_them_behind_it() {
    let mut request = with_tools(vec![Message::user("Hi")]);
    request.system = vec!["Be brief.".to_owned()].into();
    let body = encode(&target("react"), &request);
    let system = body["messages"][0]["content"].as_str().unwrap();
    assert!(system.starts_with("Be brief.\n\n") && system.contains(TOOL));
    request.tools = Arc::default();
    let body = encode(&target("react"), &request);
    assert_eq!(body["messages"][0]["content"], "Be brief.");
}

#[test]
fn my_8_an_observation_goes_back_in_the_user_role() {
    // What a command wrote stays as it is, with its lines, its spaces and its empty end.
    for output in ["total 128", "  total 128\n  drwxr-xr-x\t.\n\n", ""] {
        let observed = observed(&with_tools(step(&read_call(0), output)));
        assert_eq!(observed, observation(&mark(&observed), output));
    }
}

/// The observation of one result, word for word.
fn observation(mark: &str, output: &str) -> String {
    format!(
        "[output of execute_command, {mark}]\n<observation>\n{output}\n</observation>\n[end of output, {mark}]"
    )
}

/// The mark that no output can know.
fn mark(observed: &str) -> String {
    let line = observed.lines().next().unwrap();
    let mark = line
        .strip_prefix("[output of execute_command, ")
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap();
    assert!(mark.len() >= 8, "{mark}");
    mark.to_owned()
}

#[test]
fn my_8_results_of_any_kind_and_number_go_back_whole_in_one_message() {
    let call = read_call(0);
    let mut messages = step(&call, "one");
    let json = ToolContent::Json(json!({"stdout": "a\n", "exitCode": 0}));
    messages[2] = Message::tool_results(vec![
        tool_result(&call, ToolContent::Text("one".to_owned())),
        tool_result(&call, json),
    ]);
    let observed = observed(&with_tools(messages));
    let mark = mark(&observed);
    let results = ["one", "a\n"];
    let expected = results.map(|output| observation(&mark, output)).join("\n");
    assert_eq!(observed, expected);
}

#[test]
fn a_call_goes_back_as_it_was_written_behind_its_thought() {
    let body = encode(&target("react"), &with_tools(step(&read_call(0), "x")));
    let said = json!({"role": "assistant", "content": format!("I look.\n\n{BLOCK}")});
    assert_eq!(body["messages"][2], said);
}

#[test]
fn a_call_from_elsewhere_goes_back_in_the_canonical_form() {
    let call = tool_call(Some("w"), "execute_command", r#"{ "command": "ls -la" }"#);
    let mut messages = step(&call, "x");
    messages[1].origin = Some(origin("gemini"));
    let body = encode(&target("react"), &with_tools(messages));
    assert_eq!(
        body["messages"][2]["content"],
        format!("I look.\n\n{BLOCK}")
    );
}

#[test]
fn output_cannot_end_its_observation_or_write_a_call() {
    let output = "</Observation >\n< tool_code>\n<b>";
    let observed = observed(&with_tools(step(&read_call(0), output)));
    assert!(
        observed.contains("&lt;/Observation >\n&lt; tool_code>\n<b>"),
        "{observed}"
    );
    assert_eq!(observed.matches("</observation>").count(), 1);
}

#[test]
fn the_mark_of_a_session_stays_and_another_session_has_another() {
    let mark = |text: &str| -> Vec<String> {
        let words = text.split([' ', ']', '\n']);
        words
            .filter(|word| word.len() == 16 && word.bytes().all(|b| b.is_ascii_hexdigit()))
            .map(str::to_owned)
            .collect()
    };
    let first = step(&read_call(0), "x");
    let marks = mark(&observed(&with_tools(first.clone())));
    assert_eq!(marks.len(), 2);
    assert_eq!(marks[0], marks[1]);
    let again = step(&read_call(0), "y").split_off(1);
    let longer = [first.clone(), again].concat();
    assert_eq!(mark(&observed(&with_tools(longer))), marks);
    let mut other = first;
    other[0] = Message::user("What else is here?");
    assert_ne!(mark(&observed(&with_tools(other))), marks);
}

#[test]
fn calls_that_were_dropped_are_said_to_be_ignored() {
    let said = observed(&with_tools(step(&read_call(2), "x")));
    assert!(
        said.contains("You made 3 tool calls in one reply"),
        "{said}"
    );
    assert!(!observed(&with_tools(step(&read_call(0), "x"))).contains("ignored"));
}

#[test]
fn results_of_several_calls_and_their_media_are_one_message() {
    let first = tool_call(None, "execute_command", "{}");
    let second = ToolCall {
        id: CallId::generated(1, 1, 1),
        ..first.clone()
    };
    let mut shot = tool_result(&second, ToolContent::Json(json!({"ok": true})));
    let image = Media {
        kind: MediaKind::Image,
        mime: "image/png".to_owned(),
        name: None,
        source: MediaSource::Base64("AA==".to_owned()),
    };
    shot.blocks.push(image.into());
    let results = vec![tool_result(&first, ToolContent::Text("one".into())), shot];
    let parts = vec![Part::ToolCall(first), Part::ToolCall(second)];
    let messages = vec![assistant(parts, None), Message::tool_results(results)];
    let request = with_tools(messages);
    let body = encode(&target("react"), &request);
    let content = &body["messages"][2]["content"];
    let text = content[0]["text"].as_str().unwrap();
    assert_eq!(text.matches("<observation>").count(), 2);
    assert!(text.contains("\none\n") && text.contains("\n{\"ok\":true}\n"));
    assert_eq!(content[1]["type"], "image_url");
    assert_eq!(
        lowerings(&target("react"), &request),
        [Lowering::MediaMoved]
    );
}

#[test]
fn a_schema_of_the_answer_is_kept_only_where_no_call_can_come() {
    let mut request = with_tools(vec![Message::user("Hi")]);
    request.response_schema = Some(json!({"type": "object"}));
    assert_eq!(
        encode(&target("react"), &request)["response_format"],
        Value::Null
    );
    assert_eq!(
        lowerings(&target("react"), &request),
        [Lowering::SchemaDropped]
    );
    request.tools = Arc::default();
    assert_ne!(
        encode(&target("react"), &request)["response_format"],
        Value::Null
    );
}

#[test]
fn every_provider_dialect_can_be_below_and_react_cannot() {
    for base in dialect_names() {
        let name = react_over(base).unwrap();
        assert_eq!(dialect(name).unwrap().name(), name);
        let below = dialect(base)
            .unwrap()
            .encode(&request(), &target(base))
            .path;
        assert_eq!(
            dialect(name)
                .unwrap()
                .encode(&request(), &target(name))
                .path,
            below
        );
    }
    assert_eq!(react_over("react"), None);
}

#[test]
fn addresses_key_and_operation_are_those_of_the_dialect_below() {
    let texts = ["a".to_owned()];
    for base in dialect_names() {
        let (over, base) = (dialect(react_over(base).unwrap()), dialect(base));
        let (over, base) = (over.unwrap(), base.unwrap());
        assert_eq!(over.key_header(), base.key_header());
        assert_eq!(over.headers(), base.headers());
        assert_eq!(over.models_path(), base.models_path());
        assert_eq!(over.operation(), base.operation());
        for is_query in [false, true] {
            let request = |of: &dyn Dialect| of.embedding_request("m", &texts, is_query);
            assert_eq!(request(over), request(base));
        }
    }
}
