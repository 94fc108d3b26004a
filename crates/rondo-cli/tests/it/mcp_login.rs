//! Signing in to a server: its authorization server is a real one on a socket, and the test is the browser.

use crate::harness::{Shown, TestEnv};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Child;

/// A server of tools and its authorization server, at one address.
struct Site {
    url: String,
    /// The bodies of requests for tokens.
    exchanges: Arc<Mutex<Vec<String>>>,
}

impl Site {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let exchanges = Arc::new(Mutex::new(Vec::new()));
        let (base, seen) = (url.clone(), Arc::clone(&exchanges));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, base.clone(), Arc::clone(&seen)));
            }
        });
        Self { url, exchanges }
    }
}

async fn serve(mut stream: TcpStream, base: String, exchanges: Arc<Mutex<Vec<String>>>) {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                return;
            }
            continue;
        };
        let lower = head.to_lowercase();
        let length = lower
            .lines()
            .find_map(|it| it.strip_prefix("content-length: "));
        if body.len() < length.map_or(0, |it| it.parse().unwrap()) {
            if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                return;
            }
            continue;
        }
        let path = head.split(' ').nth(1).unwrap();
        let (status, header, reply) = answer(&base, path, &lower, body, &exchanges);
        let reply = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{header}Content-Length: {}\r\n\r\n{reply}",
            reply.len()
        );
        if stream.write_all(reply.as_bytes()).await.is_err() {
            return;
        }
        bytes.clear();
    }
}

fn answer(
    base: &str,
    path: &str,
    head: &str,
    body: &str,
    exchanges: &Mutex<Vec<String>>,
) -> (u16, String, String) {
    let said = |value: Value| (200, String::new(), value.to_string());
    match path {
        "/.well-known/oauth-protected-resource/mcp" => said(json!({
            "resource": format!("{base}/mcp"), "authorization_servers": [base],
        })),
        "/.well-known/oauth-authorization-server" => said(json!({
            "issuer": base,
            "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"),
            "registration_endpoint": format!("{base}/register"),
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        })),
        "/register" => said(json!({
            "client_id": "our-client", "client_secret": "client-s3cret-value", "redirect_uris": [],
        })),
        "/token" => {
            exchanges.lock().unwrap().push(format!("{head}\n{body}"));
            match body.contains("grant_type=refresh_token") {
                // One that is renewed by the next process.
                false => said(json!({
                    "access_token": "first-s3cret-token", "refresh_token": "renew-s3cret-token",
                    "token_type": "Bearer", "expires_in": 1,
                })),
                true => said(json!({
                    "access_token": "second-s3cret-token", "token_type": "Bearer", "expires_in": 3600,
                })),
            }
        }
        "/mcp" if !head.contains("authorization: bearer second-s3cret-token") => {
            let header = format!(
                "WWW-Authenticate: Bearer resource_metadata=\"{base}/.well-known/oauth-protected-resource/mcp\", scope=\"read\"\r\n"
            );
            (401, header, "{}".to_owned())
        }
        "/mcp" => mcp(&serde_json::from_str(body).unwrap_or_default()),
        _ => (404, String::new(), "{}".to_owned()),
    }
}

fn mcp(message: &Value) -> (u16, String, String) {
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "x", "version": "1"},
        }),
        "tools/list" => {
            json!({"tools": [{"name": "t", "description": "Does.", "inputSchema": {"type": "object"}}]})
        }
        "notifications/initialized" => return (202, String::new(), String::new()),
        _ => return (400, String::new(), "{}".to_owned()),
    };
    let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    (200, String::new(), reply.to_string())
}

