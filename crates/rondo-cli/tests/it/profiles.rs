use crate::harness::TestEnv;

#[tokio::test]
async fn the_profiles_are_listed() {
    let shown = TestEnv::new().run(&["profiles", "list"]).await;
    let names: Vec<&str> = shown
        .stdout
        .lines()
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "default", "hub", "local", "python", "react", "shell", "stream"
        ]
    );
    assert_eq!((shown.stderr.as_str(), shown.code), ("", Some(0)));
}

#[tokio::test]
async fn each_value_is_shown_with_the_layer_that_set_it() {
    let env = TestEnv::new().var("RONDO_DEADLINE", "2m");
    env.user_config("max_steps = 9\n[profiles.python]\nstreaming = true\n");
    let shown = env.run(&["profiles", "show", "python"]).await;
    let line = |key: &str| -> Vec<String> {
        let prefix = format!("{key} = ");
        let line = shown
            .stdout
            .lines()
            .find(|line| line.starts_with(&prefix))
            .unwrap();
        line.split("# ")
            .map(|part| part.trim().to_owned())
            .collect()
    };
    let file = "[ROOT]/home/.config/rondo/config.toml";
    assert_eq!(line("limits.max_steps"), ["limits.max_steps = 9", file]);
    assert_eq!(
        line("limits.turn_timeout_ms"),
        ["limits.turn_timeout_ms = 120000", "environment"]
    );
    assert_eq!(
        line("streaming"),
        [
            "streaming = true".to_owned(),
            format!("{file} [profiles.python]")
        ]
    );
    assert_eq!(
        line("limits.invalid_retries"),
        ["limits.invalid_retries = 1", "profile python"]
    );
}

#[tokio::test]
async fn a_profile_of_the_configuration_is_built_on_another() {
    let env = TestEnv::new();
    env.user_config("[profiles.quick]\nextends = 'hub'\ndescription = 'Fast.'\n[profiles.quick.limits]\nmax_steps = 3\n");
    let shown = env.run(&["profiles", "show", "quick"]).await;
    assert!(
        shown.stdout.contains("name = \"quick\""),
        "{}",
        shown.stdout
    );
    assert!(shown.stdout.contains("limits.max_steps = 3"));
    assert!(
        env.run(&["profiles", "list"])
            .await
            .stdout
            .contains("quick")
    );
}

#[tokio::test]
async fn an_unknown_profile_is_a_configuration_error_that_lists_the_known_ones() {
    let shown = TestEnv::new().run(&["profiles", "show", "nope"]).await;
    shown.check(
        "",
        "error: there is no profile `nope`\n\nhint: the profiles are: default, hub, local, python, react, shell, stream\n",
        52,
    );
}
