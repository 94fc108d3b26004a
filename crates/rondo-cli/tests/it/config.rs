//! Settings: shown, changed, and those of a folder that is trusted or not.

use crate::harness::{TestEnv, says, serve};
use crate::person::{ENTER, Person};
use serde_json::{Value, json};
use std::fs;

fn user_file(env: &TestEnv) -> String {
    fs::read_to_string(env.home().join(".config/rondo/config.toml")).unwrap_or_default()
}

#[tokio::test]
async fn a_value_is_set_shown_with_its_source_and_taken_out() {
    let env = TestEnv::new().var("RONDO_MAX_STEPS", "7");
    env.user_config("# kept\nquiet = false\n");
    let set = env.run(&["config", "set", "deadline", "90s"]).await;
    set.check(
        "set `deadline` in [ROOT]/home/.config/rondo/config.toml\n",
        "",
        0,
    );
    assert_eq!(
        user_file(&env),
        "# kept\nquiet = false\ndeadline = \"1m30s\"\n"
    );
    let get = env.run(&["config", "get", "deadline"]).await;
    get.check("1m30s\n", "", 0);
    let listed = env.run(&["config", "list"]).await;
    assert_eq!(listed.code, Some(0));
    for line in [
        "\ndeadline = \"1m30s\"  # [ROOT]/home/.config/rondo/config.toml\n    Time limit per turn, such as",
        "\nmax_steps = 7  # environment\n    Maximum number of model requests per turn [default: the profile's]\n",
        "\napproval\n    What to do if a call needs approval [default: ask]\n",
    ] {
        assert!(listed.stdout.contains(line), "{line}{}", listed.stdout);
    }
    let listed = env.run(&["config", "list", "--json"]).await;
    let all: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
    let steps = all.iter().find(|it| it["name"] == "max_steps").unwrap();
    let expected = json!({
        "name": "max_steps", "value": 7, "source": "environment", "variable": "RONDO_MAX_STEPS",
        "flag": "--max-steps", "help": "Maximum number of model requests per turn",
        "default": "the profile's",
    });
    assert_eq!(*steps, expected);
    let unset = env.run(&["config", "unset", "deadline"]).await;
    unset.check(
        "removed `deadline` from [ROOT]/home/.config/rondo/config.toml\n",
        "",
        0,
    );
    let get = env.run(&["config", "get", "deadline"]).await;
    get.check(
        "",
        "error: `deadline` is not set\n\nhint: `rondo config set deadline VALUE` sets it\n",
        1,
    );
}

#[tokio::test]
async fn a_wrong_name_or_value_changes_nothing_and_a_broken_file_is_not_touched() {
    let env = TestEnv::new();
    let wrong = env.run(&["config", "set", "effort", "huge"]).await;
    wrong.check(
        "",
        "error: `huge` cannot be the value of `effort`: expected one of `low`, `medium`, `high`\n\nhint: the value is `low`, `medium` or `high`\n",
        2,
    );
    let wrong = env.run(&["config", "get", "modle"]).await;
    assert_eq!(wrong.code, Some(2));
    assert!(
        wrong
            .stderr
            .starts_with("error: there is no setting `modle`\n")
    );
    env.user_config("max_stesp = 3\n");
    let broken = env.run(&["config", "set", "quiet", "true"]).await;
    assert_eq!(broken.code, Some(52));
    assert!(
        broken.stderr.contains("config.toml:1`"),
        "{}",
        broken.stderr
    );
    assert_eq!(user_file(&env), "max_stesp = 3\n");
}

