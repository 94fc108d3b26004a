//! Turns that wait for an answer without a process, and continue when it comes.

use crate::harness::{Shown, TestEnv, calls, says, serve};
use rondo_core::ports::{MailBody, Mailbox as _, NewMail};
use rondo_journal::{Options, Store};
use rondo_testkit::{CallScript, ReplyScript, Server};
use rondo_types::{Answer, AnswerValue, TimeMs};
use serde_json::{Value, json};

fn write(path: &str) -> Value {
    json!({"path": path, "content": "x"})
}

/// Asks for a file and parks the turn; the model says `Over.` once it has its result.
async fn parked(env: &TestEnv) -> Server {
    let server = serve(vec![calls("write_file", &write("made.txt")), says("Over.")]).await;
    let shown = env.ask(&server, &["--approval", "park", "make it"]).await;
    assert_eq!(shown.code, Some(47), "{shown:?}");
    server
}

/// Answers, with the server that the turn asks.
async fn answer(env: &TestEnv, server: &Server, words: &[&str]) -> Shown {
    let url = server.url("/v1");
    let mut all = vec!["answer", "--base-url", &url, "latest"];
    all.extend(words);
    env.run(&all).await
}

fn result_read(server: &Server) -> String {
    server.requests()[1].json()["messages"][3]["content"].to_string()
}

async fn state(env: &TestEnv) -> Value {
    let list = env.run(&["session", "list", "--json"]).await;
    list.lines()[0]["state"].clone()
}

#[tokio::test]
async fn a_turn_that_needs_approval_waits_and_says_for_what() {
    let env = TestEnv::new();
    let server = serve(vec![calls("write_file", &write("made.txt"))]).await;
    let shown = env.ask(&server, &["--approval", "park", "make it"]).await;
    assert_eq!((shown.code, shown.stdout.as_str()), (Some(47), ""));
    for part in [
        "note: the turn waits for an answer:\n  r00100100 (expires in 7 d)\n",
        "`write_file` wants to run",
        "hint: `rondo answer s-",
    ] {
        assert!(shown.stderr.contains(part), "{part} {shown:?}");
    }
    assert!(!env.project().join("made.txt").exists());
    assert_eq!(state(&env).await, "parked");
    let story = env.run(&["session", "show"]).await;
    let waits = "*The turn waits for an answer to `r00100100`.*";
    assert!(story.stdout.contains(waits), "{story:?}");
    let data = env.run(&["session", "show", "--format", "json"]).await;
    let waits_for = &data.lines()[0]["turns"][0]["waits_for"];
    assert_eq!(waits_for[0]["id"], "r00100100", "{data:?}");
}

#[tokio::test]
async fn the_last_object_of_a_stream_is_what_the_turn_waits_for() {
    for format in ["json", "stream-json"] {
        let server = serve(vec![calls("write_file", &write("made.txt"))]).await;
        let shown = TestEnv::new()
            .ask(
                &server,
                &["--approval", "park", "--output-format", format, "make it"],
            )
            .await;
        assert_eq!(shown.code, Some(47), "{shown:?}");
        let last = shown.lines().pop().unwrap();
        assert_eq!(last["type"], "parked");
        assert_eq!(last["exit_code"], 47);
        let question = &last["questions"][0];
        assert_eq!(question["id"], "r00100100");
        assert_eq!(question["kind"], json!({"kind": "approval"}));
        assert_eq!(question["hash"].as_str().unwrap().len(), 64);
    }
}

#[tokio::test]
async fn an_answer_from_another_process_lets_the_turn_go_on_and_the_session_replays() {
    let env = TestEnv::new();
    let server = parked(&env).await;
    let shown = answer(&env, &server, &["y"]).await;
    assert_eq!(
        (shown.code, shown.stdout.as_str()),
        (Some(0), "Over.\n"),
        "{shown:?}"
    );
    let made = std::fs::read_to_string(env.project().join("made.txt")).unwrap();
    assert_eq!(made, "x");
    assert_eq!(state(&env).await, "done");
    let replay = env.run(&["replay", "latest", "--strict"]).await;
    assert_eq!(replay.code, Some(0), "{replay:?}");
    let again = answer(&env, &server, &["y"]).await;
    assert_eq!(again.code, Some(45), "{again:?}");
    assert!(again.stderr.contains("has no open question"), "{again:?}");
}

