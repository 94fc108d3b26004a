//! Faults of networks and providers, seen through whole turns: every turn ends, within its bounds,
//! with the right class, and repeats a request only before anything was shown.

use crate::support::{Bench, Ran, bodies, chunks, echo};
use bytes::Bytes;
use rondo::types::ErrorClass;
use rondo::{EventBody, Limits, StopReason};
use rondo_testkit::{
    CallScript, Gate, ReplyScript, Response, Script, Server, Step, faults, gemini, openai,
    refused_url,
};
use serde_json::json;
use std::time::Duration;

/// Repetitions of the `default` profile.
const RETRIES: usize = 4;

/// The `default` profile with waits that a test can sit out.
fn bench(server: &Server) -> Bench {
    Bench::chat("default", server).limits(brief)
}

fn brief(limits: &mut Limits) {
    limits.retry.base = Duration::from_millis(1);
}

fn answer() -> Response {
    openai::streamed(&ReplyScript::text(["fine"]))
}

/// The beginning of an answer: the role and one piece of text.
fn opening() -> Vec<Bytes> {
    let mut frames = openai::frames(&ReplyScript::text(["partial", "never sent"]));
    frames.truncate(2);
    frames
}

async fn ask(script: impl Into<Script>) -> (Server, Ran) {
    let server = Server::start(script).await;
    let ran = bench(&server).ask("q").await;
    (server, ran)
}

/// Runs a turn whose end only a timer brings: time jumps once the request has arrived.
async fn ask_until_late(response: Response) -> (Server, Ran) {
    let server = Server::start(response).await;
    let ran = bench(&server)
        .limits(|limits| limits.retry.max_retries = 0)
        .ask_beside("q", async |_| {
            server.request(0).await;
            tokio::time::pause();
        })
        .await;
    (server, ran)
}

fn delays(ran: &Ran) -> Vec<u64> {
    ran.events
        .iter()
        .filter_map(|event| match event {
            EventBody::RetryScheduled { delay_ms, .. } => Some(*delay_ms),
            _ => None,
        })
        .collect()
}

#[track_caller]
fn assert_ended(ran: &Ran, reason: StopReason, class: ErrorClass, shown: &str) {
    assert_eq!(
        (ran.outcome.stop_reason, ran.error_class()),
        (reason, Some(class)),
        "{:?}",
        ran.outcome.error
    );
    assert!(ran.outcome.degraded && !ran.outcome.answered);
    assert_eq!(ran.shown(), shown);
    assert!(ran.outcome.text.contains(shown), "{}", ran.outcome.text);
    let kept: String = ran
        .outcome
        .transcript
        .iter()
        .skip(1)
        .map(|it| it.text())
        .collect();
    assert_eq!(kept, shown);
}

#[tokio::test]
async fn silence_ends_at_the_first_byte_timeout() {
    let silences = [
        faults::zero_byte_stall(),
        faults::stall_after_headers(),
        faults::pings_only(Duration::from_secs(15)),
    ];
    for response in silences {
        let (server, ran) = ask_until_late(response).await;
        assert_ended(
            &ran,
            StopReason::StepTimeout,
            ErrorClass::FirstByteTimeout,
            "",
        );
        assert!((119_000..130_000).contains(&ran.outcome.elapsed_ms));
        assert_eq!(server.requests().len(), 1);
        server.disconnected(0).await;
        tokio::time::resume();
    }
}

#[tokio::test]
async fn a_silent_request_is_sent_again() {
    let server = Server::start([faults::zero_byte_stall(), answer()]).await;
    let ran = bench(&server)
        .limits(|limits| limits.first_byte_timeout = Some(Duration::from_secs(1)))
        .ask("q")
        .await;
    assert_eq!(ran.outcome.text, "fine");
    assert_eq!((delays(&ran).len(), bodies(&server).len()), (1, 2));
    assert_eq!(ran.outcome.steps, 1);
}

#[tokio::test]
async fn a_peer_that_vanishes_or_stalls_in_mid_reply_is_left_at_the_idle_timeout() {
    for response in [
        faults::half_open_after(opening()),
        faults::stall_after(opening()),
    ] {
        let server = Server::start(response).await;
        let ran = bench(&server)
            .ask_beside("q", async |user| {
                user.reads("partial").await;
                tokio::time::pause();
            })
            .await;
        tokio::time::resume();
        assert_ended(
            &ran,
            StopReason::StepTimeout,
            ErrorClass::IdleTimeout,
            "partial",
        );
        assert!((59_000..70_000).contains(&ran.outcome.elapsed_ms));
        assert_eq!(
            server.requests().len(),
            1,
            "what was shown is not asked for again"
        );
    }
}

