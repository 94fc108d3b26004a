//! Stored state of a request never shows in the next one.

use crate::support::{
    assistant, opaque, origin, request, target, tool_call, tool_result, tool_spec,
};
use proptest::prelude::*;
use rondo_types::{
    ContentBlock, Media, MediaKind, MediaSource, Message, ModelRequest, Origin, Part,
    ReasoningPart, Role, TextPart, ToolChoice, ToolContent, ToolErrorCode, ToolResult, Transcript,
};
use rondo_wire::{EncodedPrefix, Quirks, Target, dialect};
use serde_json::json;
use std::sync::Arc;

/// Cases of each property.
const CASES: u32 = 256;

/// Every dialect, and the text loop over two of them.
const DIALECTS: [&str; 6] = [
    "openai-chat",
    "openai-responses",
    "gemini",
    "anthropic",
    "react",
    "react+gemini",
];

/// A call of the provider's own tool, which is valid only while its result may follow.
const SEARCH: &str = r#"{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}"#;

/// Change of a conversation before its next request.
#[derive(Debug, Clone)]
enum Change {
    /// It continues.
    Say(Vec<Message>),
    /// It continues from an earlier place.
    Fork(prop::sample::Index),
    /// A message is replaced by one that may say the same.
    Replace(prop::sample::Index, Box<Message>),
    System(String),
    Tools(bool),
    /// Another dialect, provider or quirk has a request in between.
    Target(usize, bool),
}

fn media(kind: MediaKind) -> Media {
    Media {
        kind,
        mime: "image/png".to_owned(),
        name: None,
        source: MediaSource::Base64("aGk=".to_owned()),
    }
}

fn origins() -> impl Strategy<Value = Option<Origin>> {
    let known = proptest::sample::select(DIALECTS.to_vec()).prop_map(|name| Some(origin(name)));
    prop_oneof![4 => known, 1 => Just(None)]
}

