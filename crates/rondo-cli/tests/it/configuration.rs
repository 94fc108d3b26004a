use crate::harness::{TestEnv, calls, says, serve};
use rondo_testkit::{ReplyScript, Server, gemini};
use serde_json::json;
use std::path::Path;

#[tokio::test]
async fn a_missing_key_names_its_variable() {
    let shown = TestEnv::new().run(&["ask", "-m", "groq/m", "x"]).await;
    shown.check(
        "",
        "error: there is no API key for `groq`: `GROQ_API_KEY` is not set\n\nhint: set it with `export GROQ_API_KEY=...`, or `api_key_command` under `[providers.groq]` in the configuration\n",
        41,
    );
}

#[tokio::test]
async fn even_a_failure_before_the_turn_ends_in_a_result_object() {
    let env = TestEnv::new();
    env.user_config("max_stepz = 3\n");
    let broken = env
        .run(&["ask", "--output-format", "stream-json", "x"])
        .await;
    assert_eq!(broken.code, Some(52));
    assert_eq!(broken.result()["stop_reason"], "error");
    assert!(broken.stderr.contains("max_stepz"), "{}", broken.stderr);

    let usage = TestEnv::new().run(&["ask", "--json", "--nope", "x"]).await;
    assert_eq!(usage.code, Some(2));
    assert_eq!(usage.result()["error"]["class"], "bad_request");

    let key = TestEnv::new().run(&["ask", "--json", "x"]).await;
    assert_eq!(key.code, Some(41));
    assert_eq!(key.result()["error"]["class"], "auth");
}

#[tokio::test]
async fn a_provider_of_the_configuration_is_asked_as_it_says() {
    let server = serve(vec![says("ok")]).await;
    let env = TestEnv::new();
    env.user_config(&format!(
        "model = 'mine/big'\n[providers.mine]\ndialect = 'openai-chat'\nbase_url = '{}'\napi_key_command = 'printf k-from-command'\nheaders = {{ x-team = 'blue' }}\nextra_body = {{ top_k = 4 }}\n",
        server.url("/v1")
    ));
    env.run(&["ask", "x"]).await.check("ok\n", "", 0);
    let request = &server.requests()[0];
    assert_eq!(
        request.header("authorization"),
        Some("Bearer k-from-command")
    );
    assert_eq!(request.header("x-team"), Some("blue"));
    assert_eq!(request.json()["top_k"], 4);
}

#[tokio::test]
async fn a_command_for_the_key_is_not_waited_for_beyond_the_deadline() {
    let env = TestEnv::new();
    env.user_config(
        "[providers.lab]\ndialect = 'openai-chat'\nbase_url = 'http://127.0.0.1:9/v1'\napi_key_command = 'exec sleep 20'\n",
    );
    let args = [
        "ask",
        "-m",
        "lab/x",
        "--deadline",
        "300ms",
        "--json",
        "2+2?",
    ];
    let shown = env.run(&args).await;
    assert_eq!(shown.code, Some(124), "{shown:?}");
    assert_eq!(shown.result()["error"]["class"], "deadline");
}

#[tokio::test]
async fn a_project_cannot_send_the_key_elsewhere() {
    let trap = serve(vec![]).await;
    let server = serve(vec![says("ok")]).await;
    let env = TestEnv::new()
        .var("OPENAI_API_KEY", "sk-123456789")
        .var("OPENAI_BASE_URL", &server.url("/v1"));
    env.write(
        ".rondo/config.toml",
        format!(
            "model = 'openai/m'\nbase_url = '{}'\nyolo = true\n",
            trap.url("/v1")
        ),
    );
    let shown = env.run(&["ask", "-m", "openai/m", "x"]).await;
    shown.check(
        "ok\n",
        "note: `[ROOT]/project/.rondo/config.toml` is not trusted, so its `model`, `base_url`, `yolo` are ignored; `rondo trust [ROOT]/project` applies it\n",
        0,
    );
    assert!(trap.requests().is_empty());
}

