//! Locations of Rondo's files: the XDG base directories, or one directory by `RONDO_HOME`.

use crate::env::Env;
use crate::error::SetupErrorKind;
use crate::error::{Result, SetupError};
use crate::files::is_present;
use etcetera::base_strategy::{BaseStrategy, Xdg};
use std::path::{Path, PathBuf};

/// The directory of a project's own configuration.
pub const PROJECT_DIR: &str = ".rondo";
/// The script that extends hosts, the user's or a project's.
const INIT_FILE: &str = "init.lua";
/// The file of rules, the user's or a project's.
const POLICY_FILE: &str = "policy.toml";

/// Rondo's directories. Nothing is created here.
#[derive(Debug, Clone)]
pub struct Paths {
    /// Holds `config.toml`.
    pub config: PathBuf,
    /// For data that must be kept, such as the journal.
    pub data: PathBuf,
    /// For data that may be lost, such as the full output of commands.
    pub state: PathBuf,
    /// For data that can be created again.
    pub cache: PathBuf,
}

impl Paths {
    /// Finds the directories.
    ///
    /// # Errors
    /// When there is no home directory and no `RONDO_HOME`.
    pub fn find(env: &Env) -> Result<Self> {
        if let Some(home) = env.get("RONDO_HOME") {
            let home = Path::new(home);
            return Ok(Self {
                config: home.to_owned(),
                data: home.join("data"),
                state: home.join("state"),
                cache: home.join("cache"),
            });
        }
        let xdg = Xdg::new().map_err(|_| {
            SetupError::new(SetupErrorKind::Config, "there is no home directory")
                .hint("set `HOME`, or `RONDO_HOME` to a directory for Rondo's files")
        })?;
        let data = xdg.data_dir().join("rondo");
        Ok(Self {
            config: xdg.config_dir().join("rondo"),
            state: xdg
                .state_dir()
                .unwrap_or_else(|| xdg.data_dir())
                .join("rondo"),
            cache: xdg.cache_dir().join("rondo"),
            data,
        })
    }

    /// Returns the directory of the journal of all sessions.
    pub fn sessions(&self) -> PathBuf {
        self.data.join("sessions")
    }

    /// Returns the directory of the sockets on which processes serve the events of their turns to others.
    pub fn live(&self) -> PathBuf {
        self.state.join("live")
    }

    /// Returns the file of the user's rules.
    pub fn user_policy(&self) -> PathBuf {
        self.config.join(POLICY_FILE)
    }

    /// Returns the user's script that extends hosts.
    pub fn user_init(&self) -> PathBuf {
        self.config.join(INIT_FILE)
    }

    /// Returns the user's configuration file.
    pub fn user_config(&self) -> PathBuf {
        self.config.join("config.toml")
    }
}

/// Returns the project's configuration file: the nearest one from `directory` up to the directory
/// that holds `.git`; outside of a repository, `directory`'s own.
///
/// Searching further up could find a file of another user in a shared directory, such as `/tmp`.
pub fn project_config(directory: &Path) -> Option<PathBuf> {
    project_file(directory, "config.toml")
}

/// Returns the file of a project's rules, which is found as [`project_config`] is.
pub fn project_policy(directory: &Path) -> Option<PathBuf> {
    project_file(directory, POLICY_FILE)
}

/// Returns the script of a project that extends hosts, which is found as [`project_config`] is.
pub fn project_init(directory: &Path) -> Option<PathBuf> {
    project_file(directory, INIT_FILE)
}

fn project_file(directory: &Path, name: &str) -> Option<PathBuf> {
    let in_project = depth_in_repository(directory).unwrap_or(0);
    directory
        .ancestors()
        .take(in_project + 1)
        .map(|folder| folder.join(PROJECT_DIR).join(name))
        // Anything but a file that can be read is an error when it is read.
        .find(|file| is_present(file))
}

/// Returns the root of the repository that a directory is in.
pub(crate) fn repository_root(directory: &Path) -> Option<&Path> {
    directory.ancestors().nth(depth_in_repository(directory)?)
}

fn depth_in_repository(directory: &Path) -> Option<usize> {
    let mut folders = directory.ancestors();
    folders.position(|folder| folder.join(".git").exists())
}

/// Returns the folder a project's configuration file belongs to.
pub fn project_root(config: &Path) -> Option<&Path> {
    config.parent()?.parent()
}