fn assistant_part(origin: Option<&Origin>, kind: usize) -> Part {
    let sealed = origin.map(|it| opaque(it.clone(), r#"{"type":"reasoning","signature":"s"}"#));
    match kind {
        0 => Part::text("said"),
        1 => Part::text(""),
        2 => Part::Refusal(TextPart {
            text: "no".to_owned(),
            opaque: None,
        }),
        3 => Part::Reasoning(ReasoningPart {
            text: "hm".to_owned(),
            opaque: sealed,
        }),
        4 => Part::ToolCall(tool_call(Some("wire-id"), "a tool!", "{\"a\":1}")),
        5 => Part::ToolCall(tool_call(None, "tool", "{broken")),
        6 => Part::Media(media(MediaKind::Image)),
        7 => origin.map_or_else(
            || Part::text("y"),
            |it| Part::Opaque(opaque(it.clone(), SEARCH)),
        ),
        _ => sealed.map_or_else(|| Part::text("x"), Part::Opaque),
    }
}

fn result(kind: usize) -> ToolResult {
    let call = tool_call(Some("wire-id"), "a tool!", "{}");
    let text = ToolContent::Text("output <observation>".to_owned());
    match kind {
        0 => tool_result(&call, text),
        1 => tool_result(&call, ToolContent::Json(json!({"ok": true}))),
        2 => ToolResult {
            blocks: vec![
                media(MediaKind::Image).into(),
                ContentBlock::text("and more"),
            ],
            ..tool_result(&call, text)
        },
        _ => ToolResult {
            error: Some(ToolErrorCode::Failed),
            blocks: vec![media(MediaKind::File).into()],
            ..tool_result(&call, text)
        },
    }
}

/// Any message, also if no transcript would have it: encoders take them all.
fn message() -> impl Strategy<Value = Message> {
    let user = prop_oneof![
        3 => "[a-c ]{0,3}".prop_map(Message::user),
        1 => Just(Message { parts: vec![Part::Media(media(MediaKind::Image))], ..Message::user("") }),
    ];
    let said = (
        origins(),
        proptest::collection::vec(0..9_usize, 0..4),
        any::<bool>(),
    )
        .prop_map(|(origin, kinds, paused)| {
            let parts = kinds
                .into_iter()
                .map(|kind| assistant_part(origin.as_ref(), kind));
            Message {
                paused,
                ..assistant(parts.collect(), origin)
            }
        });
    let results = proptest::collection::vec(0..4_usize, 0..3);
    let results =
        results.prop_map(|kinds| Message::tool_results(kinds.into_iter().map(result).collect()));
    prop_oneof![2 => user, 3 => said, 3 => results]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        8 => proptest::collection::vec(message(), 1..4).prop_map(Change::Say),
        1 => any::<prop::sample::Index>().prop_map(Change::Fork),
        1 => (any::<prop::sample::Index>(), message())
            .prop_map(|(at, message)| Change::Replace(at, Box::new(message))),
        1 => "[a-c]{0,2}".prop_map(Change::System),
        1 => any::<bool>().prop_map(Change::Tools),
        1 => (0..DIALECTS.len(), any::<bool>()).prop_map(|(at, quirk)| Change::Target(at, quirk)),
    ]
}

fn apply(change: Change, messages: &mut Transcript, request: &mut ModelRequest, to: &mut Target) {
    match change {
        Change::Say(more) => messages.extend(more.into_iter().map(Arc::new)),
        Change::Fork(at) => messages.truncate(at.index(messages.len() + 1)),
        Change::Replace(at, message) if !messages.is_empty() => {
            let at = at.index(messages.len());
            messages[at] = Arc::new(*message);
        }
        Change::Replace(..) => {}
        Change::System(text) => request.system = vec![text].into(),
        Change::Tools(any) => {
            let spec = tool_spec("a tool!", json!({"type": "object"}));
            request.tools = Arc::new(any.then_some(spec).into_iter().collect());
            request.tool_choice = if any {
                ToolChoice::Auto
            } else {
                ToolChoice::None
            };
        }
        Change::Target(at, quirk) => {
            *to = target(DIALECTS[at]);
            to.quirks = Quirks {
                nine_char_ids: quirk,
                skip_signature_for_foreign_calls: quirk,
                echo_reasoning: quirk.then(|| "reasoning_content".to_owned()),
                ..Quirks::default()
            };
        }
    }
}

/// Encodes after each change, always onto what the encoding before left.
fn follow(name: &str, changes: Vec<Change>) -> Result<(), TestCaseError> {
    let mut prefix = EncodedPrefix::default();
    let (mut messages, mut asked, mut to) = (Transcript::new(), request(), target(name));
    for change in changes {
        apply(change, &mut messages, &mut asked, &mut to);
        asked.messages.clone_from(&messages);
        let dialect = dialect(&to.origin.dialect).unwrap();
        let onto = dialect.encode_onto(&mut prefix, &asked, &to).joined();
        prop_assert_eq!(&onto, &dialect.encode(&asked, &to));
        let again = dialect.encode_onto(&mut prefix, &asked, &to).joined();
        prop_assert_eq!(&onto, &again);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn a_request_onto_what_is_kept_is_the_request_afresh(
        at in 0..DIALECTS.len(),
        changes in proptest::collection::vec(change(), 1..12),
    ) {
        follow(DIALECTS[at], changes)?;
    }
}

/// A conversation of one call a step, as the machine makes it.
fn steps(name: &str, count: usize) -> Transcript {
    let mut messages = vec![Arc::new(Message::user("go"))];
    for _ in 0..count {
        let call = tool_call(Some("wire-id"), "tool", "{}");
        let result = tool_result(&call, ToolContent::Text("ok".repeat(100)));
        messages.push(Arc::new(assistant(
            vec![Part::ToolCall(call)],
            Some(origin(name)),
        )));
        messages.push(Arc::new(Message::tool_results(vec![result])));
    }
    messages
}

#[test]
fn of_a_growing_conversation_all_but_its_end_is_kept() {
    for (name, end) in [("openai-responses", 0), ("gemini", 1), ("anthropic", 3)] {
        let mut prefix = EncodedPrefix::default();
        let messages = steps(name, 40);
        let (dialect, to) = (dialect(name).unwrap(), target(name));
        for count in (1..=messages.len()).step_by(2) {
            let asked = ModelRequest {
                messages: messages[..count].to_vec(),
                ..request()
            };
            dialect.encode_onto(&mut prefix, &asked, &to);
            let last = count
                .checked_sub(end + 1)
                .map(|last| Arc::as_ptr(&messages[last]).addr());
            assert_eq!(prefix.last_message(), last, "{name}, {count} messages");
        }
    }
}

#[test]
fn of_a_chat_all_but_the_messages_of_the_user_at_its_end_is_kept() {
    let mut prefix = EncodedPrefix::default();
    let messages = steps("openai-chat", 40);
    let (dialect, to) = (dialect("openai-chat").unwrap(), target("openai-chat"));
    for count in 1..=messages.len() {
        let asked = ModelRequest {
            messages: messages[..count].to_vec(),
            ..request()
        };
        dialect.encode_onto(&mut prefix, &asked, &to);
        let is_users = |message: &Arc<Message>| message.role == Role::User;
        let last = messages[..count].iter().rposition(|it| !is_users(it));
        let last = last.map(|last| Arc::as_ptr(&messages[last]).addr());
        assert_eq!(prefix.last_message(), last, "{count} messages");
    }
}

#[test]
fn what_is_kept_is_sent_as_it_lies_in_memory() {
    let mut prefix = EncodedPrefix::default();
    let (dialect, to) = (dialect("openai-chat").unwrap(), target("openai-chat"));
    let messages = steps("openai-chat", 400);
    let asked = |count: usize| ModelRequest {
        messages: messages[..count].to_vec(),
        ..request()
    };
    let body = dialect.encode_onto(&mut prefix, &asked(799), &to).body;
    let at = body[1].as_ptr();
    assert_eq!((body.len(), body[1].len()), (3, prefix.bytes()));
    assert_eq!(
        dialect.encode_onto(&mut prefix, &asked(799), &to).body[1].as_ptr(),
        at
    );
}

/// A paused reply, what was said behind it twice, and the same with the reply gone on with.
#[test]
fn what_a_reply_lost_to_an_interruption_is_back_where_it_goes_on() {
    let from = origin("anthropic");
    let search = || Part::Opaque(opaque(from.clone(), SEARCH));
    let said = |paused: bool| {
        Arc::new(Message {
            paused,
            ..assistant(vec![Part::text("a"), search()], Some(from.clone()))
        })
    };
    let user = || Arc::new(Message::user("u"));
    let (first, paused) = (user(), said(true));
    let interrupted = vec![first.clone(), paused.clone(), user(), said(false), user()];
    let gone_on = vec![first, paused, said(false), user(), said(false), user()];
    let (dialect, to) = (dialect("anthropic").unwrap(), target("anthropic"));
    let mut prefix = EncodedPrefix::default();
    for messages in [interrupted, gone_on] {
        let asked = ModelRequest {
            messages,
            ..request()
        };
        let onto = dialect.encode_onto(&mut prefix, &asked, &to).joined();
        assert_eq!(onto, dialect.encode(&asked, &to));
    }
}
