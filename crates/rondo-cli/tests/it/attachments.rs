use crate::harness::{TestEnv, says, serve};
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

/// Nobody ever writes to the pipe, and a turn ends in time all the same.
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
