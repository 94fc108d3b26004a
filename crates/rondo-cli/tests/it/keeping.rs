//! `rondo session`: recorded sessions, and their maintenance.

use crate::harness::{Shown, TestEnv, calls, says, serve};
use crate::person::{ENTER, Person};
use serde_json::{Value, json};
use std::path::PathBuf;

/// A home with two sessions, `one` and `two`.
async fn two_sessions() -> TestEnv {
    let server = serve(vec![
        calls("list_files", &json!({})),
        says("First."),
        says("Second."),
    ])
    .await;
    let env = TestEnv::new();
    for asked in ["one", "two"] {
        let shown = env.ask(&server, &[asked]).await;
        assert_eq!(shown.code, Some(0), "{shown:?}");
    }
    env
}

async fn listed(env: &TestEnv) -> Vec<Value> {
    env.run(&["session", "list", "--json"]).await.lines()
}

fn journal(env: &TestEnv) -> PathBuf {
    env.home().join(".local/share/rondo/sessions/journal.db")
}

async fn ids(env: &TestEnv) -> Vec<String> {
    let ids = listed(env).await.into_iter();
    ids.map(|it| it["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn the_list_says_what_each_session_is_about_and_how_it_stands() {
    let env = two_sessions().await;
    let list = listed(&env).await;
    let of = |it: &Value| json!([it["title"], it["turns"], it["state"]]);
    let expected = [json!(["two", 1, "done"]), json!(["one", 1, "done"])];
    assert_eq!(list.iter().map(of).collect::<Vec<_>>(), expected);
    let ids = ids(&env).await;
    assert!(ids[0] > ids[1], "ids sort by time: {ids:?}");
    let table = env.run(&["session", "list"]).await.stdout;
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("ID "), "{table}");
    assert!(
        lines[1].starts_with(&ids[0]) && lines[1].ends_with("two"),
        "{table}"
    );
}

#[tokio::test]
async fn a_session_is_shown_as_a_page_and_as_data() {
    let env = two_sessions().await;
    let ids = ids(&env).await;
    let page = env
        .run(&["session", "show", &ids[1], "--format", "html"])
        .await;
    assert!(page.stdout.starts_with("<!doctype html>"), "{page:?}");
    assert!(page.stdout.contains("<div class=\"said user\">one</div>"));
    let data = env
        .run(&["session", "show", &ids[1], "--format", "json"])
        .await;
    let turn = &data.lines()[0]["turns"][0];
    assert_eq!(turn["ending"]["stop_reason"], "complete");
    assert_eq!(turn["steps"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_session_is_shown_as_markdown() {
    let env = two_sessions().await;
    let ids = ids(&env).await;
    let shown = env.run(&["session", "show", &ids[1]]).await;
    for part in [
        "# one\n",
        "\n## Turn 1\n",
        "\n**User**\n\none\n",
        "\n### Step 1\n",
        "\n`list_files` returned after ",
        "\nFirst.\n",
    ] {
        assert!(shown.stdout.contains(part), "{part} {shown:?}");
    }
}

#[tokio::test]
async fn a_session_goes_from_one_home_to_another_and_a_torn_end_is_said() {
    let env = two_sessions().await;
    let id = ids(&env).await.remove(1);
    let exported = env.run(&["session", "export", &id]).await.stdout;
    let file = env.project().join("one.jsonl");
    let to_file = file.to_str().unwrap();
    env.run(&["session", "export", &id, "-o", to_file])
        .await
        .check("", "", 0);
    let root = env.project().parent().unwrap().display().to_string();
    let written = std::fs::read_to_string(&file).unwrap();
    assert_eq!(written.replace(&root, "[ROOT]"), exported);

    let other = TestEnv::new().stdin(&written);
    let imported = other.run(&["session", "import"]).await;
    assert_eq!(imported.stdout, format!("{id}\n"), "{imported:?}");
    assert!(
        imported.stderr.contains("it was recorded in `"),
        "{imported:?}"
    );
    // What came from a file is meant by its name alone.
    let latest = other.run(&["session", "export", "-o", "again.jsonl"]).await;
    assert_eq!(latest.code, Some(45), "{latest:?}");
    let again = other
        .run(&["session", "export", &id, "-o", "again.jsonl"])
        .await;
    again.check("", "", 0);
    let again = std::fs::read_to_string(other.project().join("again.jsonl")).unwrap();
    let own = format!(",\"directory\":\"{}\"", env.project().display());
    assert_eq!(again, written.replacen(&own, "", 1));
    let again = other.run(&["session", "import", "-"]).await;
    assert_eq!(again.code, Some(1), "{again:?}");

    let torn = written.trim_end().strip_suffix('}').unwrap();
    let other = TestEnv::new().stdin(torn);
    let imported = other.run(&["session", "import", "--as", "mine"]).await;
    assert_eq!(imported.stdout, "mine\n");
    assert!(imported.stderr.contains("the file was cut short: "));
    assert_eq!(listed(&other).await[0]["state"], "cut_off");
    // Its turn continues only if a user says so, and there is none.
    let resumed = other.run(&["resume", "mine"]).await;
    assert_eq!(resumed.code, Some(44), "{resumed:?}");
    assert!(resumed.stderr.contains("was imported"), "{resumed:?}");
}

#[tokio::test]
async fn sessions_are_removed_when_they_are_named_or_old() {
    let env = two_sessions().await;
    let ids = ids(&env).await;
    let unasked = env.run(&["session", "rm", &ids[0]]).await;
    assert_eq!(unasked.code, Some(44), "{unasked:?}");
    let removed = env.run(&["session", "rm", "latest", "--yes"]).await;
    removed.check(&format!("removed {}\n", ids[0]), "", 0);
    let none = env.run(&["session", "prune", "--older-than", "30d"]).await;
    none.check("", "", 0);
    let prune = ["session", "prune", "--keep-bytes", "0"];
    let dry = env.run(&[&prune[..], &["--dry-run"]].concat()).await;
    dry.check(&format!("would remove {}  one\n", ids[1]), "", 0);
    env.run(&prune)
        .await
        .check(&format!("removed {}  one\n", ids[1]), "", 0);
    assert!(listed(&env).await.is_empty());
    assert_eq!(env.run(&["session", "prune"]).await.code, Some(2));
}

fn damage(env: &TestEnv) {
    let connection = rusqlite::Connection::open(journal(env)).unwrap();
    let sql = "UPDATE records SET body = replace(body, 'First.', 'Worst.') \
               WHERE session = (SELECT min(id) FROM sessions) AND body LIKE '%First.%'";
    assert!(connection.execute(sql, []).unwrap() > 0);
}

#[tokio::test]
async fn a_damaged_session_is_set_aside_repaired_and_stops_no_other() {
    let env = two_sessions().await;
    let ids = ids(&env).await;
    damage(&env);
    let server = serve(vec![says("Third."), says("Fourth.")]).await;
    let refused = env.ask(&server, &["--session", &ids[1], "x"]).await;
    assert_eq!(refused.code, Some(54), "{refused:?}");
    assert!(
        refused.stderr.contains("is damaged at record"),
        "{refused:?}"
    );
    assert!(refused.stderr.contains("fsck"), "{refused:?}");
    env.ask(&server, &["--session", &ids[0], "x"])
        .await
        .check("Third.\n", "", 0);

    let report = env.run(&["session", "fsck"]).await;
    assert_eq!(report.code, Some(54), "{report:?}");
    assert!(report.stdout.contains("is damaged: its hash does not fit"));
    let repaired: Shown = env.run(&["session", "fsck", &ids[1], "--repair"]).await;
    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    assert!(repaired.stdout.contains("saved in"), "{repaired:?}");
    assert_eq!(env.run(&["session", "fsck"]).await.code, Some(0));
    // The turn lost its end, and gets another one.
    let url = server.url("/v1");
    let resumed = env.run(&["resume", &ids[1], "--base-url", &url]).await;
    assert_eq!(resumed.stdout, "Fourth.\n", "{resumed:?}");
}

/// Overwrites the first page of an index, as a disk does that loses one.
fn overwrite_page_of(env: &TestEnv, index: &str) {
    let connection = rusqlite::Connection::open(journal(env)).unwrap();
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    let page: u32 = connection
        .query_row(root, [index], |row| row.get(0))
        .unwrap();
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    drop(connection);
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(journal(env))
        .unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[0x55; 64], u64::from(page - 1) * 4096)
        .unwrap();
}

#[tokio::test]
async fn a_malformed_journal_is_replaced_by_what_can_be_read_of_it() {
    let env = two_sessions().await;
    let ids = ids(&env).await;
    overwrite_page_of(&env, "sqlite_autoindex_sessions_1");
    let listed = env.run(&["session", "show", &ids[0]]).await;
    assert_eq!(listed.code, Some(54), "{listed:?}");
    let hint = "hint: `rondo session fsck --repair` saves the readable part";
    assert!(listed.stderr.contains(hint), "{listed:?}");
    let repaired = env.run(&["session", "fsck", "--repair"]).await;
    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    assert!(
        repaired.stderr.contains("journal.db.malformed-1"),
        "{repaired:?}"
    );
    assert_eq!(self::ids(&env).await, ids);
    let checked = env.run(&["session", "fsck"]).await;
    assert_eq!((checked.code, checked.stdout.lines().count()), (Some(0), 2));
    let server = serve(vec![says("Third.")]).await;
    env.ask(&server, &["--session", &ids[0], "x"])
        .await
        .check("Third.\n", "", 0);
}

#[tokio::test]
async fn an_id_that_commands_could_not_be_given_is_refused() {
    let env = two_sessions().await;
    let id = ids(&env).await.remove(1);
    let file = env.project().join("one.jsonl");
    let to_file = file.to_str().unwrap();
    env.run(&["session", "export", &id, "-o", to_file])
        .await
        .check("", "", 0);
    let other = TestEnv::new().stdin(&std::fs::read_to_string(&file).unwrap());
    for (odd, reason) in [
        ("latest", "it names the session that was written last"),
        ("--", "it begins like an option"),
        ("a/b", "only letters, digits and -_.:@+ are allowed"),
        ("a.jsonl", "it looks like the file of an exported session"),
        ("", "it is empty"),
    ] {
        let refused = other
            .run(&["session", "import", &format!("--as={odd}")])
            .await;
        let line = format!("error: {odd:?} cannot be a session's id: {reason}\n");
        assert_eq!((refused.stderr, refused.code), (line, Some(42)));
    }
    let kept = other.run(&["session", "import", "--as=user:42@web"]).await;
    assert_eq!(kept.stdout, "user:42@web\n");
    assert_eq!(listed(&other).await[0]["directory"], "");
    assert_eq!(listed(&other).await[0]["imported"], true);
}

#[tokio::test]
async fn of_a_damaged_session_what_is_sound_is_shown_and_the_rest_is_named() {
    let env = two_sessions().await;
    let id = ids(&env).await.remove(1);
    let path = env.home().join(".local/share/rondo/sessions/journal.db");
    let last = "DELETE FROM records WHERE seq = (SELECT head_seq FROM sessions WHERE name = ?1)
         AND session = (SELECT id FROM sessions WHERE name = ?1)";
    let connection = rusqlite::Connection::open(path).unwrap();
    assert_eq!(connection.execute(last, [&id]).unwrap(), 1);
    drop(connection);
    let shown = env.run(&["session", "show", &id]).await;
    assert!(shown.stdout.starts_with("# one\n"), "{shown:?}");
    assert_eq!(shown.code, Some(54));
    for part in ["is damaged at record", "it is not there", "fsck"] {
        assert!(shown.stderr.contains(part), "{part}: {shown:?}");
    }
}

/// A home with the session `mine`, which came from a file that ends within its turn.
async fn imported_cut_off() -> TestEnv {
    let env = two_sessions().await;
    let id = ids(&env).await.remove(0);
    let exported = env
        .run(&["session", "export", &id, "-o", "two.jsonl"])
        .await;
    exported.check("", "", 0);
    let exported = std::fs::read_to_string(env.project().join("two.jsonl")).unwrap();
    let other = TestEnv::new();
    let torn = exported.trim_end().strip_suffix('}').unwrap();
    other.write("mine.jsonl", torn);
    let imported = ["session", "import", "mine.jsonl", "--as", "mine"];
    assert_eq!(other.run(&imported).await.code, Some(0));
    other
}

#[tokio::test]
async fn a_turn_from_a_file_goes_on_if_the_person_at_the_terminal_says_so() {
    let url = "http://127.0.0.1:9/v1";
    for (answer, seen, code) in [
        ("n", "its file may be from anyone", 44),
        ("", "its file may be from anyone", 44),
        ("yes please", "its file may be from anyone", 44),
        ("y", "Second.", 0),
    ] {
        let env = imported_cut_off().await;
        let mut person = Person::start(&env, &["resume", "mine", "--base-url", url]);
        person.sees("its limits and its models (openai/test)").await;
        person.sees("Resume it? [y/N, then Enter]").await;
        person.press(&format!("{answer}{ENTER}")).await;
        person.sees(seen).await;
        assert_eq!(person.code().await, Some(code), "{answer}");
        let state = if code == 0 { "done" } else { "cut_off" };
        assert_eq!(listed(&env).await[0]["state"], state, "{answer}");
    }
}

/// The author of the file could have the user's key sent anywhere.
#[tokio::test]
async fn a_turn_from_a_file_never_goes_to_the_address_that_the_file_names() {
    let trap = serve(vec![says("first"), says("trapped")]).await;
    let env = TestEnv::new();
    assert_eq!(env.ask(&trap, &["q"]).await.code, Some(0));
    let export = ["session", "export", "latest", "-o", "it.jsonl"];
    env.run(&export).await.check("", "", 0);
    let exported = std::fs::read_to_string(env.project().join("it.jsonl")).unwrap();
    // It is cut before the reply, so that the model is asked again.
    let at = exported.find("model_replied").unwrap();
    let end = exported[..at].rfind('\n').unwrap();
    let own = serve(vec![says("mine")]).await;
    let other = TestEnv::new()
        .var("OPENAI_API_KEY", "sk-123456789")
        .var("OPENAI_BASE_URL", &own.url("/v1"));
    other.write("it.jsonl", &exported[..end]);
    let imported = ["session", "import", "it.jsonl", "--as", "theirs"];
    assert_eq!(other.run(&imported).await.code, Some(0));
    let before = trap.requests().len();

    let mut person = Person::start(&other, &["resume", "theirs"]);
    person.sees("Resume it? [y/N, then Enter]").await;
    person.press(&format!("y{ENTER}")).await;
    person.sees("which is now at").await;
    assert_eq!(person.code().await, Some(52));
    let url = own.url("/v1");
    let named = ["resume", "theirs", "--base-url", &url];
    let mut person = Person::start(&other, &named);
    person.sees("Resume it? [y/N, then Enter]").await;
    person.press(&format!("y{ENTER}")).await;
    person.sees("mine").await;
    assert_eq!(person.code().await, Some(0));
    assert_eq!((trap.requests().len(), own.requests().len()), (before, 1));
}

#[tokio::test]
async fn what_a_file_says_of_its_session_does_not_disturb_the_terminal() {
    let env = two_sessions().await;
    let id = ids(&env).await.remove(0);
    let exported = ["session", "export", &id, "-o", "one.jsonl"];
    env.run(&exported).await.check("", "", 0);
    let exported = std::fs::read_to_string(env.project().join("one.jsonl")).unwrap();
    let (head, records) = exported.split_once('\n').unwrap();
    let mut head: serde_json::Value = serde_json::from_str(head).unwrap();
    head["directory"] = "/x\nnote: all is well\u{202e}".into();
    head["title"] = "safe\u{202e}evil\nmore".into();
    let other = TestEnv::new().stdin(&format!("{head}\n{records}"));
    let imported = other.run(&["session", "import"]).await;
    assert_eq!(imported.code, Some(0), "{imported:?}");
    assert!(
        imported.stderr.contains("in `/x note: all is well`; here"),
        "{imported:?}"
    );
    for format in ["markdown", "html"] {
        let shown = other
            .run(&["session", "show", &id, "--format", format])
            .await;
        assert_eq!(shown.code, Some(0), "{shown:?}");
        assert!(!shown.stdout.contains('\u{202e}'), "{shown:?}");
    }
}

#[tokio::test]
async fn what_an_imported_session_used_is_not_of_todays_budget() {
    let env = two_sessions().await;
    let id = ids(&env).await.remove(0);
    let exported = ["session", "export", &id, "-o", "one.jsonl"];
    env.run(&exported).await.check("", "", 0);
    let exported = std::fs::read_to_string(env.project().join("one.jsonl")).unwrap();
    let mut used = Vec::new();
    for is_imported in [false, true] {
        let env = TestEnv::new().stdin(&exported);
        if is_imported {
            assert_eq!(env.run(&["session", "import"]).await.code, Some(0));
        }
        env.user_config("max_daily_tokens = 1000000");
        let server = serve(vec![says("Third.")]).await;
        assert_eq!(env.ask(&server, &["x"]).await.code, Some(0));
        let connection = rusqlite::Connection::open(journal(&env)).unwrap();
        let day = "SELECT tokens FROM budget_used WHERE scope = 'day'";
        used.push(
            connection
                .query_row(day, [], |row| row.get::<_, i64>(0))
                .unwrap(),
        );
    }
    assert_eq!(used[0], used[1]);
}
