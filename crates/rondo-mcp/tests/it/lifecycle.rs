//! Both lifecycles of the protocol, and how servers come and go.

use crate::scripted::*;
use rondo_mcp::{Era, PinStore, Servers};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn a_server_of_each_lifecycle_is_listed_and_called() {
    for (speaks, era) in [
        (Speaks::Initialize, Era::Initialize),
        (Speaks::Discover, Era::Discover),
    ] {
        let (servers, scripts, notes) = one(server(speaks, json!([tool("t")]), echo)).await;
        let report = servers.report("s").await.unwrap();
        assert_eq!(report.failure, None);
        assert_eq!(report.era, Some(era));
        let source = source(&servers);
        assert_eq!(names(&source), ["mcp__s__t"]);
        let outcome = call(&source, "mcp__s__t").await;
        assert_eq!(text(&outcome), "{\"a\":\"x\"}", "{speaks:?}");
        let sent = scripts.received("s", "tools/call").pop().unwrap();
        let version = &sent["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        let expected = match speaks {
            Speaks::Initialize => Value::Null,
            Speaks::Discover => json!("2026-07-28"),
        };
        assert_eq!(*version, expected);
        assert!(notes.lock().unwrap().is_empty());
        servers.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_lifecycle_is_remembered_and_a_server_that_changes_it_is_asked_again() {
    let home = tempfile::tempdir().unwrap();
    let begun = async |speaks| {
        let scripts = Scripts::default();
        scripts.add("s", server(speaks, json!([tool("t")]), echo));
        let (mut options, _) = options(&scripts, vec![configured("s", |_| ())]);
        options.pins = PinStore::in_directory(home.path().to_owned());
        let servers = Servers::start(options);
        let report = servers.report("s").await.unwrap();
        assert_eq!(report.failure, None, "{speaks:?}");
        servers.close().await;
        scripts.methods("s")
    };
    assert_eq!(
        begun(Speaks::Initialize).await[..2],
        ["server/discover", "initialize"]
    );
    assert_eq!(begun(Speaks::Initialize).await[..1], ["initialize"]);
    assert_eq!(
        begun(Speaks::Discover).await[..2],
        ["initialize", "server/discover"]
    );
    assert_eq!(
        begun(Speaks::Discover).await[..2],
        ["server/discover", "tools/list"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ignores_the_first_question_is_spoken_to_as_of_old() {
    let handle: Handle = Arc::new(|message, out| {
        Box::pin(async move {
            if message["method"] != "server/discover" {
                begin(Speaks::Initialize, &json!([tool("t")]), &message, &out).await;
            }
        })
    });
    let (servers, ..) = one(handle).await;
    let report = servers.report("s").await.unwrap();
    assert_eq!((report.failure, report.era), (None, Some(Era::Initialize)));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_costs_its_own_startup_time_and_nobody_else_any() {
    let scripts = Scripts::default();
    scripts.add("hangs", Arc::new(|_, _| Box::pin(async {})));
    scripts.add("s", server(Speaks::Initialize, json!([tool("t")]), echo));
    let seconds = |it: &mut rondo_mcp::config::WrittenServer| it.startup_timeout_s = Some(3.0);
    let configured = vec![configured("hangs", seconds), configured("s", |_| ())];
    let (options, notes) = options(&scripts, configured);
    let before = Instant::now();
    let servers = Servers::start(options);
    let source = source(&servers);
    source.tools(&scope());
    assert_eq!(before.elapsed(), Duration::ZERO);
    servers.report("s").await.unwrap();
    assert!(before.elapsed() < Duration::from_secs(1));
    assert_eq!(names(&source), ["find_tools", "mcp__s__t"]);
    let report = servers.report("hangs").await.unwrap();
    assert_eq!(
        report.failure.as_deref(),
        Some("it did not start within 3 s")
    );
    assert!(before.elapsed() < Duration::from_secs(4));
    assert_eq!(
        report.notes,
        ["the server `hangs` is not available: it did not start within 3 s"]
    );
    source.tools(&scope());
    assert!(notes.lock().unwrap().is_empty(), "the report took it");
}

#[tokio::test(start_paused = true)]
async fn a_program_that_is_not_there_is_noted_at_the_next_step() {
    let scripts = Scripts::default();
    let (options, notes) = options(&scripts, vec![configured("gone", |_| ())]);
    let servers = Servers::start(options);
    let source = source(&servers);
    while servers.is_up("gone") == Some(Ok(false)) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    source.tools(&scope());
    assert_eq!(
        *notes.lock().unwrap(),
        ["the server `gone` is not available: the program `gone` is not found"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ended_is_started_again_by_the_next_call_and_not_for_ever() {
    let on_call = |message: Value, out: Out| -> futures_util::future::BoxFuture<'static, ()> {
        Box::pin(async move {
            if message["method"] == "tools/call" {
                out.reply(&message, text_result("done")).await;
                out.die().await;
            }
        })
    };
    let (servers, scripts, _) = one(server(Speaks::Initialize, json!([tool("t")]), on_call)).await;
    let source = source(&servers);
    for number in 1..=10 {
        assert_eq!(text(&call(&source, "mcp__s__t").await), "done", "{number}");
        while servers.is_up("s").unwrap().is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    assert_eq!(scripts.received("s", "tools/call").len(), 10);
    let last = text(&call(&source, "mcp__s__t").await);
    assert!(last.contains("it ended 10 times"), "{last}");
}

#[tokio::test(start_paused = true)]
async fn what_was_known_is_offered_before_the_server_has_started_and_a_call_waits_for_it() {
    let home = tempfile::tempdir().unwrap();
    let scripts = Scripts::default();
    let late: Handle = Arc::new(|message, out| {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(2)).await;
            if !begin(Speaks::Initialize, &json!([tool("t")]), &message, &out).await {
                echo(message, out).await;
            }
        })
    });
    scripts.add("s", late);
    let start = || {
        let (mut options, _) = options(&scripts, vec![configured("s", |_| ())]);
        options.pins = PinStore::in_directory(home.path().to_owned());
        Servers::start(options)
    };
    let first = start();
    assert_eq!(names(&source(&first)), ["find_tools"]);
    first.report("s").await.unwrap();
    first.close().await;
    let second = start();
    let source = source(&second);
    assert_eq!(names(&source), ["mcp__s__t"]);
    assert_eq!(text(&call(&source, "mcp__s__t").await), "{\"a\":\"x\"}");
    let changed = source.generation();
    assert_eq!(names(&source), ["mcp__s__t"]);
    assert_eq!(source.generation(), changed);
}
