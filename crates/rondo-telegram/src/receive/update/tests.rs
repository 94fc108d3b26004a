//! Addressees and authors of messages, and the data of buttons.

use super::*;
use serde_json::json;

const TOKEN: &str = "abcdefghijklmnopqrstuv";

fn me() -> BotIdentity {
    BotIdentity {
        id: 42,
        name: "Rondo_Bot".to_owned(),
        sees_all: false,
    }
}

fn message(fields: &Value) -> Box<Message> {
    let mut message = json!({
        "message_id": 1, "date": 5,
        "chat": { "id": -7, "type": "group" },
        "from": { "id": 9, "is_bot": false, "first_name": "Ann", "last_name": "Lee" },
    });
    for (name, value) in fields.as_object().unwrap() {
        message[name] = value.clone();
    }
    match Update::read(&json!({ "update_id": 1, "message": message }).to_string())
        .unwrap()
        .content
    {
        Content::Message(message) => message,
        other => panic!("{other:?}"),
    }
}

fn entity(kind: &str, offset: usize, length: usize) -> Value {
    json!({ "type": kind, "offset": offset, "length": length })
}

#[test]
fn in_a_group_the_bot_is_meant_where_it_is_named() {
    for (text, entities, expected) in [
        ("hello all", json!([]), ("hello all", false)),
        (
            "@rondo_bot hello",
            json!([entity("mention", 0, 10)]),
            ("hello", true),
        ),
        (
            "😀 @rondo_bot hi",
            json!([entity("mention", 3, 10)]),
            ("😀 @rondo_bot hi", true),
        ),
        (
            "@rondo_bot2 hi",
            json!([entity("mention", 0, 11)]),
            ("@rondo_bot2 hi", false),
        ),
        (
            "/stop@RONDO_bot now",
            json!([entity("bot_command", 0, 15)]),
            ("/stop now", true),
        ),
        (
            "/stop@other_bot",
            json!([entity("bot_command", 0, 15)]),
            ("", false),
        ),
        (
            "/stop",
            json!([entity("bot_command", 0, 5)]),
            ("/stop", false),
        ),
        (
            "@rondo_bot",
            json!([entity("mention", 60_000, 60_000)]),
            ("@rondo_bot", false),
        ),
        (
            "he @rondo_bot",
            json!([entity("code", 3, 10)]),
            ("he @rondo_bot", false),
        ),
    ] {
        let message = message(&json!({ "text": text, "entities": entities }));
        let (shown, is_meant) = addressed(&message, &me());
        assert_eq!((shown.as_str(), is_meant), expected, "{text}");
    }
    let user = json!({ "id": 42, "is_bot": true, "first_name": "R" });
    let named = json!({ "type": "text_mention", "offset": 0, "length": 1, "user": user });
    assert!(
        addressed(
            &message(&json!({ "text": "R hi", "entities": [named] })),
            &me()
        )
        .1
    );
    let mut replied = json!({ "message_id": 2, "date": 4, "chat": { "id": -7, "type": "group" } });
    replied["from"] = user;
    assert!(
        addressed(
            &message(&json!({ "text": "no", "reply_to_message": replied })),
            &me()
        )
        .1
    );
    let private = json!({ "text": "hi", "chat": { "id": 9, "type": "private" } });
    assert!(addressed(&message(&private), &me()).1);
}

#[test]
fn what_is_passed_on_is_told_from_what_its_sender_says() {
    let from = |id: u64| json!({ "id": id, "is_bot": false, "first_name": "X" });
    let replied = |author: u64| json!({ "message_id": 2, "date": 4, "chat": { "id": 9, "type": "private" }, "from": from(author), "text": "y" });
    let quote = json!({ "text": "y", "position": 0, "is_manual": true });
    let origin = json!({ "type": "hidden_user", "date": 4, "sender_user_name": "X" });
    for (fields, expected) in [
        (json!({ "text": "x" }), false),
        (json!({ "text": "x", "forward_origin": origin }), true),
        (
            json!({ "text": "x", "forward_origin": { "type": "from_the_future" } }),
            true,
        ),
        (
            json!({ "text": "x", "reply_to_message": replied(9) }),
            false,
        ),
        (
            json!({ "text": "x", "reply_to_message": replied(42), "quote": quote }),
            false,
        ),
        (json!({ "text": "x", "reply_to_message": replied(5) }), true),
        // What another chat's message says.
        (json!({ "text": "x", "quote": quote }), true),
    ] {
        let is_by_others = super::super::fetch::is_by_others(&message(&fields), me().id);
        assert_eq!(is_by_others, expected, "{fields}");
    }
}

#[test]
fn who_writes_as_a_chat_is_not_the_person_beside_it() {
    let ann = sender(&message(&json!({ "text": "x" }))).unwrap();
    assert_eq!((ann.id.as_str(), ann.name.as_str()), ("9", "Ann Lee"));
    let anonymous =
        json!({ "text": "x", "sender_chat": { "id": -7, "type": "group", "title": "G" } });
    assert_eq!(sender(&message(&anonymous)).unwrap().id, "-7");
}

#[test]
fn a_thread_is_a_topic_only_where_it_says_so() {
    assert_eq!(
        place(&message(&json!({ "message_thread_id": 5 }))).thread_id,
        None
    );
    let topic = json!({ "message_thread_id": 5, "is_topic_message": true });
    assert_eq!(place(&message(&topic)).thread_id, Some(5));
}

#[test]
fn an_update_that_is_not_understood_is_read_as_far_as_it_is() {
    let broken = message(&json!({ "text": "hi", "forward_origin": { "type": "from_the_future" } }));
    assert_eq!(broken.text.as_deref(), Some("hi"));
    assert_eq!(broken.is_automatic_forward, Some(true));
    for content in [
        json!({ "update_id": 5, "message": 7 }),
        json!({ "update_id": 5, "message": { "text": "x" } }),
        json!({ "update_id": 5, "callback_query": [] }),
        json!({ "update_id": 5, "poll": {} }),
    ] {
        let update = Update::read(&content.to_string()).unwrap();
        assert_eq!((update.id, update.chat_id()), (5, None), "{content}");
    }
    assert!(Update::read("{}").is_none());
}

#[test]
fn a_button_carries_its_answer() {
    let choice = |value: AnswerValue| Choice {
        label: "x".to_owned(),
        token: TOKEN.to_owned(),
        value,
    };
    let deny = |reason: &str| AnswerValue::Deny {
        reason: reason.to_owned(),
    };
    for value in [
        AnswerValue::Approve,
        deny(""),
        deny("not now"),
        AnswerValue::value(json!({ "a": 1 })),
    ] {
        let data = encoded(&choice(value.clone())).unwrap();
        assert!(data.len() <= DATA_BYTES_MAX);
        assert_eq!(decoded(&data), Some((TOKEN.to_owned(), value)));
    }
    let long = encoded(&choice(deny(&"é".repeat(50)))).unwrap();
    assert!((DATA_BYTES_MAX - 1..=DATA_BYTES_MAX).contains(&long.len()));
    let value = AnswerValue::value(json!("x".repeat(50)));
    assert_eq!(encoded(&choice(value)), None);
}

#[test]
fn forged_data_is_no_answer() {
    for data in [
        "",
        "y",
        "yshort",
        "x",
        "é",
        "yabcdefghijklmnopqrstu-",
        "yabcdefghijklmnopqrstuvx",
        "zabcdefghijklmnopqrstuv",
        "vabcdefghijklmnopqrstuv{",
        "nabcdefghijklmnopqrstué",
    ] {
        assert_eq!(decoded(data), None, "{data}");
    }
}
