use crate::support::{gemini, model, openai};
use rondo_http::list_models;
use rondo_http::probe::{Check, PROBE_TOOL, probe};
use rondo_testkit::{CallScript, ReplyScript, Response, Server, openai as wire};
use rondo_types::ErrorClass;
use serde_json::json;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);

fn works(check: &Check) -> bool {
    matches!(check, Check::Works { .. })
}

fn missing(check: &Check) -> bool {
    matches!(check, Check::Missing { .. })
}

#[tokio::test]
async fn a_capable_provider_passes_every_check_in_three_requests() {
    let call = CallScript::new("c", PROBE_TOOL, &json!({"value": 7}));
    let server = Server::start([
        Response::json(200, &json!({"data": [{"id": "other"}, {"id": "m"}]})),
        wire::streamed(&ReplyScript::text(["one ", "two"]).usage(10, 4)),
        wire::streamed(&ReplyScript::calls([call]).usage(20, 6)),
    ])
    .await;
    let report = probe(&model(&openai(&server)), TIMEOUT).await;
    let checks = [
        &report.listed,
        &report.text,
        &report.streaming,
        &report.tool_call,
        &report.usage,
    ];
    assert!(checks.into_iter().all(works), "{report:#?}");
    assert_eq!(report.spent.total(), 40);
    assert!(report.first_event_ms.is_some());
    let sent = server.requests();
    let paths: Vec<_> = sent.iter().map(|request| request.path.as_str()).collect();
    let chat = "/v1/chat/completions";
    assert_eq!(paths, ["/v1/models", chat, chat]);
    assert_eq!(sent[2].json()["tools"][0]["function"]["name"], PROBE_TOOL);
}

#[tokio::test]
async fn what_a_provider_cannot_do_is_told_apart_from_failures() {
    let server = Server::start([
        wire::error(404, "x", "no list here"),
        wire::whole(&ReplyScript::text(["one"])),
        wire::whole(&ReplyScript::text(["7"])),
    ])
    .await;
    let report = probe(&model(&openai(&server)), TIMEOUT).await;
    let Check::Failed { error } = &report.listed else {
        panic!("{report:#?}");
    };
    assert_eq!(error.class, ErrorClass::NotFound);
    assert!(works(&report.text), "{report:#?}");
    let absent = [&report.streaming, &report.usage, &report.tool_call];
    assert!(absent.into_iter().all(missing), "{report:#?}");
}

#[tokio::test]
async fn gemini_models_are_listed_by_the_names_requests_use() {
    let body = json!({"models": [{"name": "models/gemini-x"}]});
    let server = Server::start(Response::json(200, &body)).await;
    let models = list_models(&model(&gemini(&server))).await;
    assert_eq!(models, Ok(vec!["gemini-x".to_owned()]));
    assert_eq!(server.request(0).await.path, "/v1beta/models?pageSize=1000");
}

#[tokio::test]
async fn a_page_that_is_no_list_is_a_protocol_error() {
    let server = Server::start(Response::html(200, "<html></html>")).await;
    let error = list_models(&model(&openai(&server))).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Protocol);
}

#[tokio::test]
async fn a_provider_that_says_it_has_no_function_calling_lacks_it() {
    let text = "Function calling is not enabled for models/m";
    let server = Server::start([
        Response::json(200, &json!({"models": []})),
        rondo_testkit::gemini::streamed(&ReplyScript::text(["one ", "two"])),
        rondo_testkit::gemini::error(400, "INVALID_ARGUMENT", text),
    ])
    .await;
    let report = probe(&model(&gemini(&server)), TIMEOUT).await;
    let Check::Missing { detail } = &report.tool_call else {
        panic!("{report:#?}");
    };
    assert!(detail.contains(text), "{detail}");
    assert!(missing(&report.listed), "{report:#?}");
}

#[tokio::test]
async fn an_answer_that_takes_too_long_fails_its_check_alone() {
    let stall = rondo_testkit::faults::zero_byte_stall();
    let call = CallScript::new("c", PROBE_TOOL, &json!({"value": 7}));
    let list = Response::json(200, &json!({"data": [{"id": "m"}]}));
    let called = wire::streamed(&ReplyScript::calls([call]));
    let server = Server::start([list, stall, called]).await;
    let model = model(&openai(&server));
    let run = tokio::spawn(async move { probe(&model, TIMEOUT).await });
    server.request(1).await;
    tokio::time::pause();
    server.request(2).await;
    tokio::time::resume();
    let report = run.await.unwrap();
    let Check::Failed { error } = &report.text else {
        panic!("{report:#?}");
    };
    assert_eq!(error.class, ErrorClass::StepTimeout);
    assert!(
        works(&report.listed) && works(&report.tool_call),
        "{report:#?}"
    );
}
