//! The table `[hub]` of the user's configuration file. That of a project never counts.

use crate::cron::HeartbeatConfig;
use crate::users::{Role, User};
use rondo_runtime::Layer;
use rondo_runtime::error::{Result, SetupError, SetupErrorKind};
use rondo_runtime::profiles;
use rondo_runtime::settings::Settings;
use rondo_runtime::values::{SandboxChoice, TimeSpan};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// How long turns may continue after the hub was told to stop, if no setting says so.
pub const DRAIN: Duration = Duration::from_secs(10);
/// The longest such time.
pub const DRAIN_MAX: Duration = Duration::from_secs(25);

/// Configuration of the hub.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HubConfig {
    /// The directory of the workspace and of the chats; `hub` in the data directory if it is not set.
    pub directory: Option<PathBuf>,
    /// How long turns may continue after the hub was told to stop: at most [`DRAIN_MAX`].
    pub drain: Option<TimeSpan>,
    /// Treatment of people who are not users.
    pub strangers: StrangerPolicy,
    /// Lets a message that comes during a turn of the same sender join that turn.
    pub steer: bool,
    /// Tokens of a whole context: what precedes the history takes three quarters at the most.
    pub context_tokens: Option<u64>,
    /// Messages of the past that stay once there are more than the profile's `compaction.max_messages`, in place of its
    /// `compaction.keep_messages`, which is 25 of 50 unless the user sets it.
    pub keep_messages: Option<u32>,
    /// For how long sessions that chats have left are kept; for ever if not set.
    pub keep_sessions: Option<TimeSpan>,
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
    /// Role of the user.
    pub role: Role,
    /// Ids of the user on each channel, as `channel:id`, such as `telegram:4711`.
    #[serde(default)]
    pub ids: Vec<String>,
}

/// Treatment of people who are not users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StrangerPolicy {
    /// They are told their id once, in a private chat, and are not answered.
    #[default]
    Deny,
    /// They are guests in groups in which a user has spoken.
    GuestsInGroups,
}

/// The profile that a hub's turns have, unless the user chooses another one.
const PROFILE: &str = "hub";
/// Differences of a gateway from the profile `hub`, whose thirty seconds for a whole request or command would cut off
/// ordinary answers: replies are streamed, and silence ends a request instead.
const GATEWAY_VALUES: &str = "
streaming = true
[limits]
step_timeout_ms = 600_000
first_byte_timeout_ms = 30_000
idle_timeout_ms = 30_000
tool_timeout_ms = 120_000
[compaction]
keep_messages = 25
";

/// Returns the flags of a hub's runtime: what the user does not set is set as it suits a gateway. Turns have the profile
/// `hub` with the time of a gateway, and commands run without a shell and reach no further than their chat's directory.
#[must_use]
pub fn flags(flags: Layer, user: &Settings) -> Layer {
    let mut flags = flags;
    set_gateway_values(&mut flags, user);
    if user.values.profile.is_none() {
        flags.profile = Some(PROFILE.to_owned());
    }
    if user.values.sandbox.is_none() {
        flags.sandbox = Some(SandboxChoice::WorkspaceWrite);
    }
    if user.values.exec_shell.is_none() {
        flags.exec_shell = Some(false);
    }
    // People in a chat do not choose for the folder, and what was chosen at a terminal does not count for chats.
    flags.sandboxed_folders = Some(Vec::new());
    flags
}

/// Sets those values of a gateway that the profile still has from the built-in `hub`. Each turn reports defects of the
/// profile.
fn set_gateway_values(flags: &mut Layer, user: &Settings) {
    let name = user.values.profile.as_deref().unwrap_or(PROFILE);
    let Ok(resolved) = profiles::resolve(user, name) else {
        return;
    };
    let sources = resolved.sources;
    let builtin = format!("profile {PROFILE}");
    // A value that the built-in profile does not have yet.
    let is_free = |key: &str| sources.get(key).is_none_or(|source| *source == builtin);
    if !sources.values().any(|source| *source == builtin) {
        return;
    }
    let values: toml::Table = toml::from_str(GATEWAY_VALUES).expect("the values are valid TOML");
    let profile = flags.profiles.entry(name.to_owned()).or_default();
    for (key, value) in values {
        match value {
            toml::Value::Table(section) => {
                let free = section.into_iter();
                let free = free.filter(|(own, _)| is_free(&format!("{key}.{own}")));
                let free: Vec<_> = free.collect();
                let below = profile
                    .entry(key)
                    .or_insert_with(|| toml::Table::new().into());
                if let Some(below) = below.as_table_mut() {
                    below.extend(free);
                }
            }
            value if is_free(&key) => {
                profile.insert(key, value);
            }
            _ => {}
        }
    }
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
        let mut known = BTreeMap::new();
        for (name, user) in &self.users {
            for id in &user.ids {
                if let Some(other) = known.insert(id, name).filter(|other| *other != name) {
                    let message = format!(
                        "`{id}` is an id of both `[hub.users.{other}]` and `[hub.users.{name}]`"
                    );
                    let hint = "an id belongs to one user: remove it from the other one";
                    return Err(SetupError::new(SetupErrorKind::Config, message).hint(hint));
                }
                if !is_identity(id) {
                    let message =
                        format!("`{id}` of `[hub.users.{name}]` is not a user's id on a channel");
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

    /// Returns how long turns may continue after the hub was told to stop.
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