#[tokio::test]
async fn a_slow_drip_ends_at_the_step_timeout() {
    let event = opening().remove(1);
    let server = Server::start(faults::slow_drip(event, Duration::from_secs(1))).await;
    let ran = Bench::chat("stream", &server)
        .ask_beside("q", async |user| {
            user.reads("partial").await;
            tokio::time::pause();
        })
        .await;
    assert_eq!(ran.outcome.stop_reason, StopReason::StepTimeout);
    assert!((119_000..123_000).contains(&ran.outcome.elapsed_ms));
    assert!(ran.outcome.text.contains("partialpartial"));
    assert_eq!(ran.outcome.transcript[1].text(), ran.shown());
    server.disconnected(0).await;
}

#[tokio::test]
async fn a_reset_in_the_middle_of_an_event_keeps_what_was_shown() {
    let gate = Gate::new();
    let server = Server::start(faults::reset_mid_event(opening(), &gate)).await;
    let ran = bench(&server)
        .ask_beside("q", async |user| {
            user.reads("partial").await;
            gate.open();
        })
        .await;
    assert_ended(&ran, StopReason::Error, ErrorClass::Network, "partial");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_reply_that_breaks_off_is_asked_for_again_only_if_nothing_was_shown() {
    for breaks in [faults::cut_after, faults::truncated] {
        let (server, ran) = ask([breaks(opening()), answer()]).await;
        assert_ended(&ran, StopReason::Error, ErrorClass::Network, "partial");
        assert_eq!(server.requests().len(), 1);

        let unseen: Vec<Bytes> = opening().into_iter().take(1).collect();
        let (server, ran) = ask([breaks(unseen), answer()]).await;
        assert_eq!(ran.outcome.text, "fine");
        assert_eq!((server.requests().len(), ran.outcome.steps), (2, 1));
    }
}

#[tokio::test]
async fn a_call_of_a_reply_that_broke_off_is_never_run() {
    let call = CallScript::new("c", "look", &json!({}));
    let mut frames = openai::frames(&ReplyScript::calls([call]).saying("Wait."));
    // The call is whole, but neither its finish reason nor the end came.
    frames.truncate(5);
    let server = Server::start(faults::truncated(frames)).await;
    let ran = bench(&server).tool(echo("look")).ask("q").await;
    assert_ended(&ran, StopReason::Error, ErrorClass::Network, "Wait.");
    assert_eq!(ran.outcome.tool_calls, 0);
    assert!(ran.results().is_empty());
}

#[tokio::test]
async fn an_endless_line_ends_at_its_bound_and_is_not_asked_for_again() {
    let server = Server::start(faults::endless_line()).await;
    let mut bench = bench(&server);
    bench.endpoint.bounds.line_bytes_max = 256 * 1024;
    let ran = bench.ask("q").await;
    assert_ended(&ran, StopReason::Error, ErrorClass::TooLarge, "");
    server.disconnected(0).await;
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn an_endless_reply_ends_at_its_bound() {
    let event = opening().remove(1);
    let server = Server::start(faults::slow_drip(event, Duration::ZERO)).await;
    let mut bench = bench(&server);
    bench.endpoint.bounds.response_bytes_max = 16 * 1024;
    let ran = bench.ask("q").await;
    assert_eq!(ran.error_class(), Some(ErrorClass::TooLarge));
    assert!(ran.shown().starts_with("partialpartial"));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_storm_of_429_is_sat_out_within_its_bound() {
    for retry_after in [None, Some(0)] {
        let (server, ran) = ask(Script::repeat(faults::rate_limited(retry_after))).await;
        assert_ended(&ran, StopReason::Error, ErrorClass::RateLimited, "");
        assert_eq!(server.requests().len(), 1 + RETRIES);
        let waits = delays(&ran);
        assert_eq!(waits.len(), RETRIES);
        assert!(waits.is_sorted() && waits[RETRIES - 1] >= 8, "{waits:?}");
        assert_eq!(ran.outcome.steps, 1, "a repeated request is no step");
    }
}

#[tokio::test]
async fn a_provider_that_recovers_is_asked_again() {
    let busy = || faults::rate_limited(None);
    let (server, ran) = ask([busy(), faults::html_error(503), busy(), answer()]).await;
    assert_eq!(ran.outcome.text, "fine");
    assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
    assert!(!ran.outcome.degraded);
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn the_wait_that_a_provider_asks_for_is_kept() {
    let busy = faults::rate_limited(None).header("retry-after-ms", "70");
    let (server, ran) = ask([busy, answer()]).await;
    assert_eq!(delays(&ran), [70]);
    assert_eq!(server.requests().len(), 2);

    let info = json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow down", "details": [
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.08s"},
    ]}});
    let fine = gemini::whole(&ReplyScript::text(["fine"]));
    let server = Server::start([Response::json(429, &info), fine]).await;
    let ran = Bench::gemini(&server)
        .limits(|limits| {
            brief(limits);
            limits.retry.max_retries = 1;
        })
        .ask("q")
        .await;
    assert_eq!(delays(&ran), [80]);
    assert_eq!(ran.outcome.text, "fine");
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_wait_beyond_the_policy_or_the_deadline_is_not_begun() {
    let (server, ran) = ask(Script::repeat(faults::rate_limited(Some(3_600)))).await;
    assert_ended(&ran, StopReason::Error, ErrorClass::RateLimited, "");
    assert_eq!(server.requests().len(), 1);

    let server = Server::start(Script::repeat(faults::rate_limited(Some(50)))).await;
    let ran = bench(&server)
        .limits(|limits| limits.turn_timeout = Some(Duration::from_secs(40)))
        .ask("q")
        .await;
    assert_ended(&ran, StopReason::Error, ErrorClass::RateLimited, "");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn pages_of_html_are_server_errors_without_their_markup() {
    for status in [500, 502, 504] {
        let (server, ran) = ask(Script::repeat(faults::html_error(status))).await;
        assert_ended(&ran, StopReason::Error, ErrorClass::Server, "");
        let error = ran.outcome.error.clone().unwrap();
        assert_eq!(error.status, Some(status));
        assert!(error.message.contains("Bad Gateway"), "{}", error.message);
        assert!(!error.message.contains('<'), "{}", error.message);
        assert_eq!(server.requests().len(), 1 + RETRIES);
    }
}

#[tokio::test]
async fn what_waiting_does_not_mend_is_not_repeated() {
    let refusals = [
        (400, ErrorClass::BadRequest),
        (401, ErrorClass::Auth),
        (402, ErrorClass::Quota),
        (403, ErrorClass::Auth),
        (404, ErrorClass::NotFound),
    ];
    for (status, class) in refusals {
        let refusal = openai::error(status, "invalid_request_error", "no");
        let (server, ran) = ask(Script::repeat(refusal)).await;
        assert_ended(&ran, StopReason::Error, class, "");
        assert_eq!(server.requests().len(), 1, "{status}");
    }
}

#[tokio::test]
async fn an_error_inside_a_good_response_is_repeated_only_before_output() {
    let error = "data: {\"error\":{\"message\":\"overloaded\",\"code\":503}}\n\n";
    let (server, ran) = ask([Response::sse([error]), answer()]).await;
    assert_eq!(
        (ran.outcome.text.as_str(), server.requests().len()),
        ("fine", 2)
    );

    let late = Response::sse(opening()).send(error);
    let (server, ran) = ask([late, answer()]).await;
    assert_ended(&ran, StopReason::Error, ErrorClass::Overloaded, "partial");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_failure_after_tools_ran_keeps_their_results() {
    let call = CallScript::new("c", "look", &json!({}));
    let first = openai::streamed(&ReplyScript::calls([call]));
    let failed = openai::error(400, "invalid_request_error", "no");
    let server = Server::start([first, failed]).await;
    let ran = bench(&server).tool(echo("look")).ask("q").await;
    assert_eq!(ran.error_class(), Some(ErrorClass::BadRequest));
    assert_eq!(ran.outcome.transcript.len(), 3);
    assert!(
        ran.outcome.text.contains("look did {}"),
        "{}",
        ran.outcome.text
    );
}

#[tokio::test]
async fn a_server_of_this_machine_that_is_not_there_is_said_at_once() {
    let server = Server::start(answer()).await;
    let mut bench = bench(&server);
    bench.endpoint.base_url = format!("{}/v1", refused_url().await);
    let ran = bench.ask("q").await;
    assert_ended(&ran, StopReason::Error, ErrorClass::Network, "");
    assert_eq!(delays(&ran), [0_u64; 0]);
    let text = &ran.outcome.text;
    assert!(text.contains("nothing listens there"), "{text}");
}

#[tokio::test]
async fn a_connection_that_is_closed_unanswered_is_tried_as_often_as_allowed() {
    let closes = Response::new(200).before(Step::Close);
    let (server, ran) = ask(Script::repeat(closes)).await;
    assert_ended(&ran, StopReason::Error, ErrorClass::Network, "");
    assert_eq!(
        (delays(&ran).len(), server.requests().len()),
        (RETRIES, 1 + RETRIES)
    );
}

#[tokio::test]
async fn a_body_that_is_no_protocol_at_all_is_an_outcome() {
    let bodies: [&[u8]; 7] = [
        b"",
        b"null",
        b"[]",
        b"{\"choices\":{}}",
        b"\xff\xfe\x00\x01",
        b"data: {\"choices\":[{\"delta\":7}]}\n\n",
        b"{\"choices\":[{\"message\":",
    ];
    let nested = "[".repeat(100_000).into_bytes();
    for body in bodies.into_iter().map(<[u8]>::to_vec).chain([nested]) {
        let shown = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
        let (_server, ran) = ask(Script::repeat(Response::text(200, body))).await;
        // A body that ends early may be the connection's fault; any other is a reply that cannot be used.
        let expected = match ran.error_class() {
            Some(ErrorClass::Network) => StopReason::Error,
            class => {
                assert_eq!(class, Some(ErrorClass::Protocol), "{shown}");
                StopReason::InvalidResponse
            }
        };
        assert_eq!(ran.outcome.stop_reason, expected, "{shown}");
        assert!(!ran.outcome.answered, "{shown}");
    }
}

#[tokio::test]
async fn pieces_of_any_size_make_the_same_reply() {
    let call = CallScript::new("c", "look", &json!({"ä": "\u{1f980}"}));
    let reply = ReplyScript::calls([call]).saying("Grüße");
    let (server, ran) = {
        let server = Server::start([
            openai::streamed(&reply).byte_by_byte(),
            answer().byte_by_byte(),
        ])
        .await;
        let ran = bench(&server).tool(echo("look")).ask("q").await;
        (server, ran)
    };
    assert_eq!(ran.shown(), "Grüßefine");
    assert_eq!(ran.results()[0].1, "look did {\"ä\":\"\u{1f980}\"}");
    assert_eq!(bodies(&server).len(), 2);
}

#[tokio::test]
async fn a_missing_end_mark_after_a_finish_reason_is_no_failure() {
    let without_done = chunks([(json!({"content": "fine"}), Some("stop"))]);
    let body = without_done.body_bytes();
    let end = body.len() - "data: [DONE]\n\n".len();
    let (server, ran) = ask(Response::sse([body[..end].to_vec()])).await;
    assert_eq!(ran.outcome.text, "fine");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn half_of_a_reply_that_is_not_streamed_is_asked_for_again() {
    let whole = openai::body(&ReplyScript::text(["fine"])).to_string();
    let half = whole[..whole.len() / 2].to_owned();
    let cut = || {
        Response::new(200)
            .header("content-type", "application/json")
            .send(half.clone())
    };
    let server = Server::start([
        cut().step(Step::Close),
        cut(),
        openai::whole(&ReplyScript::text(["fine"])),
    ])
    .await;
    let ran = Bench::chat("hub", &server).limits(brief).ask("q").await;
    assert_eq!(ran.outcome.text, "fine");
    assert_eq!((ran.shown().as_str(), ran.outcome.steps), ("fine", 1));
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_cancel_ends_the_wait_for_another_try() {
    let server = Server::start(Script::repeat(faults::rate_limited(Some(50)))).await;
    let ran = bench(&server)
        .ask_beside("q", async |user| {
            user.sees(|event| matches!(event, EventBody::RetryScheduled { .. }))
                .await;
            user.handle.cancel();
        })
        .await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Cancelled);
    assert!(ran.outcome.elapsed_ms < 50_000);
    assert_eq!(server.requests().len(), 1);
}
