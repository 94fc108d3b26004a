//! Requests by way of a proxy.

use crate::support::{Timers, ask, drive, model};
use crate::tls::{authority_file, secure_endpoint, tls_before};
use rondo_http::{Endpoint, HttpModel, ModelCard, Proxies, Secret};
use rondo_testkit::{ReplyScript, Response, Script, Server, openai as wire};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

fn hello() -> Response {
    wire::streamed(&ReplyScript::text(["hello"]))
}

/// A proxy that opens tunnels to one server, or refuses to; every request's head is sent on.
async fn tunnels_to(
    server: SocketAddr,
    answer: &'static str,
) -> (SocketAddr, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (heads, seen) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let heads = heads.clone();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(client.read_u8().await.unwrap());
                }
                let _ = heads.send(String::from_utf8(head).unwrap());
                client.write_all(answer.as_bytes()).await.unwrap();
                if answer.contains(" 200 ") {
                    let mut server = TcpStream::connect(server).await.unwrap();
                    let _ = copy_bidirectional(&mut client, &mut server).await;
                }
            });
        }
    });
    (address, seen)
}

#[tokio::test]
async fn https_goes_through_a_tunnel_that_sees_none_of_it() {
    let server = Server::start(Script::repeat(hello())).await;
    let (secure, _tasks) = tls_before(server.address()).await;
    let (proxy, mut heads) =
        tunnels_to(secure, "HTTP/1.1 200 Connection established\r\n\r\n").await;
    let mut endpoint = secure_endpoint(secure, Some(authority_file()));
    endpoint.network.proxies = Proxies {
        https: Some(Secret::new(format!("http://me:p%40w@{proxy}"))),
        ..Proxies::default()
    };
    let model = model(&endpoint);
    for _ in 0..2 {
        let outcome = drive(ask(&model), Timers::default()).await;
        assert_eq!((outcome.text().as_str(), outcome.end), ("hello", Ok(())));
    }
    let head = heads.recv().await.unwrap();
    let target = format!("localhost:{}", secure.port());
    assert_eq!(
        head,
        format!(
            "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nProxy-Authorization: Basic bWU6cEB3\r\n\r\n"
        )
    );
    assert!(heads.try_recv().is_err(), "the tunnel is kept");
    let sent = server.request(0).await;
    assert_eq!(sent.path, "/v1/chat/completions");
    assert_eq!(sent.header("proxy-authorization"), None);
}

#[tokio::test]
async fn a_proxy_that_wants_a_password_is_named_without_one() {
    let server = Server::start(Vec::new()).await;
    let answer = "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n";
    let (proxy, _heads) = tunnels_to(server.address(), answer).await;
    let mut endpoint = secure_endpoint(server.address(), Some(authority_file()));
    endpoint.network.proxies.https = Some(Secret::new(format!("http://me:wrong-password@{proxy}")));
    let outcome = drive(ask(&model(&endpoint)), Timers::default()).await;
    let message = &outcome.error().message;
    assert!(message.contains("(a proxy is configured)"), "{message}");
    assert!(
        message.contains("proxy authorization required"),
        "{message}"
    );
    assert!(!message.contains("wrong-password"), "{message}");
}

#[tokio::test]
async fn a_proxy_of_http_gets_its_password_and_the_whole_address() {
    let proxy = Server::start(hello()).await;
    let mut endpoint = Endpoint::new("p", "openai-chat", "http://model.test/v1");
    let address = proxy.address();
    endpoint.network.proxies.http = Some(Secret::new(format!("me:pw@{address}")));
    let outcome = drive(ask(&model(&endpoint)), Timers::default()).await;
    assert_eq!(outcome.end, Ok(()));
    let sent = proxy.request(0).await;
    assert_eq!(sent.path, "http://model.test/v1/chat/completions");
    assert_eq!(sent.header("proxy-authorization"), Some("Basic bWU6cHc="));
    assert_eq!(sent.header("host"), Some("model.test"));
}

#[tokio::test]
async fn a_proxy_whose_address_cannot_be_used_is_not_passed_over() {
    for address in [
        "http://",
        "socks5://127.0.0.1:1",
        "not an address",
        "ftp://h",
    ] {
        let mut endpoint = Endpoint::new("p", "openai-chat", "http://model.test/v1");
        endpoint.network.proxies.http = Some(Secret::new(address));
        let error = HttpModel::new(&endpoint, ModelCard::new("m")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the http proxy is not an address",
            "{address}"
        );
    }
}

#[tokio::test]
async fn an_address_with_a_user_is_asked_as_that_user_unless_there_is_a_key() {
    let server = Server::start(Script::repeat(hello())).await;
    let address = server.address();
    let mut endpoint = Endpoint::new("p", "openai-chat", format!("http://u:pw@{address}/v1"));
    drive(ask(&model(&endpoint)), Timers::default())
        .await
        .end
        .unwrap();
    endpoint.auth = rondo_http::Auth::Bearer(Secret::new("key"));
    drive(ask(&model(&endpoint)), Timers::default())
        .await
        .end
        .unwrap();
    let sent = [server.request(0).await, server.request(1).await];
    let headers = sent.each_ref().map(|sent| sent.header("authorization"));
    assert_eq!(headers, [Some("Basic dTpwdw=="), Some("Bearer key")]);
}
