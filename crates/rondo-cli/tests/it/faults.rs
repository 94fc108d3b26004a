//! Faults of the network end in the right class and a last `result` line.

use crate::harness::{TestEnv, ask_args, says};
use rondo_testkit::{Gate, Response, Script, Server, faults, openai, refused_url};
use std::time::Duration;

/// Long enough for every timeout under test to come first.
const LATE: Duration = Duration::from_secs(3600);

/// Only what a test waits for is short, so that a slow machine meets no other timeout first.
const NO_RETRY: &str = "[profiles.default.limits.retry]\nmax_retries = 0\nbase_ms = 1\nmax_ms = 1\njitter_percent = 0\n";
const FIRST_BYTE: &str = "[profiles.default.limits]\nfirst_byte_timeout_ms = 150\n";
const IDLE: &str = "[profiles.default.limits]\nidle_timeout_ms = 150\n";

async fn check(response: Response, class: &str) {
    check_under("", response, class).await;
}

async fn check_under(limits: &str, response: Response, class: &str) {
    let server = Server::start(Script::repeat(response)).await;
    let env = TestEnv::new();
    env.user_config(&format!("{limits}{NO_RETRY}"));
    let shown = env
        .ask(&server, &["--output-format", "stream-json", "x"])
        .await;
    let result = shown.result();
    assert_eq!(result["error"]["class"], class, "{shown:?}");
    assert_eq!(shown.code, Some(1), "{shown:?}");
}

fn beginning() -> Vec<bytes::Bytes> {
    let mut frames = openai::frames(&says("a long answer"));
    frames.truncate(2);
    frames
}

#[tokio::test]
async fn silence_before_the_headers_is_a_first_byte_timeout() {
    check_under(FIRST_BYTE, faults::zero_byte_stall(), "first_byte_timeout").await;
}

#[tokio::test]
async fn silence_after_the_headers_is_a_first_byte_timeout() {
    check_under(
        FIRST_BYTE,
        faults::stall_after_headers(),
        "first_byte_timeout",
    )
    .await;
}

#[tokio::test]
async fn pings_alone_are_no_content() {
    check_under(
        FIRST_BYTE,
        faults::pings_only(Duration::from_millis(20)),
        "first_byte_timeout",
    )
    .await;
}

#[tokio::test]
async fn silence_in_the_middle_is_an_idle_timeout() {
    check_under(IDLE, faults::half_open_after(beginning()), "idle_timeout").await;
}

#[tokio::test]
async fn a_stream_that_is_cut_is_a_network_error() {
    check(faults::truncated(beginning()), "network").await;
}

#[tokio::test]
async fn a_reset_is_a_network_error() {
    let gate = Gate::new();
    gate.open();
    check(faults::reset_mid_event(beginning(), &gate), "network").await;
}

#[tokio::test]
async fn a_storm_of_429_ends() {
    check(faults::rate_limited(None), "rate_limited").await;
}

#[tokio::test]
async fn a_page_of_html_is_a_server_error() {
    check(faults::html_error(502), "server").await;
}

#[tokio::test]
async fn an_endless_line_is_bounded() {
    check(faults::endless_line(), "too_large").await;
}

#[tokio::test]
async fn a_slow_drip_of_nothing_whole_is_a_timeout() {
    let event = openai::frames(&says("x")).remove(0);
    check_under(
        FIRST_BYTE,
        faults::slow_drip(event, LATE),
        "first_byte_timeout",
    )
    .await;
}

#[tokio::test]
async fn a_refused_connection_is_explained() {
    let url = format!("{}/v1", refused_url().await);
    let env = TestEnv::new();
    env.user_config(NO_RETRY);
    let args = ask_args(&url, &["x"]);
    let shown = env.run(&args).await;
    assert_eq!((shown.stdout.as_str(), shown.code), ("", Some(1)));
    assert!(
        shown.stderr.contains("hint: is a server listening at"),
        "{}",
        shown.stderr
    );
}
