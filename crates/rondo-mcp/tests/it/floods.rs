//! Servers that send without end, as programs on real pipes and at addresses on real sockets: each is ended, and says why.

use crate::http::{Request, at, old, read};
use crate::scripted::*;
use async_trait::async_trait;
use rondo_mcp::{Program, ProgramSpec, Servers, StartPrograms, Streams};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

/// How long a flood may continue before the test fails.
const ENDED_WITHIN: Duration = Duration::from_secs(30);

/// Begins a connection of the older lifecycle, and runs the program in `$FLOOD` at the message `$AT`.
const SERVER: &str = r#"
while IFS= read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
  *'"server/discover"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"no\"}}" ;;
  *'"initialize"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"x\",\"version\":\"1\"}}}" ;;
  *"\"$AT\""*) test -z "$id" || echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[]}}"; exec sh -c "$FLOOD" ;;
  esac
done
"#;

/// Starts the server of [`SERVER`] as a process.
struct Floods {
    at: &'static str,
    flood: &'static str,
}

#[async_trait]
impl StartPrograms for Floods {
    async fn start(&self, _: &ProgramSpec) -> Result<Box<dyn Program>, String> {
        let child = Command::new("sh")
            .args(["-c", SERVER])
            .env("AT", self.at)
            .env("FLOOD", self.flood)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        Ok(Box::new(Process(child.map_err(|it| it.to_string())?)))
    }
}

struct Process(Child);

#[async_trait]
impl Program for Process {
    fn take_streams(&mut self) -> Option<Streams> {
        let (input, output) = (self.0.stdin.take()?, self.0.stdout.take()?);
        Some((Box::new(input), Box::new(output)))
    }

    fn stderr(&self) -> String {
        String::new()
    }

    async fn end(mut self: Box<Self>, _: Duration) {
        let _ = self.0.kill().await;
    }
}

