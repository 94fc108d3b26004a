//! Calls written as text.

use crate::support::{Decoded, decode_pieces, offered, sse, target};
use proptest::prelude::*;
use rondo_types::{FinishReason, ModelEvent};
use rondo_wire::{Bounds, Target, dialect};
use serde_json::{Value, json};

const CASES: u32 = 100;
/// A tag, white space behind it and the beginning of another.
const HELD_BYTES_MAX: usize = 600;
const CALL: &str =
    "<tool_code>\n<name>look</name>\n<parameters>\n{\"path\": \"a\"}\n</parameters>\n</tool_code>";
const ARGUMENTS: &str = "{\"path\": \"a\"}";

/// Pieces that bring the reader deeper than random text does.
const FRAGMENTS: [&str; 33] = [
    "<tool_code>",
    "</tool_code>",
    "<tool_call name='look'>",
    "<tool_code",
    "<name>look</name>",
    "<name>",
    "</name>",
    "<parameters>",
    "</parameters>",
    "<function=look>",
    "<function=",
    "</function>",
    "<parameter=path>",
    "</parameter>",
    "{\"path\": \"</tool_code>\"}",
    "{\"a\": 1",
    "{'a': 'b'}",
    "}",
    "\"",
    "<observation>",
    "</observation>",
    "<final_answer>",
    "</final_answer>",
    "```",
    "```xml\n",
    "\n```\n",
    "~~~",
    "`",
    "\n",
    "  ",
    "<",
    "text é ",
    "Thought: ",
];

fn react() -> Target {
    Target {
        tools: offered(&["look", "list"]),
        ..target("react")
    }
}

fn body(deltas: &[&str], finish: &str) -> String {
    let mut payloads: Vec<String> = deltas
        .iter()
        .map(|text| json!({"choices": [{"index": 0, "delta": {"content": text}}]}).to_string())
        .collect();
    payloads
        .push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}).to_string());
    payloads.push("[DONE]".to_owned());
    sse(&payloads.iter().map(String::as_str).collect::<Vec<_>>())
}

fn read_deltas(deltas: &[&str], finish: &str) -> Decoded {
    decode_pieces(&react(), &[body(deltas, finish).as_bytes()])
}

/// Reads a text, at once and cut in two anywhere, which must come to the same.
fn read(text: &str) -> Decoded {
    read_ended(text, "stop")
}

fn read_ended(text: &str, finish: &str) -> Decoded {
    let whole = read_deltas(&[text], finish);
    for (cut, _) in text.char_indices() {
        let (head, tail) = text.split_at(cut);
        let split = read_deltas(&[head, tail], finish);
        assert_eq!(split.reply, whole.reply, "{text:?} cut at {cut}");
    }
    let chars: Vec<String> = text.chars().map(String::from).collect();
    let single: Vec<&str> = chars.iter().map(String::as_str).collect();
    assert_eq!(read_deltas(&single, finish).reply, whole.reply, "{text:?}");
    whole
}

fn call(arguments: &str) -> Vec<(String, String, bool)> {
    vec![("look".to_owned(), arguments.to_owned(), true)]
}

fn is_call(text: &str, before: &str) {
    is_call_with(text, before, ARGUMENTS);
}

fn is_call_with(text: &str, before: &str, arguments: &str) {
    let decoded = read(text);
    assert_eq!(decoded.calls(), call(arguments), "{text}");
    assert_eq!(decoded.candidate().text(), before, "{text}");
}

fn is_text(text: &str, shown: &str) {
    let decoded = read(text);
    assert_eq!(decoded.calls(), [], "{text}");
    assert_eq!(decoded.candidate().text(), shown, "{text}");
}

#[test]
fn my_3_my_7_a_call_is_a_block_and_the_text_before_it_is_the_thought() {
    is_call(&format!("I look.\n\n{CALL}"), "I look.\n\n");
    is_call(CALL, "");
}

#[test]
fn my_4_plain_text_is_final_and_the_wrapper_is_taken_off() {
    is_text("It is 1 < 2 & <b>so</b>.", "It is 1 < 2 & <b>so</b>.");
    is_text("<final_answer>42</final_answer>", "42");
    is_text("So.\n<final_answer>\n42</final_answer>", "So.\n42");
}