#[tokio::test]
async fn a_projects_profile_lets_nothing_run_unasked() {
    let call = calls("eval_expr", &json!({"expr": "open('made', 'w')"}));
    let server = serve(vec![call, says("ok")]).await;
    let env = TestEnv::new();
    env.write(
        ".rondo/config.toml",
        "profile = 'python'\n[profiles.default]\ntools = ['eval_expr']\nallowed_tools = ['eval_expr']\n",
    );
    let shown = env.ask(&server, &["x"]).await;
    assert!(
        shown.stderr.contains("`profile`, `profiles` are ignored"),
        "{}",
        shown.stderr
    );
    assert!(!env.project().join("made").exists());
}

#[tokio::test]
async fn a_profile_built_on_hub_refuses_what_hub_refuses() {
    let call = calls("exec", &json!({"command": "rm -f made"}));
    let server = serve(vec![call, says("ok")]).await;
    let env = TestEnv::new();
    env.user_config("[profiles.own]\nextends = 'hub'\n");
    env.write("made", "x");
    let shown = env.ask(&server, &["--profile", "own", "--yolo", "x"]).await;
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(env.project().join("made").exists());
}

#[tokio::test]
async fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
    let server = serve(vec![says("ok")]).await;
    let env = TestEnv::new();
    env.user_config("");
    let file = env.home().join(".config/rondo/config.toml");
    std::fs::remove_file(&file).unwrap();
    let pipe = |path: &std::path::Path| {
        rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).unwrap();
    };
    pipe(&file);
    env.ask(&server, &["x"]).await.check(
        "",
        "error: failed to read `[ROOT]/home/.config/rondo/config.toml`\n  caused by: it is not a regular file\n",
        52,
    );
    std::fs::remove_file(&file).unwrap();
    let project = env.project().join(".rondo/config.toml");
    std::fs::create_dir(env.project().join(".rondo")).unwrap();
    pipe(&project);
    env.ask(&server, &["x"]).await.check(
        "",
        "error: failed to read `[ROOT]/project/.rondo/config.toml`\n  caused by: it is not a regular file\n",
        52,
    );
    std::fs::remove_file(&project).unwrap();
    let authorities = env.project().join("ca.pem");
    pipe(&authorities);
    let env = env.var("RONDO_CA_FILE", authorities.to_str().unwrap());
    let shown = env.ask(&server, &["x"]).await;
    assert_eq!(shown.code, Some(52), "{}", shown.stderr);
    assert!(
        shown.stderr.contains("it is not a regular file"),
        "{}",
        shown.stderr
    );
}