#[tokio::test]
async fn a_call_can_be_denied_with_a_reason_or_run_with_other_arguments() {
    let env = TestEnv::new();
    let server = parked(&env).await;
    let shown = answer(&env, &server, &["n", "--reason", "not on a Friday"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(result_read(&server).contains("not on a Friday"));
    assert!(!env.project().join("made.txt").exists());

    let env = TestEnv::new();
    let server = parked(&env).await;
    let other = write("other.txt").to_string();
    let shown = answer(&env, &server, &[&other]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(!env.project().join("made.txt").exists());
    assert!(env.project().join("other.txt").exists());
}

#[tokio::test]
async fn the_arguments_of_a_call_can_be_changed_in_an_editor() {
    let env = TestEnv::new().var("EDITOR", "sed -i s/made/edited/");
    let server = parked(&env).await;
    let shown = answer(&env, &server, &["edit"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(env.project().join("edited.txt").exists());
}

#[tokio::test]
async fn an_answer_that_was_kept_before_its_process_died_is_found_and_the_turn_goes_on() {
    let env = TestEnv::new();
    let server = parked(&env).await;
    let sessions = env.home().join(".local/share/rondo/sessions");
    let store = Store::open(&sessions, Options::default()).unwrap();
    let session = store.sessions(1).unwrap().remove(0).id;
    let open = store.history(&session).unwrap().open_turn().unwrap();
    let question = &open.questions[0];
    let mail = NewMail {
        session,
        key: "answer".to_owned(),
        actor: "someone".to_owned(),
        at_ms: TimeMs(1),
        body: MailBody::Answer {
            answer: Answer {
                question: question.id.clone(),
                hash: question.hash.clone(),
                actor: "someone".to_owned(),
                value: AnswerValue::Approve,
                remember: None,
            },
        },
    };
    store.push(mail).await.unwrap();
    drop(store);
    let shown = answer(&env, &server, &["n"]).await;
    assert_eq!(
        (shown.code, shown.stdout.as_str()),
        (Some(0), "Over.\n"),
        "{shown:?}"
    );
    assert!(shown.stderr.contains("was already answered"), "{shown:?}");
    assert!(env.project().join("made.txt").exists());
}

/// Two calls in one reply, which run one after the other.
async fn two_parked(env: &TestEnv) -> Server {
    let fetch =
        |id: &str, command: &str| CallScript::new(id, "exec", &json!({ "command": command }));
    let two = ReplyScript::calls([fetch("a", "touch a"), fetch("b", "touch b")]).usage(10, 5);
    let server = serve(vec![two, says("Over.")]).await;
    let shown = env.ask(&server, &["--approval", "park", "do it"]).await;
    assert_eq!(shown.code, Some(47), "{shown:?}");
    server
}

#[tokio::test]
async fn calls_that_follow_one_another_are_asked_about_one_after_another() {
    let env = TestEnv::new();
    let server = two_parked(&env).await;
    let first = answer(&env, &server, &["r00100100", "y"]).await;
    assert_eq!(first.code, Some(47), "{first:?}");
    assert!(env.project().join("a").exists());
    assert!(!env.project().join("b").exists());
    let unknown = answer(&env, &server, &["r00100100", "y"]).await;
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.stderr.contains("r00100101"), "{unknown:?}");
    let second = answer(&env, &server, &["n"]).await;
    assert_eq!(
        (second.code, second.stdout.as_str()),
        (Some(0), "Over.\n"),
        "{second:?}"
    );
    assert!(!env.project().join("b").exists());
}

#[tokio::test]
async fn of_several_questions_each_is_named_and_its_answer_is_kept() {
    let env = TestEnv::new();
    let sessions = env.home().join(".local/share/rondo/sessions");
    std::fs::create_dir_all(&sessions).unwrap();
    let kept = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/journal/v3/journal.db"
    );
    std::fs::copy(kept, sessions.join("journal.db")).unwrap();
    let unnamed = env.run(&["answer", "open-parked", "y"]).await;
    assert_eq!(unnamed.code, Some(2), "{unnamed:?}");
    for listed in [
        "several questions are open:\n  r00100100 (",
        "\n  r00100102 (",
    ] {
        assert!(unnamed.stderr.contains(listed), "{unnamed:?}");
    }
    let second = env.run(&["answer", "open-parked", "r00100101", "y"]).await;
    assert_eq!(second.code, Some(47), "{second:?}");
    let left = "the answer is saved; session `open-parked` waits for 2 answers:\n  r00100100";
    assert!(second.stderr.contains(left), "{second:?}");
    let again = env.run(&["answer", "open-parked", "r00100101", "n"]).await;
    assert_eq!(again.code, Some(2), "{again:?}");
}

#[tokio::test]
async fn without_an_answer_nothing_goes_on_and_it_is_said_what_is_waited_for() {
    let env = TestEnv::new();
    let server = parked(&env).await;
    let url = server.url("/v1");
    let resumed = env.run(&["resume", "--base-url", &url]).await;
    assert_eq!(resumed.code, Some(47), "{resumed:?}");
    assert!(resumed.stderr.contains("r00100100"), "{resumed:?}");
    assert_eq!(server.requests().len(), 1);
    assert_eq!(state(&env).await, "parked");
}

#[tokio::test]
async fn a_message_to_a_session_that_waits_is_queued_and_answered_after_the_turn() {
    let env = TestEnv::new();
    let replies = vec![
        calls("write_file", &write("made.txt")),
        says("Over."),
        says("Second."),
        says("Third."),
    ];
    let server = serve(replies).await;
    let shown = env.ask(&server, &["--approval", "park", "make it"]).await;
    assert_eq!(shown.code, Some(47), "{shown:?}");
    let queued = env.ask(&server, &["-c", "and then?"]).await;
    assert_eq!(queued.code, Some(47), "{queued:?}");
    let said = "your message was queued until then";
    assert!(queued.stderr.contains(said), "{queued:?}");
    assert_eq!(server.requests().len(), 1);
    let shown = answer(&env, &server, &["y"]).await;
    assert_eq!((shown.code, shown.stdout.as_str()), (Some(0), "Second.\n"));
    assert!(shown.stderr.contains("Over."), "{shown:?}");
    let shown = env.ask(&server, &["-c", "more"]).await;
    assert_eq!(shown.stdout, "Third.\n", "{shown:?}");
    let said = |at: usize| {
        let request = server.requests()[at].json();
        let messages = request["messages"].as_array().unwrap().clone();
        let users = messages.into_iter().filter(|it| it["role"] == "user");
        let texts = users.map(|it| it["content"].as_str().unwrap().to_owned());
        texts.collect::<Vec<_>>()
    };
    assert_eq!(said(3), ["make it", "and then?", "more"]);
}

#[tokio::test]
async fn a_question_that_has_expired_is_denied_and_the_turn_answers() {
    let env = TestEnv::new().var("RONDO_QUESTION_EXPIRY", "1ms");
    let server = parked(&env).await;
    let late = answer(&env, &server, &["y"]).await;
    assert_eq!(late.code, Some(45), "{late:?}");
    assert!(late.stderr.contains("has expired"), "{late:?}");
    let url = server.url("/v1");
    let resumed = env.run(&["resume", "--base-url", &url]).await;
    assert_eq!(
        (resumed.code, resumed.stdout.as_str()),
        (Some(0), "Over.\n"),
        "{resumed:?}"
    );
    assert!(result_read(&server).contains("expired"));
    assert!(!env.project().join("made.txt").exists());
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_changes_nothing() {
    let env = TestEnv::new();
    let server = parked(&env).await;
    for words in [
        &["maybe"][..],
        &["[1]"],
        &["r9", "y"],
        &["y", "--reason", "x"],
    ] {
        let shown = answer(&env, &server, words).await;
        assert_eq!(shown.code, Some(2), "{shown:?}");
    }
    assert_eq!(state(&env).await, "parked");
    let shown = answer(&env, &server, &["--json", "maybe"]).await;
    let result = shown.result();
    assert_eq!((shown.code, &result["exit_code"]), (Some(2), &json!(2)));
    let shown = answer(&env, &server, &["--json", "y"]).await;
    assert_eq!(shown.result()["text"], "Over.", "{shown:?}");
}

#[tokio::test]
async fn a_session_that_is_not_kept_cannot_wait() {
    let server = serve(vec![calls("write_file", &write("made.txt")), says("Over.")]).await;
    let env = TestEnv::new();
    let args = ["--approval", "park", "--ephemeral", "make it"];
    let shown = env.ask(&server, &args).await;
    assert_eq!(shown.stdout, "Over.\n", "{shown:?}");
    assert!(result_read(&server).contains("this session is not recorded"));
}

#[tokio::test]
async fn approval_can_be_refused_without_asking() {
    let server = serve(vec![calls("write_file", &write("made.txt")), says("Over.")]).await;
    let env = TestEnv::new();
    let shown = env.ask(&server, &["--approval", "deny", "make it"]).await;
    assert_eq!(
        (shown.code, shown.stdout.as_str()),
        (Some(0), "Over.\n"),
        "{shown:?}"
    );
    assert!(result_read(&server).contains("the setting `approval` is `deny`"));
}

#[tokio::test]
async fn a_parked_turn_that_was_imported_does_not_go_on_by_itself() {
    let env = TestEnv::new();
    let server = parked(&env).await;
    let file = env.project().join("theirs.jsonl");
    let export = ["session", "export", "-o", file.to_str().unwrap()];
    env.run(&export).await.check("", "", 0);
    let exported = std::fs::read_to_string(file).unwrap();
    let other = TestEnv::new().stdin(&exported);
    let imported = other.run(&["session", "import", "--as", "theirs"]).await;
    assert_eq!(imported.stdout, "theirs\n", "{imported:?}");
    let url = server.url("/v1");
    let shown = other
        .run(&["answer", "--base-url", &url, "theirs", "y"])
        .await;
    assert_eq!(shown.code, Some(44), "{shown:?}");
    assert!(!other.project().join("made.txt").exists());
}
