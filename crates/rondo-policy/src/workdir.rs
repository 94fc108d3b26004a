//! The directory and exported variables of the user's shell, in which commands and tools run.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// Exported variables of a shell. Cheap to clone; `Debug` shows only their number, since they may hold
/// secrets.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Variables(Arc<BTreeMap<OsString, OsString>>);

impl Variables {
    /// Returns the value of a variable.
    #[must_use]
    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.0.get(name.as_ref()).map(OsString::as_os_str)
    }

    /// Returns names and values, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        let pairs = self.0.iter();
        pairs.map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

impl FromIterator<(OsString, OsString)> for Variables {
    fn from_iter<T: IntoIterator<Item = (OsString, OsString)>>(pairs: T) -> Self {
        Self(Arc::new(pairs.into_iter().collect()))
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Variables({})", self.0.len())
    }
}

/// The directory in which commands start, and the environment of the user's shell, if there is one.
///
/// A handle whose clones share the same state. The shell updates it after each command, and the tools and the
/// gate use it from their next call on.
#[derive(Debug, Clone)]
pub struct Workdir(Arc<RwLock<WorkdirState>>);

#[derive(Debug)]
struct WorkdirState {
    directory: PathBuf,
    environment: Option<Variables>,
}

impl Workdir {
    /// Starts in `directory`, absolute, with the environment of this process.
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        Self(Arc::new(RwLock::new(WorkdirState {
            directory,
            environment: None,
        })))
    }

    /// Returns the directory.
    #[must_use]
    pub fn directory(&self) -> PathBuf {
        self.read(|place| place.directory.clone())
    }

    /// Returns the environment to start with instead of this process's own.
    #[must_use]
    pub fn environment(&self) -> Option<Variables> {
        self.read(|place| place.environment.clone())
    }

    /// Sets the directory; one that is not absolute is ignored.
    pub fn set_directory(&self, directory: &Path) {
        if directory.is_absolute() {
            self.write(|place| place.directory = directory.to_path_buf());
        }
    }

    /// Sets the environment.
    pub fn set_environment(&self, environment: Variables) {
        self.write(|place| place.environment = Some(environment));
    }

    fn read<T>(&self, work: impl FnOnce(&WorkdirState) -> T) -> T {
        work(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write(&self, work: impl FnOnce(&mut WorkdirState)) {
        work(&mut self.0.write().unwrap_or_else(PoisonError::into_inner));
    }
}
