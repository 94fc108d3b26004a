use crate::harness::{TestEnv, calls, says, serve};
use rondo_testkit::{ReplyScript, Response, Script, Server, assert_paired, gemini, openai};
use serde_json::{Value, json};

#[tokio::test]
async fn the_answer_and_nothing_else_is_on_standard_output() {
    let server = serve(vec![says("Four.")]).await;
    let shown = TestEnv::new().ask(&server, &["What is 2+2?"]).await;
    shown.check("Four.\n", "", 0);
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    let body = requests[0].json();
    assert_eq!(body["model"], "test");
    assert_eq!(body["messages"][1]["content"], "What is 2+2?");
    assert_eq!(requests[0].header("authorization"), None);
}

#[tokio::test]
async fn a_tool_is_run_and_its_result_goes_back() {
    let server = serve(vec![
        calls("read_file", &json!({"path": "note.txt"})).saying("I look."),
        says("It says hello."),
    ])
    .await;
    let env = TestEnv::new();
    env.write("note.txt", "hello from the file\n");
    env.ask(&server, &["What does note.txt say?"])
        .await
        .check("It says hello.\n", "", 0);
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    let body = requests[1].json();
    assert_paired(&body);
    let result = body["messages"].as_array().unwrap().last().unwrap().clone();
    assert!(
        result["content"]
            .as_str()
            .unwrap()
            .contains("hello from the file")
    );
}

#[tokio::test]
async fn the_first_request_with_all_tools_has_at_most_6000_bytes() {
    let server = serve(vec![says("Four.")]).await;
    TestEnv::new().ask(&server, &["2+2?"]).await;
    let request = &server.requests()[0];
    let body = request.json();
    let tools = body["tools"].as_array().unwrap();
    assert!(tools.len() >= 11, "{}", tools.len());
    assert!(request.body.len() <= 6_000, "{}", request.body.len());
}

#[tokio::test]
async fn gemini_is_asked_in_its_own_words_with_its_own_key() {
    let server = Server::start(gemini::streamed(&says("Bonjour."))).await;
    let env = TestEnv::new()
        .var("GEMINI_API_KEY", "k-123456789")
        .var("GEMINI_MODEL", "gemini-test")
        .var("GOOGLE_GEMINI_BASE_URL", &server.url(""));
    env.run(&["ask", "Hello"]).await.check("Bonjour.\n", "", 0);
    let request = &server.requests()[0];
    assert!(
        request
            .path
            .starts_with("/v1beta/models/gemini-test:streamGenerateContent")
    );
    assert_eq!(request.header("x-goog-api-key"), Some("k-123456789"));
}

#[tokio::test]
async fn json_is_one_result_object() {
    let server = serve(vec![says("Four.")]).await;
    let shown = TestEnv::new().ask(&server, &["--json", "2+2?"]).await;
    assert_eq!(shown.lines().len(), 1);
    let result = shown.result();
    assert_eq!(result["text"], "Four.");
    assert_eq!(result["stop_reason"], "complete");
    assert_eq!(result["exit_code"], 0);
    assert_eq!(result["usage"]["input"], 10);
}

#[tokio::test]
async fn the_event_stream_begins_with_init_and_ends_with_result() {
    let server = serve(vec![
        calls("list_files", &json!({})),
        ReplyScript::text(["a", "b"]).usage(1, 1),
    ])
    .await;
    let args = ["--output-format", "stream-json", "go"];
    let shown = TestEnv::new().ask(&server, &args).await;
    let lines = shown.lines();
    let types: Vec<&str> = lines
        .iter()
        .map(|line| line["type"].as_str().unwrap())
        .collect();
    assert_eq!(types.first(), Some(&"init"));
    assert_eq!(lines[0]["model"], "openai/test");
    for expected in [
        "step_started",
        "tool_call_pending",
        "tool_call_started",
        "tool_call_finished",
        "text_delta",
        "usage",
        "step_finished",
    ] {
        assert!(types.contains(&expected), "{expected} in {types:?}");
    }
    assert_eq!(types.iter().filter(|kind| **kind == "result").count(), 1);
    let dense = lines
        .iter()
        .enumerate()
        .all(|(index, line)| line["seq"] == json!(index));
    assert!(dense, "sequence numbers are dense");
    assert_eq!(shown.result()["text"], "ab");
    assert_eq!(shown.stderr, "");
}

