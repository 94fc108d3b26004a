//! Tests: the model, provider and address that settings choose.

use super::*;
use crate::env::Env;
use crate::notices::NoNotices;
use crate::table::Layer;

fn settings(env: &[(&str, &str)], flags: Layer) -> Settings {
    let home = tempfile::tempdir().unwrap();
    let mut variables = env.to_vec();
    variables.push(("RONDO_HOME", home.path().to_str().unwrap()));
    Settings::load(
        Env::of(&variables),
        home.path().to_owned(),
        flags,
        &NoNotices,
    )
    .unwrap()
}

fn choose(
    env: &[(&str, &str)],
    model: Option<&str>,
    base_url: Option<&str>,
) -> Result<ModelTarget> {
    let flags = Layer {
        model: model.map(str::to_owned),
        base_url: base_url.map(str::to_owned),
        ..Layer::default()
    };
    ModelTarget::make(&settings(env, flags))
}

#[track_caller]
fn check(env: &[(&str, &str)], model: Option<&str>, base_url: Option<&str>, name: &str, url: &str) {
    let target = choose(env, model, base_url).unwrap();
    assert_eq!(
        (target.full_name().as_str(), target.base_url.as_str()),
        (name, url)
    );
}

const OPENAI_URL: &str = "https://api.openai.com/v1";
const GEMINI_URL: &str = "https://generativelanguage.googleapis.com";

#[test]
fn a_model_names_its_provider_or_is_known_by_its_name() {
    check(
        &[],
        Some("openai/gpt-4o"),
        None,
        "openai/gpt-4o",
        OPENAI_URL,
    );
    check(&[], Some("gpt-4o"), None, "openai/gpt-4o", OPENAI_URL);
    check(
        &[],
        Some("gemini-2.5-pro"),
        None,
        "gemini/gemini-2.5-pro",
        GEMINI_URL,
    );
    check(
        &[],
        Some("openrouter/qwen/qwen3"),
        None,
        "openrouter/qwen/qwen3",
        "https://openrouter.ai/api/v1",
    );
}

#[test]
fn an_address_alone_is_an_openai_compatible_server() {
    let local = "http://127.0.0.1:8137/v1";
    check(
        &[],
        Some("Qwen/Qwen2.5"),
        Some(local),
        "localhost/Qwen/Qwen2.5",
        local,
    );
    let far = "https://llm.example/v1";
    check(
        &[],
        Some("m"),
        Some("https://llm.example/v1/"),
        "openai/m",
        far,
    );
    check(&[], Some("gemini/m"), Some(local), "gemini/m", local);
    assert!(
        choose(&[], None, Some(local))
            .unwrap_err()
            .hint
            .unwrap()
            .contains("-m NAME")
    );
}

#[test]
fn the_default_follows_from_the_keys_and_gemini_model_is_read() {
    check(
        &[("OPENAI_API_KEY", "k")],
        None,
        None,
        "openai/gpt-5-mini",
        OPENAI_URL,
    );
    check(
        &[("GOOGLE_API_KEY", "k")],
        None,
        None,
        "gemini/gemini-2.5-flash",
        GEMINI_URL,
    );
    let both = [
        ("OPENAI_API_KEY", "k"),
        ("GEMINI_API_KEY", "k"),
        ("GEMINI_MODEL", "gemini-x"),
    ];
    check(&both, None, None, "gemini/gemini-x", GEMINI_URL);
    check(
        &[("GEMINI_MODEL", "gemini-x")],
        Some("gemini"),
        None,
        "gemini/gemini-x",
        GEMINI_URL,
    );
}

#[test]
fn without_any_model_the_ways_are_listed() {
    let offline = Settings {
        values: crate::table::Layer {
            offline: Some(true),
            ..crate::table::Layer::default()
        }
        .into(),
        ..settings(&[], Layer::default())
    };
    let error = ModelTarget::make(&offline).unwrap_err();
    assert_eq!(error.kind, SetupErrorKind::Auth);
    let hint = error.hint.unwrap();
    assert!(
        hint.contains("OPENAI_API_KEY") && hint.contains("--base-url"),
        "{hint}"
    );
}

#[cfg(feature = "local")]
#[test]
fn without_any_model_the_one_in_the_box_is_asked() {
    let target = choose(&[], None, None).unwrap();
    assert_eq!(target.full_name(), "local/qwen2.5-coder-1.5b");
    assert!(target.weights.is_some() && target.keyless());
    for server in ["localhost/any", "localhost/qwen2.5-coder-1.5b", "local/any"] {
        let server = choose(&[], Some(server), None).unwrap();
        assert!(server.weights.is_none());
        assert_eq!(server.base_url, "http://127.0.0.1:8080/v1");
    }
    let named = choose(&[], Some("local/qwen2.5-coder-1.5b"), None).unwrap();
    assert!(named.weights.is_some());
    let file = choose(&[], Some("./my.gguf"), None).unwrap();
    assert_eq!(file.full_name(), "local/./my.gguf");
}

