//! The journal's file: gone while it is used, read-only, or on a disk that is full.

use crate::harness::{Shown, TestEnv, ask_args, calls, says, serve};
use crate::person::Person;
use crate::repl::{leave, start};
use rondo_testkit::{Gate, Script, Server, Step, openai};
use serde_json::json;
use std::path::{Path, PathBuf};

fn sessions_dir(env: &TestEnv) -> PathBuf {
    env.home().join(".local/share/rondo/sessions")
}

async fn ids(env: &TestEnv) -> Vec<String> {
    let list = env.run(&["session", "list", "--json"]).await.lines();
    let ids = list.iter().map(|it| it["id"].as_str().unwrap().to_owned());
    ids.collect()
}

#[tokio::test]
async fn a_run_whose_journal_is_taken_away_ends_with_its_code() {
    let ways: [fn(&Path); 3] = [
        |dir| std::fs::remove_file(dir.join("journal.db")).unwrap(),
        |dir| std::fs::rename(dir.join("journal.db"), dir.join("old.db")).unwrap(),
        |dir| std::fs::remove_dir_all(dir).unwrap(),
    ];
    for (number, take_away) in ways.into_iter().enumerate() {
        let gate = Gate::new();
        let effect = calls("exec", &json!({"command": "echo done > effect"}));
        let held = openai::streamed(&effect).before(Step::Gate(gate.clone()));
        let server = Server::start(Script::from(vec![held])).await;
        let env = TestEnv::new();
        let url = server.url("/v1");
        let args = ask_args(&url, &["--yolo", "x"]);
        let child = env.command(&args).spawn().unwrap();
        gate.reached().await;
        take_away(&sessions_dir(&env));
        gate.open();
        let shown = env.wait(child).await;
        assert_eq!(shown.code, Some(54), "{number}: {shown:?}");
        assert!(shown.stderr.contains("meanwhile"), "{number}: {shown:?}");
        assert!(!env.project().join("effect").exists(), "{number}");
    }
}

/// Runs a script as root of mounts of its own; `None` if that is refused.
#[expect(clippy::print_stderr, reason = "a test that is not run says so")]
async fn with_mounts(env: &TestEnv, script: &str, args: &[&str]) -> Option<Shown> {
    let allowed = std::process::Command::new("unshare")
        .args(["-m", "mount", "-t", "tmpfs", "none", "/mnt"])
        .output();
    if !allowed.is_ok_and(|it| it.status.success()) {
        eprintln!("not tried: this process may not mount anything");
        return None;
    }
    let script = format!(
        "set -e; export DIR=\"$HOME/.local/share/rondo/sessions\" RONDO=\"$0\"; \
         exec unshare -m bash -ec '{script}' \"$0\" \"$@\""
    );
    let output = env.wrapped(&script, args).output().await.unwrap();
    Some(env.shown(&output))
}

const READ_ONLY: &str =
    r#"mount --bind "$DIR" "$DIR"; mount -o remount,bind,ro "$DIR"; exec "$RONDO" "$@""#;

#[tokio::test]
async fn a_read_only_journal_is_read_and_what_writes_says_so() {
    let server = serve(vec![calls("list_files", &json!({})), says("First.")]).await;
    let env = TestEnv::new();
    assert_eq!(env.ask(&server, &["one"]).await.code, Some(0));
    let id = ids(&env).await.remove(0);
    for args in [
        &["session", "list", "--json"][..],
        &["session", "show", &id],
        &["session", "export", &id],
        &["session", "fsck"],
        &["replay", &id, "--strict"],
    ] {
        let expected = env.run(args).await;
        assert_eq!(expected.code, Some(0), "{expected:?}");
        let Some(shown) = with_mounts(&env, READ_ONLY, args).await else {
            return;
        };
        shown.check(&expected.stdout, &expected.stderr, 0);
        // As a process leaves it that was killed: what was written last is in the log.
        let left = rusqlite::Connection::open(sessions_dir(&env).join("journal.db")).unwrap();
        left.execute_batch("UPDATE sessions SET title = title")
            .unwrap();
        let shown = with_mounts(&env, READ_ONLY, args).await.unwrap();
        shown.check(&expected.stdout, &expected.stderr, 0);
    }
    let url = server.url("/v1");
    let ask = ["ask", "-m", "openai/test", "--base-url", &url];
    for args in [
        &[&ask[..], &["x"]].concat()[..],
        &[&ask[..], &["-c", "x"]].concat(),
        &["resume", &id],
        &["session", "rm", "--yes", &id],
        &["session", "prune", "--keep-bytes", "0"],
    ] {
        let shown = with_mounts(&env, READ_ONLY, args).await.unwrap();
        assert_eq!(shown.code, Some(54), "{args:?} {shown:?}");
        let line = "journal.db` is read-only";
        assert!(shown.stderr.contains(line), "{args:?} {shown:?}");
    }
    assert_eq!(server.requests().len(), 2);
    assert_eq!(ids(&env).await, [id]);
}

