//! Whose memories they are.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Whose memories they are, and where they apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The user's, in every project.
    User,
    /// The project's, beside its files. Others who can write there can change them.
    Project,
    /// Of one session.
    Chat,
}

impl Scope {
    /// All scopes, the widest first.
    pub const ALL: [Self; 3] = [Self::User, Self::Project, Self::Chat];

    /// Returns its name in arguments and results.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Chat => "chat",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|it| it.as_str() == name);
        found.ok_or_else(|| format!("`{name}` is not a scope: `user`, `project` or `chat`"))
    }
}