#[test]
fn an_unknown_provider_lists_the_known_ones() {
    let error = choose(&[], Some("nobody/x"), None).unwrap_err();
    assert_eq!(error.kind, SetupErrorKind::Config);
    assert!(error.line().contains("`nobody`"));
    assert!(error.hint.unwrap().contains("openrouter"));
}

#[test]
fn the_vendors_own_variables_move_the_address() {
    check(
        &[("OPENAI_BASE_URL", "http://proxy/v1")],
        Some("openai/m"),
        None,
        "openai/m",
        "http://proxy/v1",
    );
    for (host, url) in [
        ("10.0.0.7", "http://10.0.0.7:11434/v1"),
        ("0.0.0.0:9", "http://127.0.0.1:9/v1"),
        ("http://box:1234/", "http://box:1234/v1"),
        ("https://ollama.example", "https://ollama.example/v1"),
    ] {
        check(
            &[("OLLAMA_HOST", host)],
            Some("ollama/q"),
            None,
            "ollama/q",
            url,
        );
    }
}

#[test]
fn loopback_is_told_from_elsewhere() {
    for url in [
        "http://127.0.0.1:1/v1",
        "http://localhost",
        "http://[::1]:8/v1",
        "http://u:p@127.9.9.9/",
    ] {
        assert!(is_loopback(url), "{url}");
    }
    for url in [
        "http://127.0.0.1.evil.example/",
        "https://localhost@evil.example",
        "http://10.0.0.1",
    ] {
        assert!(!is_loopback(url), "{url}");
    }
}

fn profile_with_tools() -> Profile {
    rondo_core::profile::builtin("python").unwrap()
}

#[test]
fn py_50_a_model_without_function_calling_fails_at_start_with_the_way_out() {
    let target = choose(&[("GEMINI_MODEL", "gemma-3-27b-it")], Some("gemini"), None).unwrap();
    let error = target.check(&profile_with_tools(), 1).unwrap_err();
    assert_eq!(error.kind, SetupErrorKind::Config);
    assert_eq!(
        error.line(),
        "model `gemini/gemma-3-27b-it` cannot call functions, and profile `python` needs its tools"
    );
    let hint = error.hint.unwrap();
    assert!(
        hint.contains("set `GEMINI_MODEL` to a model that can, such as `gemini-2.5-flash`"),
        "{hint}"
    );
    target.check(&profile_with_tools(), 0).unwrap();
}

#[test]
fn py_50_an_unknown_model_is_let_through() {
    let target = choose(&[], Some("gemini/gemini-99"), None).unwrap();
    target.check(&profile_with_tools(), 5).unwrap();
}

#[test]
fn a_budget_needs_a_known_price() {
    let mut profile = profile_with_tools();
    profile.limits.max_cost = Some(rondo_types::NanoUsd(1));
    let unknown = choose(&[], Some("openai/gpt-99"), None).unwrap();
    let error = unknown.check(&profile, 1).unwrap_err();
    assert_eq!(error.kind, SetupErrorKind::Config);
    assert!(error.hint.unwrap().contains("[models.\"openai/gpt-99\"]"));
    choose(&[], Some("openai/gpt-4o"), None)
        .unwrap()
        .check(&profile, 1)
        .unwrap();
}

#[tokio::test]
async fn a_missing_key_names_its_variable_and_loopback_needs_none() {
    let settings = settings(&[], Layer::default());
    let target = choose(&[], Some("groq/m"), None).unwrap();
    let error = target.key(&settings).await.unwrap_err();
    assert_eq!(error.kind, SetupErrorKind::Auth);
    assert_eq!(
        error.line(),
        "there is no API key for `groq`: `GROQ_API_KEY` is not set"
    );
    let local = choose(&[], Some("openai/m"), Some("http://127.0.0.1:1/v1")).unwrap();
    assert_eq!(local.key(&settings).await.unwrap(), None);
}

#[tokio::test]
async fn a_key_can_come_from_a_command() {
    let run = |words: &[&str]| {
        let words = OneOrMany(words.iter().map(|word| (*word).to_owned()).collect());
        async move { run_key_command("p", &words).await }
    };
    assert_eq!(run(&["printf ' secret\\n'"]).await.unwrap(), "secret");
    assert_eq!(run(&["printf", "%s", "k"]).await.unwrap(), "k");
    let error = run(&["exit 3"]).await.unwrap_err();
    assert_eq!(error.kind, SetupErrorKind::Auth);
    assert!(error.line().contains("exit status: 3"), "{}", error.line());
}

#[tokio::test]
async fn a_key_command_that_is_given_up_ends_with_all_that_it_started() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let line = format!("sleep 1000 > '{}'; echo k", pipe.display());
    let command = OneOrMany(vec![line]);
    let running = tokio::spawn(async move { run_key_command("p", &command).await });
    let opened = tokio::task::spawn_blocking(move || std::fs::File::open(pipe));
    let mut reader = opened.await.unwrap().unwrap();
    running.abort();
    // The pipe ends once it has no writer.
    let read = tokio::task::spawn_blocking(move || std::io::Read::read(&mut reader, &mut [0]));
    assert_eq!(read.await.unwrap().unwrap(), 0);
}
