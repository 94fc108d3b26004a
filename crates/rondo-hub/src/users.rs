//! Users of the hub and their roles. Looked up again for each event, so that a change takes effect at once.

use crate::channel::Sender;
use crate::host::OWNER_CHATS;
use rondo_core::ports::{HostCommit, HostRow, HostStore, MailboxError};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

/// The table of users, by their names.
const USERS: &str = "user";
/// The table of the users' ids on channels.
const IDENTITIES: &str = "user_id";
/// Users that there may be at the most.
pub const USERS_MAX: usize = 10_000;

/// Role of a person. A higher role may do all that a lower one may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// May ask, with tools that reach nothing of this machine.
    Guest,
    /// May work with files and commands of their own chat, but not allow what needs approval.
    Member,
    /// May do everything.
    Owner,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Guest => "guest",
            Self::Member => "member",
            Self::Owner => "owner",
        })
    }
}

/// A user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// Their name.
    pub name: String,
    /// Role of the user.
    pub role: Role,
    /// Ids of the user on each channel, as `channel:id`. On the channel `api`, every user has the id of their name.
    #[serde(default)]
    pub ids: Vec<String>,
}

/// Someone who does something now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// Id on the channel, as `channel:id`.
    pub id: String,
    /// The user's name.
    pub user: String,
    /// Role of the user.
    pub role: Role,
}

/// The table of users of the configuration that were revoked.
const REVOKED: &str = "revoked_user";

/// All users: those of the configuration and those that were added.
pub struct Users {
    configured: BTreeMap<String, User>,
    configured_ids: HashMap<String, String>,
    store: Arc<dyn HostStore>,
}

impl Users {
    /// Takes the users of the configuration, and where the others are.
    #[must_use]
    pub fn new(configured: Vec<User>, store: Arc<dyn HostStore>) -> Self {
        let ids = configured.iter();
        let ids = ids.flat_map(|user| user.ids.iter().map(|id| (id.clone(), user.name.clone())));
        Self {
            configured_ids: ids.collect(),
            configured: configured
                .into_iter()
                .map(|it| (it.name.clone(), it))
                .collect(),
            store,
        }
    }

    /// Returns the user of a sender; none if they are not among the users.
    ///
    /// # Errors
    /// When the storage fails.
    pub async fn who(&self, channel: &str, sender: &Sender) -> Result<Option<Actor>, MailboxError> {
        self.actor(&identity(channel, sender)).await
    }

    /// Returns the user with this id (`channel:id`); none if there is none.
    ///
    /// # Errors
    /// When the storage fails.
    pub async fn actor(&self, id: &str) -> Result<Option<Actor>, MailboxError> {
        let name = match (id.strip_prefix("api:"), self.configured_ids.get(id)) {
            (Some(name), _) => Some(name.to_owned()),
            (None, Some(name)) => Some(name.clone()),
            (None, None) => self.store.row(IDENTITIES, id).await?,
        };
        let Some(name) = name else {
            return Ok(None);
        };
        Ok(self.user(&name).await?.map(|user| Actor {
            id: id.to_owned(),
            user: user.name,
            role: user.role,
        }))
    }

    /// Returns a user by their name.
    ///
    /// # Errors
    /// When the storage fails.
    pub async fn user(&self, name: &str) -> Result<Option<User>, MailboxError> {
        if let Some(user) = self.configured.get(name) {
            let is_revoked = self.store.row(REVOKED, name).await?.is_some();
            return Ok((!is_revoked).then(|| user.clone()));
        }
        let row = self.store.row(USERS, name).await?;
        row.map(|json| parsed(&json)).transpose()
    }

    /// Returns all users, those of the configuration first.
    ///
    /// # Errors
    /// When the storage fails.
    pub async fn list(&self) -> Result<Vec<User>, MailboxError> {
        let mut all = Vec::new();
        for name in self.configured.keys() {
            all.extend(self.user(name).await?);
        }
        for (_, json) in self.store.rows(USERS, "", USERS_MAX).await? {
            all.push(parsed(&json)?);
        }
        Ok(all)
    }

    /// Adds a user, or changes one that was added. If an id was another user's, it is this one's from now on.
    ///
    /// # Errors
    /// When the storage fails.
    pub async fn put(&self, user: &User) -> Result<(), MailboxError> {
        let mut rows = Vec::new();
        if let Some(before) = self.user(&user.name).await? {
            let gone = before.ids.into_iter().filter(|it| !user.ids.contains(it));
            rows.extend(gone.map(|id| HostRow::removed(IDENTITIES, id)));
        }
        let ids = user.ids.iter();
        rows.extend(ids.map(|id| HostRow::set(IDENTITIES, id, &user.name)));
        let json = serde_json::to_string(user).map_err(|err| MailboxError::Io(err.into()))?;
        rows.push(HostRow::set(USERS, &user.name, json));
        if user.role != Role::Owner {
            rows.push(HostRow::removed(OWNER_CHATS, &user.name));
        }
        self.commit(rows).await
    }

    /// Removes a user that was added. Returns `false` if there is none.
    ///
    /// # Errors
    /// When the storage fails.
    pub async fn remove(&self, name: &str) -> Result<bool, MailboxError> {
        let Some(json) = self.store.row(USERS, name).await? else {
            return Ok(false);
        };
        let ids = parsed(&json)?.ids.into_iter();
        let mut rows: Vec<_> = ids.map(|id| HostRow::removed(IDENTITIES, id)).collect();
        rows.push(HostRow::removed(USERS, name));
        rows.push(HostRow::removed(OWNER_CHATS, name));
        self.commit(rows).await?;
        Ok(true)
    }

    /// Lets a user of the configuration in no more, or again.
    ///
    /// # Errors
    /// When the storage fails.
    pub async fn revoke_configured(
        &self,
        name: &str,
        is_revoked: bool,
    ) -> Result<(), MailboxError> {
        let rows = match is_revoked {
            true => vec![
                HostRow::set(REVOKED, name, String::new()),
                HostRow::removed(OWNER_CHATS, name),
            ],
            false => vec![HostRow::removed(REVOKED, name)],
        };
        self.commit(rows).await
    }

    async fn commit(&self, rows: Vec<HostRow>) -> Result<(), MailboxError> {
        let commit = HostCommit {
            rows,
            ..HostCommit::default()
        };
        self.store.commit(commit).await.map(drop)
    }
}

/// Returns the identity of a sender on their channel.
#[must_use]
pub fn identity(channel: &str, sender: &Sender) -> String {
    format!("{channel}:{}", sender.id)
}

fn parsed(json: &str) -> Result<User, MailboxError> {
    serde_json::from_str(json).map_err(|err| MailboxError::Io(err.into()))
}
