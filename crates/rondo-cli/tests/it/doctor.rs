use crate::harness::{Shown, TestEnv, calls, says};
use rondo_testkit::{Response, Server, openai};
use serde_json::json;

#[tokio::test]
async fn nothing_is_asked_without_a_probe() {
    let server = Server::start(Vec::new()).await;
    let url = server.url("/v1");
    let shown = TestEnv::new()
        .run(&["doctor", "-m", "openai/m", "--base-url", &url])
        .await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(
        shown.stdout.contains("ok key              none needed"),
        "{}",
        shown.stdout
    );
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_probe_says_what_the_provider_supports() {
    let server = Server::start(vec![
        Response::json(200, &json!({"object": "list", "data": [{"id": "m"}]})),
        openai::streamed(&says("one").saying("two")),
        openai::streamed(&calls("report_value", &json!({"value": 7}))),
    ])
    .await;
    let url = server.url("/v1");
    let shown = TestEnv::new()
        .run(&["doctor", "--probe", "-m", "openai/m", "--base-url", &url])
        .await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for line in [
        "ok text",
        "ok tool call",
        "ok listed",
        "ok streaming",
        "ok usage",
    ] {
        assert!(shown.stdout.contains(line), "{line}: {}", shown.stdout);
    }
}

#[tokio::test]
async fn what_is_missing_is_an_error() {
    let shown = TestEnv::new().run(&["doctor", "-m", "groq/m"]).await;
    assert_eq!(shown.code, Some(1));
    assert!(
        shown
            .stdout
            .contains("!! key              none of GROQ_API_KEY is set"),
        "{}",
        shown.stdout
    );
}

/// Checks with a model that nothing answers for.
async fn unreachable(env: &TestEnv) -> Shown {
    let named = ["-m", "openai/m", "--base-url", "http://127.0.0.1:9"];
    env.run(&[&["doctor"], &named[..]].concat()).await
}

#[tokio::test]
async fn a_directory_that_cannot_be_written_is_an_error() {
    let env = TestEnv::new();
    let file = env.home().join("file");
    std::fs::write(&file, "").unwrap();
    let env = env.var("RONDO_HOME", file.join("below").to_str().unwrap());
    let shown = unreachable(&env).await;
    assert_eq!(shown.code, Some(1), "{shown:?}");
    for (what, below) in [
        ("state", "state"),
        ("data", "data/sessions"),
        ("cache", "cache"),
    ] {
        let line = format!(
            "!! {what:<16} [ROOT]/home/file/below/{below} cannot be written (Not a directory (os error 20)); \
             set `RONDO_HOME` to a directory that can"
        );
        assert!(shown.stdout.contains(&line), "{}", shown.stdout);
    }
}

#[tokio::test]
async fn directories_are_written_to_and_left_as_they_were() {
    let env = TestEnv::new();
    let shown = unreachable(&env).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(
        shown
            .stdout
            .contains("ok state            [ROOT]/home/.local/state/rondo\n"),
        "{}",
        shown.stdout
    );
    assert_eq!(std::fs::read_dir(env.home()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_broken_configuration_is_one_failed_check_with_its_line() {
    let env = TestEnv::new();
    env.user_config("max_steps = 3\nmodle = 'x'\n");
    let shown = unreachable(&env).await;
    assert_eq!(
        (shown.code, shown.stderr.as_str()),
        (Some(1), ""),
        "{shown:?}"
    );
    assert!(
        shown.stdout.starts_with(
            "!! configuration    failed to parse `[ROOT]/home/.config/rondo/config.toml:2`: "
        ),
        "{}",
        shown.stdout
    );
    assert_eq!(shown.stdout.matches("!! ").count(), 1, "{}", shown.stdout);
    assert!(
        shown.stdout.contains("ok model            openai/m"),
        "{}",
        shown.stdout
    );
}

#[tokio::test]
async fn the_profile_is_that_of_the_model_which_is_asked() {
    let env = TestEnv::new();
    let of = async |args: &[&str]| {
        let shown = env.run(&[&["doctor"], args].concat()).await;
        let line = shown.stdout.lines().find(|it| it.contains(" profile "));
        line.map(str::to_owned)
    };
    let local = of(&["-m", "local/qwen2.5-coder-1.5b"]).await;
    assert_eq!(local.as_deref(), Some("ok profile          local"));
    let other = of(&["-m", "openai/m"]).await;
    assert_eq!(other.as_deref(), Some("ok profile          default"));
}

#[tokio::test]
async fn a_key_is_said_to_be_found_where_it_was() {
    let env = TestEnv::new().var("OPENAI_API_KEY", "sk-0123456789abcdef");
    let shown = env.run(&["doctor", "-m", "openai/m"]).await;
    assert!(
        shown
            .stdout
            .contains("ok key              found in OPENAI_API_KEY\n"),
        "{}",
        shown.stdout
    );
}
