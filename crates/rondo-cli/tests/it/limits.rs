use crate::harness::{TestEnv, ask_args, calls, says, serve};
use rondo_testkit::{Script, Server, faults, openai};
use serde_json::json;

#[tokio::test]
async fn a_step_limit_without_an_answer_is_53() {
    let again = || calls("exec", &json!({"command": "echo hi"}));
    let server = serve(vec![again(), again()]).await;
    let args = [
        "--profile",
        "shell",
        "--max-steps",
        "2",
        "--yolo",
        "--json",
        "x",
    ];
    let shown = TestEnv::new().ask(&server, &args).await;
    assert_eq!(shown.code, Some(53));
    assert_eq!(shown.result()["stop_reason"], "max_steps");
    assert_eq!(server.requests().len(), 2);
    assert!(
        shown
            .stderr
            .contains("hint: raise the limit with `--max-steps`"),
        "{}",
        shown.stderr
    );
}

#[tokio::test]
async fn gs_4_the_shells_agent_makes_ten_requests_and_no_more() {
    let again = calls("exec", &json!({"command": "echo hi"}));
    let server = Server::start(Script::repeat(openai::streamed(&again))).await;
    let args = ["--profile", "shell", "--yolo", "--json", "x"];
    let shown = TestEnv::new().ask(&server, &args).await;
    assert_eq!(shown.code, Some(53));
    assert_eq!(shown.result()["stop_reason"], "max_steps");
    assert_eq!(server.requests().len(), 10);
}

#[tokio::test]
async fn gs_14_the_shells_agent_is_offered_exec_with_a_command_and_nothing_else() {
    let server = serve(vec![says("Here."), says("Here."), says("Here.")]).await;
    let env = TestEnv::new();
    env.user_config("[profiles.mine]\nextends = 'shell'\n");
    for args in [
        &["--profile", "shell", "x"][..],
        &["--profile", "mine", "x"],
        &["--profile", "default", "x"],
    ] {
        assert_eq!(env.ask(&server, args).await.code, Some(0));
    }
    let requests = server.requests();
    let offered = |at: usize| requests[at].json()["tools"].clone();
    let exec = rondo::design::shell::exec_tool_definition();
    let expected = json!([{"type": "function", "function": exec}]);
    assert_eq!((offered(0), offered(1)), (expected.clone(), expected));
    // Other profiles may have more.
    let properties = &offered(2)[0]["function"]["parameters"]["properties"];
    assert!(properties["timeout"].is_object(), "{properties}");
}

#[tokio::test]
async fn an_answer_within_the_reserve_is_zero_or_three_under_strict_complete() {
    for (strict, code) in [(false, 0), (true, 3)] {
        let server = serve(vec![
            calls("list_files", &json!({})),
            says("What I know so far."),
        ])
        .await;
        let mut args = vec!["--max-steps", "2", "x"];
        if strict {
            args.push("--strict-complete");
        }
        let shown = TestEnv::new().ask(&server, &args).await;
        assert_eq!(shown.code, Some(code), "{shown:?}");
        assert!(shown.stdout.contains("What I know so far."));
        assert_eq!(server.requests().len(), 2);
    }
}

#[tokio::test]
async fn a_deadline_without_an_answer_is_124() {
    let server = Server::start(Script::repeat(faults::zero_byte_stall())).await;
    let args = ["--deadline", "200ms", "--output-format", "stream-json", "x"];
    let shown = TestEnv::new().ask(&server, &args).await;
    assert_eq!(shown.code, Some(124), "{shown:?}");
    assert_eq!(shown.result()["stop_reason"], "deadline");
}

