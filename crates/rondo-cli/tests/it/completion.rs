//! Completion in the user's shell: the script asks the program for the words that fit.

use crate::harness::{TestEnv, says, serve};

/// Returns the words that bash is offered for the last of these.
async fn offered(env: TestEnv, words: &[&str]) -> Vec<String> {
    let last = (words.len() - 1).to_string();
    let env = env.var("RONDO_COMPLETE", "bash");
    let env = env
        .var("_CLAP_COMPLETE_INDEX", &last)
        .var("_CLAP_IFS", "\n");
    let shown = env.run(&[&["--"], words].concat()).await;
    assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), ""));
    shown.stdout.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn commands_and_options_are_completed() {
    assert_eq!(
        offered(TestEnv::new(), &["rondo", "prof"]).await,
        ["profiles"]
    );
    let options = offered(TestEnv::new(), &["rondo", "ask", "--max-st"]).await;
    assert_eq!(options, ["--max-steps"]);
}

#[tokio::test]
async fn names_of_the_configuration_are_completed() {
    let configured = || {
        let env = TestEnv::new();
        env.user_config(
            "[profiles.quick]\nextends = 'default'\n[models.'mine/big']\ninput_usd = 1.0\n[mcp.servers.files]\ncommand = 'x'\n",
        );
        env
    };
    for (words, expected) in [
        (&["rondo", "ask", "--profile", "qu"][..], "quick"),
        (&["rondo", "profiles", "show", "def"], "default"),
        (&["rondo", "ask", "-m", "mine"], "mine/big"),
        (&["rondo", "config", "set", "max_st"], "max_steps"),
        (&["rondo", "mcp", "remove", "fi"], "files"),
        (
            &["rondo", "models", "pull", "qwen2.5-coder-1"],
            "qwen2.5-coder-1.5b",
        ),
    ] {
        assert_eq!(offered(configured(), words).await, [expected], "{words:?}");
    }
}

#[tokio::test]
async fn a_name_that_a_shell_would_run_or_a_terminal_obey_is_not_offered() {
    for (name, start) in [("x$(touch made)", "x"), ("x\\u001b[2J", "x"), ("x y", "x")] {
        let env = TestEnv::new();
        env.user_config(&format!("[profiles.\"{name}\"]\nextends = 'default'\n[profiles.x1]\nextends = 'default'\n[models.\"x/{name}\"]\ninput_usd = 1.0\n"));
        let profiles = offered(env, &["rondo", "ask", "--profile", start]).await;
        assert_eq!(profiles, ["x1"], "{name}");
        let env = TestEnv::new();
        env.user_config(&format!(
            "[models.\"x/{name}\"]\ninput_usd = 1.0\n[models.'x/1']\ninput_usd = 1.0\n"
        ));
        let models = offered(env, &["rondo", "ask", "-m", "x/"]).await;
        assert_eq!(models, ["x/1"], "{name}");
    }
}

#[tokio::test]
async fn sessions_are_completed_and_none_is_made_for_it() {
    let env = TestEnv::new();
    let latest = offered(env, &["rondo", "session", "show", ""]).await;
    assert!(latest.contains(&"latest".to_owned()), "{latest:?}");
    let env = TestEnv::new();
    let server = serve(vec![says("One.")]).await;
    assert_eq!(env.ask(&server, &["one"]).await.code, Some(0));
    let found = offered(env, &["rondo", "ask", "--session", "s-"]).await;
    assert_eq!(found.len(), 1, "{found:?}");
}

#[tokio::test]
async fn a_script_of_a_shell_asks_the_program() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let shown = TestEnv::new().run(&["completion", shell]).await;
        assert_eq!(shown.code, Some(0));
        assert!(shown.stdout.contains("RONDO_COMPLETE"), "{}", shown.stdout);
    }
}