/// As a copy is that left out the index of the log.
#[tokio::test]
async fn a_read_only_journal_whose_log_has_no_index_says_so() {
    let server = serve(vec![says("First.")]).await;
    let env = TestEnv::new();
    assert_eq!(env.ask(&server, &["one"]).await.code, Some(0));
    let journal = sessions_dir(&env).join("journal.db");
    let open = rusqlite::Connection::open(&journal).unwrap();
    let write = "UPDATE sessions SET title = 'changed'";
    open.execute_batch(write).unwrap();
    let copy = TestEnv::new();
    std::fs::create_dir_all(sessions_dir(&copy)).unwrap();
    for name in ["journal.db", "journal.db-wal"] {
        let copied = sessions_dir(&copy).join(name);
        std::fs::copy(sessions_dir(&env).join(name), copied).unwrap();
    }
    drop(open);
    let list = ["session", "list"];
    let Some(shown) = with_mounts(&copy, READ_ONLY, &list).await else {
        return;
    };
    assert_eq!(shown.code, Some(54), "{shown:?}");
    let dir = "[ROOT]/home/.local/share/rondo/sessions";
    let expected = format!(
        "error: failed to open the journal in `{dir}`\n  \
         caused by: the journal `{dir}/journal.db` cannot be read: `{dir}/journal.db-shm` is missing, \
         without which its log `{dir}/journal.db-wal` cannot be\n\n\
         hint: copy both files to `rondo/sessions` in a directory that can be written, and set \
         `XDG_DATA_HOME` to that\n"
    );
    shown.check("", &expected, 54);
    let listed = copy.run(&list).await;
    assert!(listed.stdout.contains("changed"), "{listed:?}");
}

/// Copies the journal to a disk of its own, fills that to the last byte, and works on it.
const FULL: &str = r#"
    cp -a "$DIR" "$HOME/kept"; mount -t tmpfs -o size=4m none "$DIR"; cp -a "$HOME/kept/." "$DIR";
    cat /dev/zero > "$DIR/fill" 2>/dev/null || true;
    stat -f -c "free %f" "$DIR"; before=$(stat -c %s "$DIR/journal.db");
    for n in 1 2; do "$RONDO" session list | tail -n +2 | wc -l; done;
    "$RONDO" session show latest | head -1;
    "$RONDO" "$@" > "$HOME/said"; echo "exit $?";
    "$RONDO" session list | tail -n +2 | wc -l;
    "$RONDO" session fsck | wc -l;
    after=$(stat -c %s "$DIR/journal.db"); test $((after + 400000)) -lt $before && echo smaller;
    rm "$DIR/fill"; test -e "$DIR/journal.reserve" && echo reserved"#;

#[tokio::test]
async fn sessions_are_listed_and_removed_on_a_full_disk() {
    let long = "x".repeat(500_000);
    let server = serve(vec![says(&long), says("Second."), says("Third.")]).await;
    let env = TestEnv::new();
    for asked in ["one", "two", "three"] {
        assert_eq!(env.ask(&server, &[asked]).await.code, Some(0));
    }
    let first = ids(&env).await.remove(2);
    for (args, left) in [
        (&["session", "rm", "--yes", &first][..], 2),
        (&["session", "prune", "--keep-bytes", "0"], 0),
    ] {
        let Some(shown) = with_mounts(&env, FULL, args).await else {
            return;
        };
        std::fs::remove_dir_all(env.home().join("kept")).unwrap();
        let expected =
            format!("free 0\n3\n3\n# three\nexit 0\n{left}\n{left}\nsmaller\nreserved\n");
        shown.check(&expected, "", 0);
    }
}