#[tokio::test]
async fn an_answer_that_cannot_be_written_is_an_error_and_there_is_one_result() {
    let server = serve(vec![says("4")]).await;
    let shown = TestEnv::new()
        .ask(&server, &["--json", "-o", "/dev/full", "2+2?"])
        .await;
    assert_eq!(shown.code, Some(1), "{shown:?}");
    assert_eq!(shown.lines().len(), 1, "{shown:?}");
    assert_eq!(shown.result()["text"], "4");
    assert!(
        shown.stderr.contains("failed to write the answer"),
        "{shown:?}"
    );
}

#[tokio::test]
async fn an_answer_is_shown_wherever_it_cannot_be_written() {
    let env = TestEnv::new();
    env.write("file", "");
    let socket = env.project().join("socket");
    let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::os::unix::fs::symlink("loop", env.project().join("loop")).unwrap();
    let long = "a".repeat(300);
    let places = [
        ("/dev/full", "No space left on device"),
        (".", "Is a directory"),
        ("none/file", "No such file or directory"),
        ("file/file", "Not a directory"),
        ("loop", "Too many levels of symbolic links"),
        ("socket", "No such device or address"),
        (&long, "File name too long"),
    ];
    for (place, why) in places {
        let server = serve(vec![says("4")]).await;
        let shown = env.ask(&server, &["-o", place, "2+2?"]).await;
        assert_eq!(
            (shown.stdout.as_str(), shown.code),
            ("4\n", Some(1)),
            "{place}"
        );
        let said = format!("error: failed to write the answer to `{place}`\n  caused by: {why} ");
        assert!(shown.stderr.starts_with(&said), "{shown:?}");
    }
}

/// Any file in a project that Rondo opens by itself can be of any kind.
#[tokio::test]
async fn a_project_whose_files_never_end_or_never_begin_is_looked_at_all_the_same() {
    let files = [
        ".gitignore",
        ".ignore",
        ".rgignore",
        "sub/.gitignore",
        "AGENTS.md",
        "CLAUDE.md",
        "sub/AGENTS.md",
        ".rondo/AGENTS.md",
        ".git/info/exclude",
        ".git/HEAD",
        ".git/config",
        ".git/index",
    ];
    for is_pipe in [true, false] {
        let looks = [
            calls("list_files", &json!({"path": "."})),
            calls("search_files", &json!({"pattern": "needle"})),
            calls("read_file", &json!({"path": "sub/found"})),
            says("Looked."),
        ];
        let server = serve(looks.to_vec()).await;
        let env = TestEnv::new();
        env.write("sub/found", "a needle\n");
        for name in files {
            let place = env.project().join(name);
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            if is_pipe {
                let made = std::process::Command::new("mkfifo").arg(&place).status();
                assert!(made.unwrap().success());
            } else {
                std::os::unix::fs::symlink("/dev/zero", &place).unwrap();
            }
        }
        let shown = env.ask(&server, &["--deadline", "30s", "x"]).await;
        let seen = (shown.stdout.as_str(), shown.code);
        assert_eq!(seen, ("Looked.\n", Some(0)), "{shown:?}");
        let requests = server.requests();
        let asked = requests[3].json()["messages"].to_string();
        assert_eq!(asked.matches("a needle").count(), 2, "{asked}");
    }
}

#[tokio::test]
async fn a_password_in_an_address_is_never_shown() {
    let url = "http://me:MARKER@127.0.0.1:9/v1?key=MARKER";
    let args = ["ask", "-vvv", "-m", "openai/x", "--base-url", url, "2+2?"];
    let shown = TestEnv::new().run(&args).await;
    assert_eq!(shown.code, Some(1), "{shown:?}");
    assert!(!format!("{shown:?}").contains("MARKER"), "{shown:?}");
}

#[tokio::test]
async fn without_a_terminal_a_call_that_needs_approval_is_denied_and_the_turn_goes_on() {
    let server = serve(vec![
        calls("write_file", &json!({"path": "made.txt", "content": "x"})),
        says("I was not allowed to."),
    ])
    .await;
    let env = TestEnv::new();
    let shown = env.ask(&server, &["make a file"]).await;
    assert_eq!(
        (shown.stdout.as_str(), shown.code),
        ("I was not allowed to.\n", Some(44))
    );
    assert!(
        shown
            .stderr
            .contains("hint: `write_file made.txt` needed approval"),
        "{}",
        shown.stderr
    );
    assert!(shown.stderr.contains("--yolo"));
    assert!(!env.project().join("made.txt").exists());
    let body = server.requests()[1].json();
    assert_paired(&body);
    assert!(body.to_string().contains("no terminal to ask on"));
}