#[tokio::test]
async fn a_budget_without_a_price_is_refused_before_anything_is_asked() {
    let server = serve(vec![]).await;
    let shown = TestEnv::new()
        .ask(&server, &["--max-budget-usd", "1", "x"])
        .await;
    assert_eq!(shown.code, Some(52));
    assert!(
        shown
            .stderr
            .contains("the price of `openai/test` is not known"),
        "{}",
        shown.stderr
    );
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn money_is_counted_by_the_users_own_prices() {
    let server = serve(vec![says("Cheap.")]).await;
    let env = TestEnv::new();
    env.user_config("[models.'openai/test']\ninput_usd = 1.0\noutput_usd = 2.0\n");
    let shown = env
        .ask(&server, &["--max-budget-usd", "1", "--json", "x"])
        .await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert_eq!(shown.result()["cost_usd"], json!(0.00002));
}

#[tokio::test]
async fn a_name_that_no_tool_has_is_pointed_out() {
    let server = crate::harness::serve(vec![crate::harness::says("hi")]).await;
    let url = server.url("/v1");
    let env = crate::harness::TestEnv::new();
    let args = ["ask", "-m", "openai/test", "--base-url", &url];
    let rest = ["--disallowed-tools", "bash,exec(rm *),write_file", "x"];
    let child = env
        .command(&[&args[..], &rest[..]].concat())
        .spawn()
        .unwrap();
    let shown = env.wait(child).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(
        shown.stderr.contains("no tool is named `bash`"),
        "{shown:?}"
    );
    assert_eq!(shown.stderr.matches("no tool is named").count(), 1);
}

/// Each limit that a flag sets, reached before there is an answer.
#[tokio::test]
async fn every_limit_without_an_answer_is_53_and_names_its_flag() {
    let cases = [
        ("--max-tool-calls", "1", "max_tool_calls"),
        ("--max-tokens-total", "900", "max_tokens"),
        ("--max-budget-usd", "0.001", "max_cost"),
    ];
    for (flag, value, stop_reason) in cases {
        let call = |n: u32| calls("exec", &json!({"command": format!("echo {n}")}));
        let server = serve((0..90).map(call).collect()).await;
        let env = TestEnv::new();
        // Dear enough that the money runs out before the script does.
        env.user_config("[models.'openai/test']\ninput_usd = 1.0\noutput_usd = 1.0\n");
        let args = [
            "--profile",
            "shell",
            "--max-steps",
            "99",
            "--yolo",
            "--json",
            "x",
        ];
        let shown = env
            .ask(&server, &[&args[..], &[flag, value]].concat())
            .await;
        assert_eq!(shown.code, Some(53), "{flag}: {shown:?}");
        assert_eq!(shown.result()["stop_reason"], stop_reason, "{flag}");
        assert_eq!(shown.result()["exit_code"], 53);
        assert!(shown.stderr.contains(flag), "{flag}: {}", shown.stderr);
    }
}

#[tokio::test]
async fn another_directory_is_open_to_files_and_commands_once_it_is_added() {
    let other = tempfile::tempdir().unwrap();
    std::fs::write(other.path().join("note.txt"), "seen").unwrap();
    let path = other.path().join("note.txt");
    let path = path.to_str().unwrap();
    for added in [false, true] {
        let server = serve(vec![
            calls("read_file", &json!({"path": path})),
            calls("exec", &json!({"command": format!("cat {path}")})),
            says("Done."),
        ])
        .await;
        let mut args = vec!["--output-format", "stream-json", "x"];
        if added {
            args.extend(["--add-dir", other.path().to_str().unwrap()]);
        }
        let shown = TestEnv::new().ask(&server, &args).await;
        assert_eq!(shown.code, Some(if added { 0 } else { 44 }), "{shown:?}");
        let finished = shown
            .stdout
            .lines()
            .filter(|line| line.contains("tool_call_finished"));
        let ok = finished.filter(|line| line.contains("\"ok\":true") && line.contains("seen"));
        assert_eq!(ok.count(), if added { 2 } else { 0 }, "{shown:?}");
    }
}

#[tokio::test]
async fn colours_come_when_asked_for_and_go_when_forbidden() {
    for (when, coloured) in [("always", true), ("never", false)] {
        let server = serve(vec![says("x")]).await;
        let shown = TestEnv::new()
            .ask(
                &server,
                &["--color", when, "--allowed-tools", "nothing", "x"],
            )
            .await;
        assert_eq!(
            shown.stderr.contains('\u{1b}'),
            coloured,
            "{when}: {shown:?}"
        );
        assert!(
            !shown.stdout.contains('\u{1b}'),
            "a pipe gets the plain answer"
        );
    }
}

#[tokio::test]
async fn a_journal_that_another_process_has_locked_is_waited_for_no_longer_than_the_deadline() {
    let server = serve(vec![says("one")]).await;
    let env = TestEnv::new();
    env.ask(&server, &["q"]).await.check("one\n", "", 0);
    let journal =
        rusqlite::Connection::open(env.home().join(".local/share/rondo/sessions/journal.db"))
            .unwrap();
    journal.execute_batch("BEGIN EXCLUSIVE").unwrap();
    // Without a deadline it is ten seconds, for each statement.
    let asking = env.ask(&server, &["--deadline", "1s", "q"]);
    let shown = tokio::time::timeout(std::time::Duration::from_secs(8), asking).await;
    let shown = shown.expect("it ends in time");
    assert!(shown.code.is_some_and(|code| code != 0), "{shown:?}");
    assert_eq!(server.requests().len(), 1);
}

/// No stack of that size is available, and so no thread.
#[tokio::test]
async fn where_no_thread_can_be_started_each_command_says_so_and_none_panics() {
    let server = serve(vec![says("Yes."), says("Yes.")]).await;
    let url = server.url("/v1");
    let env = TestEnv::new().var("RUST_MIN_STACK", "1000000000000000");
    env.write("s.lua", "print(rondo.exec('echo hi').stdout)");
    let ask = ask_args(&url, &["hi"]);
    for (args, code) in [
        (&ask[..], 1),
        (&["run", "s.lua"], 1),
        (&["resume"], 1),
        (&["session", "list"], 54),
        (&["users", "list"], 54),
        (&["doctor"], 1),
    ] {
        let shown = env.run(args).await;
        assert!(!shown.stderr.contains("panicked"), "{args:?}: {shown:?}");
        assert_eq!(shown.code, Some(code), "{args:?}: {shown:?}");
    }
    let shown = env.run(&ask).await;
    assert!(
        shown.stderr.contains("failed to start a thread")
            && shown
                .stderr
                .contains("hint: the system allows no more processes"),
        "{shown:?}"
    );
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn a_command_is_ended_at_the_memory_that_the_users_file_says() {
    let greedy = calls("exec", &json!({"command": "seq 1 99999999999 | sed -n H"}));
    let server = serve(vec![greedy, says("Over.")]).await;
    let env = TestEnv::new();
    env.user_config("command_memory_mib = 64\n");
    let shown = env.ask(&server, &["--yolo", "go"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let result = server.requests()[1].json()["messages"].to_string();
    assert!(result.contains("more than 64 MiB of memory"), "{result}");
}
