//! Ends the streams of a user whose key is revoked, also if another process revokes it.

use super::Parts;
use crate::keys::KeyHash;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// How often the keys of open streams are looked at.
const PERIOD: Duration = Duration::from_millis(500);
/// Streams that one key may have open.
pub(super) const STREAMS_MAX: usize = 32;

/// The keys by which streams are open. Clones share them.
#[derive(Clone, Default)]
pub(super) struct OpenKeys(Arc<Shared>);

#[derive(Default)]
struct Shared {
    keys: Mutex<HashMap<KeyHash, Streams>>,
    opened: Notify,
}

struct Streams {
    count: usize,
    revoked: CancellationToken,
}

/// Holds a place for a stream.
pub(super) struct StreamPlace {
    keys: OpenKeys,
    key: KeyHash,
    /// Fires once the key is revoked.
    pub(super) revoked: CancellationToken,
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut keys = self.keys.keys();
        if let Some(streams) = keys.get_mut(&self.key) {
            streams.count -= 1;
            if streams.count == 0 {
                keys.remove(&self.key);
            }
        }
    }
}

impl OpenKeys {
    /// Returns a place for another stream; `None` if the key has as many as it may.
    pub(super) fn open(&self, key: &KeyHash) -> Option<StreamPlace> {
        let mut keys = self.keys();
        let streams = keys.entry(key.clone()).or_insert_with(|| Streams {
            count: 0,
            revoked: CancellationToken::new(),
        });
        if streams.count >= STREAMS_MAX {
            return None;
        }
        streams.count += 1;
        let revoked = streams.revoked.clone();
        drop(keys);
        self.0.opened.notify_one();
        Some(StreamPlace {
            keys: self.clone(),
            key: key.clone(),
            revoked,
        })
    }

    /// Looks for revoked keys forever. Costs nothing while no stream is open.
    pub(super) async fn watch(&self, parts: &Parts) {
        loop {
            let open: Vec<_> = self.keys().keys().cloned().collect();
            if open.is_empty() {
                self.0.opened.notified().await;
                continue;
            }
            for key in open {
                match parts.user(&key).await {
                    Ok(Some(_)) => {}
                    Ok(None) => {
                        if let Some(streams) = self.keys().remove(&key) {
                            streams.revoked.cancel();
                        }
                    }
                    Err(error) => tracing::warn!(%error, "a key could not be looked up"),
                }
            }
            sleep(PERIOD).await;
        }
    }

    fn keys(&self) -> MutexGuard<'_, HashMap<KeyHash, Streams>> {
        self.0.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::ApiKey;

    #[test]
    fn a_key_has_a_bounded_number_of_streams() {
        let keys = OpenKeys::default();
        let hash = ApiKey::new("key".to_owned()).hash();
        let mut open: Vec<_> = (0..STREAMS_MAX).map(|_| keys.open(&hash)).collect();
        assert!(open.iter().all(Option::is_some));
        assert!(keys.open(&hash).is_none());
        open.pop();
        assert!(keys.open(&hash).is_some());
        open.clear();
        assert!(keys.keys().is_empty());
    }
}
