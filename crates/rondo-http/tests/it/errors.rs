use crate::support::{Timers, ask, drive, gemini, model, openai, run};
use bytes::Bytes;
use rondo_http::{Auth, Endpoint, HttpError, HttpModel, ModelCard, Secret};
use rondo_testkit::{Gate, Response, Script, Server, Step, faults, openai as wire};
use rondo_types::{ErrorClass, ModelError};
use std::time::Duration;

async fn error_of(response: Response) -> ModelError {
    let server = Server::start(response).await;
    run(&server).await.end.unwrap_err()
}

#[tokio::test]
async fn hub_18_errors_that_waiting_mends_are_told_from_those_it_does_not() {
    let cases = [
        (wire::error(401, "auth", "bad key"), ErrorClass::Auth, false),
        (
            wire::error(404, "x", "no such model"),
            ErrorClass::NotFound,
            false,
        ),
        (
            wire::error(400, "x", "odd field"),
            ErrorClass::BadRequest,
            false,
        ),
        (faults::rate_limited(None), ErrorClass::RateLimited, true),
        (faults::html_error(502), ErrorClass::Server, true),
        (faults::html_error(500), ErrorClass::Server, true),
    ];
    for (response, class, retryable) in cases {
        let error = error_of(response).await;
        assert_eq!(
            (error.class, error.retryable),
            (class, retryable),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_storm_of_429_is_one_request_an_attempt_and_keeps_its_connection() {
    let server = Server::start(Script::repeat(faults::rate_limited(Some(7)))).await;
    let model = model(&openai(&server));
    for attempt in 1..=3 {
        let error = drive(ask(&model), Timers::default()).await.end.unwrap_err();
        assert_eq!(error.class, ErrorClass::RateLimited);
        assert_eq!(
            (error.status, error.retry_after_ms),
            (Some(429), Some(7000))
        );
        assert_eq!(server.requests().len(), attempt);
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn without_retry_after_there_is_no_delay_to_honour() {
    let error = error_of(faults::rate_limited(None)).await;
    assert_eq!(error.retry_after_ms, None);
}

#[tokio::test]
async fn a_web_page_instead_of_a_reply_is_a_protocol_error() {
    let error = error_of(Response::html(200, "<!doctype html><html></html>")).await;
    assert_eq!(
        (error.class, error.retryable),
        (ErrorClass::Protocol, false)
    );
}

#[tokio::test]
async fn gemini_says_how_long_to_wait_in_the_body() {
    let body = serde_json::json!({"error": {
        "code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow down",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3.5s"}],
    }});
    let server = Server::start(Response::json(429, &body)).await;
    let outcome = drive(ask(&model(&gemini(&server))), Timers::default()).await;
    assert_eq!(outcome.error().retry_after_ms, Some(3500));
}

#[tokio::test]
async fn an_error_page_that_never_ends_is_cut() {
    let page = Response::new(500).step(Step::Forever {
        bytes: Bytes::from(vec![b'x'; 16 * 1024]),
        every: Duration::ZERO,
    });
    let error = error_of(page).await;
    assert_eq!((error.class, error.status), (ErrorClass::Server, Some(500)));
    assert!(error.message.len() < 1024, "{}", error.message.len());
}

#[tokio::test]
async fn an_error_page_that_stalls_is_judged_by_what_came() {
    let body = r#"{"error":{"message":"key is wrong","type":"auth"}}"#;
    let gate = Gate::new();
    let stalled = Response::new(401).send(body).step(Step::Gate(gate.clone()));
    let server = Server::start(stalled).await;
    let stream = ask(&model(&openai(&server)));
    let run = tokio::spawn(drive(stream, Timers::default()));
    gate.reached().await;
    tokio::time::pause();
    let error = run.await.unwrap().end.unwrap_err();
    assert_eq!(error.class, ErrorClass::Auth);
    assert!(error.message.contains("key is wrong"), "{error}");
}

fn refused(change: impl FnOnce(&mut Endpoint)) -> HttpError {
    let mut endpoint = Endpoint::new("p", "openai-chat", "http://localhost/v1");
    change(&mut endpoint);
    HttpModel::new(&endpoint, ModelCard::new("m")).unwrap_err()
}

#[test]
fn endpoints_that_cannot_work_are_refused_with_the_reason() {
    let error = refused(|endpoint| endpoint.dialect = "nope".to_owned());
    assert_eq!(
        error.to_string(),
        "unknown dialect `nope`; there are `openai-chat`, `gemini`, `openai-responses`, \
         `anthropic`, and `react`"
    );

    let error = refused(|endpoint| endpoint.base_url = "localhost:80".to_owned());
    let expected = "the base url of provider `p` is not an http or https address";
    assert_eq!(error.to_string(), expected);

    let error = refused(|endpoint| endpoint.auth = Auth::Bearer(Secret::new("a\nb")));
    let expected = "header `authorization` of provider `p` has characters that cannot be sent";
    assert_eq!(error.to_string(), expected);

    let error = refused(|endpoint| endpoint.network.ca_file = Some("/no/such.pem".into()));
    let expected = "failed to read the certificate authorities in `/no/such.pem`";
    assert_eq!(error.to_string(), expected);

    // Neither a pipe without a writer nor one that never ends is waited for.
    let pipe = std::path::PathBuf::from("/dev/zero");
    let error = refused(|endpoint| endpoint.network.ca_file = Some(pipe));
    let why = std::error::Error::source(&error).map(ToString::to_string);
    assert_eq!(why.as_deref(), Some("it is not a regular file"));

    let error = refused(|endpoint| {
        endpoint.network.proxies.http = Some(Secret::new("http://user:pw@[bad"));
    });
    assert_eq!(error.to_string(), "the http proxy is not an address");
}
