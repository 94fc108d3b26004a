//! `rondo policy`, and rules in a turn.

use crate::calls::last_result;
use crate::harness::{TestEnv, calls, says, serve};
use serde_json::{Value, json};

const RULES: &str = r#"
[[rule]]
id = "no-push"
command = ["git", ["push", "fetch"]]
decision = "deny"
message = "Nothing leaves this machine."
match = ["sudo git push origin"]
not_match = ["git log"]

[[rule]]
command = ["touch"]
decision = "allow"
"#;

#[tokio::test]
async fn each_part_of_a_command_is_judged_with_its_rule_and_reason() {
    let env = TestEnv::new();
    env.user_policy(RULES);
    let checked = env
        .run(&["policy", "check", "ls && touch a && git push > b"])
        .await;
    checked.check(
        "allow  ls         read-only: it only looks\n\
         allow  touch a    touch ([ROOT]/home/.config/rondo/policy.toml): it is allowed\n\
         deny   git push   no-push ([ROOT]/home/.config/rondo/policy.toml): Nothing leaves this machine.\n\
         deny   all of it  no-push ([ROOT]/home/.config/rondo/policy.toml): Nothing leaves this machine.\n",
        "",
        0,
    );
    let checked = env.run(&["policy", "check", "--json", "rm -rf /"]).await;
    let checked: Value = serde_json::from_str(&checked.stdout).unwrap();
    assert_eq!(checked["command"]["decision"], "deny");
    assert_eq!(checked["command"]["rule"], "remove-root (built in)");
    let listed = env.run(&["policy", "list"]).await;
    let first = "deny   no-push           # [ROOT]/home/.config/rondo/policy.toml\n";
    assert!(listed.stdout.starts_with(first), "{}", listed.stdout);
    assert!(listed.stdout.contains("fork-bomb"), "{}", listed.stdout);
}

#[tokio::test]
async fn a_model_reads_why_a_rule_denies_its_command_though_all_calls_are_allowed() {
    let env = TestEnv::new();
    env.user_policy(RULES);
    for (command, reason) in [
        ("git push origin", "Nothing leaves this machine."),
        ("sudo rm -rf /", "it removes the root directory"),
    ] {
        let call = calls("exec", &json!({ "command": command }));
        let server = serve(vec![call, says("done")]).await;
        let shown = env.ask(&server, &["--yolo", "x"]).await;
        assert_eq!(shown.code, Some(0), "{shown:?}");
        let request = server.requests().pop().unwrap().json();
        let told = request["messages"].to_string();
        assert!(told.contains(reason), "{told}");
    }
}

#[tokio::test]
async fn a_rule_lets_a_command_run_unasked_and_a_clones_rule_does_not() {
    let env = TestEnv::new();
    let call = || calls("exec", &json!({"command": "touch made"}));
    let made = || env.project().join("made").exists();
    env.write(
        ".rondo/policy.toml",
        "[[rule]]\ncommand = ['touch']\ndecision = 'allow'\n",
    );
    let server = serve(vec![call(), says("done")]).await;
    let shown = env.ask(&server, &["x"]).await;
    assert!(!made() && shown.code == Some(44), "{shown:?}");
    assert!(shown.stderr.contains("rules that allow in"), "{shown:?}");
    env.user_policy(RULES);
    let server = serve(vec![call(), says("done")]).await;
    let shown = env.ask(&server, &["x"]).await;
    assert!(made() && shown.code == Some(0), "{shown:?}");
    assert_eq!(last_result(&server)["exitCode"], 0);
}
