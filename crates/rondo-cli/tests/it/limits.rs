use crate::harness::{TestEnv, calls, says, serve};
use rondo_testkit::{Script, Server, faults};
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