#[tokio::test]
async fn an_edited_file_is_checked() {
    let env = TestEnv::new().var("EDITOR", "printf 'max_stesp = 3\\n' >>");
    let edited = env.run(&["config", "edit"]).await;
    assert_eq!(edited.code, Some(52), "{}", edited.stderr);
    assert!(edited.stderr.contains("max_stesp"), "{}", edited.stderr);
    let env = TestEnv::new().var("VISUAL", "printf 'max_steps = 3\\n' >>");
    env.run(&["config", "edit"]).await.check("", "", 0);
    assert_eq!(user_file(&env), "max_steps = 3\n");
    let env = TestEnv::new().var("EDITOR", "false");
    let failed = env.run(&["config", "edit"]).await;
    assert_eq!(failed.code, Some(1));
    assert!(failed.stderr.contains("the editor `false` failed"));
}

#[tokio::test]
async fn a_folders_settings_count_once_it_is_trusted_and_no_more_when_that_is_taken_back() {
    let server = serve(vec![says("ok"), says("ok"), says("ok")]).await;
    let env = TestEnv::new()
        .var("OPENAI_API_KEY", "sk-123456789")
        .var("OPENAI_BASE_URL", &server.url("/v1"))
        .var("RONDO_MODEL", "");
    env.user_config("model = 'openai/mine'\n");
    env.write(".rondo/config.toml", "model = 'openai/theirs'\n");
    let model = async || {
        let shown = env.run(&["ask", "x"]).await;
        assert_eq!(shown.stdout, "ok\n", "{}", shown.stderr);
        let requests = server.requests();
        let asked = requests.last().unwrap().json();
        (asked["model"].as_str().unwrap().to_owned(), shown.stderr)
    };
    let note = "note: `[ROOT]/project/.rondo/config.toml` is not trusted, so its `model` is ignored; `rondo trust [ROOT]/project` applies it\n";
    assert_eq!(model().await, ("mine".to_owned(), note.to_owned()));
    let trusted = env.run(&["trust"]).await;
    trusted.check(
        "[ROOT]/project is trusted, and its settings apply: `model`\n",
        "",
        0,
    );
    assert_eq!(model().await, ("theirs".to_owned(), String::new()));
    let listed = env.run(&["trust", "--list"]).await;
    listed.check("[ROOT]/project\n", "", 0);
    let revoked = env.run(&["trust", "--revoke", "."]).await;
    revoked.check("[ROOT]/project is no longer trusted\n", "", 0);
    assert_eq!(model().await, ("mine".to_owned(), note.to_owned()));
}

#[tokio::test]
async fn a_person_is_asked_once_whether_they_trust_a_folder() {
    let server = serve(vec![says("first"), says("second"), says("third")]).await;
    let env = TestEnv::new()
        .var("OPENAI_API_KEY", "sk-123456789")
        .var("OPENAI_BASE_URL", &server.url("/v1"));
    env.user_config("model = 'openai/mine'\n");
    env.write(".rondo/config.toml", "model = 'openai/theirs'\n");
    let asked = |index: usize| server.requests()[index].json()["model"].clone();

    let mut person = Person::start(&env, &["ask", "x"]);
    person.sees("  model = \"openai/theirs\"").await;
    person
        .sees("Trust [ROOT]/project from now on? y/n, then Enter")
        .await;
    person.press(&format!("n{ENTER}")).await;
    person.sees("is not trusted").await;
    person.sees("first").await;
    assert_eq!(person.code().await, Some(0));

    let mut person = Person::start(&env, &["ask", "x"]);
    person.sees("second").await;
    assert_eq!(person.code().await, Some(0));
    assert!(!person.all().contains("Enter alone"), "{}", person.all());
    assert_eq!((asked(0), asked(1)), (json!("mine"), json!("mine")));

    // Another copy of it is another folder.
    fs::remove_dir_all(env.home().join(".local/state")).unwrap();
    let mut person = Person::start(&env, &["ask", "x"]);
    person.sees("from now on? y/n, then Enter").await;
    person.press(&format!("y{ENTER}")).await;
    person.sees("third").await;
    assert_eq!(person.code().await, Some(0));
    assert_eq!(asked(2), json!("theirs"));
    assert!(user_file(&env).contains("trusted_folders = ["));
}
