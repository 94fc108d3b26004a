//! Peculiarities of real providers, over a socket.

use crate::harness::{TestEnv, calls, says, serve};
use rondo_testkit::{ReplyScript, Response, Script, Server, Step, openai};
use serde_json::{Value, json};
use std::time::Duration;

const RETRY_AT_ONCE: &str =
    "[profiles.default.limits.retry]\nbase_ms = 1\nmax_ms = 1\njitter_percent = 0\n";

/// A provider that refuses each request with an image.
async fn without_images(replies: &'static [&'static str]) -> Server {
    let next = std::sync::atomic::AtomicUsize::new(0);
    Server::start(Script::answering(move |request| {
        if request.json().to_string().contains("image_url") {
            return openai::error(400, "invalid_request_error", "this model reads no images");
        }
        let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        match replies.get(at) {
            Some(&"read") => openai::streamed(&calls("read_file", &json!({"path": "dot.png"}))),
            Some(reply) => openai::streamed(&says(reply)),
            None => Response::text(500, "nothing left"),
        }
    }))
    .await
}

fn messages(server: &Server) -> Vec<Value> {
    let request = server.requests().last().unwrap().json();
    request["messages"].as_array().unwrap().clone()
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

#[tokio::test]
async fn an_image_that_the_provider_refuses_is_described_in_this_turn_and_in_later_ones() {
    let server = without_images(&["a dot", "still here"]).await;
    let env = TestEnv::new();
    env.write("dot.png", PNG);
    let shown = env.ask(&server, &["see @dot.png"]).await;
    assert_eq!(
        (shown.stdout.as_str(), shown.code),
        ("a dot\n", Some(0)),
        "{shown:?}"
    );
    assert!(
        shown.stderr.contains("described images and files in text"),
        "{shown:?}"
    );
    assert_eq!(server.requests().len(), 2);
    let shown = env.ask(&server, &["-c", "and now?"]).await;
    assert_eq!(
        (shown.stdout.as_str(), shown.code),
        ("still here\n", Some(0)),
        "{shown:?}"
    );
    assert_eq!(server.requests().len(), 3, "nothing is refused again");
    let first = messages(&server)[1].to_string();
    assert!(
        first.contains("image `dot.png` (image/png, 12 bytes)"),
        "{first}"
    );
}

#[tokio::test]
async fn an_image_that_a_tool_read_and_the_provider_refuses_is_described() {
    let server = without_images(&["read", "a dot", "still here"]).await;
    let env = TestEnv::new();
    env.write("dot.png", PNG);
    let shown = env.ask(&server, &["--yolo", "look"]).await;
    assert_eq!(
        (shown.stdout.as_str(), shown.code),
        ("a dot\n", Some(0)),
        "{shown:?}"
    );
    let shown = env.ask(&server, &["-c", "and now?"]).await;
    assert_eq!(shown.stdout, "still here\n", "{shown:?}");
    assert_eq!(server.requests().len(), 4, "nothing is refused again");
}

#[tokio::test]
async fn a_model_that_reads_no_images_goes_on_with_a_session_that_has_some() {
    let sees = serve(vec![says("a dot")]).await;
    let env = TestEnv::new();
    env.write("dot.png", PNG);
    let shown = env.ask(&sees, &["see @dot.png"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let blind = without_images(&["so be it", "again"]).await;
    for (question, answer) in [("and now?", "so be it\n"), ("and then?", "again\n")] {
        let url = blind.url("/v1");
        let args = [
            "ask",
            "-c",
            "-m",
            "openai/blind",
            "--base-url",
            &url,
            question,
        ];
        assert_eq!(env.run(&args).await.stdout, answer);
    }
    assert_eq!(blind.requests().len(), 3);
}

fn cut_then_whole() -> Script {
    let mut frames = openai::frames(&says("half of it"));
    frames.truncate(2);
    let cut = Response::sse(frames).step(Step::Close);
    Script::from([cut, openai::streamed(&says("whole"))])
}

#[tokio::test]
async fn a_reply_that_is_cut_is_asked_for_again_where_only_the_end_is_printed() {
    for args in [&["x"][..], &["--json", "x"]] {
        let server = Server::start(cut_then_whole()).await;
        let env = TestEnv::new();
        env.user_config(RETRY_AT_ONCE);
        let shown = env.ask(&server, args).await;
        assert_eq!(shown.code, Some(0), "{shown:?}");
        assert!(shown.stdout.contains("whole"), "{shown:?}");
        assert!(!shown.stdout.contains("half of it"), "{shown:?}");
    }
    let server = Server::start(cut_then_whole()).await;
    let env = TestEnv::new();
    env.user_config(RETRY_AT_ONCE);
    let shown = env
        .ask(&server, &["--output-format", "stream-json", "x"])
        .await;
    assert_eq!(
        (shown.code, server.requests().len()),
        (Some(1), 1),
        "{shown:?}"
    );
}

#[tokio::test]
async fn a_stream_that_is_cut_after_reasoning_is_asked_for_again() {
    let mut frames = openai::frames(&ReplyScript::text(["x"]).thinking("hm"));
    frames.truncate(2);
    let cut = Response::sse(frames).step(Step::Close);
    let server = Server::start(Script::from([cut, openai::streamed(&says("whole"))])).await;
    let env = TestEnv::new();
    env.user_config(RETRY_AT_ONCE);
    let shown = env
        .ask(&server, &["--output-format", "stream-json", "x"])
        .await;
    assert_eq!(shown.result()["text"], "whole", "{shown:?}");
}

#[tokio::test]
async fn pings_in_the_middle_of_a_reply_are_no_silence() {
    let frames = openai::frames(&says("a slow answer"));
    let (begin, end) = frames.split_at(2);
    let mut response = Response::sse(begin.to_vec());
    for _ in 0..12 {
        response = response
            .step(Step::Delay(Duration::from_millis(500)))
            .send(": ping\n\n");
    }
    for frame in end {
        response = response.send(frame.clone());
    }
    let server = Server::start(response).await;
    let env = TestEnv::new();
    env.user_config("[profiles.default.limits]\nidle_timeout_ms = 4000\n");
    let shown = env.ask(&server, &["x"]).await;
    assert_eq!(
        (shown.stdout.as_str(), shown.code),
        ("a slow answer\n", Some(0)),
        "{shown:?}"
    );
}

#[tokio::test]
async fn a_refusal_without_words_says_so_and_is_no_success() {
    let refused = ReplyScript::default().finish("refusal");
    let server = serve(vec![refused]).await;
    let shown = TestEnv::new().ask(&server, &["x"]).await;
    assert_ne!(shown.code, Some(0), "{shown:?}");
    assert!(shown.stderr.contains("the model refused"), "{shown:?}");
}

#[tokio::test]
async fn a_temperature_that_the_model_refuses_is_left_out_and_told() {
    let server = Server::start(Script::answering(|request| {
        match request.json().get("temperature") {
            Some(_) => openai::error(
                400,
                "invalid_request_error",
                "Unsupported value: 'temperature'",
            ),
            None => openai::streamed(&says("ok")),
        }
    }))
    .await;
    let shown = TestEnv::new()
        .ask(&server, &["--temperature", "0.5", "x"])
        .await;
    assert_eq!(
        (shown.stdout.as_str(), shown.code),
        ("ok\n", Some(0)),
        "{shown:?}"
    );
    assert!(shown.stderr.contains("takes no temperature"), "{shown:?}");
}

#[tokio::test]
async fn the_session_of_another_directory_is_named_and_not_taken() {
    let server = serve(vec![says("one"), says("two")]).await;
    let env = TestEnv::new();
    env.write("sub/file", "");
    let shown = env.ask(&server, &["-C", "sub", "x"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for command in ["ask", "resume"] {
        let url = server.url("/v1");
        let question: &[&str] = if command == "ask" {
            &["-c", "--yolo", "y"]
        } else {
            &[]
        };
        let mut args = vec![command, "-m", "openai/test", "--base-url", &url];
        args.extend(question);
        let shown = env.run(&args).await;
        assert_ne!(shown.code, Some(0), "{shown:?}");
        assert!(
            shown
                .stderr
                .contains("no session was started in `[ROOT]/project`"),
            "{shown:?}"
        );
        assert!(shown.stderr.contains("[ROOT]/project/sub"), "{shown:?}");
    }
    assert_eq!(server.requests().len(), 1);
    let shown = env.ask(&server, &["-c", "-C", "sub", "y"]).await;
    assert_eq!(shown.stdout, "two\n", "{shown:?}");
}
