//! Setting the gateway up, and seeing what a model reads.

use crate::harness::{TestEnv, calls, says, serve};
use rondo_testkit::telegram::{BotServer, Place};
use serde_json::{Value, json};
use std::fs;

const TOKEN: &str = "123456:onboarding-SECRET-zyx57W2v1u123ew11";

#[tokio::test]
async fn onboarding_writes_a_workspace_once_and_says_what_is_missing() {
    let env = TestEnv::new();
    let first = env.run(&["onboard"]).await;
    assert_eq!(first.code, Some(0), "{first:?}");
    let names = "SOUL.md, AGENTS.md, USER.md, TOOLS.md, HEARTBEAT.md, MEMORY.md";
    assert!(
        first.stdout.contains(&format!("Written: {names}")),
        "{first:?}"
    );
    assert!(
        first.stderr.contains("no channel is set up yet"),
        "{first:?}"
    );
    let workspace = env.home().join(".local/share/rondo/hub/workspace");
    fs::write(workspace.join("SOUL.md"), "mine").unwrap();
    let again = env.run(&["onboard"]).await;
    assert!(
        again.stdout.contains(&format!("Left as they are: {names}")),
        "{again:?}"
    );
    assert_eq!(
        fs::read_to_string(workspace.join("SOUL.md")).unwrap(),
        "mine"
    );
    let wrong = env
        .run(&["onboard", "--channel", "telegram", "--owner", "ann"])
        .await;
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.stderr.contains("`ann` is not NAME=ID"), "{wrong:?}");
}

#[tokio::test]
async fn onboarding_ends_when_a_message_of_the_owner_was_received_and_answered() {
    let model = serve(vec![says("Hello, Ann.")]).await;
    let telegram = BotServer::start(TOKEN).await;
    let env = TestEnv::new();
    env.user_config(&format!(
        "base_url = '{}'\n[hub.channels.telegram]\nbase_url = '{}'\n",
        model.url("/v1"),
        telegram.url()
    ));
    let token_file = env.home().join("token");
    fs::write(&token_file, TOKEN).unwrap();
    let token_file = token_file.to_str().unwrap();
    let mut args = vec!["onboard", "--model", "local/any", "--channel", "telegram"];
    args.extend(["--token-file", token_file, "--owner", "ann=7"]);
    let mut onboarding = Box::pin(env.run(&args));
    let people = async {
        // A stranger is told their id, which is not an answer.
        telegram.say(Place::Private(5), 5, "Let me in.");
        telegram.shown(5, 1).await;
        telegram.say(Place::Private(7), 7, "Hello.");
        telegram.shown(7, 1).await;
    };
    tokio::select! {
        biased;
        () = people => {}
        shown = &mut onboarding => panic!("{shown:?}"),
    }
    let shown = onboarding.await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let done = "A message was received and answered.";
    assert!(shown.stdout.contains(done), "{shown:?}");
    assert!(!format!("{shown:?}").contains("onboarding-SECRET"));
    assert_eq!(telegram.texts(7), ["Hello, Ann."]);
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn onboarding_refuses_what_cannot_work_and_leaves_the_configuration_as_it_was() {
    let telegram = BotServer::start(TOKEN).await;
    let env = TestEnv::new();
    let table = format!("[hub.channels.telegram]\nbase_url = '{}'\n", telegram.url());
    env.user_config(&table);
    let (unknown, shapeless) = (env.home().join("unknown"), env.home().join("shapeless"));
    fs::write(&unknown, "123456:another-SECRET-zyx57W2v1u123ew11xxx").unwrap();
    fs::write(&shapeless, "secret").unwrap();
    let [unknown, shapeless] = [&unknown, &shapeless].map(|it| it.to_str().unwrap());
    let config = env.home().join(".config/rondo/config.toml");
    for (args, said) in [
        (vec!["--model", "nowhere/m"], "nowhere"),
        (
            vec!["--channel", "telegarm"],
            "there is no channel `telegarm`",
        ),
        (
            vec!["--channel", "telegram", "--token-file", shapeless],
            "is wrong",
        ),
        (
            vec!["--channel", "telegram", "--token-file", unknown],
            "does not know the token",
        ),
        (
            vec!["--channel", "telegram", "--token-file", "/nowhere"],
            "cannot be read",
        ),
    ] {
        let all = [vec!["onboard", "--no-wait"], args].concat();
        let shown = env.run(&all).await;
        assert_ne!(shown.code, Some(0), "{all:?}: {shown:?}");
        assert!(shown.stderr.contains(said), "{all:?}: {shown:?}");
        assert!(!shown.stderr.contains("SECRET"), "{shown:?}");
        assert_eq!(fs::read_to_string(&config).unwrap(), table);
    }
    let token = env.home().join("token");
    fs::write(&token, TOKEN).unwrap();
    let good = [
        "onboard",
        "--no-wait",
        "--model",
        "local/any",
        "--channel",
        "telegram",
    ];
    let more = ["--token-file", token.to_str().unwrap(), "--owner", "ann=7"];
    let shown = env.run(&[&good[..], &more].concat()).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(
        shown.stderr.contains("the token is valid; the bot is @"),
        "{shown:?}"
    );
    let checked = env.run(&["serve", "--check"]).await;
    assert_eq!(checked.code, Some(0), "{checked:?}");
}

#[tokio::test]
async fn a_sessions_context_is_shown_with_what_the_provider_counted() {
    let env = TestEnv::new();
    let before = env.run(&["context", "show", "latest"]).await;
    assert_ne!(before.code, Some(0), "{before:?}");
    let todo = calls("todo", &json!({"items": []}));
    let server = serve(vec![todo, says("Done.").usage(4_000, 5)]).await;
    env.ask(&server, &["Anything to do?"]).await;
    let shown = env.run(&["context", "show", "latest"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for part in [
        "system 1",
        "tools (",
        "history (4)",
        "1 exchanges",
        "total",
        "counted 4000 tokens",
    ] {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
    let json = env.run(&["context", "show", "latest", "--json"]).await;
    let parts: Vec<Value> = json
        .stdout
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    let (total, parts) = parts.split_last().unwrap();
    let sum: u64 = parts.iter().map(|it| it["bytes"].as_u64().unwrap()).sum();
    assert_eq!(
        (total["part"].as_str(), total["bytes"].as_u64()),
        (Some("total"), Some(sum))
    );
    assert_eq!(total["reported"], 4_000);
}
