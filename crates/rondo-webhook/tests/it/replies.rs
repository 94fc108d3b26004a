//! Replies to a program, and replies that it does not accept.

use crate::support::{now, signer, webhook};
use rondo_hub::channel::{Channel as _, ChatKey, OutboxKind, Outgoing, SendError};
use rondo_testkit::{Response, Server, refused_url};
use rondo_webhook::Signed;
use std::time::Duration;

fn reply(text: &str) -> Outgoing {
    Outgoing {
        key: "turn:1/final".to_owned(),
        chat: ChatKey {
            channel: "webhook".to_owned(),
            account: String::new(),
            chat_id: "ci".to_owned(),
            topic: Some("main".to_owned()),
        },
        kind: OutboxKind::Final,
        text: text.to_owned(),
        files: Vec::new(),
        choices: Vec::new(),
        reply_to: None,
        placeholder: None,
        attempts: 0,
    }
}

#[tokio::test]
async fn a_reply_is_signed_and_keeps_its_id() {
    let server = Server::start([Response::text(500, "no"), Response::text(204, "")]).await;
    let channel = webhook(&server.url("/in?x=1"));
    let failed = channel.send(&reply("fixed")).await;
    assert!(matches!(failed, Err(SendError::Retry { .. })), "{failed:?}");
    channel.send(&reply("fixed")).await.unwrap();
    let requests = server.requests();
    let ids: Vec<_> = requests
        .iter()
        .map(|it| it.header("webhook-id").unwrap())
        .collect();
    assert_eq!(ids[0], ids[1]);
    for request in &requests {
        let header = |name: &str| request.header(name).unwrap().to_owned();
        let signed = Signed {
            id: header("webhook-id"),
            timestamp: header("webhook-timestamp"),
            signature: header("webhook-signature"),
        };
        assert_eq!(signer().verify(&signed, now(), &request.body), Ok(()));
        assert_eq!(request.path, "/in?x=1");
        let expected = serde_json::json!({ "type": "final", "topic": "main", "text": "fixed" });
        assert_eq!(request.json(), expected);
    }
}

#[tokio::test]
async fn each_refusal_says_what_is_to_be_done() {
    for (response, expected) in [
        (Response::text(410, ""), "Gone"),
        (Response::text(404, ""), "Retry { after: None"),
        (
            Response::text(302, "").header("location", "http://127.0.0.1:1/"),
            "Retry { after: None",
        ),
    ] {
        let server = Server::start(response).await;
        let failed = webhook(&server.url("/"))
            .send(&reply("x"))
            .await
            .unwrap_err();
        let shown = format!("{failed:?}");
        assert!(shown.starts_with(expected), "{shown}");
    }
    let server = Server::start(Response::text(429, "").header("retry-after", "7")).await;
    let failed = webhook(&server.url("/")).send(&reply("x")).await;
    let wait = Some(Duration::from_secs(7));
    assert!(matches!(failed, Err(SendError::Retry { after, .. }) if after == wait));
    let nowhere = webhook(&refused_url().await).send(&reply("x")).await;
    assert!(
        matches!(nowhere, Err(SendError::Retry { .. })),
        "{nowhere:?}"
    );
    let mut other = reply("x");
    other.chat.chat_id = "gone".to_owned();
    let failed = webhook("http://127.0.0.1:1/").send(&other).await;
    assert!(
        matches!(failed, Err(SendError::Refused { .. })),
        "{failed:?}"
    );
}
