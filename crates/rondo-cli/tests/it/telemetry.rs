//! Traces and metrics of a whole run, in a build that has them.

use crate::harness::{TestEnv, says, serve};
use rondo_testkit::{Response, Script, Server, refused_url};

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const KEY: &str = "sk-of-the-provider-0123456789";
const COLLECTOR_KEY: &str = "of-the-collector-0123456789";

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|it| it == text.as_bytes())
}

#[tokio::test]
async fn a_run_is_sent_whole_before_the_process_ends_without_content_and_keys() {
    let collector = Server::start(Script::repeat(Response::text(200, ""))).await;
    let model = serve(vec![says("Four.")]).await;
    let env = TestEnv::new()
        .var("OPENAI_API_KEY", KEY)
        .var(ENDPOINT, &collector.url(""))
        .var(
            "OTEL_EXPORTER_OTLP_HEADERS",
            &format!("authorization=Bearer%20{COLLECTOR_KEY}"),
        );
    let shown = env.ask(&model, &["-vvv", "2+2?"]).await;
    assert_eq!((shown.code, shown.stdout.trim()), (Some(0), "Four."));
    assert!(!shown.stderr.contains(KEY) && !shown.stderr.contains(COLLECTOR_KEY));
    let requests = collector.requests();
    let mut sent: Vec<&str> = requests.iter().map(|it| it.path.as_str()).collect();
    sent.sort_unstable();
    assert_eq!(sent, ["/v1/metrics", "/v1/traces"]);
    for request in &requests {
        let told = match request.path.as_str() {
            "/v1/traces" => ["invoke_agent default", "chat test"],
            _ => ["gen_ai.invoke_agent.duration", "gen_ai.client.token.usage"],
        };
        assert!(told.iter().all(|it| holds(&request.body, it)), "{told:?}");
        for secret in [KEY, COLLECTOR_KEY, "2+2?", "Four."] {
            assert!(!holds(&request.body, secret), "{secret}");
        }
        let expected = format!("Bearer {COLLECTOR_KEY}");
        assert_eq!(request.header("authorization"), Some(expected.as_str()));
    }
}

#[tokio::test]
async fn a_collector_that_is_gone_fails_nothing_and_is_said_once_where_asked_for() {
    let gone = refused_url().await;
    for (args, said) in [(vec!["2+2?"], 0), (vec!["-v", "2+2?"], 1)] {
        let model = serve(vec![says("Four.")]).await;
        let env = TestEnv::new()
            .var("OPENAI_API_KEY", KEY)
            .var(ENDPOINT, &gone);
        let shown = env.ask(&model, &args).await;
        assert_eq!((shown.code, shown.stdout.trim()), (Some(0), "Four."));
        assert_eq!(
            shown.stderr.matches("telemetry may be lost").count(),
            said,
            "{shown:?}"
        );
    }
}
