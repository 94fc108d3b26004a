//! Events that the hub gets from messages of people.

use crate::support::{Hub, bot, telegram};
use rondo_hub::channel::{Channel as _, ChannelError, ChatKind, InboundBody};
use rondo_hub::inbox::{InboxError, InboxResult};
use rondo_testkit::telegram::{BOT_NAME, Fault, Place};
use rondo_types::AnswerValue;
use serde_json::json;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn messages_are_handed_in_with_who_wrote_them_and_where_and_then_confirmed() {
    let (server, api) = bot().await;
    let (hub, running) = Hub::receiving(telegram(&api));
    server.say(Place::Private(7), 7, "hello");
    server.say(Place::Group(-70), 8, "chatter");
    server.say(Place::Topic(-80, 5), 9, &format!("@{BOT_NAME} what is up?"));
    server.say(Place::Private(7), 7, "/stop now");
    let events = hub.events(4).await;
    let find = |text: &str| {
        let found = events.iter().find(|it| text_of(&it.body) == text);
        found
            .unwrap_or_else(|| panic!("{text} in {events:?}"))
            .clone()
    };
    let hello = find("hello");
    assert_eq!((hello.chat.chat_id.as_str(), hello.chat.topic), ("7", None));
    assert_eq!(
        (hello.sender.id.as_str(), hello.sender.name.as_str()),
        ("7", "Person 7")
    );
    assert_eq!(
        (hello.chat_kind, hello.mentioned),
        (ChatKind::Private, true)
    );
    assert_eq!(hello.message_id.as_deref(), Some("1"));
    assert_eq!(
        (find("chatter").chat_kind, find("chatter").mentioned),
        (ChatKind::Group, false)
    );
    let asked = find("what is up?");
    assert_eq!(
        (asked.chat.topic.as_deref(), asked.mentioned),
        (Some("5"), true)
    );
    assert!(find("/stop now").mentioned);
    server.until(|it| it.unconfirmed() == 0).await;
    running.stopped().await;
    assert_eq!(server.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn what_could_not_be_taken_is_not_confirmed_and_comes_again() {
    let (server, api) = bot().await;
    let (hub, running) = Hub::receiving(telegram(&api));
    let later = || InboxError::Later {
        reason: "the disk is full".to_owned(),
    };
    hub.refuse("7", vec![later()]);
    let first = server.say(Place::Private(7), 7, "one");
    server.say(Place::Private(7), 7, "two");
    server.say(Place::Private(8), 8, "other");
    let events = hub.events(3).await;
    let texts: Vec<&str> = events.iter().map(|it| text_of(&it.body)).collect();
    assert_eq!(texts[0], "other", "another chat goes on");
    assert_eq!(texts[1..], ["one", "two"]);
    assert!(events[1].event_id.starts_with(&format!("{first}-")));
    server.until(|it| it.unconfirmed() == 0).await;
    running.stopped().await;
}

#[tokio::test]
async fn a_bot_whose_updates_a_webhook_takes_is_not_set_up() {
    let (server, api) = bot().await;
    server.set_webhook("https://elsewhere.example/");
    let telegram = telegram(&api);
    let ended = telegram.receive(Hub::default().inbox(), CancellationToken::new());
    let error = ended.await.expect_err("there is a webhook");
    assert!(matches!(error, ChannelError::Setup { .. }), "{error:?}");
    assert!(error.to_string().contains("a webhook is set"), "{error}");
}

#[tokio::test]
async fn a_conflict_that_lasts_is_told_to_the_hub_until_it_is_over() {
    let (server, api) = bot().await;
    let conflict = "Conflict: terminated by other getUpdates request";
    for _ in 0..4 {
        server.fail("getUpdates", Fault::Refused(409, conflict.to_owned()));
    }
    let (hub, running) = Hub::receiving(telegram(&api));
    hub.told(2).await;
    server.say(Place::Private(7), 7, "hello");
    let told = hub.told(3).await;
    assert!(
        told[0].contains("another program receives with the same token"),
        "{told:?}"
    );
    assert_eq!(told[2], "receives");
    running.stopped().await;
}

#[tokio::test]
async fn what_was_sent_together_is_one_message() {
    let (server, api) = bot().await;
    let (hub, running) = Hub::receiving(telegram(&api));
    // A text that the sender's program cut.
    let (first, second) = ("x".repeat(4096), "yz");
    server.say(Place::Private(7), 7, &first);
    server.say(Place::Private(7), 7, second);
    // Pictures and documents that were chosen at once, and another person's words between the parts of an album.
    let part = |album: &str, kind: &str, id: &str| {
        let file = json!({ "file_id": id, "file_unique_id": id, "width": 1, "height": 1 });
        let file = if kind == "photo" { json!([file]) } else { file };
        json!({ "media_group_id": album, kind: file })
    };
    for id in ["p1", "p2", "d1"] {
        server.add_file(id, b"text".to_vec());
    }
    server.write(Place::Group(-70), 8, &part("a", "photo", "p1"));
    server.say(Place::Group(-70), 9, "chatter");
    server.write(Place::Group(-70), 8, &part("a", "photo", "p2"));
    server.write(Place::Group(-70), 8, &part("b", "document", "d1"));
    let events = hub.events(3).await;
    let of = |sender: &str| {
        let of = events.iter().filter(|it| it.sender.id == sender);
        of.collect::<Vec<_>>()
    };
    let pasted = of("7");
    assert_eq!(text_of(&pasted[0].body), format!("{first}{second}"));
    let sent = of("8");
    let InboundBody::Message { files, .. } = &sent[0].body else {
        panic!("{sent:?}");
    };
    assert_eq!((sent.len(), files.len()), (1, 3), "{sent:?}");
    server.until(|it| it.unconfirmed() == 0).await;
    running.stopped().await;
}

#[tokio::test]
async fn a_forwarded_message_says_whose_it_is_and_is_no_command_and_a_dice_is_answered() {
    let (server, api) = bot().await;
    let (hub, running) = Hub::receiving(telegram(&api));
    let origin = json!({ "type": "hidden_user", "date": 1, "sender_user_name": "Eve [x]\n" });
    let forwarded = json!({ "text": "/new", "forward_origin": origin });
    server.write(Place::Private(7), 7, &forwarded);
    let dice = json!({ "dice": { "emoji": "\u{1f3b2}", "value": 4 } });
    server.write(Place::Private(8), 8, &dice);
    let events = hub.events(2).await;
    let of = |sender: &str| events.iter().find(|it| it.sender.id == sender).cloned();
    let said = of("7").expect("it was handed in").body;
    assert_eq!(text_of(&said), "[forwarded from Eve 'x']\n/new");
    match of("8").expect("it was handed in").body {
        InboundBody::Message { notes, .. } => {
            assert!(notes[0].contains("cannot read"), "{notes:?}")
        }
        other => panic!("{other:?}"),
    }
    running.stopped().await;
}

#[tokio::test]
async fn a_command_in_reply_to_another_bot_is_none_of_ours() {
    let (server, api) = bot().await;
    let (hub, running) = Hub::receiving(telegram(&api));
    let reply_to = |author: serde_json::Value| {
        let replied = json!({
            "message_id": 3, "date": 1, "chat": { "id": -70, "type": "group", "title": "g" },
            "from": author, "text": "Play?",
        });
        json!({
            "text": "/new", "reply_to_message": replied,
            "entities": [{ "type": "bot_command", "offset": 0, "length": 4 }],
        })
    };
    let other = json!({ "id": 99, "is_bot": true, "first_name": "Game" });
    let person = json!({ "id": 8, "is_bot": false, "first_name": "Bob" });
    server.write(Place::Group(-70), 7, &reply_to(other));
    server.write(Place::Group(-70), 7, &reply_to(person));
    let events = hub.events(2).await;
    let texts: Vec<&str> = events.iter().map(|it| text_of(&it.body)).collect();
    assert!(
        !texts[0].contains("/new") && !events[0].mentioned,
        "{events:?}"
    );
    assert!(texts[1].ends_with("/new"), "{texts:?}");
    running.stopped().await;
}

#[tokio::test]
async fn a_message_that_has_no_place_in_its_chat_is_answered_with_that() {
    let (server, api) = bot().await;
    let (hub, running) = Hub::receiving(telegram(&api));
    hub.refuse("7", vec![InboxError::Full]);
    server.say(Place::Private(7), 7, "one");
    let seen = server.shown(7, 1).await;
    assert!(seen[0].text.contains("not accepted"), "{}", seen[0].text);
    server.until(|it| it.unconfirmed() == 0).await;
    running.stopped().await;
}

#[tokio::test]
async fn an_album_is_one_message_and_says_what_it_lacks() {
    let (server, api) = bot().await;
    let (hub, running) = Hub::receiving(telegram(&api));
    let png = [&b"\x89PNG\r\n\x1a\n"[..], &[0; 50]].concat();
    server.add_file("p1", png.clone());
    server.add_file("p3", vec![1; 10]);
    let photo = |id: &str, text: &str| {
        json!({
            "media_group_id": "a", "caption": text,
            "photo": [{ "file_id": id, "file_unique_id": id, "width": 9, "height": 9 }],
        })
    };
    server.write(Place::Private(7), 7, &photo("p1", "look"));
    server.write(Place::Private(7), 7, &photo("p2", ""));
    server.write(Place::Private(7), 7, &photo("p3", ""));
    let event = hub.events(1).await.remove(0);
    let InboundBody::Message {
        text,
        images,
        files,
        notes,
        by_others: _,
    } = event.body
    else {
        panic!("{event:?}");
    };
    assert_eq!(text, "look");
    assert_eq!((images.len(), images[0].mime.as_str()), (1, "image/png"));
    assert_eq!(
        (files.len(), files[0].bytes.len()),
        (1, 10),
        "its bytes are no picture's"
    );
    assert_eq!(
        notes,
        ["The file `photo.jpg` was not accepted: Telegram did not hand it out."]
    );
    server.until(|it| it.unconfirmed() == 0).await;
    running.stopped().await;
    assert_eq!(server.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn nothing_is_fetched_for_strangers() {
    let (server, api) = bot().await;
    let (hub, running) = Hub::receiving(telegram(&api));
    hub.admit_only(&["7"]);
    server.add_file("f", vec![1; 10]);
    let document =
        json!({ "document": { "file_id": "f", "file_unique_id": "f", "file_name": "a.txt" } });
    server.write(Place::Private(8), 8, &document);
    server.write(Place::Private(7), 7, &document);
    let events = hub.events(2).await;
    for event in events {
        let InboundBody::Message { files, .. } = event.body else {
            panic!("{event:?}");
        };
        assert_eq!(files.len(), usize::from(event.sender.id == "7"));
    }
    server.until(|it| it.unconfirmed() == 0).await;
    running.stopped().await;
    let fetched = server.requests();
    let fetched = fetched.iter().filter(|it| it.path.ends_with("/getFile"));
    assert_eq!(fetched.count(), 1);
}

#[tokio::test]
async fn a_voice_message_is_refused_politely_and_a_file_that_is_too_large_named() {
    let (server, api) = bot().await;
    let (hub, running) = Hub::receiving(telegram(&api));
    let file = |size: u64| json!({ "file_id": "v", "file_unique_id": "v", "duration": 1, "file_size": size });
    server.write(Place::Private(7), 7, &json!({ "voice": file(5) }));
    let mut large = file(21 << 20);
    large["file_name"] = json!("big.iso");
    server.write(Place::Private(7), 7, &json!({ "document": large }));
    server.write(Place::Private(7), 7, &json!({ "pinned_message": { "message_id": 1, "date": 0, "chat": { "id": 7, "type": "private" } } }));
    let events = hub.events(2).await;
    let notes = |at: usize| match &events[at].body {
        InboundBody::Message { notes, .. } => notes.concat(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        notes(0),
        "I cannot listen to voice messages. Please write it instead."
    );
    assert_eq!(
        notes(1),
        "The file `big.iso` was not accepted: bots get files of at most 20 MB."
    );
    server.until(|it| it.unconfirmed() == 0).await;
    running.stopped().await;
}

#[tokio::test]
async fn a_group_is_told_what_is_hidden_from_the_bot() {
    let (server, api) = bot().await;
    let (hub, running) = Hub::receiving(telegram(&api));
    let bot = json!([{ "id": rondo_testkit::telegram::BOT_ID, "is_bot": true, "first_name": "R" }]);
    server.write(Place::Group(-70), 8, &json!({ "new_chat_members": bot }));
    server.write(
        Place::Group(-70),
        8,
        &json!({ "migrate_to_chat_id": -1_007 }),
    );
    let events = hub.events(2).await;
    assert!(
        format!("{:?}", events[0].body).contains("Privacy mode is on"),
        "{events:?}"
    );
    let migrated = InboundBody::Migrated {
        chat_id: "-1007".to_owned(),
    };
    assert_eq!(events[1].body, migrated);
    running.stopped().await;
}

#[tokio::test]
async fn a_reply_carries_what_it_answers() {
    let (server, api) = bot().await;
    let (hub, running) = Hub::receiving(telegram(&api));
    let replied = json!({
        "message_id": 1, "date": 0, "text": "two\nlines", "chat": { "id": -70, "type": "group" },
        "from": { "id": 9, "is_bot": false, "first_name": "N" },
    });
    let said = format!("@{BOT_NAME} true?");
    let mention = json!([{ "type": "mention", "offset": 0, "length": BOT_NAME.len() + 1 }]);
    let content = json!({ "text": said, "entities": mention, "reply_to_message": replied });
    server.write(Place::Group(-70), 8, &content);
    let events = hub.events(1).await;
    assert_eq!(text_of(&events[0].body), "> two\n> lines\n\ntrue?");
    running.stopped().await;
}

#[tokio::test]
async fn failures_of_the_line_are_waited_out_and_a_wrong_token_is_not() {
    let (server, api) = bot().await;
    server.fail("getMe", Fault::Gateway(502));
    server.fail("getUpdates", Fault::ResetAfter);
    server.fail(
        "getUpdates",
        Fault::Answer(json!({ "ok": true, "result": [{ "update_id": "x" }, 5] })),
    );
    let (hub, running) = Hub::receiving(telegram(&api));
    server.say(Place::Private(7), 7, "hello");
    let events = hub.events(1).await;
    assert_eq!(text_of(&events[0].body), "hello");
    running.stopped().await;

    server.fail("getMe", Fault::Refused(401, "Unauthorized".to_owned()));
    let (inbox, stop) = (Hub::default().inbox(), CancellationToken::new());
    let failed = telegram(&api).receive(inbox, stop).await.unwrap_err();
    assert!(failed.to_string().contains("@BotFather"), "{failed}");
}

#[tokio::test]
async fn a_pressed_button_is_an_answer_and_then_goes() {
    let (server, api) = bot().await;
    let telegram = telegram(&api);
    let (hub, running) = Hub::receiving(telegram.clone());
    telegram.send(&crate::support::question("7")).await.unwrap();
    let shown = server.seen(7).remove(0);
    assert_eq!(shown.buttons.len(), 2);
    server.press(&shown, 7, "Deny");
    let event = hub.events(1).await.remove(0);
    let token = crate::support::QUESTION.to_owned();
    let value = AnswerValue::Deny {
        reason: "no".to_owned(),
    };
    assert_eq!(event.body, InboundBody::Answer { token, value });
    assert!(event.event_id.starts_with("press-"));
    server.until(|it| it.seen(7)[0].buttons.is_empty()).await;
    assert_eq!(server.pressed()[0].1, None);

    hub.decide(InboxResult::Dropped);
    server.press(&shown, 99, "Allow");
    server.until(|it| it.pressed().len() == 2).await;
    assert_eq!(
        server.pressed()[1].1.as_deref(),
        Some("You may not answer this.")
    );
    server.until(|it| it.unconfirmed() == 0).await;
    running.stopped().await;
    assert_eq!(server.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn stopping_ends_a_poll_at_once() {
    let (server, api) = bot().await;
    let (_hub, running) = Hub::receiving(telegram(&api));
    server
        .until(|it| {
            it.requests()
                .iter()
                .any(|it| it.path.ends_with("getUpdates"))
        })
        .await;
    tokio::time::timeout(Duration::from_secs(5), running.stopped())
        .await
        .unwrap();
}

fn text_of(body: &InboundBody) -> &str {
    match body {
        InboundBody::Message { text, .. } => text,
        _ => "",
    }
}
