//! `rondo policy`, and rules in a turn.

use crate::calls::last_result;
use crate::harness::{TestEnv, calls, says, serve};
use rondo_testkit::{Gate, Script, Server, Step, openai};
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
async fn without_a_terminal_the_hint_about_a_call_that_a_rule_asks_about_names_what_helps() {
    let env = TestEnv::new();
    env.user_policy("[[rule]]\ncommand = [\"touch\"]\ndecision = \"ask\"\n");
    let call = calls("exec", &json!({ "command": "touch a" }));
    let server = serve(vec![call, says("done")]).await;
    let shown = env.ask(&server, &["--allowed-tools", "exec", "x"]).await;
    let hint = "needed approval, since a rule asks about it, and there was no terminal to ask on; `--approval park` lets you answer later";
    assert!(shown.stderr.contains(hint), "{shown:?}");
}

/// Returns what a model reads after it ran a command, with all calls allowed.
pub(crate) async fn messages_after(env: &TestEnv, command: &str) -> String {
    let call = calls("exec", &json!({ "command": command }));
    let server = serve(vec![call, says("done")]).await;
    let shown = env.ask(&server, &["--yolo", "x"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let request = server.requests().pop().unwrap().json();
    request["messages"].to_string()
}

#[tokio::test]
async fn a_model_reads_why_a_rule_denies_its_command_though_all_calls_are_allowed() {
    let env = TestEnv::new();
    env.user_policy(RULES);
    for (command, reason) in [
        ("git push origin", "Nothing leaves this machine."),
        ("sudo rm -rf /", "it removes the root directory"),
    ] {
        let told = messages_after(&env, command).await;
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

const SET: &str = "[[rule_set.no-touch]]\ncommand = ['touch']\ndecision = 'deny'\nmessage = 'Nothing is touched.'\n";

#[tokio::test]
async fn hub_33_a_rule_set_is_listed_and_named_with_the_profile_that_names_it() {
    let env = TestEnv::new();
    env.user_policy(SET);
    env.user_config("[profiles.mine]\nextends = 'hub'\nrule_sets = ['no-touch']\n");
    let listed = env.run(&["policy", "list", "--profile", "mine"]).await;
    for line in [
        "deny   remove-files      # built in, rule set `dangerous-programs` of profile `mine`\n",
        "deny   touch             # [ROOT]/home/.config/rondo/policy.toml, rule set `no-touch` of profile `mine`\n",
    ] {
        assert!(listed.stdout.contains(line), "{}", listed.stdout);
    }
    let json = env
        .run(&["policy", "list", "--profile", "hub", "--json"])
        .await;
    let json: Vec<Value> = serde_json::from_str(&json.stdout).unwrap();
    let sets = json.iter().filter_map(|it| it["rule_set"].as_str());
    assert_eq!(sets.collect::<Vec<_>>(), ["dangerous-programs"; 4]);
    let check = [
        "policy",
        "check",
        "--profile",
        "mine",
        "ls; /bin/rm x; touch y",
    ];
    env.run(&check).await.check(
        "allow  ls         read-only: it only looks\n\
         deny   /bin/rm x  remove-files (built in, rule set `dangerous-programs` of profile `mine`): `rm` removes files for good, which is not allowed here\n\
         deny   touch y    touch ([ROOT]/home/.config/rondo/policy.toml, rule set `no-touch` of profile `mine`): Nothing is touched.\n\
         deny   all of it  remove-files (built in, rule set `dangerous-programs` of profile `mine`): `rm` removes files for good, which is not allowed here\n",
        "",
        0,
    );
    let plain = env.run(&["policy", "list"]).await;
    assert!(!plain.stdout.contains("rule set"), "{}", plain.stdout);
}

#[tokio::test]
async fn a_turn_under_a_profile_whose_rule_set_nobody_defines_does_not_start() {
    let env = TestEnv::new();
    env.user_config("[profiles.default]\nrule_sets = ['no-such']\n");
    let server = serve(vec![says("done")]).await;
    let shown = env.ask(&server, &["x"]).await;
    assert_eq!(shown.code, Some(52), "{shown:?}");
    assert!(shown.stderr.contains("the rule set `no-such`"), "{shown:?}");
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn a_resumed_turn_refuses_what_its_profile_refused_when_it_began() {
    let env = TestEnv::new();
    env.user_policy(SET);
    env.user_config(
        "[profiles.default]\nrule_sets = ['no-touch']\nforbidden_programs = ['mkdir']\n",
    );
    let gate = Gate::new();
    let command = |line: &str| calls("exec", &json!({ "command": line }));
    let server = Server::start(Script::from(vec![
        openai::streamed(&says("late")).before(Step::Gate(gate.clone())),
        openai::streamed(&command("touch made")),
        openai::streamed(&command("/bin/mkdir made")),
        openai::streamed(&says("done")),
    ]))
    .await;
    let url = server.url("/v1");
    let ask = ["ask", "-m", "localhost/test", "--base-url", &url, "x"];
    let mut child = env.command(&ask).spawn().unwrap();
    server.request(0).await;
    child.kill().await.unwrap();
    // The profile of now refuses nothing.
    env.user_config("");
    let resumed = env.run(&["resume", "--yolo"]).await;
    assert_eq!(resumed.stdout, "done\n", "{resumed:?}");
    assert!(!env.project().join("made").exists());
    let told = server.requests().pop().unwrap().json()["messages"].to_string();
    assert!(told.contains("Nothing is touched."), "{told}");
    assert!(told.contains("`mkdir` is not allowed"), "{told}");
    let replayed = env.run(&["replay", "latest", "--strict"]).await;
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
}
