use crate::harness::{TestEnv, says, serve};
use crate::person::{ENTER, TAB};
use crate::{repl, screen};
use serde_json::json;

#[tokio::test]
async fn what_is_piped_in_follows_the_prompt_as_a_block() {
    let server = serve(vec![says("ok")]).await;
    let env = TestEnv::new().stdin("line one\nline two\n");
    env.ask(&server, &["explain"]).await.check("ok\n", "", 0);
    let content = server.requests()[0].json()["messages"][1]["content"].clone();
    assert_eq!(content, "explain\n\n<stdin>\nline one\nline two\n</stdin>");
}

#[tokio::test]
async fn the_prompt_itself_may_be_piped_in() {
    let server = serve(vec![says("ok"), says("ok")]).await;
    let env = TestEnv::new().stdin("the question\n");
    env.ask(&server, &["-"]).await.check("ok\n", "", 0);
    env.ask(&server, &[]).await.check("ok\n", "", 0);
    for request in server.requests() {
        assert_eq!(request.json()["messages"][1]["content"], "the question");
    }
}

#[tokio::test]
async fn files_are_attached_by_name() {
    let server = serve(vec![says("ok")]).await;
    let env = TestEnv::new();
    env.write("a.txt", "alpha\n");
    env.write("dot.png", b"\x89PNG\r\n\x1a\nrest");
    env.ask(&server, &["sum", "@a.txt", "@dot.png"])
        .await
        .check("ok\n", "", 0);
    let content = server.requests()[0].json()["messages"][1]["content"].clone();
    assert_eq!(
        content,
        json!([
            {"type": "text", "text": "sum a.txt dot.png"},
            {"type": "text", "text": "\n\n<file path=\"a.txt\">\nalpha\n</file>"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgpyZXN0"}},
        ])
    );
}

#[tokio::test]
async fn a_missing_file_is_an_input_error_and_nothing_is_asked() {
    let server = serve(vec![]).await;
    let shown = TestEnv::new().ask(&server, &["sum @nope.txt"]).await;
    shown.check(
        "",
        "error: failed to read `nope.txt`\n  caused by: No such file or directory (os error 2)\n\nhint: `@` attaches a file; write `@@` for the sign itself\n",
        42,
    );
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_schema_that_makes_no_sense_is_an_input_error_and_nothing_is_asked() {
    for schema in ["{", "3", r#"{"type": "foo"}"#, r##"{"$ref": "#"}"##] {
        let server = serve(vec![]).await;
        let env = TestEnv::new();
        env.write("schema.json", schema);
        let args = ["--output-schema", "schema.json", "--json", "2+2?"];
        let shown = env.ask(&server, &args).await;
        assert_eq!(shown.code, Some(42), "{shown:?}");
        assert_eq!(shown.result()["steps"], 0);
        assert!(shown.stderr.contains("schema.json"), "{shown:?}");
    }
}

/// No process ever writes to the pipe, and a turn ends in time all the same.
#[tokio::test]
async fn a_file_that_never_ends_is_not_waited_for_beyond_the_deadline() {
    let server = serve(vec![]).await;
    let env = TestEnv::new();
    let fifo = env.project().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    let args = ["--deadline", "300ms", "--json", "see @pipe"];
    let shown = env.ask(&server, &args).await;
    assert_eq!(shown.code, Some(124), "{shown:?}");
    assert_eq!(shown.result()["error"]["class"], "deadline");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn an_empty_prompt_is_an_input_error() {
    let server = serve(vec![]).await;
    TestEnv::new()
        .ask(&server, &[])
        .await
        .check("", "error: the prompt is empty\n", 42);
}

/// Returns the parts of the last message that a server was sent.
fn last_parts(server: &rondo_testkit::Server) -> String {
    let request = server.requests().last().unwrap().json();
    request["messages"].as_array().unwrap().last().unwrap()["content"].to_string()
}

const MISSING: &str = "there is no file `nosuch.txt`, so `@nosuch.txt` was sent as text";

#[tokio::test]
async fn a_file_with_a_blank_is_attached_at_the_line_prompt_and_a_missing_one_is_noted() {
    let server = serve(vec![says("One."), says("Two.")]).await;
    let env = TestEnv::new();
    env.write("a b.txt", "alpha\n");
    let mut person = repl::start(&env, &server, &[]);
    person.prompt("agent").await;
    person.enter("see @nosuch.txt").await;
    person.sees(MISSING).await;
    person.prompt("agent").await;
    person.press("see @\"a b").await;
    person.types_behind("a b").await;
    person.press(TAB).await;
    person.types_behind("@\"a b.txt\" ").await;
    person.press(ENTER).await;
    person.sees("Two.").await;
    assert!(last_parts(&server).contains("alpha"));
    person.prompt("agent").await;
    repl::leave(person).await;
}

#[tokio::test]
async fn a_file_with_a_blank_is_attached_on_the_screen_and_a_missing_one_is_noted() {
    let server = serve(vec![says("One."), says("Two."), says("Three.")]).await;
    let env = TestEnv::new();
    env.write("a b.txt", "alpha\n");
    let mut person = screen::open(&env, &server, &[]).await;
    person.press("see @nosuch.txt \r").await;
    person.shows(MISSING).await;
    person.shows("One.").await;
    person.press("/include a b.txt\r").await;
    person.shows("`a b.txt` will be attached").await;
    person.press("what is it?\r").await;
    person.shows("Two.").await;
    assert!(last_parts(&server).contains("alpha"));
    person.press("again @a").await;
    person.shows("▸ @\"a b.txt\"").await;
    person.press(TAB).await;
    person.press("please\r").await;
    person.shows("Three.").await;
    assert!(last_parts(&server).contains("again a b.txt please"));
    screen::leave(person).await;
}