/// The author of such a file relies on it: without it, more would be allowed.
#[tokio::test]
async fn nothing_runs_if_a_file_that_guards_cannot_be_read() {
    let env = TestEnv::new();
    env.user_config("");
    let user = env.home().join(".config/rondo");
    let project = env.project().join(".rondo");
    std::fs::create_dir(&project).unwrap();
    let trusted = env.run(&["trust"]).await;
    assert_eq!(trusted.code, Some(0), "{}", trusted.stderr);
    let server = serve(vec![]).await;
    let link = |to: &str, path: &Path| std::os::unix::fs::symlink(to, path).unwrap();
    type Make<'a> = &'a dyn Fn(&Path);
    let ways: [(&str, Make<'_>); 5] = [
        ("a link to nothing", &|path| link("nowhere", path)),
        ("a link to itself", &|path| {
            link(path.to_str().unwrap(), path)
        }),
        ("a link below a file", &|path| {
            link("/etc/passwd/file", path)
        }),
        ("a directory", &|path| std::fs::create_dir(path).unwrap()),
        ("a pipe", &|path| {
            rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).unwrap();
        }),
    ];
    for folder in [&user, &project] {
        for name in ["config.toml", "policy.toml", "init.lua"] {
            let path = folder.join(name);
            let before = std::fs::read(&path).ok();
            for (way, make) in &ways {
                let _ = std::fs::remove_file(&path);
                make(&path);
                let shown = env.ask(&server, &["--yolo", "x"]).await;
                let what = format!("{} as {way}: {}", path.display(), shown.stderr);
                assert_eq!(shown.code, Some(52), "{what}");
                assert!(shown.stderr.contains(name), "{what}");
                let _ = std::fs::remove_dir(&path);
            }
            let _ = std::fs::remove_file(&path);
            if let Some(before) = before {
                std::fs::write(&path, before).unwrap();
            }
        }
    }
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn py_50_a_model_known_to_lack_function_calling_fails_at_start() {
    let env = TestEnv::new()
        .var("GEMINI_API_KEY", "k")
        .var("GEMINI_MODEL", "gemma-3-27b-it");
    let shown = env.run(&["ask", "--profile", "python", "x"]).await;
    shown.check(
        "",
        "error: model `gemini/gemma-3-27b-it` cannot call functions, and profile `python` needs its tools\n\nhint: set `GEMINI_MODEL` to a model that can, such as `gemini-2.5-flash`, or choose another model with `-m provider/model`, or forbid every tool with `--disallowed-tools '*'`\n",
        52,
    );
}

#[tokio::test]
async fn rondo_home_holds_everything() {
    let server = serve(vec![says("ok")]).await;
    let env = TestEnv::new();
    let home = env.project().join("elsewhere");
    let env = env.var("RONDO_HOME", home.to_str().unwrap());
    env.write(
        "elsewhere/config.toml",
        format!("model = 'm'\nbase_url = '{}'\n", server.url("/v1")),
    );
    env.run(&["ask", "x"]).await.check("ok\n", "", 0);
    assert!(home.join("state/calls").is_dir());
    assert!(!env.home().join(".local").exists());
}

#[tokio::test]
async fn a_profile_in_a_dialect_of_a_later_version_says_so() {
    let server = serve(vec![]).await;
    let env = TestEnv::new();
    env.user_config("[profiles.later]\ndialect = 'smoke'\n");
    let shown = env.ask(&server, &["--profile", "later", "x"]).await;
    assert_eq!(shown.code, Some(52));
    assert!(
        shown
            .stderr
            .contains("profile `later` uses the dialect `smoke`"),
        "{}",
        shown.stderr
    );
}

#[tokio::test]
async fn the_react_profile_writes_calls_into_the_text_of_the_providers_own_dialect() {
    let call = "I look.\n<tool_code>\n<name>execute_command</name>\n<parameters>\n{\"command\": \"printf seen\"}\n</parameters>\n</tool_code>";
    let server = serve(vec![says(call), says("done")]).await;
    let env = TestEnv::new();
    // A model that cannot call functions is what the tags are for.
    env.user_config("[models.'openai/test']\nfunction_calling = false\n");
    let shown = env
        .ask(&server, &["--profile", "react", "--yolo", "-q", "x"])
        .await;
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(shown.stdout.ends_with("done\n"), "{}", shown.stdout);
    let body = server.requests()[1].json();
    assert_eq!(body.get("tools"), None);
    // The question and the context of the terminal, in one message, precede it.
    assert_eq!(body["messages"][2]["content"], call);
    let observation = body["messages"][3]["content"].as_str().unwrap();
    assert!(observation.contains("seen"), "{observation}");
}

#[tokio::test]
async fn the_react_profile_speaks_gemini_to_gemini() {
    let reply = ReplyScript::text(["Nothing to do."]).usage(1, 1);
    let server = Server::start(vec![gemini::streamed(&reply)]).await;
    let env = TestEnv::new().var("GEMINI_API_KEY", "k");
    let url = server.url("");
    let args = [
        "ask",
        "-m",
        "gemini/test",
        "--base-url",
        &url,
        "--profile",
        "react",
        "x",
    ];
    let shown = env.run(&args).await;
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let body = server.requests()[0].json();
    assert!(body.get("contents").is_some() && body.get("tools").is_none());
}
