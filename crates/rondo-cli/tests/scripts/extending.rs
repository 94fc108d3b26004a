//! `init.lua`: handlers of turns, and what happens if they fail or hang.

use crate::harness::{Shown, TestEnv, calls, says, serve};
use crate::world::messages;
use serde_json::{Value, json};

/// A home with this `init.lua`.
fn home(init: &str) -> TestEnv {
    let env = TestEnv::new();
    let file = env.home().join(".config/rondo/init.lua");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, init).unwrap();
    env
}

/// Asks once; the model calls `exec` and then answers. Returns what it read, as the last request has it.
async fn ask(init: &str, command: &str) -> (TestEnv, Shown, Vec<Value>) {
    let env = home(init);
    let server = serve(vec![
        calls("exec", &json!({ "command": command })),
        says("Done."),
    ])
    .await;
    let shown = env
        .ask(&server, &["--allowed-tools", "exec(touch *)", "Do it."])
        .await;
    let last = server.requests().last().unwrap().json();
    (env, shown, messages(&last).clone())
}

fn result(messages: &[Value]) -> &str {
    let result = messages.iter().find(|it| it["role"] == "tool").unwrap();
    result["content"].as_str().unwrap()
}

#[tokio::test]
async fn handlers_deny_rewrite_and_add() {
    let deny = "rondo.on('before_tool', function(call) if call.arguments.command:find('touch') then return { deny = 'no touching' } end end)";
    let (env, shown, read) = ask(deny, "touch made").await;
    assert_eq!(shown.stdout, "Done.\n", "{shown:?}");
    assert!(result(&read).contains("no touching"), "{read:?}");
    assert!(!env.project().join("made").exists());

    let rewrite = "rondo.on('before_tool', function(call) return { arguments = { command = 'touch other' } } end)";
    let (env, _, _) = ask(rewrite, "touch made").await;
    assert!(env.project().join("other").exists() && !env.project().join("made").exists());

    let after =
        "rondo.on('after_tool', function(call) return 'changed: ' .. tostring(call.ok) end)";
    let (_, _, read) = ask(after, "touch made").await;
    assert_eq!(result(&read), "changed: true");

    let add = "rondo.on('turn_start', function(step) return 'Mind the time: ' .. step.text end)";
    let (_, _, read) = ask(add, "touch made").await;
    assert!(
        read.iter().any(|it| it["content"]
            .as_str()
            .is_some_and(|it| it.contains("Mind the time: Do it."))),
        "{read:?}"
    );

    let stop = "rondo.on('step_start', function(step) if step.step == 2 then return { stop = 'enough' } end end)";
    let (_, shown, _) = ask(stop, "touch made").await;
    assert!(shown.stdout.contains("enough"), "{shown:?}");
}

#[tokio::test]
async fn a_handler_that_fails_or_hangs_is_reported_and_lets_nothing_run() {
    for (handler, why) in [
        ("error('oh no')", "oh no"),
        (
            "while true do pcall(function() while true do end end) end",
            "exceeded its time limit",
        ),
        ("return 7", "it returns"),
        ("local t = {} for i = 1, 1e9 do t[i] = i end", ""),
    ] {
        let init = format!("rondo.on('before_tool', function() {handler} end)");
        let (env, shown, read) = ask(&init, "touch made").await;
        assert_eq!(shown.stdout, "Done.\n", "{handler}: {shown:?}");
        assert!(
            shown.stderr.contains("the handler before_tool of") && shown.stderr.contains(why),
            "{shown:?}"
        );
        assert!(
            result(&read).contains("the user's handler failed"),
            "{read:?}"
        );
        assert!(!env.project().join("made").exists(), "{handler}");
    }
    let (_, shown, read) = ask(
        "rondo.on('after_tool', function() error('x') end)",
        "touch made",
    )
    .await;
    assert_eq!(shown.stdout, "Done.\n");
    assert!(result(&read).contains("withheld"), "{read:?}");
    let (env, shown, _) = ask(
        "rondo.on('turn_start', function() error('x') end)",
        "touch made",
    )
    .await;
    assert_eq!(shown.stdout, "Done.\n");
    assert!(env.project().join("made").exists());
}

#[tokio::test]
async fn a_file_that_fails_ends_the_command() {
    for (init, why) in [
        ("error('no')", "init.lua:1: no"),
        (
            "rondo.on('before_tol', print)",
            "there is no event `before_tol`",
        ),
        (
            "rondo.command { nme = 'x' }",
            "rondo.command has no option `nme`",
        ),
        ("while true do end", "it exceeded its time limit"),
        ("x = = 1", "unexpected symbol"),
    ] {
        let env = home(init);
        let server = serve(Vec::new()).await;
        let shown = env.ask(&server, &["x"]).await;
        assert_eq!(shown.code, Some(52), "{init}: {shown:?}");
        assert!(shown.stderr.contains(why), "{init}: {shown:?}");
        assert_eq!(server.requests().len(), 0);
    }
}

#[tokio::test]
async fn the_file_of_a_project_runs_once_its_folder_is_trusted() {
    let env = TestEnv::new();
    env.write(
        ".rondo/init.lua",
        "rondo.on('turn_start', function() return 'from the project' end)",
    );
    let server = serve(vec![says("One."), says("Two.")]).await;
    let shown = env.ask(&server, &["x"]).await;
    assert!(
        shown
            .stderr
            .contains("init.lua` is not run: `rondo trust` trusts its folder"),
        "{shown:?}"
    );
    assert!(
        !server.requests()[0]
            .json()
            .to_string()
            .contains("from the project")
    );
    let trusted = format!("trusted_folders = ['{}']\n", env.project().display());
    env.user_config(&trusted);
    env.ask(&server, &["x"]).await.check("Two.\n", "", 0);
    assert!(
        server.requests()[1]
            .json()
            .to_string()
            .contains("from the project")
    );
}