#[tokio::test]
async fn a_plan_is_made_by_looking_and_carried_out_once_it_is_approved() {
    let write = json!({"path": "made.txt", "content": "x"});
    let server = serve(vec![
        calls("exec", &json!({"command": "ls"})),
        calls("exec", &json!({"command": "touch made.txt"})),
        calls("write_file", &write),
        says("1. Make made.txt."),
        calls("write_file", &write),
        says("Made."),
    ])
    .await;
    let env = TestEnv::new();
    let shown = env.ask(&server, &["--plan", "--yolo", "make a file"]).await;
    assert_eq!(
        (shown.stdout.as_str(), shown.code),
        ("1. Make made.txt.\n", Some(0))
    );
    assert!(
        shown
            .stderr
            .contains("`rondo ask -c \"Carry out the plan.\"`"),
        "{}",
        shown.stderr
    );
    assert!(!env.project().join("made.txt").exists());
    let requests = server.requests();
    let prompt = requests[0].json()["messages"][0]["content"].to_string();
    assert!(prompt.contains("The user asks for a plan."), "{prompt}");
    let asked = requests[3].json()["messages"].to_string();
    assert_eq!(
        asked
            .matches("plan mode allows only read-only calls")
            .count(),
        2,
        "{asked}"
    );
    let args = ["-c", "--yolo", "Carry out the plan."];
    let shown = env.ask(&server, &args).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(env.project().join("made.txt").exists());
}

#[tokio::test]
async fn yolo_runs_what_would_be_asked() {
    let server = serve(vec![
        calls("write_file", &json!({"path": "made.txt", "content": "x"})),
        says("Done."),
    ])
    .await;
    let env = TestEnv::new();
    env.ask(&server, &["--yolo", "make a file"])
        .await
        .check("Done.\n", "", 0);
    assert_eq!(
        std::fs::read_to_string(env.project().join("made.txt")).unwrap(),
        "x"
    );
}

#[tokio::test]
async fn commands_run_under_the_supervisor_in_the_working_directory() {
    let server = serve(vec![
        calls("exec", &json!({"command": "ls"})),
        says("One file."),
    ])
    .await;
    let env = TestEnv::new();
    env.write("sub/only.txt", "");
    let shown = env
        .ask(&server, &["--yolo", "-C", "sub", "what is here?"])
        .await;
    shown.check("One file.\n", "", 0);
    let body = server.requests()[1].json().to_string();
    assert!(body.contains("only.txt"), "{body}");
}

#[tokio::test]
async fn a_command_that_only_looks_runs_without_asking() {
    let server = serve(vec![
        calls("exec", &json!({"command": "cat note.txt | wc -l"})),
        says("Two."),
    ])
    .await;
    let env = TestEnv::new();
    env.write("note.txt", "a\nb\n");
    env.ask(&server, &["how many lines?"])
        .await
        .check("Two.\n", "", 0);
    let result = server.requests()[1].json().to_string();
    assert!(
        result.contains("exitCode") && result.contains('2'),
        "{result}"
    );
}

#[tokio::test]
async fn a_command_with_effects_runs_when_its_words_are_allowed() {
    for (allowed, code) in [("exec(touch *)", 0), ("exec(ls *)", 44)] {
        let server = serve(vec![
            calls("exec", &json!({"command": "touch made.txt"})),
            says("Done."),
        ])
        .await;
        let env = TestEnv::new();
        let shown = env.ask(&server, &["--allowed-tools", allowed, "x"]).await;
        assert_eq!(shown.code, Some(code), "{shown:?}");
        assert_eq!(env.project().join("made.txt").exists(), code == 0);
    }
}

#[tokio::test]
async fn logs_go_to_standard_error_and_hold_no_content() {
    let server = serve(vec![says("Secret answer.")]).await;
    let shown = TestEnv::new()
        .ask(&server, &["-v", "secret question"])
        .await;
    assert_eq!(
        (shown.stdout.as_str(), shown.code),
        ("Secret answer.\n", Some(0))
    );
    assert!(
        shown.stderr.contains("INFO") && shown.stderr.contains("openai/test"),
        "{shown:?}"
    );
    assert!(!shown.stderr.to_lowercase().contains("secret"), "{shown:?}");
}

