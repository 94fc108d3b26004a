//! Adds, lists and revokes users together with their keys, as `rondo users` does, also while a hub runs.

use crate::config::HubConfig;
use crate::keys::{ApiKey, KeyError, Keys};
use crate::users::{Role, User, Users};
use rondo_core::clock::Clock;
use rondo_core::ports::{HostStore, MailboxError};
use rondo_runtime::error::SetupError;
use rondo_runtime::sessions;
use rondo_runtime::settings::Settings;
use std::sync::Arc;

/// The users of a hub, and their keys.
pub struct Accounts {
    configured: Vec<User>,
    users: Users,
    keys: Keys,
}

/// A user as a list has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The user.
    pub user: User,
    /// How many keys they have.
    pub keys: usize,
    /// Set if they are in the configuration file, where they are changed and removed.
    pub is_configured: bool,
}

/// Result of revoking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revoked {
    /// How many keys are revoked.
    pub keys: usize,
    /// Set if the user is in the configuration file, and so still known on other channels.
    pub is_configured: bool,
}

/// Why users could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// The journal's file cannot be opened, or the configuration makes no sense.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// It cannot be read or written.
    #[error("the users cannot be read or written: {0}")]
    Journal(#[from] MailboxError),
    /// A key was not made.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// There is such a user.
    #[error("user `{name}` already exists")]
    Exists {
        /// Name that was given.
        name: String,
    },
    /// There is no such user.
    #[error("there is no user `{name}`")]
    Unknown {
        /// Name that was given.
        name: String,
    },
    /// An id is not that of a person on a channel.
    #[error(
        "`{id}` is not the id of a person on a channel: write it as `channel:id`, such as `telegram:4711`"
    )]
    BadId {
        /// The id.
        id: String,
    },
    /// An id is another user's.
    #[error("`{id}` already belongs to `{name}`")]
    IdTaken {
        /// The id.
        id: String,
        /// Whose it is.
        name: String,
    },
}

impl Accounts {
    /// Opens the users of the hub that the settings describe.
    ///
    /// # Errors
    /// When the journal cannot be opened, or the configuration makes no sense.
    pub fn open(settings: &Settings) -> Result<Self, AccountError> {
        let configured = HubConfig::of(settings)?.users();
        Ok(Self::new(configured, sessions::open(settings)?))
    }

    /// Returns the users of the configuration and those that are kept in a store.
    #[must_use]
    pub fn new(configured: Vec<User>, rows: Arc<dyn HostStore>) -> Self {
        Self {
            users: Users::new(configured.clone(), Arc::clone(&rows)),
            configured,
            keys: Keys::new(rows),
        }
    }

    /// Adds a user, and makes a key for them. `ids` say who they are on other channels, as `channel:id`.
    ///
    /// # Errors
    /// When the name cannot be used or is taken, an id is malformed or another user's, or the rows cannot be written.
    ///
    /// # Cancel safety
    /// Not cancel safe: the user may or may not be added.
    pub async fn add(
        &self,
        name: &str,
        role: Role,
        ids: Vec<String>,
    ) -> Result<ApiKey, AccountError> {
        if self.users.user(name).await?.is_some() {
            let name = name.to_owned();
            return Err(AccountError::Exists { name });
        }
        for id in &ids {
            let is_sound = id
                .split_once(':')
                .is_some_and(|(channel, id)| !matches!(channel, "" | "api") && !id.is_empty());
            if !is_sound {
                let id = id.clone();
                return Err(AccountError::BadId { id });
            }
            if let Some(actor) = self.users.actor(id).await? {
                return Err(AccountError::IdTaken {
                    id: id.clone(),
                    name: actor.user,
                });
            }
        }
        // The key first: a name that can have none is not added.
        let key = self.keys.make(name, Clock::system().now()).await?;
        let user = User {
            name: name.to_owned(),
            role,
            ids,
        };
        self.users.put(&user).await?;
        Ok(key)
    }

    /// Makes another key for a user. A user of the configuration who was revoked is let in again.
    ///
    /// # Errors
    /// When there is no such user, or the row cannot be written.
    ///
    /// # Cancel safety
    /// Not cancel safe: a key may be stored that was never shown.
    pub async fn key(&self, name: &str) -> Result<ApiKey, AccountError> {
        if self.is_configured(name) {
            self.users.revoke_configured(name, false).await?;
        }
        match self.users.user(name).await? {
            Some(_) => Ok(self.keys.make(name, Clock::system().now()).await?),
            None => Err(unknown(name)),
        }
    }