#[test]
fn my_5_only_the_first_call_is_taken_and_what_follows_it_is_dropped() {
    let invented = format!("{CALL}\n<observation>\nnone\n</observation>\nThen:\n{CALL}\n{CALL}");
    let decoded = read(&invented);
    assert_eq!(decoded.calls(), call(ARGUMENTS));
    let candidate = decoded.candidate();
    let taken = candidate.tool_calls().next().unwrap();
    let opaque: Value = serde_json::from_str(&taken.opaque.as_ref().unwrap().json).unwrap();
    assert_eq!(opaque, json!({"text": CALL, "ignored_calls": 2}));
    assert_eq!(candidate.text(), "");
}

#[test]
fn a_call_wins_over_a_final_answer_on_either_side_of_it() {
    is_call(&format!("<final_answer>42</final_answer>\n{CALL}"), "42\n");
    is_call(&format!("{CALL}\n<final_answer>42</final_answer>"), "");
}

#[test]
fn an_invented_observation_and_what_follows_it_is_dropped() {
    is_text("So.\n<observation>\n1\n</observation>\nDone.", "So.\n");
    is_text(
        "Wait for the <observation> then.",
        "Wait for the <observation> then.",
    );
}

#[test]
fn a_tag_inside_an_argument_is_content() {
    let arguments = r#"{"path": "</parameters></tool_code> <tool_code> \" }"}"#;
    is_call_with(&CALL.replace(ARGUMENTS, arguments), "", arguments);
    let single = r"{'path': '</tool_code>}',}";
    is_call_with(&CALL.replace(ARGUMENTS, single), "", single);
}

#[test]
fn every_writing_of_a_call_is_read() {
    let calls = [
        CALL.replace("tool_code>", "Tool_Code >"),
        CALL.replace("<tool_code>", "<tool_code id=\"1\" lang='x'>"),
        CALL.replace("tool_code", "tool_call"),
        CALL.replace("</tool_code>", ""),
        format!("<tool_code>\n{CALL}"),
        CALL.replace("</parameters>\n</tool_code>", ""),
        CALL.replace("</tool_code>", "</tool_code"),
        CALL.replace("</parameters>", "</param>"),
        CALL.replace("<tool_code>", "<tool_code"),
        CALL.replace(ARGUMENTS, &format!("```json\n{ARGUMENTS}\n```")),
        CALL.replace(ARGUMENTS, &format!("<![CDATA[{ARGUMENTS}]]>")),
        CALL.replace("parameters", "arguments"),
        CALL.replace("</tool_code>", "}\n</tool_code>"),
        format!("<tool_code><parameters>{ARGUMENTS}</parameters><name>look</name></tool_code>"),
        format!("<tool_code><look>{ARGUMENTS}</look></tool_code>"),
        format!("<tool_code>{{\"name\": \"look\", \"arguments\": {ARGUMENTS}}}</tool_code>"),
        format!("<tool_code name=\"look\">{ARGUMENTS}</tool_code>"),
        format!("<look>{ARGUMENTS}</look>"),
        format!("```xml\n{CALL}\n```"),
        format!("```\n\n{CALL}"),
    ];
    for text in calls {
        is_call(&text, "");
    }
    is_call(
        &format!("```\nThought: I look.\n{CALL}\n```"),
        "```\nThought: I look.\n",
    );
    is_call(&format!("Action: {CALL}"), "Action: ");
}