#[tokio::test]
async fn forbidden_tools_are_not_offered() {
    let names = |body: &Value| -> Vec<String> {
        let tools = body["tools"].as_array().cloned().unwrap_or_default();
        tools
            .iter()
            .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let server = serve(vec![says("a"), says("b")]).await;
    let env = TestEnv::new();
    env.ask(&server, &["--disallowed-tools", "exec,write_file", "x"])
        .await;
    env.ask(&server, &["--disallowed-tools", "*", "x"]).await;
    let requests = server.requests();
    let some = names(&requests[0].json());
    assert!(some.contains(&"read_file".to_owned()) && !some.contains(&"exec".to_owned()));
    assert_eq!(names(&requests[1].json()), Vec::<String>::new());
}

#[tokio::test]
async fn what_is_asked_for_is_sent() {
    let server = serve(vec![says("{\"n\":4}")]).await;
    let env = TestEnv::new();
    env.write(
        "schema.json",
        r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#,
    );
    let args = [
        "--temperature",
        "0.2",
        "--max-output-tokens",
        "77",
        "--effort",
        "low",
        "--system-prompt",
        "Be brief.",
        "--append-system-prompt",
        "Be kind.",
        "--output-schema",
        "schema.json",
        "-o",
        "answer.txt",
        "2+2?",
    ];
    env.ask(&server, &args).await.check("{\"n\":4}\n", "", 0);
    let body = server.requests()[0].json();
    assert_eq!(body["temperature"], 0.2);
    assert_eq!(body["max_tokens"], 77);
    assert_eq!(body["reasoning_effort"], "low");
    assert_eq!(body["messages"][0]["content"], "Be brief.\n\nBe kind.");
    assert_eq!(body["response_format"]["type"], "json_schema");
    assert_eq!(
        std::fs::read_to_string(env.project().join("answer.txt")).unwrap(),
        "{\"n\":4}"
    );
}

#[tokio::test]
async fn the_key_of_a_provider_is_sent_and_never_shown() {
    let refusal = openai::error(
        401,
        "invalid_request_error",
        "Incorrect API key provided: sk-secret-987654321",
    );
    let server = Server::start(Script::repeat(refusal)).await;
    let env = TestEnv::new()
        .var("OPENAI_API_KEY", "sk-secret-987654321")
        .var("OPENAI_BASE_URL", &server.url("/v1"));
    let shown = env.run(&["ask", "-m", "openai/test", "--json", "x"]).await;
    assert_eq!(shown.code, Some(41));
    assert_eq!(shown.result()["error"]["class"], "auth");
    assert!(
        shown
            .stderr
            .contains("hint: check the key in `OPENAI_API_KEY`"),
        "{}",
        shown.stderr
    );
    assert!(!format!("{shown:?}").contains("sk-secret"), "{shown:?}");
    let sent = server.requests()[0]
        .header("authorization")
        .map(str::to_owned);
    assert_eq!(sent.as_deref(), Some("Bearer sk-secret-987654321"));
}

#[tokio::test]
async fn markdown_is_left_alone_in_a_pipe() {
    let server = Server::start(openai::streamed(&says("**bold** red"))).await;
    let shown = TestEnv::new().ask(&server, &["x"]).await;
    shown.check("**bold** red\n", "", 0);
}

#[tokio::test]
async fn a_reply_that_is_not_streamed_is_read_too() {
    let server = Server::start(Script::from([openai::whole(&says("Whole."))])).await;
    TestEnv::new()
        .ask(&server, &["x"])
        .await
        .check("Whole.\n", "", 0);
}

#[tokio::test]
async fn an_address_that_does_not_exist_is_explained() {
    let server = Server::start(Script::repeat(Response::text(404, "no such page"))).await;
    let shown = TestEnv::new().ask(&server, &["x"]).await;
    assert_eq!((shown.stdout.as_str(), shown.code), ("", Some(1)));
    assert!(
        shown.stderr.contains("hint: check the model's name `test`"),
        "{}",
        shown.stderr
    );
}

#[tokio::test]
async fn the_default_prompt_states_where_it_works_and_what_the_repository_says() {
    let env = TestEnv::new();
    env.write("AGENTS.md", "Use tabs.");
    env.write("app/AGENTS.md", "Use spaces.");
    env.write(".git/HEAD", "ref: refs/heads/main\n");
    let server = serve((0..4).map(|_| says("ok")).collect()).await;
    env.ask(&server, &["q"]).await.check("ok\n", "", 0);
    env.ask(&server, &["-C", "app", "q"])
        .await
        .check("ok\n", "", 0);
    env.ask(&server, &["--profile", "shell", "q"])
        .await
        .check("ok\n", "", 0);
    env.ask(&server, &["--system-prompt", "Mine.", "q"])
        .await
        .check("ok\n", "", 0);
    let systems: Vec<String> = server
        .requests()
        .iter()
        .map(|it| {
            it.json()["messages"][0]["content"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    let root = env.project().canonicalize().unwrap().display().to_string();
    let place = format!("- Working directory: {root}\n");
    assert!(systems[0].starts_with("You are Rondo,"), "{}", systems[0]);
    assert!(systems[0].contains(&place) && systems[0].contains("Use tabs."));
    assert!(!systems[0].contains("Use spaces."), "{}", systems[0]);
    let (far, near) = (systems[1].find("Use tabs."), systems[1].find("Use spaces."));
    assert!(far.is_some() && far < near, "{}", systems[1]);
    assert!(systems[1].contains(&format!("- Repository root: {root}")));
    let shell = "You are gsh, an AI-powered shell. You can execute commands using the exec tool.";
    assert_eq!(systems[2], shell);
    assert_eq!(systems[3], "Mine.");
}

#[tokio::test]
async fn escape_sequences_of_an_answer_reach_no_pipe() {
    let hostile = "a\u{1b}]0;title\u{7}b\u{1b}[2Jc\u{9b}31md";
    let server = serve(vec![says(hostile)]).await;
    let shown = TestEnv::new().ask(&server, &["x"]).await;
    shown.check("abcd\n", "", 0);
}

#[tokio::test]
async fn json_has_no_hidden_characters_and_the_same_value() {
    let hostile = "a\u{1b}[2J\u{9b}31m\u{7f}\u{202e}\u{2028}\u{e0041}é";
    for format in ["json", "stream-json"] {
        let server = serve(vec![says(hostile)]).await;
        let shown = TestEnv::new()
            .ask(&server, &["--output-format", format, "x"])
            .await;
        assert_eq!(shown.result()["text"], hostile);
        let hidden = |c: char| c != '\n' && rondo_core::shown::is_hidden(c);
        assert!(!shown.stdout.contains(hidden), "{:?}", shown.stdout);
    }
}

#[tokio::test]
async fn a_denied_call_is_named_in_the_result_and_in_the_hint() {
    let arguments = json!({"path": "made.txt", "content": "x"});
    let server = serve(vec![calls("write_file", &arguments), says("Over.")]).await;
    let shown = TestEnv::new().ask(&server, &["--json", "x"]).await;
    assert_eq!(shown.code, Some(44), "{shown:?}");
    let named = &shown.result()["needed_approval"];
    assert_eq!(
        (&named[0]["tool"], &named[0]["arguments"]),
        (&json!("write_file"), &arguments)
    );
    assert!(
        shown
            .stderr
            .contains("`write_file made.txt` needed approval"),
        "{shown:?}"
    );
}

#[tokio::test]
async fn commands_run_in_a_locale_of_utf_8_whatever_the_users_is() {
    let print = json!({"command": "printf '%s|%s|%s' \"$LC_ALL\" \"$LANG\" \"$(locale charmap)\""});
    let server = serve(vec![calls("exec", &print), says("ok")]).await;
    let env = TestEnv::new()
        .var("LC_ALL", "zh_CN.GBK")
        .var("LANG", "zh_CN.GBK");
    env.ask(&server, &["--yolo", "q"])
        .await
        .check("ok\n", "", 0);
    let result = server.requests()[1].json()["messages"][3]["content"].to_string();
    assert!(result.contains("C.UTF-8|C.UTF-8|UTF-8"), "{result}");
}

#[tokio::test]
async fn no_key_of_any_provider_is_in_the_environment_of_commands_whatever_its_name() {
    let server = serve(vec![calls("exec", &json!({"command": "env"})), says("ok")]).await;
    let env = TestEnv::new()
        .var("PLAIN_NAME", "plain-value-of-a-key")
        .var("ODD_HEADER", "odd-value-of-a-header")
        .var("INNOCENT", "to-be-seen");
    env.user_config(
        "[providers.other]\ndialect = 'openai-chat'\nbase_url = 'http://127.0.0.1:9/v1'\napi_key_env = 'PLAIN_NAME'\n\
         headers_env = { X-Odd = 'ODD_HEADER' }\n",
    );
    let shown = env
        .ask(&server, &["--yolo", "--output-format", "stream-json", "q"])
        .await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let sent = server.requests()[1].json().to_string();
    assert!(sent.contains("INNOCENT=to-be-seen"), "{sent}");
    for hidden in ["PLAIN_NAME", "ODD_HEADER", "plain-value", "odd-value"] {
        assert!(
            !sent.contains(hidden) && !shown.stdout.contains(hidden),
            "{hidden}: {sent}"
        );
    }
}