#[tokio::test]
async fn what_goes_on_without_its_end_says_so_first() {
    let server = serve(vec![says("First."), says("Second."), says("Third.")]).await;
    let env = TestEnv::new();
    assert_eq!(env.ask(&server, &["one"]).await.code, Some(0));
    let id = ids(&env).await.remove(0);
    let export = ["session", "export", &id, "-o", "one.jsonl"];
    assert_eq!(env.run(&export).await.code, Some(0));
    let exported = std::fs::read_to_string(env.project().join("one.jsonl")).unwrap();
    let path = sessions_dir(&env).join("journal.db");
    let connection = rusqlite::Connection::open(path).unwrap();
    let last = "UPDATE records SET body = body || ' ' WHERE seq = (SELECT head_seq FROM sessions)";
    assert_eq!(connection.execute(last, []).unwrap(), 1);
    drop(connection);
    let repaired = env.run(&["session", "fsck", "--repair"]).await;
    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    let note = format!("note: the end of session `{id}` is missing");
    let mut person = start(&env, &server, &["-c"]);
    person.sees(&note).await;
    person.prompt("agent").await;
    leave(person).await;
    let shown = env.ask(&server, &["-c", "two"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.stderr.starts_with(&note), "{shown:?}");
    // What is said from here on is whole.
    let shown = env.ask(&server, &["-c", "three"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(!shown.stderr.contains("is missing"), "{shown:?}");

    let lines: Vec<&str> = exported.lines().collect();
    let other = TestEnv::new().stdin(&lines[..lines.len() - 1].join("\n"));
    assert_eq!(other.run(&["session", "import"]).await.code, Some(0));
    let resumed = other.run(&["resume", &id]).await;
    assert!(resumed.stderr.starts_with(&note), "{resumed:?}");
}

#[tokio::test]
async fn a_reading_call_whose_result_is_lost_is_said_to_run_again() {
    let env = TestEnv::new();
    let reads = calls("list_files", &json!({}));
    let server = serve(vec![reads, says("Done."), says("Gone on.")]).await;
    assert_eq!(env.ask(&server, &["x"]).await.code, Some(0));
    let path = sessions_dir(&env).join("journal.db");
    let connection = rusqlite::Connection::open(path).unwrap();
    let flip = "UPDATE records SET body = body || ' ' WHERE body LIKE '%\"tool_finished\"%'";
    assert_eq!(connection.execute(flip, []).unwrap(), 1);
    drop(connection);
    let repaired = env.run(&["session", "fsck", "--repair"]).await;
    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    let url = server.url("/v1");
    let mut person = Person::start(&env, &["resume", "--base-url", &url]);
    person
        .sees("`list_files` was running when the turn was cut off: running it again")
        .await;
    person.sees("Gone on.").await;
    assert_eq!(person.code().await, Some(0));
}

#[tokio::test]
async fn a_command_whose_records_are_lost_does_not_run_again() {
    // If its beginning is recorded, its state says how it ended.
    for (kind, expected) in [
        ("tool_finished", r#"{"stdout":"","exitCode":0}"#),
        ("tool_started", "in_doubt"),
        ("gate_judged", "in_doubt"),
    ] {
        let env = TestEnv::new();
        let effect = calls("exec", &json!({"command": "echo run >> runs"}));
        let server = serve(vec![effect, says("Done."), says("Gone on.")]).await;
        assert_eq!(env.ask(&server, &["--yolo", "x"]).await.code, Some(0));
        let path = sessions_dir(&env).join("journal.db");
        let connection = rusqlite::Connection::open(path).unwrap();
        let flip = format!("UPDATE records SET body = body || ' ' WHERE body LIKE '%\"{kind}\"%'");
        assert_eq!(connection.execute(&flip, []).unwrap(), 1, "{kind}");
        drop(connection);
        let repaired = env.run(&["session", "fsck", "--repair"]).await;
        assert_eq!(repaired.code, Some(0), "{kind}: {repaired:?}");
        let url = server.url("/v1");
        let resumed = env.run(&["resume", "--base-url", &url, "--yolo"]).await;
        assert_eq!(resumed.stdout, "Gone on.\n", "{kind}: {resumed:?}");
        let runs = std::fs::read_to_string(env.project().join("runs")).unwrap();
        assert_eq!(runs, "run\n", "{kind}");
        let request = server.requests().pop().unwrap().json();
        let told = request["messages"].as_array().unwrap().last().unwrap()["content"].clone();
        let told = told.as_str().unwrap();
        assert!(told.contains(expected), "{kind}: {told}");
    }
}
