//! A network whose names and addresses lead where a test says.

use async_trait::async_trait;
use rondo_http::{Network, Transport};
use rondo_testkit::Server;
use rondo_web::{AllowedHost, Egress, Net};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpStream;

/// A public address; what is connected to it reaches the test's server.
pub(crate) const PUBLIC: &str = "93.184.215.14:80";
pub(crate) const OTHER: &str = "1.1.1.1:80";

#[derive(Default)]
pub(crate) struct Names {
    /// The answers of each name, in turn; the last one stays.
    answers: Mutex<HashMap<String, Vec<Vec<SocketAddr>>>>,
    /// The server behind each address, and the address that a connection to it claims to have.
    behind: HashMap<SocketAddr, (SocketAddr, SocketAddr)>,
    /// Names that were resolved and connected to, in order.
    pub(crate) log: Mutex<Vec<String>>,
}

impl Names {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Answers for a name, each list once.
    pub(crate) fn name(self, name: &str, answers: &[&[&str]]) -> Self {
        let parse = |list: &&[&str]| list.iter().map(|it| it.parse().unwrap()).collect();
        let answers = answers.iter().map(parse).collect();
        let all = self
            .answers
            .lock()
            .unwrap()
            .insert(name.to_owned(), answers);
        assert!(all.is_none());
        self
    }

    /// Puts a server behind an address.
    pub(crate) fn server(self, address: &str, server: &Server) -> Self {
        self.server_at(address, server, address)
    }

    /// Puts a server behind an address whose connections end up at another one.
    pub(crate) fn server_at(mut self, address: &str, server: &Server, peer: &str) -> Self {
        let behind = (server.address(), peer.parse().unwrap());
        self.behind.insert(address.parse().unwrap(), behind);
        self
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

#[async_trait]
impl Net for Names {
    async fn resolve(&self, host: &str, _port: u16) -> io::Result<Vec<SocketAddr>> {
        self.log.lock().unwrap().push(format!("resolve {host}"));
        let mut answers = self.answers.lock().unwrap();
        let list = answers.get_mut(host);
        let list = list.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(match list.len() {
            0 => Vec::new(),
            1 => list[0].clone(),
            _ => list.remove(0),
        })
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<(TcpStream, SocketAddr)> {
        self.log.lock().unwrap().push(format!("connect {address}"));
        match self.behind.get(&address) {
            Some((server, peer)) => Ok((TcpStream::connect(server).await?, *peer)),
            None => Err(io::Error::from(io::ErrorKind::ConnectionRefused)),
        }
    }
}

pub(crate) fn transport(network: Network) -> Transport {
    Transport::new(network).unwrap()
}

pub(crate) fn egress(names: &Arc<Names>, allowed: &[&str]) -> Egress {
    let allowed = allowed.iter().map(|it| AllowedHost::parse(it).unwrap());
    let egress = Egress::new(transport(Network::default()), allowed.collect());
    egress.with_net(Arc::clone(names) as _)
}

/// A site under a public name, and the network that leads to it.
pub(crate) fn site(server: &Server) -> Arc<Names> {
    let names = Names::new().name("docs.example", &[&[PUBLIC]]);
    Arc::new(
        names
            .name("www.docs.example", &[&[PUBLIC]])
            .server(PUBLIC, server),
    )
}