/// Returns why the server is not there any more.
async fn ended(servers: &Servers) -> String {
    let waiting = async {
        loop {
            match servers.is_up("s").unwrap() {
                Err(why) => return why,
                Ok(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    let ended = tokio::time::timeout(ENDED_WITHIN, waiting).await;
    ended.expect("the server was not ended")
}

async fn ended_program(flood: &'static str) -> String {
    ended_at("tools/list", flood).await
}

async fn ended_at(at: &'static str, flood: &'static str) -> String {
    let (mut options, _) = options(&Scripts::default(), vec![configured("s", |_| ())]);
    options.programs = Arc::new(Floods { at, flood });
    ended(&Servers::start(options)).await
}

#[tokio::test]
async fn a_program_that_sends_requests_without_end_and_reads_no_replies_is_ended() {
    let flood = r#"awk 'BEGIN { for (i = 0; ; i++) print "{\"jsonrpc\":\"2.0\",\"id\":" i ",\"method\":\"roots/list\"}" }'"#;
    let why = ended_program(flood).await;
    let bounds = [
        "it was ended: it sent more than 200 requests within 10 s",
        "it was ended: it sent more than 100 requests without reading the replies",
    ];
    assert!(bounds.contains(&&*why), "{why}");
}

#[tokio::test]
async fn a_program_that_sends_requests_without_end_before_its_tools_are_listed_says_why_it_was_ended()
 {
    let flood = r#"awk 'BEGIN { for (i = 0; ; i++) print "{\"jsonrpc\":\"2.0\",\"id\":" i ",\"method\":\"ping\"}" }'"#;
    let why = ended_at("notifications/initialized", flood).await;
    assert!(why.starts_with("it was ended: it sent more than "), "{why}");
}

#[tokio::test]
async fn a_program_that_sends_notifications_without_end_is_ended() {
    let flood = r#"yes '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'"#;
    let why = ended_program(flood).await;
    assert_eq!(
        why,
        "it was ended: it sent more than 20000 notifications within 10 s"
    );
}

#[tokio::test]
async fn a_program_that_writes_lines_without_end_is_ended_whatever_they_are() {
    for line in [
        "{}",
        "no message",
        r#"{"jsonrpc":"2.0","id":999999,"result":{}}"#,
    ] {
        let flood = Box::leak(format!("yes '{line}' & cat > /dev/null").into_boxed_str());
        assert_eq!(
            ended_program(flood).await,
            "it was ended: it sent more than 50000 lines within 10 s"
        );
    }
}

#[tokio::test]
async fn a_program_that_writes_one_line_without_end_is_ended() {
    let why = ended_program("cat /dev/zero").await;
    assert_eq!(
        why,
        "it was ended: it sent more than 268435456 bytes within 10 s"
    );
}

#[tokio::test]
async fn a_request_beyond_its_size_ends_the_program() {
    let flood = r#"printf '{"jsonrpc":"2.0","id":1,"method":"custom","params":{"a":"'; head -c 1048576 /dev/zero | tr '\0' x; echo '"}}'; cat"#;
    let why = ended_program(flood).await;
    assert_eq!(
        why,
        "it was ended: it sent a request of more than 1048576 bytes"
    );
}

#[tokio::test]
async fn a_message_of_many_values_ends_the_program_before_it_is_parsed() {
    let flood = r#"awk 'BEGIN { printf "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"a\",\"params\":{\"a\":[0"; for (i = 0; i < 250000; i++) printf ",0"; print "]}}" }'; cat"#;
    let why = ended_program(flood).await;
    assert_eq!(
        why,
        "it was ended: it sent a message of more than 250000 values"
    );
}

#[tokio::test]
async fn an_event_of_many_values_ends_the_address() {
    let why = ended_address(|_| format!("data: [{}0]\n\n", "0,".repeat(250_000)), false).await;
    assert_eq!(
        why,
        "it was ended: it sent a message of more than 250000 values"
    );
}

#[tokio::test]
async fn two_requests_at_once_with_the_same_id_end_the_program() {
    let ask = r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#;
    let flood = Box::leak(format!("printf '%s\n%s\n' '{ask}' '{ask}'; cat").into_boxed_str());
    let why = ended_program(flood).await;
    assert_eq!(
        why,
        "it was ended: it sent two requests with the same id at once"
    );
}

/// Answers as a server of the older lifecycle; what a stream of events holds is up to `stream`, and whether it ends.
async fn listen(stream: fn(u64) -> String, ends: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(serve(connection, stream, ends));
        }
    });
    address
}

async fn serve(mut connection: TcpStream, stream: fn(u64) -> String, ends: bool) {
    while let Some(request) = read(&mut connection).await {
        if request.method == "get" {
            flood(&mut connection, stream, ends).await;
            return;
        }
        let (status, headers, body) = match is_reply(&request) {
            true => (202, "", String::new()),
            false => old(&request),
        };
        let headers: String = headers
            .split('|')
            .filter(|it| !it.is_empty())
            .map(|it| format!("{it}\r\n"))
            .collect();
        let length = body.len();
        let reply =
            format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n{headers}\r\n{body}");
        if connection.write_all(reply.as_bytes()).await.is_err() {
            return;
        }
    }
}

fn is_reply(request: &Request) -> bool {
    !request.message["method"].is_string()
}

async fn flood(connection: &mut TcpStream, stream: fn(u64) -> String, ends: bool) {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    let mut written = connection.write_all(head.as_bytes()).await;
    for number in 0.. {
        if written.is_err() {
            return;
        }
        written = connection.write_all(stream(number).as_bytes()).await;
        if ends {
            return;
        }
    }
}

async fn ended_address(stream: fn(u64) -> String, ends: bool) -> String {
    let address = listen(stream, ends).await;
    let (options, _) = options(&Scripts::default(), vec![at(&address)]);
    ended(&Servers::start(options)).await
}

#[tokio::test]
async fn an_address_that_sends_requests_without_end_is_ended() {
    let ask =
        |id| format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"roots/list\"}}\n\n");
    let why = ended_address(ask, false).await;
    let bounds = [
        "it was ended: it sent more than 200 requests within 10 s",
        "it was ended: it sent more than 100 requests without reading the replies",
    ];
    assert!(bounds.contains(&&*why), "{why}");
}

#[tokio::test]
async fn an_address_that_streams_without_end_is_ended_whatever_it_sends() {
    let why = ended_address(|_| format!(": {}\n\n", "x".repeat(1 << 20)), false).await;
    assert_eq!(
        why,
        "it was ended: it sent more than 268435456 bytes within 10 s"
    );
}

#[tokio::test]
async fn an_address_whose_streams_end_at_once_is_ended() {
    let why = ended_address(|_| "retry: 0\ndata: {}\n\n".to_owned(), true).await;
    assert_eq!(
        why,
        "it was ended: it sent more than 50 streams that ended within 10 s"
    );
}
