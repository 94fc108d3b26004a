//! Requests, answers, and what is said if they fail.

use crate::support::{TOKEN, api, bot};
use bytes::Bytes;
use rondo_telegram::{ApiError, Form};
use rondo_testkit::refused_url;
use rondo_testkit::telegram::Fault;
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::test]
async fn a_method_is_called_and_its_result_read() {
    let (server, api) = bot().await;
    let me: Value = api.call("getMe", &json!({})).await.unwrap();
    assert_eq!(me["username"], "rondo_test_bot");
    let sent = json!({ "chat_id": 7, "text": "hello" });
    let message: Value = api.call("sendMessage", &sent).await.unwrap();
    assert_eq!(message["chat"]["id"], 7);
    assert_eq!(server.texts(7), ["hello"]);
    assert_eq!(server.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn the_server_refuses_what_the_api_does_not_describe() {
    let (server, api) = bot().await;
    let button =
        |data: &str| json!({ "inline_keyboard": [[{ "text": "x", "callback_data": data }]] });
    for (method, parameters) in [
        ("sendMessage", json!({ "chat_id": 7 })),
        ("sendMessage", json!({ "chat_id": 7, "text": 5 })),
        (
            "sendMessage",
            json!({ "chat_id": 7, "text": "x", "colour": "red" }),
        ),
        (
            "sendMessage",
            json!({ "chat_id": 7, "text": "x", "entities": [{ "type": "bold" }] }),
        ),
        ("sendMessage", json!({ "chat_id": [7], "text": "x" })),
        (
            "sendPhoto",
            json!({ "chat_id": 7, "photo": "attach://none", "caption": 5 }),
        ),
        ("sendNothing", json!({})),
        (
            "sendMessage",
            json!({ "chat_id": 7, "text": "x", "reply_markup": button("") , "reply_parameters": {}}),
        ),
    ] {
        let refused = api.call::<Value>(method, &parameters).await.unwrap_err();
        assert_eq!(refused.code(), Some(400), "{method} {parameters}");
    }
    assert_eq!(server.violations().len(), 8);
    for parameters in [
        json!({ "chat_id": 7, "text": "x".repeat(4097) }),
        json!({ "chat_id": 7, "text": "😀", "entities": [{ "type": "bold", "offset": 1, "length": 1 }] }),
        json!({ "chat_id": 7, "text": "x", "reply_markup": button(&"y".repeat(65)) }),
        json!({ "chat_id": 7, "text": " " }),
    ] {
        let refused = api.call::<Value>("sendMessage", &parameters).await;
        assert_eq!(refused.unwrap_err().code(), Some(400), "{parameters}");
    }
    assert_eq!(server.texts(7), Vec::<String>::new());
}

#[tokio::test]
async fn a_file_is_uploaded_and_another_downloaded() {
    let (server, api) = bot().await;
    let form = Form::default()
        .field("chat_id", "7")
        .field("caption", "see")
        .file("document", "a.txt", Bytes::from_static(b"\r\n--x\0"));
    api.upload::<Value>("sendDocument", form).await.unwrap();
    let seen = server.seen(7).pop().unwrap();
    assert_eq!((seen.text.as_str(), seen.is_photo), ("see", false));
    let file = seen.file.unwrap();
    assert_eq!(
        (file.name.as_str(), &file.bytes[..]),
        ("a.txt", &b"\r\n--x\0"[..])
    );

    server.add_file("f1", vec![7; 1000]);
    let found: Value = api
        .call("getFile", &json!({ "file_id": "f1" }))
        .await
        .unwrap();
    let path = found["file_path"].as_str().unwrap();
    assert_eq!(api.download(path, 1000).await.unwrap(), vec![7; 1000]);
    let large = api.download(path, 999).await.unwrap_err();
    assert!(matches!(large, ApiError::TooLarge { max: 999, .. }));
    for path in ["../../etc/passwd", "a b", "x?y", "@evil"] {
        let refused = api.download(path, 10).await.unwrap_err();
        assert!(matches!(refused, ApiError::Unsent { .. }), "{path}");
    }
    assert_eq!(server.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn an_error_says_whether_the_request_may_have_been_carried_out() {
    let (server, api) = bot().await;
    for (fault, is_known) in [
        (Fault::TooMany(7), true),
        (Fault::Migrated(-1009), true),
        (
            Fault::Refused(403, "Forbidden: bot was blocked by the user".to_owned()),
            true,
        ),
        (Fault::Gateway(502), false),
        (Fault::ResetBefore, false),
        (Fault::ResetAfter, false),
        (Fault::Answer(json!({ "ok": true })), false),
        (Fault::Answer(json!([])), false),
    ] {
        server.fail("sendMessage", fault.clone());
        let sent = json!({ "chat_id": 7, "text": "hello" });
        let failed = api.call::<Value>("sendMessage", &sent).await.unwrap_err();
        assert_eq!(failed.code().is_some(), is_known, "{fault:?}: {failed}");
    }
    assert_eq!(server.texts(7), ["hello"], "one had landed");
    let (server, api) = bot().await;
    server.fail("sendMessage", Fault::TooMany(7));
    let sent = json!({ "chat_id": 7, "text": "hello" });
    let failed = api.call::<Value>("sendMessage", &sent).await.unwrap_err();
    assert_eq!(failed.retry_after(), Some(Duration::from_secs(7)));
}

#[tokio::test]
async fn a_server_that_is_not_there_got_nothing() {
    let api = api(&refused_url().await);
    let failed = api.call::<Value>("getMe", &json!({})).await.unwrap_err();
    assert!(matches!(failed, ApiError::Unsent { .. }), "{failed}");
}

#[tokio::test]
async fn the_token_is_in_no_error_whatever_the_server_echoes() {
    let (server, api) = bot().await;
    let echoed = format!(
        "Bad Request: /bot{TOKEN}/sendMessage \u{1b}[31m{}",
        &TOKEN[11..]
    );
    let mut said = vec![format!("{api:?}")];
    for fault in [
        Fault::Refused(400, echoed.clone()),
        Fault::Answer(json!({ "ok": false, "description": echoed, "error_code": 400 })),
        Fault::Answer(json!({ "ok": true, "result": echoed })),
        Fault::ResetBefore,
    ] {
        server.fail("getMe", fault);
        let failed = api.call::<u64>("getMe", &json!({})).await.unwrap_err();
        said.push(format!("{failed} {failed:?}"));
    }
    let unreachable = crate::support::api(&refused_url().await);
    let failed = unreachable
        .call::<u64>("getMe", &json!({}))
        .await
        .unwrap_err();
    said.push(format!("{failed} {failed:?}"));
    for text in said {
        assert!(!text.contains("AAfake"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}

#[tokio::test]
async fn updates_are_confirmed_by_asking_for_later_ones() {
    use rondo_testkit::telegram::Place;
    let (server, api) = bot().await;
    let first = server.say(Place::Private(7), 7, "one");
    server.say(Place::Private(7), 7, "two");
    let poll = |offset: i64, timeout: u32| {
        let parameters = json!({ "offset": offset, "timeout": timeout });
        let api = api.clone();
        async move { api.call::<Vec<Value>>("getUpdates", &parameters).await }
    };
    assert_eq!(poll(0, 0).await.unwrap().len(), 2);
    assert_eq!(poll(0, 0).await.unwrap().len(), 2, "nothing is confirmed");
    let rest = poll(first + 1, 0).await.unwrap();
    assert_eq!(rest[0]["message"]["text"], "two");
    assert_eq!(server.unconfirmed(), 1);
    let waiting = tokio::spawn(poll(first + 2, 30));
    server.until(|it| it.unconfirmed() == 0).await;
    server.say(Place::Private(7), 7, "three");
    assert_eq!(
        waiting.await.unwrap().unwrap().len(),
        0,
        "the poll is woken"
    );
    assert_eq!(poll(first + 2, 30).await.unwrap().len(), 1);
    server.set_webhook("https://elsewhere.example/");
    let refused = poll(first + 2, 0).await.unwrap_err();
    assert_eq!(refused.code(), Some(409));
}
