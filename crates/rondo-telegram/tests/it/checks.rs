//! Why a bot is silent.

use crate::support::{TOKEN, bot};
use rondo_telegram::{Finding, check};
use rondo_testkit::refused_url;
use rondo_testkit::telegram::{Fault, Place};

fn said(found: &[Finding]) -> String {
    let lines = found
        .iter()
        .map(|it| format!("{:?} {}\n", it.is_good, it.text));
    lines.collect()
}

#[tokio::test]
async fn a_bot_that_works_is_said_to_and_no_update_is_taken() {
    let (server, api) = bot().await;
    server.say(Place::Private(7), 7, "hello");
    let found = check(&api).await;
    let said = said(&found);
    assert!(found.iter().all(|it| it.is_good != Some(false)), "{said}");
    for part in [
        "@rondo_test_bot",
        "1 message is waiting",
        "privacy mode is on",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(server.unconfirmed(), 1);
    assert_eq!(server.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn what_keeps_a_bot_silent_is_named() {
    let (server, api) = bot().await;
    server.set_webhook("https://elsewhere.example/");
    assert!(said(&check(&api).await).contains("Some(false) a webhook is set"));
    let (server, api) = bot().await;
    let other = "Conflict: terminated by other getUpdates request".to_owned();
    server.fail("getUpdates", Fault::Refused(409, other));
    assert!(said(&check(&api).await).contains("another program receives"));
    server.fail("getMe", Fault::Refused(401, "Unauthorized".to_owned()));
    assert!(said(&check(&api).await).contains("Some(false) Telegram does not know the token"));
    let nowhere = crate::support::api(&refused_url().await);
    let said = said(&check(&nowhere).await);
    assert!(
        said.contains("no connection") && !said.contains(&TOKEN[11..]),
        "{said}"
    );
}
