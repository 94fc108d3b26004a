//! The tool `web_fetch`.

use crate::names::{egress, site};
use crate::reader::{pdf, reader};
use rondo_core::ports::{Tool as _, ToolInvocation};
use rondo_testkit::{Response, Server, Step};
use rondo_types::{SessionId, ToolErrorCode, ToolOutcome, ToolOutput};
use rondo_web::WebFetch;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub(crate) fn invocation(arguments: Value, cancel: CancellationToken) -> ToolInvocation {
    ToolInvocation {
        cancel,
        ..ToolInvocation::new(SessionId::new("s"), arguments)
    }
}

async fn fetch(response: Response, arguments: Value) -> ToolOutcome {
    let server = Server::start([response]).await;
    let tool = WebFetch::new(egress(&site(&server), &[]), reader());
    tool.call(invocation(arguments, CancellationToken::new()))
        .await
}

fn output(outcome: ToolOutcome) -> ToolOutput {
    match outcome {
        ToolOutcome::Ok(output) => output,
        ToolOutcome::Error(error) => panic!("{error:?}"),
    }
}

fn url() -> Value {
    json!({"url": "http://docs.example/x"})
}

#[tokio::test]
async fn each_kind_of_page_is_text_from_outside() {
    let words = "Some words of an article that is long enough to be one. ".repeat(20);
    let html = format!("<title>Title</title><article><h1>One</h1><p>{words}</p></article>");
    for (response, expected) in [
        (Response::html(200, html), "Some words of an article"),
        (Response::text(200, "plain é"), "plain é"),
        (Response::json(200, &json!({"a": 1})), "{\"a\":1}"),
        (
            Response::new(200)
                .header("content-type", "application/pdf")
                .send(pdf(&["Of a PDF"])),
            "[page 1]\nOf a PDF",
        ),
        (
            Response::new(302).header("location", "https://other.example/y"),
            "[it leads to another site; to read it, fetch https://other.example/y]",
        ),
    ] {
        let output = output(fetch(response, url()).await);
        let text = output.value.as_str().unwrap();
        assert!(text.contains(expected), "{text}");
        assert!(output.from_outside && !output.truncated);
    }
}

#[tokio::test]
async fn what_is_no_text_is_named_with_its_size() {
    let image = Response::new(200)
        .header("content-type", "image/png")
        .framing(rondo_testkit::Framing::Length)
        .send(b"\x89PNG\r\n\x1a\n\0\0\0\0".to_vec());
    let ToolOutcome::Error(error) = fetch(image, url()).await else {
        panic!("it is not text")
    };
    assert_eq!(error.code, ToolErrorCode::Failed);
    assert_eq!(
        error.message,
        "`http://docs.example/x` is not shown: it is image/png, 12 bytes"
    );
}

#[tokio::test]
async fn a_long_text_is_read_in_parts() {
    let text = "0123456789".repeat(15_000);
    let of = |offset: usize| {
        let arguments = json!({"url": "http://docs.example/x", "offset": offset});
        fetch(Response::text(200, text.clone()), arguments)
    };
    let first = output(of(0).await);
    let first_text = first.value.as_str().unwrap();
    assert!(first.truncated);
    assert!(
        first_text
            .starts_with("[http://docs.example/x; bytes 0-100000 of 150000; next offset 100000]\n"),
        "{}",
        &first_text[..100]
    );
    let second = output(of(100_000).await);
    let second_text = second.value.as_str().unwrap();
    assert!(!second.truncated);
    let (_, begin) = first_text.split_once('\n').unwrap();
    let (_, end) = second_text.split_once('\n').unwrap();
    assert_eq!(format!("{begin}{end}"), text);
}

#[tokio::test]
async fn a_cancelled_call_ends_at_once_and_its_connection_with_it() {
    let server = Server::start([Response::html(200, "x").before(Step::Stall)]).await;
    let tool = WebFetch::new(egress(&site(&server), &[]), reader());
    let cancel = CancellationToken::new();
    let call = tool.call(invocation(url(), cancel.clone()));
    let stop = async {
        server.request(0).await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(call, stop);
    assert_eq!(outcome.code(), Some(ToolErrorCode::Cancelled));
    server.disconnected(0).await;
}

#[test]
fn a_call_is_never_taken_for_one_that_only_looks() {
    let names = std::sync::Arc::new(crate::names::Names::new());
    let spec = WebFetch::new(egress(&names, &[]), reader()).spec();
    assert_eq!(spec.effects, rondo_types::Effects::Writes);
    assert_eq!(spec.kind, rondo_types::ToolKind::Fetch);
    assert_eq!(spec.hints.open_world, Some(true));
}
