//! The ten scripts of `examples/scripts` and that of the documentation, each run as its users run it.

use crate::harness::{Shown, TestEnv, calls, says, serve};
use crate::loops::ADDING;
use crate::world::{messages, tools};
use rondo_testkit::{ReplyScript, Script, Server, openai};
use serde_json::json;
use std::path::PathBuf;

fn example(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/scripts");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// A project that is a repository with a commit, and the script in it.
async fn repository(env: TestEnv, name: &str) -> TestEnv {
    env.write("s.lua", example(name));
    let git = "git init -q . && git config user.email a@b.c && git config user.name A && \
               echo one > file && git add file && git commit -qm 'Add a file'";
    let mut command = env.wrapped(git, &[]);
    assert!(command.status().await.unwrap().success());
    env
}

async fn run(env: &TestEnv, server: &Server, arguments: &[&str]) -> Shown {
    let url = server.url("/v1");
    let mut all = vec!["run", "-m", "openai/test", "--base-url", &url, "s.lua"];
    all.extend(arguments);
    env.run(&all).await
}

#[tokio::test]
async fn every_example_has_no_mistake() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/scripts");
    let env = TestEnv::new();
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        // These are for `init.lua`, whose functions are others.
        if !name.ends_with("_command.lua") && !name.ends_with("_tool.lua") {
            env.write("s.lua", std::fs::read_to_string(&path).unwrap());
            env.run(&["run", "--check", "s.lua"]).await.check("", "", 0);
        }
        count += 1;
    }
    assert_eq!(count, 10);
}

#[tokio::test]
async fn a_commit_message_is_written_for_what_is_staged() {
    let env = repository(TestEnv::new(), "commit_message.lua").await;
    let server = serve(vec![says("Change the file")]).await;
    let nothing = run(&env, &server, &[]).await;
    nothing.check("", "nothing is staged\n", 1);
    let staged = env
        .wrapped("echo two > file; git add file", &[])
        .status()
        .await
        .unwrap();
    assert!(staged.success());
    // There is no user to agree, so nothing is committed.
    run(&env, &server, &[])
        .await
        .check("Change the file\n", "", 1);
    let asked = &server.requests()[0].json();
    assert!(
        messages(asked)[1]["content"]
            .as_str()
            .unwrap()
            .contains("+two")
    );
}