/// Starts `rondo mcp login s`, and returns the address that it shows.
async fn begin(env: &TestEnv) -> (Child, String) {
    let mut command = env.command(&["mcp", "login", "s"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    loop {
        let line = lines.next_line().await.unwrap().expect("an address");
        if line.starts_with("http") {
            // What comes after it is read too, so that nothing is written into a closed pipe.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return (child, line);
        }
    }
}

/// Returns a value of the address's query.
fn of_query(address: &str, key: &str) -> String {
    let query = address.split_once('?').unwrap().1;
    let value = query
        .split('&')
        .find_map(|it| it.strip_prefix(&format!("{key}=")));
    value.unwrap().replace("%3A", ":").replace("%2F", "/")
}

/// Goes back to the program, as a browser that was redirected.
async fn come_back(address: &str, query: &str) -> String {
    let redirect = of_query(address, "redirect_uri");
    let host = redirect
        .trim_start_matches("http://")
        .split('/')
        .next()
        .unwrap();
    let mut stream = TcpStream::connect(host).await.unwrap();
    let request = format!("GET /callback?{query} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    reply
}

fn check_no_secret(shown: &Shown) {
    for text in [&shown.stdout, &shown.stderr] {
        assert!(!text.contains("s3cret") && !text.contains("c0de"), "{text}");
    }
}

async fn with_server() -> (TestEnv, Site) {
    let site = Site::start().await;
    let env = TestEnv::new().var("RONDO_LOG", "trace");
    let added = env
        .run(&["mcp", "add", "s", "--url", &format!("{}/mcp", site.url)])
        .await;
    assert_eq!(added.code, Some(0), "{added:?}");
    (env, site)
}

#[tokio::test]
async fn who_signs_in_in_a_browser_uses_the_server_until_they_sign_out() {
    let (env, site) = with_server().await;
    let refused = env.run(&["mcp", "test", "s"]).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.stdout.contains("`rondo mcp login s`"),
        "{refused:?}"
    );

    let (child, address) = begin(&env).await;
    assert_eq!(of_query(&address, "code_challenge_method"), "S256");
    assert_eq!(of_query(&address, "scope"), "read");
    let state = of_query(&address, "state");
    let forged = come_back(&address, "code=evil&state=guessed").await;
    assert!(forged.starts_with("HTTP/1.1 400"), "{forged}");
    let page = come_back(&address, &format!("code=the-c0de&state={state}")).await;
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    let signed_in = env.wait(child).await;
    assert_eq!(signed_in.code, Some(0), "{signed_in:?}");
    assert!(
        signed_in.stdout.starts_with("signed in to the server `s`"),
        "{signed_in:?}"
    );

    let used = env.run(&["mcp", "test", "s"]).await;
    assert!(used.stdout.contains("s: works"), "{used:?}");
    check_no_secret(&used);
    let exchanges = site.exchanges.lock().unwrap().clone();
    assert!(exchanges[0].contains("code=the-c0de") && exchanges[0].contains("code_verifier="));
    assert!(
        exchanges[1].contains("refresh_token=renew-s3cret-token"),
        "{exchanges:?}"
    );
    // It is known by its secret in a later process, too.
    assert!(
        exchanges[1].contains("authorization: basic"),
        "{exchanges:?}"
    );
    check_files(&env);

    let forgotten = env.run(&["mcp", "logout", "s"]).await;
    assert!(
        forgotten.stdout.contains("deleted the stored sign-in"),
        "{forgotten:?}"
    );
    let again = env.run(&["mcp", "logout", "s"]).await;
    assert!(again.stdout.contains("no stored sign-in"), "{again:?}");
    let refused = env.run(&["mcp", "test", "s"]).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
}

/// Tokens are in files that only the user can read.
fn check_files(env: &TestEnv) {
    let folder = env.home().join(".local/share/rondo/mcp/tokens");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let mut holds_token = false;
    for file in fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        holds_token |= fs::read_to_string(&path)
            .unwrap()
            .contains("second-s3cret-token");
    }
    assert!(holds_token, "the token that was renewed is kept");
}

#[tokio::test]
async fn who_says_no_in_the_browser_is_told_so_and_keeps_nothing() {
    let (env, site) = with_server().await;
    let (child, address) = begin(&env).await;
    let state = of_query(&address, "state");
    come_back(&address, &format!("error=access_denied&state={state}")).await;
    let shown = env.wait(child).await;
    assert_eq!(shown.code, Some(41), "{shown:?}");
    assert!(site.exchanges.lock().unwrap().is_empty());
    let unknown = env.run(&["mcp", "login", "other"]).await;
    assert_eq!(unknown.code, Some(52), "{unknown:?}");
    env.run(&["mcp", "add", "p", "--", "true"]).await;
    let program = env.run(&["mcp", "login", "p"]).await;
    assert!(program.stderr.contains("it is a program"), "{program:?}");
}
