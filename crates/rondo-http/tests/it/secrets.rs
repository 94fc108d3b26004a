use crate::support::{Timers, ask, drive, model, openai};
use rondo_http::{Auth, Endpoint, Secret};
use rondo_testkit::{Response, Server, openai as wire};

const KEY: &str = "sk-very-secret-key";
const OTHER: &str = "other-secret-value";
const IN_URL: &str = "secret-in-the-url";

fn hides_all(shown: &str) -> bool {
    ![KEY, OTHER, IN_URL]
        .iter()
        .any(|secret| shown.contains(secret))
}

fn signed(server: &Server) -> Endpoint {
    let mut endpoint = openai(server);
    endpoint.base_url = format!("{}?key={IN_URL}", endpoint.base_url);
    endpoint.auth = Auth::Bearer(Secret::new(KEY));
    endpoint.headers = vec![("x-extra".to_owned(), Secret::new(OTHER))];
    endpoint
}

#[tokio::test]
async fn hub_16_a_key_that_the_provider_echoes_is_removed_from_errors() {
    let message = format!("Incorrect API key provided: {KEY}, {OTHER}, {IN_URL}");
    let event = format!("data: {{\"error\":{{\"message\":\"{message}\"}}}}\n\n");
    let server = Server::start([wire::error(401, "auth", &message), Response::sse([event])]).await;
    let model = model(&signed(&server));
    for _ in 0..2 {
        let error = drive(ask(&model), Timers::default()).await.end.unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(shown.contains("[redacted]"), "{shown}");
        assert!(hides_all(&shown), "{shown}");
    }
}

#[tokio::test]
async fn hub_16_keys_are_not_in_debug_output() {
    let server = Server::start(Vec::new()).await;
    let endpoint = signed(&server);
    let shown = format!("{endpoint:?} {:?}", model(&endpoint));
    assert!(hides_all(&shown), "{shown}");
}

#[tokio::test]
async fn the_key_is_sent_in_its_header_and_nowhere_else() {
    let server = Server::start(wire::error(401, "auth", "no")).await;
    let outcome = drive(ask(&model(&signed(&server))), Timers::default()).await;
    assert!(outcome.end.is_err());
    let sent = server.request(0).await;
    let holders = sent.headers.iter().filter(|(_, value)| value.contains(KEY));
    let names: Vec<&str> = holders.map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["authorization"]);
    assert!(!sent.path.contains(KEY));
    assert!(!String::from_utf8_lossy(&sent.body).contains(KEY));
}

#[tokio::test]
async fn hub_16_a_key_that_an_error_cuts_in_two_is_removed_too() {
    for before in (440..512).step_by(3) {
        let message = format!("{} {OTHER}", "x".repeat(before));
        let event = format!("data: {{\"error\":{{\"message\":\"{message}\"}}}}\n\n");
        let server =
            Server::start([wire::error(401, "auth", &message), Response::sse([event])]).await;
        let model = model(&signed(&server));
        for _ in 0..2 {
            let error = drive(ask(&model), Timers::default()).await.end.unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains(&OTHER[..8]), "{before}: {shown}");
        }
    }
}
