//! The servers that the sessions of a host share: one set for each directory and configuration, as long as it is used.

use crate::error::Result;
use rondo_core::Tool;
use rondo_core::ports::{ToolScope, ToolSource};
use rondo_mcp::Servers;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Unused sets of servers that keep running: the ones used last.
const IDLE_MAX: usize = 4;

/// The sets of servers of a host.
#[derive(Default)]
pub(crate) struct SharedServers(Mutex<Vec<Entry>>);

/// One set of servers. Those used last come last.
struct Entry {
    /// The fingerprints of the servers and their directory.
    fingerprint: String,
    servers: Weak<Servers>,
    /// The same, if it keeps running while unused.
    kept: Option<Arc<Servers>>,
}

impl SharedServers {
    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the servers of a fingerprint, which are started if they are not running.
    ///
    /// # Errors
    /// When they cannot be started.
    pub(crate) fn get(
        &self,
        fingerprint: String,
        start: impl FnOnce() -> Result<Option<Arc<Servers>>>,
    ) -> Result<Option<Arc<Servers>>> {
        let mut entries = self.entries();
        entries.retain(|it| it.servers.strong_count() > 0);
        let known = entries.iter().position(|it| it.fingerprint == fingerprint);
        let known = known.and_then(|place| entries.remove(place).servers.upgrade());
        let servers = match known {
            Some(servers) => servers,
            None => match start()? {
                Some(servers) => servers,
                None => return Ok(None),
            },
        };
        entries.push(Entry {
            fingerprint,
            servers: Arc::downgrade(&servers),
            kept: Some(Arc::clone(&servers)),
        });
        let idle = entries.len().saturating_sub(IDLE_MAX);
        let ended: Vec<_> = entries
            .iter_mut()
            .take(idle)
            .map(|it| it.kept.take())
            .collect();
        drop(entries);
        // Unused ones end here.
        drop(ended);
        Ok(Some(servers))
    }

    /// Ends all servers, also those in use, and waits for that for a bounded time.
    pub(crate) async fn close(&self) {
        let entries = std::mem::take(&mut *self.entries());
        let servers = entries.iter().filter_map(|it| it.servers.upgrade());
        let servers: Vec<_> = servers.collect();
        futures_util::future::join_all(servers.iter().map(|it| it.close())).await;
    }
}

/// The tools of servers, which continue as long as these are offered.
pub(crate) struct HeldTools {
    pub(crate) source: Arc<dyn ToolSource>,
    pub(crate) _servers: Arc<Servers>,
}

impl ToolSource for HeldTools {
    fn tools(&self, scope: &ToolScope) -> Vec<Arc<dyn Tool>> {
        self.source.tools(scope)
    }

    fn generation(&self) -> u64 {
        self.source.generation()
    }
}