#[tokio::test]
async fn a_changelog_gets_what_changed() {
    let env = repository(TestEnv::new(), "changelog.lua").await;
    let more = "echo two > file; git commit -qam 'Make it two' && echo old > CHANGELOG.md";
    assert!(env.wrapped(more, &[]).status().await.unwrap().success());
    let server = serve(vec![says("- it is two")]).await;
    let shown = run(&env, &server, &["HEAD~1"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let changelog = std::fs::read_to_string(env.project().join("CHANGELOG.md")).unwrap();
    assert!(
        changelog.starts_with("## 2") && changelog.ends_with("\n\n- it is two\n\nold\n"),
        "{changelog}"
    );
    assert!(
        messages(&server.requests()[0].json())[1]["content"]
            .as_str()
            .unwrap()
            .contains("- Make it two")
    );
    let usage = run(&env, &server, &[]).await;
    assert_eq!(
        (
            usage.code,
            usage.stderr.contains("usage: changelog.lua FROM")
        ),
        (Some(1), true)
    );
}

#[tokio::test]
async fn tests_are_fixed_until_they_pass() {
    let env = TestEnv::new();
    env.write("s.lua", example("test_fixer.lua"));
    env.write("code", "wrong");
    let server = serve(vec![
        calls(
            "write_file",
            &json!({ "path": "code", "content": "still wrong" }),
        ),
        says("Try this."),
        calls("write_file", &json!({ "path": "code", "content": "right" })),
        says("Now."),
    ])
    .await;
    let shown = run(&env, &server, &["grep", "-qx", "right", "code"]).await;
    shown.check(
        "round 1: Try this.\nround 2: Now.\nthe tests pass after 2 changes\n",
        "",
        0,
    );
}

#[tokio::test]
async fn a_log_is_triaged_in_parts() {
    let log: String = (1..=250).map(|it| format!("line {it}\n")).collect();
    let env = TestEnv::new().stdin(&log);
    env.write("s.lua", example("log_triage.lua"));
    let answer = |request: &rondo_testkit::Recorded| {
        let is_first = messages(&request.json())[1]["content"]
            .as_str()
            .unwrap()
            .starts_with("line 1\n");
        let problem = match is_first {
            true => json!({ "problems": [{ "severity": 2, "what": "disk" }] }),
            false => json!({ "problems": [{ "severity": 5, "what": "fire" }] }),
        };
        openai::streamed(&says(&problem.to_string()))
    };
    let server = Server::start(Script::answering(answer)).await;
    run(&env, &server, &[])
        .await
        .check("5\tfire\n2\tdisk\n", "", 1);
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn three_reviewers_and_a_judge_read_a_file() {
    let env = TestEnv::new();
    env.write("s.lua", example("reviewers.lua"));
    env.write("code.c", "int x;");
    let answer = |request: &rondo_testkit::Recorded| {
        let body = request.json();
        let system = messages(&body)[0]["content"].as_str().unwrap();
        let said = match system.contains("three reviewers") {
            true => "Name it better.".to_owned(),
            false => format!("found by {}", system.len()),
        };
        openai::streamed(&says(&said))
    };
    let server = Server::start(Script::answering(answer)).await;
    run(&env, &server, &["code.c"])
        .await
        .check("Name it better.\n", "", 0);
    let judged = server.requests()[3].json();
    let read = messages(&judged)[1]["content"].as_str().unwrap();
    for part in [
        "# code.c\n\nint x;",
        "# clarity\nfound by",
        "# correctness\nfound by",
        "# safety\nfound by",
    ] {
        assert!(read.contains(part), "{read}");
    }
}

#[tokio::test]
async fn a_report_of_the_night_is_written() {
    let env = repository(TestEnv::new(), "nightly_report.lua").await;
    let server = serve(vec![says("All is well.")]).await;
    let shown = run(&env, &server, &["."]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let report = env.project().join(shown.stdout.trim());
    assert_eq!(std::fs::read_to_string(report).unwrap(), "All is well.\n");
    let facts = server.requests()[0].json();
    assert!(
        messages(&facts)[1]["content"]
            .as_str()
            .unwrap()
            .contains("Add a file")
    );
}

#[tokio::test]
async fn data_of_letters_is_extracted_as_json() {
    let env = TestEnv::new();
    env.write("s.lua", example("extract.lua"));
    env.write("a.txt", "Pay 12 by May. Ada");
    let data = json!({ "sender": "Ada", "amount": 12.5, "due": null });
    let server = serve(vec![says(&data.to_string())]).await;
    let shown = run(&env, &server, &["a.txt"]).await;
    shown.check(
        "{\"amount\":12.5,\"file\":\"a.txt\",\"sender\":\"Ada\"}\n",
        "",
        0,
    );
}

#[tokio::test]
async fn two_agents_debate_and_a_third_sums_up() {
    let env = TestEnv::new();
    env.write("s.lua", example("debate.lua"));
    let replies = ["Yes.", "No.", "Yes!", "No!", "A draw."].map(says);
    let server = serve(replies.into()).await;
    let shown = run(&env, &server, &["Tabs", "or", "spaces?"]).await;
    shown.check(
        "Ada: Yes.\nBob: No.\nAda: Yes!\nBob: No!\nSummary: A draw.\n",
        "",
        0,
    );
    let last = server.requests()[4].json();
    assert!(
        messages(&last).iter().any(|it| it["content"] == "No!"),
        "{last}"
    );
}

#[tokio::test]
async fn a_tool_for_every_session_is_the_only_way_to_its_folder() {
    let env = TestEnv::new();
    let init = env.home().join(".config/rondo/init.lua");
    std::fs::create_dir_all(init.parent().unwrap()).unwrap();
    std::fs::write(init, example("ticket_tool.lua")).unwrap();
    env.write("tickets/7.txt", "It is broken.");
    let replies: Vec<ReplyScript> = vec![
        calls("ticket", &json!({ "number": 7 })),
        calls("read_file", &json!({ "path": "tickets/7.txt" })),
        says("Broken."),
    ];
    let server = serve(replies).await;
    let shown = env.ask(&server, &["What is 7?"]).await;
    assert_eq!(shown.stdout, "Broken.\n", "{shown:?}");
    let last = server.requests()[2].json();
    let results: Vec<&str> = messages(&last)
        .iter()
        .filter(|it| it["role"] == "tool")
        .map(|it| it["content"].as_str().unwrap())
        .collect();
    assert!(results[0].contains("It is broken."), "{results:?}");
    assert!(
        results[1].contains("tickets are read by the tool `ticket` only"),
        "{results:?}"
    );
}

#[tokio::test]
async fn the_whole_script_of_the_documentation_runs() {
    let docs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/scripts.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let mut blocks = docs.split("```lua\n").skip(1);
    let script = blocks.find(|it| it.contains("mcp-server-time")).unwrap();
    let script = script.split("```").next().unwrap();
    let server_of_tools = "command = \"python3\", args = { \"add.py\" }";
    let env = TestEnv::new();
    env.write(
        "s.lua",
        script.replace("command = \"mcp-server-time\"", server_of_tools),
    );
    env.write("add.py", ADDING);
    env.write("stock/bolts", "340 bolts\n");
    let server = serve(vec![
        calls("stock", &json!({ "item": "bolts" })),
        says("340 bolts"),
        calls("mcp__time__add", &json!({ "a": 8, "b": 1 })),
        says("It is nine."),
        says("340 Bolzen"),
    ])
    .await;
    let shown = run(&env, &server, &[]).await;
    let expected = "clerk:\t340 bolts\t1\nclerk:\tIt is nine.\t1\ntranslator:\t340 Bolzen\n";
    shown.check(expected, "", 0);
    let requests: Vec<_> = server.requests().iter().map(|it| it.json()).collect();
    assert_eq!(tools(&requests[0]), ["stock", "mcp__time__add"]);
    let result = |at: usize| messages(&requests[at]).last().unwrap()["content"].clone();
    assert_eq!((result(1), result(3)), (json!("340 bolts\n"), json!("9")));
    assert_eq!(result(4), "340 bolts");
}
