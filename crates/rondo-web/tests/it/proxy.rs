//! Commands in a real sandbox, whose proxy reaches what it is told to and nothing else.

use crate::names::{Names, OTHER, PUBLIC};
use rondo_sandbox::{SandboxMode, SandboxSpec, SandboxSupport, confine, readable_roots, support};
use rondo_testkit::{Response, Script, Server};
use rondo_web::proxy::HostProxy;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// Fetches its arguments, by what the environment says of proxies, and prints what came or failed. Then it tries what
/// the proxy is not asked for: an address, and a name.
const FETCH: &str = "
import socket, sys, urllib.request
for url in sys.argv[1:]:
    try:
        with urllib.request.urlopen(url, timeout=20) as reply:
            print(url, reply.status, reply.read().decode())
    except Exception as error:
        body = error.read().decode() if hasattr(error, 'read') else ''
        print(url, error, body)
for address in [('1.1.1.1', 80), ('docs.example', 80)]:
    try:
        socket.create_connection(address, timeout=5)
        print('reached', address)
    except OSError:
        print('no way to', address[0])
";

/// Most containers do not let a process confine itself.
#[expect(clippy::print_stderr, reason = "what is not run is said")]
fn is_enforced() -> bool {
    let is_full = *support() == SandboxSupport::Full;
    if !is_full {
        eprintln!(
            "not run, since the sandbox is not enforced here: {:?}",
            support()
        );
    }
    is_full
}

/// Runs a command in the sandbox, until it has ended.
async fn run(project: &Path, proxy: &HostProxy, urls: &[&str]) -> Output {
    let mut spec = SandboxSpec::new(SandboxMode::WorkspaceWrite, vec![project.to_owned()]);
    let home = std::env::var_os("HOME").map(PathBuf::from);
    spec.readable = Arc::new(readable_roots(
        home.as_deref(),
        std::env::var_os("PATH").as_deref(),
    ));
    spec.proxy = Some(proxy.socket().to_owned());
    let mut command = Command::new("python3");
    command.args(["-c", FETCH]).args(urls).current_dir(project);
    let run = move || {
        let mut protection = confine(&mut command, &spec).unwrap();
        let output = command.output().unwrap();
        assert!(protection.restore().is_empty());
        output
    };
    spawn_blocking(run).await.unwrap()
}

async fn world(names: Names, allowed: &'static [&'static str]) -> (tempfile::TempDir, HostProxy) {
    let home = tempfile::tempdir().unwrap();
    let proxy = HostProxy::start_with(
        home.path().join("proxy"),
        Box::new(|host| allowed.contains(&host)),
        Arc::new(names),
        vec![80],
    );
    (home, proxy.unwrap())
}

#[tokio::test]
async fn a_command_reaches_hosts_by_name_and_nothing_else() {
    if !is_enforced() {
        return;
    }
    let server = Server::start(Script::answering(|_| Response::text(200, "a page"))).await;
    let names = Names::new()
        .name("docs.example", &[&[PUBLIC]])
        .name("inside.example", &[&["10.0.0.7:80"]])
        .name("lying.example", &[&[OTHER]])
        .server(PUBLIC, &server)
        .server_at(OTHER, &server, "127.0.0.1:80");
    let (_home, proxy) = world(names, &["docs.example", "inside.example", "lying.example"]).await;
    let project = tempfile::tempdir().unwrap();
    let urls = [
        "http://docs.example/a",
        "http://other.example/",
        "http://inside.example/",
        "http://lying.example/",
        "http://docs.example:8080/",
        "http://169.254.169.254/latest",
    ];
    let output = run(project.path(), &proxy, &urls).await;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> = printed.lines().filter(|it| !it.is_empty()).collect();
    assert_eq!(lines.len(), 8, "{output:?}");
    assert_eq!(lines[0], "http://docs.example/a 200 a page");
    for (line, expected) in lines[1..].iter().zip([
        "no rule lets commands reach `other.example`",
        "10.0.0.7 is for a private network",
        "127.0.0.1 is for this machine",
        "the port 8080 of `docs.example` is not reached",
        "the local link",
        "no way to 1.1.1.1",
        "no way to docs.example",
    ]) {
        assert!(line.contains(expected), "{line}: {expected}");
    }
    assert_eq!((server.requests().len(), proxy.reached()), (1, 1));
}

#[tokio::test]
async fn a_command_whose_proxy_is_gone_does_not_start() {
    if !is_enforced() {
        return;
    }
    let (_home, proxy) = world(Names::default(), &[]).await;
    let socket = proxy.socket().to_owned();
    drop(proxy);
    assert!(!socket.exists(), "what it made is removed");
    let project = tempfile::tempdir().unwrap();
    let mut spec = SandboxSpec::new(SandboxMode::ReadOnly, vec![project.path().to_owned()]);
    spec.proxy = Some(socket);
    let err = confine(&mut Command::new("true"), &spec).unwrap_err();
    assert!(err.to_string().contains("proxy"), "{err}");
}
