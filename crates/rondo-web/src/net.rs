//! The system's names and connections, behind a trait so that tests can answer in its place.

use async_trait::async_trait;
use std::io;
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// The bound on addresses of one name.
const ADDRESSES_MAX: usize = 32;

/// Resolves names and opens connections. Its answers are checked.
#[async_trait]
pub trait Net: Send + Sync {
    /// Returns the addresses of a name.
    ///
    /// # Errors
    /// When there is no such name, or no answer.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;

    /// Connects, and returns the address of the other end as the connection itself has it.
    ///
    /// # Errors
    /// When there is no connection.
    ///
    /// # Cancel safety
    /// Dropping it ends the attempt.
    async fn connect(&self, address: SocketAddr) -> io::Result<(TcpStream, SocketAddr)>;
}

/// The system's resolver and sockets.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemNet;

#[async_trait]
impl Net for SystemNet {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let found = tokio::net::lookup_host((host, port)).await?;
        Ok(found.take(ADDRESSES_MAX).collect())
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<(TcpStream, SocketAddr)> {
        let stream = TcpStream::connect(address).await?;
        let peer = stream.peer_addr()?;
        Ok((stream, peer))
    }
}
