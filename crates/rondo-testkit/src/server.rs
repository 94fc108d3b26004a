//! The scripted HTTP server.

use crate::connection;
use crate::{Recorded, Script};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// The bound on requests that one server keeps; past it the newest are not recorded.
pub const RECORDED_MAX: usize = 100_000;

/// A scripted HTTP/1.1 server on loopback, for tests.
///
/// It answers the n-th request with the n-th response of its [`Script`], whatever the connection,
/// and keeps every request whole. It lives as long as the value.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    accept: JoinHandle<()>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    script: Mutex<Script>,
    log: watch::Sender<Log>,
}

#[derive(Debug, Default)]
struct Log {
    connections: usize,
    requests: Vec<Recorded>,
    disconnected: Vec<usize>,
}

impl Server {
    /// Listens on a free port of 127.0.0.1 and serves the script.
    ///
    /// # Panics
    /// When no port is available, which fails the test.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn start(script: impl Into<Script>) -> Self {
        let (listener, address) = listen().await;
        let shared = Arc::new(Shared {
            script: Mutex::new(script.into()),
            log: watch::Sender::new(Log::default()),
        });
        let accept = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self {
            address,
            shared,
            accept,
        }
    }

    /// Returns the address it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns `http://127.0.0.1:PORT` followed by `path`.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the requests so far, in order of arrival.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.log.borrow().requests.clone()
    }

    /// Returns how many connections were accepted so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.log.borrow().connections
    }

    /// Waits for the request with this number, from 0, and returns it.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn request(&self, index: usize) -> Recorded {
        self.shared
            .log
            .subscribe()
            .wait_for(|log| log.requests.len() > index)
            .await
            .expect("the sender is borrowed, so it is alive")
            .requests
            .get(index)
            .cloned()
            .expect("the condition of the wait says so")
    }

    /// Waits until the client has gone away before the response with this number, from 0, was done.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn disconnected(&self, index: usize) {
        self.shared
            .log
            .subscribe()
            .wait_for(|log| log.disconnected.contains(&index))
            .await
            .expect("the sender is borrowed, so it is alive");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accept.abort();
    }
}

/// Returns the address of a port of 127.0.0.1 where nothing listens, as `http://127.0.0.1:PORT`.
///
/// # Panics
/// When no port is available, which fails the test.
///
/// # Cancel safety
/// Cancel safe.
pub async fn refused_url() -> String {
    let (listener, address) = listen().await;
    drop(listener);
    format!("http://{address}")
}

/// Listens on a free port of 127.0.0.1.
async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("a port of 127.0.0.1 is free");
    let address = listener
        .local_addr()
        .expect("a bound socket has an address");
    (listener, address)
}

impl Shared {
    /// Keeps the request and returns its number and its response.
    pub(crate) fn record(&self, request: Recorded) -> (usize, crate::Response) {
        let response = self
            .script
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .next(&request);
        let mut index = 0;
        self.log.send_modify(|log| {
            index = log.requests.len();
            if index < RECORDED_MAX {
                log.requests.push(request);
            }
        });
        (index, response)
    }

    pub(crate) fn mark_disconnected(&self, index: usize) {
        self.log.send_modify(|log| log.disconnected.push(index));
    }

    fn count_connection(&self) -> usize {
        let mut index = 0;
        self.log.send_modify(|log| {
            index = log.connections;
            log.connections += 1;
        });
        index
    }
}

/// Owns all connections, so that dropping the server ends them.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        let index = shared.count_connection();
        connections.spawn(connection::serve(socket, index, Arc::clone(&shared)));
        while connections.try_join_next().is_some() {}
    }
}