#[test]
fn arguments_that_are_elements_or_missing_are_read_and_broken_ones_are_passed_on() {
    let elements = "<path>a b</path>";
    is_call_with(&CALL.replace(ARGUMENTS, elements), "", r#"{"path":"a b"}"#);
    is_call_with("<tool_code><name>look</name></tool_code>", "", "{}");
    is_call_with("<tool_call name='look'/>", "", "{}");
    let broken = r#"{"path": "say "it" ", "b": "x}"#;
    is_call_with(&CALL.replace(ARGUMENTS, broken), "", broken);
}

#[test]
fn quoted_tags_and_examples_are_text() {
    let texts = [
        "The `<tool_code>` tag begins a call.".to_owned(),
        "A <tool_code> tag begins a call.".to_owned(),
        format!("Like this:\n```xml\n{CALL}\n```\nThat is all."),
        "Like this:\n```xml\n<tool_code>\n<name>tool_name</name>\n<parameters>\n{}\n</parameters>\n</tool_code>\n```".to_owned(),
        format!("```rust\nlet x = 1;\n{CALL}\n```\n"),
    ];
    for text in texts {
        is_text(&text, &text);
    }
    let quoted = format!("```xml\n{CALL}\n```");
    is_text(&format!("<final_answer>{quoted}</final_answer>"), &quoted);
}

#[test]
fn a_call_as_a_function_is_read_alone_and_in_a_block() {
    let parameters = "<parameter=path>\na b\n</parameter>";
    let bodies = [
        (ARGUMENTS.to_owned(), ARGUMENTS),
        (format!("\n{ARGUMENTS}\n"), ARGUMENTS),
        (parameters.to_owned(), r#"{"path":"a b"}"#),
        (format!("\n{parameters}\n"), r#"{"path":"a b"}"#),
        (
            format!("\n{parameters}\n<parameter=n>1</parameter>\n"),
            r#"{"n":"1","path":"a b"}"#,
        ),
        (
            "<parameter=path></function></tool_call></parameter>".to_owned(),
            r#"{"path":"</function></tool_call>"}"#,
        ),
        (String::new(), "{}"),
        ("\n".to_owned(), "{}"),
    ];
    for (body, arguments) in bodies {
        let bare = format!("<function=look>{body}</function>");
        let texts = [
            bare.clone(),
            format!("<tool_call>{bare}</tool_call>"),
            format!("<tool_call>\n{bare}\n</tool_call>"),
            format!("<tool_call>\n{bare}"),
        ];
        for text in texts {
            for before in ["", "I look.\n"] {
                let text = format!("{before}{text}");
                let decoded = read(&text);
                let calls = decoded.calls();
                let [(name, read_arguments, true)] = &calls[..] else {
                    panic!("{text}: {calls:?}")
                };
                let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
                assert_eq!(name, "look", "{text}");
                assert_eq!(value(read_arguments), value(arguments), "{text}");
                assert_eq!(decoded.candidate().text(), before, "{text}");
            }
        }
    }
    is_call(&format!("<function=\"look\">{ARGUMENTS}</function>"), "");
    is_call(&format!("<function=look>{ARGUMENTS}"), "");
}

#[test]
fn text_that_mentions_a_function_is_text() {
    let call = format!("<function=look>{ARGUMENTS}</function>");
    let texts = [
        format!("It is written {call} there."),
        format!("Like this: `{call}`"),
        format!("```\n{call}\n```"),
        format!("```xml\n{call}\n```\nThat is all."),
        format!("```\n<tool_call>\n{call}\n</tool_call>\n```\nThat is all."),
        format!("~~~\nx\n{call}\n~~~\n"),
        "<function=look> begins a call.".to_owned(),
        "<function=look>\nbegins a call.".to_owned(),
        "<function=other>{}</function>".to_owned(),
        "<function>{}</function>".to_owned(),
        "a <function=look\nb".to_owned(),
    ];
    for text in texts {
        is_text(&text, &text);
    }
}

#[test]
fn a_function_that_is_cut_off_is_never_whole_and_never_seen() {
    let call = "<tool_call>\n<function=look>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>";
    let whole_from = call.find("</function").unwrap() + "</function>".len();
    for end in 2..call.len() {
        let decoded = read_deltas(&[&format!("I look.\n{}", &call[..end])], "length");
        assert_eq!(decoded.candidate().text(), "I look.\n", "{end}");
        let whole = decoded.calls().iter().any(|(_, _, complete)| *complete);
        assert_eq!(whole, end >= whole_from, "{end}");
    }
}

#[test]
fn a_function_cut_into_pieces_anywhere_is_the_same() {
    for text in [
        "Ä.\n<function=look>\n<parameter=path>\na\n</parameter>\n</function>",
        "<tool_call><function=list>{\"a\": \"</function>\"}</function></tool_call>",
        "An <function=look> in `<function=look>{}` text.",
    ] {
        let body = body(&[text], "stop");
        let whole = decode_pieces(&react(), &[body.as_bytes()]);
        for cut in (0..=text.len()).filter(|it| text.is_char_boundary(*it)) {
            let (head, tail) = text.split_at(cut);
            let again = read_deltas(&[head, tail], "stop");
            assert_eq!(again.calls(), whole.calls(), "cut at {cut}");
            let texts = (again.candidate().text(), whole.candidate().text());
            assert_eq!(texts.0, texts.1, "cut at {cut}");
        }
    }
}

#[test]
fn orphan_closing_tags_are_not_seen() {
    is_text("Done.</tool_code> Yes.</final_answer>", "Done. Yes.");
    is_text("</observation>\nDone.", "\nDone.");
}

#[test]
fn a_call_that_is_cut_off_is_never_whole_and_never_seen() {
    let whole_from = CALL.find(ARGUMENTS).unwrap() + ARGUMENTS.len();
    for end in 2..CALL.len() {
        let text = format!("I look.\n{}", &CALL[..end]);
        for finish in ["length", "stop"] {
            let decoded = read_deltas(&[&text], finish);
            assert_eq!(decoded.candidate().text(), "I look.\n", "{text}");
            let whole = decoded.calls().iter().any(|(_, _, complete)| *complete);
            assert_eq!(whole, end >= whole_from, "{text}");
        }
    }
}

#[test]
fn a_call_of_a_broken_stream_is_never_whole() {
    let body = body(&[CALL], "stop");
    for end in 0..body.find("finish_reason").unwrap() {
        let decoded = decode_pieces(&react(), &[&body.as_bytes()[..end]]);
        assert!(decoded.error.is_some(), "cut at {end}");
        assert!(decoded.calls().iter().all(|(_, _, complete)| !complete));
    }
}

#[test]
fn an_unfinished_call_followed_by_an_invented_result_is_not_whole() {
    let text = format!("<tool_code>\n<name>look</name>\n<observation>1</observation>\n{CALL}");
    let calls = read(&text).calls();
    assert_eq!(calls, [("look".to_owned(), String::new(), false)]);
}

#[test]
fn bytes_cut_anywhere_give_the_same_events() {
    let text = format!("Ä look.\n{CALL}\n<observation>");
    let body = body(&[&text[..9], &text[9..40], &text[40..]], "stop");
    let whole = decode_pieces(&react(), &[body.as_bytes()]);
    for cut in 0..=body.len() {
        let (head, tail) = body.as_bytes().split_at(cut);
        assert_eq!(
            decode_pieces(&react(), &[head, tail]),
            whole,
            "cut at {cut}"
        );
    }
}

#[test]
fn a_reply_that_goes_on_and_on_behind_its_call_is_not_awaited() {
    let noise = "<observation>\n".to_owned() + &"x".repeat(20_000);
    let body = body(&[CALL, &noise], "stop");
    let cut = body.find("finish_reason").unwrap();
    let mut decoder = dialect("react")
        .unwrap()
        .decoder(&react(), Bounds::default());
    let mut events = Vec::new();
    decoder.push(&body.as_bytes()[..cut], &mut events).unwrap();
    assert!(decoder.ended());
    decoder.finish(&mut events).unwrap();
    let finished = |event: &ModelEvent| matches!(event, ModelEvent::ToolCallFinished { .. });
    assert!(events.iter().any(finished));
}

#[test]
fn what_is_behind_the_cut_is_dropped_wherever_the_pieces_end() {
    let noise = "x".repeat(20_000);
    let body = body(&[CALL, &noise, "more"], "length");
    let whole = decode_pieces(&react(), &[body.as_bytes()]);
    let pieces: Vec<&[u8]> = body.as_bytes().chunks(100).collect();
    assert_eq!(decode_pieces(&react(), &pieces).events, whole.events);
}

#[test]
fn a_call_is_bounded() {
    let bounds = Bounds {
        event_bytes_max: 1024,
        ..Bounds::default()
    };
    let long = "x".repeat(400);
    let open = CALL.replace("\"a\"", "\"");
    let body = body(&[&open[..open.len() - 30], &long, &long, &long], "stop");
    let decoded = crate::support::decode_within(&react(), bounds, &[body.as_bytes()]);
    assert!(decoded.error.unwrap().message.contains("1024 bytes"));
}

#[test]
fn the_xml_that_models_write_is_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/wire/text-xml");
    for number in ["02", "13", "30"] {
        let path = format!("{folder}/chill__conversation-{number}.json");
        let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let chunks = file["generate_stream"].as_array().unwrap();
        let payloads: Vec<&str> = chunks
            .iter()
            .map(|it| it["data"].as_str().unwrap())
            .collect();
        let decoded = decode_pieces(&target("react"), &[sse(&payloads).as_bytes()]);
        let expected = &file["expected"]["choices"][0]["message"]["tool_calls"][0]["function"];
        let (name, arguments, complete) = decoded.calls().remove(0);
        assert!(complete, "{number}");
        assert_eq!(name, expected["name"], "{number}");
        assert_eq!(
            as_text(&arguments),
            as_text(expected["arguments"].as_str().unwrap())
        );
        let text = decoded.candidate().text();
        assert!(text.ends_with("Stand by: "), "{text}");
    }
}

/// Values of elements are text; what they stand for, a schema says.
fn as_text(arguments: &str) -> Vec<(String, String)> {
    let object: serde_json::Map<String, Value> = serde_json::from_str(arguments).unwrap();
    let text = |value: Value| value.as_str().map_or(value.to_string(), str::to_owned);
    object
        .into_iter()
        .map(|(key, value)| (key, text(value)))
        .collect()
}

#[test]
fn the_finish_reason_is_the_providers() {
    let decoded = read_ended(CALL, "length");
    assert_eq!(decoded.calls(), call(ARGUMENTS));
    assert_eq!(
        decoded.candidate().finish_reason,
        Some(FinishReason::Length)
    );
}

fn written() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => proptest::sample::select(FRAGMENTS.to_vec()).prop_map(str::to_owned),
        1 => ".{0,6}",
    ];
    proptest::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

#[test]
fn a_fence_that_ends_with_more_marks_than_it_began_with_ends_once() {
    for text in [
        "```xml\n````<tool_code>",
        "```\nx\n`````` y",
        "~~~\n~~~~",
        "```\n```",
    ] {
        read(text);
    }
    for marks in [79, 80, 81, 82, 90] {
        read(&format!("```\n{}<tool_code>", "`".repeat(marks)));
    }
}

/// Makes sure that a text opens no call and invents no result.
fn harmless(text: &str) -> String {
    let text = text.replace("observation", "observed").replace("```", "");
    let text = text.replace(['{', '='], "").replace("name", "nam");
    text.replace("parameters", "parts").replace("look", "loo")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn any_text_reads_the_same_wherever_it_is_cut(text in written()) {
        read(&text);
    }

    #[test]
    fn nothing_of_a_call_outside_of_quotes_is_ever_seen(before in "[a-z .\n]{0,20}", text in written()) {
        let all = format!("{before}\n<tool_code><name>look</name>{}", text.replace(['`', '~'], ""));
        let seen = read(&all).candidate().text();
        prop_assert_eq!(seen, format!("{before}\n"));
    }

    #[test]
    fn plain_text_is_seen_whole_and_at_once(text in "[a-zA-Z0-9 .,\n<>/&é]{0,80}") {
        let own = |name: &str| text.contains(&format!("<{name}")) || text.contains(&format!("/{name}"));
        prop_assume!(!own("look") && !own("list") && !text.ends_with(['<', '/']));
        let decoded = read(&text);
        let seen = decoded.candidate().text();
        prop_assert!(text.starts_with(&seen) && text.len() - seen.len() < 12, "{}", seen);
    }

    #[test]
    fn what_is_held_back_of_a_text_is_bounded(text in written()) {
        let text = harmless(&text) + &"z".repeat(HELD_BYTES_MAX);
        let body = body(&[&text], "stop");
        let cut = body.find("finish_reason").unwrap();
        let mut decoder = dialect("react").unwrap().decoder(&react(), Bounds::default());
        let mut events = Vec::new();
        decoder.push(&body.as_bytes()[..cut], &mut events).unwrap();
        let seen = |event: &ModelEvent| matches!(event, ModelEvent::TextDelta { text, .. } if text.ends_with('z'));
        prop_assert!(events.iter().any(seen), "{}", text);
    }
}
