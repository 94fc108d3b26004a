//! The table `[hub]` of the user's configuration file. That of a project never counts.

use crate::cron::HeartbeatConfig;
use crate::users::{Role, User};
use rondo_runtime::Layer;
use rondo_runtime::error::{Result, SetupError, SetupErrorKind};
use rondo_runtime::settings::Settings;
use rondo_runtime::values::{SandboxChoice, TimeSpan};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// How long turns may go on after the hub was told to stop, where no setting says so.
pub const DRAIN: Duration = Duration::from_secs(10);
/// The longest such time.
pub const DRAIN_MAX: Duration = Duration::from_secs(25);

/// What the user says of the hub.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HubConfig {
    /// The directory of the workspace and of the chats; `hub` in the data directory where it is not set.
    pub directory: Option<PathBuf>,
    /// How long turns may go on after the hub was told to stop: at most [`DRAIN_MAX`].
    pub drain: Option<TimeSpan>,
    /// What happens to people that are not among the users.
    pub strangers: Strangers,
    /// Whether a message that comes while a turn of the same sender runs joins that turn.
    pub steer: bool,
    /// Tokens of a whole context: what precedes the history takes three quarters at the most.
    pub context_tokens: Option<u64>,
    /// Messages of the past that stay once there are more than the profile keeps: 25 of 50, so that prompt caches live.
    pub keep_messages: Option<u32>,
    /// The heartbeat; none where it is absent.
    pub heartbeat: Option<HeartbeatConfig>,
    /// Users by name, beside those of `rondo users`.
    pub users: BTreeMap<String, ConfiguredUser>,
    /// Channels by name; each reads its own table.
    pub channels: BTreeMap<String, toml::Table>,
}

/// A user of the configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfiguredUser {
    /// What they may do.
    pub role: Role,
    /// Who they are on each channel, as `channel:id`, such as `telegram:4711`.
    #[serde(default)]
    pub ids: Vec<String>,
}

/// What happens to people that are not among the users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strangers {
    /// They are told their id once, in a private chat, and are not answered.
    #[default]
    Deny,
    /// They are guests in groups in which a user has spoken.
    GuestsInGroups,
}

/// Returns the flags of a hub's runtime: what the user does not set is set as it suits a gateway. Turns have the profile
/// `hub`, and commands run without a shell and reach no further than their chat's directory.
#[must_use]
pub fn flags(flags: Layer, user: &Settings) -> Layer {
    let mut flags = flags;
    if user.values.profile.is_none() {
        flags.profile = Some("hub".to_owned());
    }
    if user.values.sandbox.is_none() {
        flags.sandbox = Some(SandboxChoice::WorkspaceWrite);
    }
    if user.values.exec_shell.is_none() {
        flags.exec_shell = Some(false);
    }
    // Nobody in a chat chooses for the folder, and what was chosen at a terminal does not count for chats.
    flags.sandboxed_folders = Some(Vec::new());
    flags
}

impl HubConfig {
    /// Reads the table.
    ///
    /// # Errors
    /// When it is malformed.
    pub fn of(settings: &Settings) -> Result<Self> {
        let table = toml::Value::Table(settings.values.hub.clone());
        let config: Self = table.try_into().map_err(|err: toml::de::Error| {
            let context = "the table `[hub]` of the configuration is malformed";
            SetupError::because(SetupErrorKind::Config, context, err.to_string().trim_end())
        })?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<()> {
        if let Some(heartbeat) = &self.heartbeat {
            heartbeat.check()?;
        }
        for (name, user) in &self.users {
            for id in &user.ids {
                if !is_identity(id) {
                    let message = format!(
                        "`{id}` of `[hub.users.{name}]` is not the id of a person on a channel"
                    );
                    let hint = "write it as `channel:id`, such as `telegram:4711`";
                    return Err(SetupError::new(SetupErrorKind::Config, message).hint(hint));
                }
            }
        }
        Ok(())
    }

    /// Returns the directory of the workspace and of the chats.
    #[must_use]
    pub fn directory(&self, settings: &Settings) -> PathBuf {
        let set = self.directory.clone();
        set.unwrap_or_else(|| settings.paths.data.join("hub"))
    }

    /// Returns how long turns may go on after the hub was told to stop.
    #[must_use]
    pub fn drain(&self) -> Duration {
        self.drain.map_or(DRAIN, |it| it.0).min(DRAIN_MAX)
    }

    /// Returns the users that it names.
    #[must_use]
    pub fn users(&self) -> Vec<User> {
        let users = self.users.iter();
        let users = users.map(|(name, user)| User {
            name: name.clone(),
            role: user.role,
            ids: user.ids.clone(),
        });
        users.collect()
    }
}

/// Returns whether it names a person on a channel.
fn is_identity(id: &str) -> bool {
    id.split_once(':').is_some_and(|(channel, id)| {
        !channel.is_empty() && !id.is_empty() && id.len() <= 200 && !id.contains(char::is_control)
    })
}
