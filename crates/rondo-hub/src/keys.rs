//! The keys of the API: which user each belongs to, by its hash. They are rows in the journal's file.

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use rondo_core::ports::{HostCommit, HostRow, HostStore, MailboxError};
use rondo_types::TimeMs;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::sync::Arc;

/// The bound on keys.
pub const KEYS_MAX: usize = 10_000;
/// The bound on the name of a user that has a key, in characters.
pub const NAME_CHARS_MAX: usize = 64;
/// How a key begins, so that a scanner for secrets knows it.
const KEY_PREFIX: &str = "rondo_";
/// Random bytes of a key.
const KEY_BYTES: usize = 32;
/// The table of keys, by their hashes.
const KEYS: &str = "user_key";

/// A key of the API. It is shown once, when it is made: the hub keeps its hash alone.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Wraps a key that a client was given.
    #[must_use]
    pub fn new(key: String) -> Self {
        Self(key)
    }

    /// Returns the key itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns its hash. Keys are 256 random bits, so a fast hash is enough: there is nothing to guess.
    #[must_use]
    pub fn hash(&self) -> KeyHash {
        KeyHash(HEXLOWER.encode(&Sha256::digest(self.0.as_bytes())))
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(..)")
    }
}

/// The SHA-256 of a key, as hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyHash(String);

/// Stored part of a key, under its hash.
#[derive(Serialize, Deserialize)]
struct KeyRow {
    user: String,
    created: TimeMs,
}

/// A key as a list has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyInfo {
    /// The user's name.
    pub user: String,
    /// When it was made.
    pub created: TimeMs,
}

/// The keys of a hub. Clones share them.
#[derive(Clone)]
pub struct Keys(Arc<dyn HostStore>);

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keys").finish_non_exhaustive()
    }
}

/// Why a key was not made.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The keys cannot be read or written.
    #[error("the keys cannot be read or written: {0}")]
    Store(#[from] MailboxError),
    /// The user's name has no place in the addresses of chats.
    #[error(
        "user `{name}` cannot have a key: their name must be 1 to {NAME_CHARS_MAX} letters, digits, `.`, `_` and `-`"
    )]
    BadName {
        /// Name that was given.
        name: String,
    },
    /// Too many keys.
    #[error("there are {KEYS_MAX} keys already")]
    TooMany,
    /// The system has no random bytes.
    #[error("the system gave no random bytes: {0}")]
    Random(String),
}

impl Keys {
    /// Returns the keys that are kept in a store.
    #[must_use]
    pub fn new(rows: Arc<dyn HostStore>) -> Self {
        Self(rows)
    }

    /// Makes another key for a user.
    ///
    /// # Errors
    /// When the name cannot be used, there are too many keys, or it cannot be written.
    ///
    /// # Cancel safety
    /// Not cancel safe: a key may be stored that was never shown.
    pub async fn make(&self, user: &str, now: TimeMs) -> Result<ApiKey, KeyError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if user.is_empty() || user.len() > NAME_CHARS_MAX || !user.chars().all(is_plain) {
            let name = user.to_owned();
            return Err(KeyError::BadName { name });
        }
        if self.0.rows(KEYS, "", KEYS_MAX).await?.len() >= KEYS_MAX {
            return Err(KeyError::TooMany);
        }
        let random = BASE64URL_NOPAD.encode(&random::<KEY_BYTES>()?);
        let key = ApiKey(format!("{KEY_PREFIX}{random}"));
        let row = KeyRow {
            user: user.to_owned(),
            created: now,
        };
        let row = serde_json::to_string(&row).map_err(|error| MailboxError::Io(error.into()))?;
        self.write(vec![HostRow::set(KEYS, key.hash().0, row)])
            .await?;
        Ok(key)
    }

    /// Returns all keys, without what would let anyone use them.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn list(&self) -> Result<Vec<KeyInfo>, MailboxError> {
        let rows = self.0.rows(KEYS, "", KEYS_MAX).await?;
        let keys = rows.iter().map(|(_, row)| {
            let KeyRow { user, created } = read(row)?;
            Ok(KeyInfo { user, created })
        });
        keys.collect()
    }

    /// Revokes all keys of a user: what they listen to ends. Returns how many there were.
    ///
    /// # Errors
    /// When they cannot be read or written.
    ///
    /// # Cancel safety
    /// Not cancel safe: they may or may not be revoked.
    pub async fn revoke(&self, user: &str) -> Result<usize, MailboxError> {
        let mut removed = Vec::new();
        for (hash, row) in self.0.rows(KEYS, "", KEYS_MAX).await? {
            if read(&row)?.user == user {
                removed.push(HostRow::removed(KEYS, hash));
            }
        }
        let count = removed.len();
        self.write(removed).await?;
        Ok(count)
    }

    /// Returns the name of the user that a key belongs to; `None` if it is unknown or was revoked.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub async fn user(&self, hash: &KeyHash) -> Result<Option<String>, MailboxError> {
        let row = self.0.row(KEYS, &hash.0).await?;
        row.map(|row| Ok(read(&row)?.user)).transpose()
    }

    async fn write(&self, rows: Vec<HostRow>) -> Result<(), MailboxError> {
        let commit = HostCommit {
            rows,
            ..HostCommit::default()
        };
        self.0.commit(commit).await.map(drop)
    }
}

fn read(row: &str) -> Result<KeyRow, MailboxError> {
    serde_json::from_str(row).map_err(|error| MailboxError::Io(error.into()))
}

/// Returns random bytes of the system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], KeyError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| KeyError::Random(error.to_string()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_runtime::sessions::in_memory;

    #[tokio::test]
    async fn a_key_names_its_user_until_it_is_revoked() {
        let keys = Keys::new(in_memory().unwrap());
        let key = keys.make("ada", TimeMs(1)).await.unwrap();
        let second = keys.make("ada", TimeMs(2)).await.unwrap();
        let other = keys.make("bob", TimeMs(3)).await.unwrap();
        assert_ne!(key, second);
        for (key, user) in [(&key, "ada"), (&second, "ada"), (&other, "bob")] {
            let found = keys.user(&key.hash()).await.unwrap();
            assert_eq!(found.as_deref(), Some(user));
        }
        assert_eq!(keys.revoke("ada").await.unwrap(), 2);
        for key in [&key, &second] {
            assert_eq!(keys.user(&key.hash()).await.unwrap(), None);
        }
        assert!(keys.user(&other.hash()).await.unwrap().is_some());
        assert_eq!(keys.list().await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_key_is_256_bits_and_is_neither_stored_nor_printed() {
        let store = in_memory().unwrap();
        let keys = Keys::new(store.clone());
        let key = keys.make("ada", TimeMs(1)).await.unwrap();
        let random = key.reveal().strip_prefix("rondo_").unwrap();
        assert_eq!(BASE64URL_NOPAD.decode(random.as_bytes()).unwrap().len(), 32);
        assert!(!format!("{key:?}").contains(random));
        let rows = store.rows(KEYS, "", 10).await.unwrap();
        assert_eq!(rows.len(), 1);
        assert!(!format!("{rows:?}").contains(random));
    }

    #[tokio::test]
    async fn a_user_with_a_key_has_a_plain_name() {
        let keys = Keys::new(in_memory().unwrap());
        let long = "x".repeat(65);
        for name in ["", "a b", "a/b", "ü", "\u{1b}[31m", &long] {
            let made = keys.make(name, TimeMs(1)).await;
            assert!(matches!(made, Err(KeyError::BadName { .. })), "{name:?}");
        }
    }
}