    /// Returns the user that a key belongs to; none if it is not valid.
    ///
    /// # Errors
    /// When the rows cannot be read.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn user_of(&self, key: &ApiKey) -> Result<Option<String>, AccountError> {
        Ok(self.keys.user(&key.hash()).await?)
    }

    /// Returns all users, those of the configuration first.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn list(&self) -> Result<Vec<Account>, AccountError> {
        let keys = self.keys.list().await?;
        let users = self.users.list().await?.into_iter();
        let accounts = users.map(|user| Account {
            keys: keys.iter().filter(|it| it.user == user.name).count(),
            is_configured: self.is_configured(&user.name),
            user,
        });
        Ok(accounts.collect())
    }

    /// Revokes a user with all their keys, which ends what they listen to. One whom the configuration names is let in no
    /// more until they get another key.
    ///
    /// # Errors
    /// When there is no such user, or the rows cannot be written.
    ///
    /// # Cancel safety
    /// Not cancel safe: some of it may be done.
    pub async fn revoke(&self, name: &str) -> Result<Revoked, AccountError> {
        if self.users.user(name).await?.is_none() {
            return Err(unknown(name));
        }
        let keys = self.keys.revoke(name).await?;
        let is_configured = self.is_configured(name);
        match is_configured {
            true => self.users.revoke_configured(name, true).await?,
            false => {
                self.users.remove(name).await?;
            }
        }
        Ok(Revoked {
            keys,
            is_configured,
        })
    }

    fn is_configured(&self, name: &str) -> bool {
        self.configured.iter().any(|it| it.name == name)
    }
}

fn unknown(name: &str) -> AccountError {
    AccountError::Unknown {
        name: name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_runtime::sessions::in_memory;

    fn accounts() -> Accounts {
        let configured = User {
            name: "root".to_owned(),
            role: Role::Owner,
            ids: vec!["telegram:1".to_owned()],
        };
        Accounts::new(vec![configured], in_memory().unwrap())
    }

    #[tokio::test]
    async fn a_revoked_user_is_gone_and_a_configured_one_loses_their_keys() {
        let accounts = accounts();
        let ids = vec!["telegram:2".to_owned()];
        let key = accounts.add("ada", Role::Member, ids).await.unwrap();
        let other = accounts.key("root").await.unwrap();
        let names = |list: Vec<Account>| -> Vec<_> {
            let named = list.into_iter().map(|it| (it.user.name, it.keys));
            named.collect()
        };
        let listed = names(accounts.list().await.unwrap());
        assert_eq!(listed, [("root".to_owned(), 1), ("ada".to_owned(), 1)]);
        let revoked = accounts.revoke("ada").await.unwrap();
        assert_eq!((revoked.keys, revoked.is_configured), (1, false));
        let revoked = accounts.revoke("root").await.unwrap();
        assert_eq!((revoked.keys, revoked.is_configured), (1, true));
        for key in [key, other] {
            assert_eq!(accounts.keys.user(&key.hash()).await.unwrap(), None);
        }
        assert!(accounts.list().await.unwrap().is_empty());
        assert_eq!(accounts.users.actor("telegram:1").await.unwrap(), None);
        accounts.key("root").await.unwrap();
        assert!(accounts.users.actor("telegram:1").await.unwrap().is_some());
        assert_eq!(accounts.users.actor("telegram:2").await.unwrap(), None);
    }

    #[tokio::test]
    async fn names_and_ids_are_taken_once() {
        let accounts = accounts();
        let add = async |name: &str, id: &str| {
            let added = accounts.add(name, Role::Owner, vec![id.to_owned()]).await;
            added.map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(add("ada", "telegram:2").await, Ok(()));
        for (name, id, said) in [
            ("ada", "telegram:3", "user `ada` already exists"),
            ("root", "telegram:3", "user `root` already exists"),
            (
                "bob",
                "telegram:1",
                "`telegram:1` already belongs to `root`",
            ),
            ("bob", "telegram:2", "`telegram:2` already belongs to `ada`"),
            ("bob", "4711", "not the id of a person"),
            ("bob", "api:ada", "not the id of a person"),
            ("bo b", "telegram:3", "cannot have a key"),
        ] {
            let error = add(name, id).await.unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        assert_eq!(accounts.list().await.unwrap().len(), 2);
        assert!(accounts.revoke("bob").await.is_err());
        assert!(accounts.key("bob").await.is_err());
    }
}
