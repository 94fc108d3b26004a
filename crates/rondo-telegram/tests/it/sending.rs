//! Messages of the hub, as a person sees them.

use crate::support::{bot, message, question, telegram, telegram_with};
use rondo_hub::channel::{Channel as _, Outgoing, OutgoingFile, Progress, Receipt, SendError};
use rondo_telegram::{Streaming, TelegramSettings};
use rondo_testkit::telegram::Fault;
use std::time::Duration;

#[tokio::test]
async fn an_answer_is_shown_with_its_formatting_and_without_previews() {
    let (server, api) = bot().await;
    let sent = message("7", "**Hello** 😀 [you](https://x.example/)");
    let receipt = telegram(&api).send(&sent).await.unwrap();
    let seen = server.seen(7).remove(0);
    assert_eq!(seen.text, "Hello 😀 you");
    assert_eq!(seen.covered("bold"), ["Hello"]);
    assert_eq!(seen.covered("text_link"), ["you"]);
    assert!(!seen.has_preview);
    assert_eq!(receipt, Receipt(seen.message_id.to_string()));
    assert_eq!(server.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn a_placeholder_becomes_the_answer_however_often_it_is_sent() {
    let (server, api) = bot().await;
    let settings = TelegramSettings {
        streaming: Streaming::Edits,
        ..TelegramSettings::default()
    };
    let telegram = telegram_with(&api, settings);
    let chat = message("7", "").chat;
    let draft = |text: &str, placeholder| Progress::Draft {
        text: text.to_owned(),
        placeholder,
    };
    let placeholder = telegram.progress(&chat, draft("Hel", None)).await;
    assert!(placeholder.is_some());
    let again = telegram
        .progress(&chat, draft("Hello", placeholder.clone()))
        .await;
    assert_eq!(again, placeholder, "left out by the pace");
    let answer = Outgoing {
        placeholder: placeholder.clone(),
        ..message("7", "Hello!")
    };
    for _ in 0..3 {
        assert_eq!(telegram.send(&answer).await.ok(), placeholder);
    }
    let seen = server.seen(7);
    assert_eq!((seen.len(), seen[0].text.as_str()), (1, "Hello!"));
    assert_eq!(seen[0].before, ["Hel \u{2026}"]);

    server.fail(
        "editMessageText",
        Fault::Refused(400, "Bad Request: message to edit not found".to_owned()),
    );
    let second = Outgoing {
        key: "k2".to_owned(),
        ..answer
    };
    telegram.send(&second).await.unwrap();
    assert_eq!(
        server.texts(7),
        ["Hello!", "Hello!"],
        "what cannot be edited is sent"
    );
    assert_eq!(server.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn a_private_chat_shows_drafts_that_nobody_has_to_delete() {
    let (server, api) = bot().await;
    let telegram = telegram(&api);
    let chat = message("7", "").chat;
    let draft = Progress::Draft {
        text: "Hel".to_owned(),
        placeholder: None,
    };
    assert_eq!(telegram.progress(&chat, Progress::Typing).await, None);
    assert_eq!(telegram.progress(&chat, draft).await, None);
    assert_eq!(server.actions(), [(7, "typing".to_owned())]);
    let drafts = server.drafts();
    assert_eq!((drafts.len(), drafts[0].text.as_str()), (1, "Hel \u{2026}"));
    telegram.progress(&chat, Progress::Idle).await;
    assert_eq!(server.texts(7), Vec::<String>::new());
    assert_eq!(server.violations(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_long_answer_is_several_messages_and_a_failure_repeats_none_of_them() {
    let (server, api) = bot().await;
    let telegram = telegram(&api);
    let long = message(
        "7",
        &format!("{}\n\n{}\n\nend", "a".repeat(4000), "b".repeat(4000)),
    );
    server.fail("sendMessage", Fault::Refused(429, "x".to_owned()));
    assert!(matches!(
        telegram.send(&long).await,
        Err(SendError::Retry { .. })
    ));
    telegram.send(&long).await.unwrap();
    let lengths: Vec<usize> = server.texts(7).iter().map(String::len).collect();
    assert_eq!(lengths, [4000, 4005]);

    let (server, api) = bot().await;
    let telegram = crate::support::telegram(&api);
    server.fail(
        "sendMessage",
        Fault::Answer(serde_json::json!({ "ok": true, "result": { "message_id": 5 } })),
    );
    server.fail("sendMessage", Fault::TooMany(3));
    let failed = telegram.send(&long).await;
    let after = Some(Duration::from_secs(3));
    assert!(matches!(failed, Err(SendError::Retry { after: wait, .. }) if wait == after));
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(telegram.send(&long).await, Ok(Receipt("5".to_owned())));
    assert_eq!(server.seen(7).len(), 1, "the first was sent before");
}

#[tokio::test]
async fn what_is_longer_than_messages_should_be_is_a_file() {
    let (server, api) = bot().await;
    let text = "word ".repeat(10_000);
    telegram(&api).send(&message("7", &text)).await.unwrap();
    let seen = server.seen(7);
    assert_eq!(seen.len(), 2);
    assert!(seen[0].text.ends_with("(Continued in the file below.)"));
    let file = seen[1].file.clone().unwrap();
    assert_eq!(
        (file.name.as_str(), &file.bytes[..]),
        ("answer.md", text.as_bytes())
    );
    assert_eq!(server.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn a_text_falls_from_form_to_form_until_one_is_taken() {
    let (server, api) = bot().await;
    let settings = TelegramSettings {
        rich: true,
        ..TelegramSettings::default()
    };
    let telegram = telegram_with(&api, settings);
    let text = "# T\n\n| a |\n|---|\n| **b** |\n\n![x](https://evil.example/?q=secret)";
    telegram.send(&message("7", text)).await.unwrap();
    let rich = server.seen(7).remove(0).rich.unwrap();
    assert!(rich.contains("| a |") && !rich.contains("!["), "{rich}");

    let bad = |text: &str| Fault::Refused(400, format!("Bad Request: {text}"));
    server.fail(
        "sendRichMessage",
        bad("can't parse rich message: RICH_INVALID"),
    );
    telegram.send(&message("8", text)).await.unwrap();
    assert_eq!(server.seen(8)[0].covered("bold"), ["T"]);

    server.fail("sendRichMessage", bad("can't parse rich message"));
    server.fail("sendMessage", bad("can't parse entities"));
    telegram.send(&message("9", "**b**")).await.unwrap();
    let seen = server.seen(9).remove(0);
    assert_eq!((seen.text.as_str(), seen.entities.len()), ("b", 0));
    assert_eq!(server.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn a_topic_that_is_gone_leaves_its_chat() {
    let (server, api) = bot().await;
    let mut sent = message("-80", "hello");
    sent.chat.topic = Some("5".to_owned());
    sent.reply_to = Some("3".to_owned());
    let telegram = telegram(&api);
    telegram.send(&sent).await.unwrap();
    server.lose_thread(5);
    let again = Outgoing {
        key: "k2".to_owned(),
        ..sent
    };
    telegram.send(&again).await.unwrap();
    let threads: Vec<_> = server
        .seen(-80)
        .iter()
        .map(|it| (it.thread_id, it.reply_to))
        .collect();
    assert_eq!(threads, [(Some(5), Some(3)), (None, Some(3))]);
}

#[tokio::test]
async fn files_are_sent_and_those_that_are_not_are_named() {
    let (server, api) = bot().await;
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().canonicalize().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(dir.join(name), bytes).unwrap();
        OutgoingFile {
            name: name.to_owned(),
            path: dir.join(name),
        }
    };
    let png = [&b"\x89PNG\r\n\x1a\n"[..], &[0; 50]].concat();
    let picture = write("a.png", &png);
    let odd = write("odd.png", &png);
    let notes = write("notes.txt", b"hi");
    std::os::unix::fs::symlink("/etc/passwd", dir.join("link")).unwrap();
    let link = OutgoingFile {
        name: "link".to_owned(),
        path: dir.join("link"),
    };
    let gone = OutgoingFile {
        name: "gone".to_owned(),
        path: dir.join("gone"),
    };
    let telegram = telegram(&api);
    let send = |chat: &str, files: Vec<OutgoingFile>| {
        let sent = Outgoing {
            files,
            key: format!("k{chat}"),
            ..message(chat, "")
        };
        let telegram = telegram.clone();
        async move { telegram.send(&sent).await.unwrap() }
    };
    send("1", vec![picture]).await;
    server.fail(
        "sendPhoto",
        Fault::Refused(400, "Bad Request: PHOTO_INVALID_DIMENSIONS".to_owned()),
    );
    send("2", vec![odd]).await;
    send("3", vec![notes]).await;
    send("4", vec![link]).await;
    send("5", vec![gone]).await;
    let shown = |chat: i64| {
        let seen = server.seen(chat).remove(0);
        (seen.is_photo, seen.file.map(|it| it.name), seen.text)
    };
    assert_eq!(shown(1), (true, Some("a.png".to_owned()), String::new()));
    assert_eq!(shown(2), (false, Some("odd.png".to_owned()), String::new()));
    assert_eq!(
        shown(3),
        (false, Some("notes.txt".to_owned()), String::new())
    );
    assert_eq!(
        shown(4).2,
        "The file `link` was not sent: it no longer exists."
    );
    assert_eq!(
        shown(5).2,
        "The file `gone` was not sent: it no longer exists."
    );
    assert_eq!(server.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn each_failure_says_what_is_to_be_done_with_the_message() {
    let (server, api) = bot().await;
    let telegram = telegram(&api);
    let forbidden = Fault::Refused(403, "Forbidden: bot was blocked by the user".to_owned());
    let missing = Fault::Refused(400, "Bad Request: chat not found".to_owned());
    let odd = Fault::Refused(400, "Bad Request: not enough rights".to_owned());
    let unknown = Fault::Refused(401, "Unauthorized".to_owned());
    for (chat, fault, expected) in [
        ("1", Fault::TooMany(3_600), "Retry"),
        ("2", forbidden, "Gone"),
        ("3", missing, "Gone"),
        ("4", odd, "Refused"),
        ("5", unknown, "Retry"),
        ("6", Fault::Migrated(-1009), "Migrated { to: \"-1009\" }"),
        ("7", Fault::ResetAfter, "Ambiguous"),
        ("8", Fault::ResetBefore, "Ambiguous"),
        ("9", Fault::Gateway(502), "Ambiguous"),
    ] {
        server.fail("sendMessage", fault.clone());
        let failed = telegram.send(&message(chat, "x")).await.unwrap_err();
        let shown = format!("{failed:?}");
        assert!(shown.starts_with(expected), "{fault:?}: {shown}");
        assert!(!shown.contains("AAfake"), "{shown}");
    }
    let held = telegram.send(&message("1", "y")).await;
    let wait = Duration::from_secs(3_500);
    assert!(matches!(held, Err(SendError::Retry { after: Some(after), .. }) if after > wait));
    telegram.send(&message("2", "y")).await.unwrap();
    assert!(telegram.send(&message("x", "y")).await.is_err());
    assert!(telegram.send(&message("7", " ")).await.is_err());
}

#[tokio::test]
async fn a_question_has_buttons_below_its_last_part() {
    let (server, api) = bot().await;
    telegram(&api).send(&question("7")).await.unwrap();
    let labels: Vec<String> = server.seen(7)[0]
        .buttons
        .iter()
        .map(|it| it.0.clone())
        .collect();
    assert_eq!(labels, ["Allow", "Deny"]);
    assert_eq!(server.violations(), Vec::<String>::new());
}
