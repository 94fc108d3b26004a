//! Values that most turns of a host share, held once: a thousand that run at the same time have the same profile and
//! rules.

use crate::error::{Result, SetupError, SetupErrorKind};
use crate::unchecked::CheckedFolders;
use rondo_core::SharedSpecs;
use rondo_core::redact::Secrets;
use rondo_policy::rules::Rules;
use rondo_policy::{CommandEnvironment, GateOptions, ToolPatterns};
use rondo_types::Profile;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// How many different values of a kind are kept.
const KEPT_MAX: usize = 8;
/// How many directories are known by where they led.
const DIRECTORIES_MAX: usize = 16_384;

/// The values that turns share.
#[derive(Default)]
pub struct SharedValues {
    pub(crate) specs: SharedSpecs,
    pub(crate) profiles: Interner<Arc<Profile>>,
    /// The blocks of system prompts.
    pub(crate) systems: Interner<Arc<Vec<String>>>,
    pub(crate) rules: Interner<Arc<Rules>>,
    pub(crate) environments: Interner<Arc<CommandEnvironment>>,
    pub(crate) tool_patterns: Interner<ToolPatterns>,
    /// Further paths that sandboxed commands may read.
    pub(crate) readable: Interner<Arc<Vec<PathBuf>>>,
    /// With what finds them in a text.
    pub(crate) secrets: Interner<Secrets>,
    pub(crate) directories: Directories,
    pub(crate) checked: Arc<CheckedFolders>,
}

impl SharedValues {
    /// Lets a gate share equal values with others.
    pub(crate) fn share(&self, gate: &mut GateOptions) {
        gate.rules = self.rules.share(Arc::clone(&gate.rules));
        gate.allowed_tools = self.tool_patterns.share(gate.allowed_tools.clone());
        gate.disallowed_tools = self.tool_patterns.share(gate.disallowed_tools.clone());
        gate.environment = self.environments.share(Arc::clone(&gate.environment));
    }
}

/// Canonical paths of the directories of turns. A command of one turn can put a link in the place of a directory
/// that the next turn works in.
#[derive(Default)]
pub(crate) struct Directories(Mutex<HashMap<PathBuf, PathBuf>>);

impl Directories {
    /// Checks that a directory leads to where it led before. A missing one is left to the code that opens it.
    ///
    /// # Errors
    /// When it leads elsewhere now.
    pub(crate) fn check(&self, named: &Path) -> Result<()> {
        let Ok(real) = named.canonicalize() else {
            return Ok(());
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(before) = known.get(named) else {
            if known.len() < DIRECTORIES_MAX {
                known.insert(named.to_owned(), real);
            }
            return Ok(());
        };
        if *before == real {
            return Ok(());
        }
        let message = format!(
            "`{}` led to `{}` before and leads to `{}` now; a command may have put a link in its place",
            named.display(),
            before.display(),
            real.display(),
        );
        let error = SetupError::new(SetupErrorKind::Input, message);
        Err(error.hint("if you did this yourself, start Rondo again"))
    }
}

/// Holds equal values once: those that it was asked for last. Clones of `T` share what they hold.
pub(crate) struct Interner<T>(Mutex<Vec<T>>);

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone + PartialEq> Interner<T> {
    /// Returns the kept value that equals this one; it is kept if there is none.
    pub(crate) fn share(&self, value: T) -> T {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match kept.iter().position(|it| *it == value) {
            Some(place) => kept.remove(place),
            None => value,
        };
        if kept.len() == KEPT_MAX {
            kept.remove(0);
        }
        kept.push(found.clone());
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_leads_elsewhere_than_before_is_an_error() {
        let place = tempfile::tempdir().unwrap();
        let (named, other) = (place.path().join("sub"), place.path().join("other"));
        for directory in [&named, &other] {
            std::fs::create_dir(directory).unwrap();
        }
        let directories = Directories::default();
        directories.check(&named).unwrap();
        directories.check(&place.path().join("missing")).unwrap();
        std::fs::rename(&named, place.path().join("sub2")).unwrap();
        std::os::unix::fs::symlink(&other, &named).unwrap();
        let refused = directories.check(&named).unwrap_err().to_string();
        assert!(refused.contains("a link in its place"), "{refused}");
        std::fs::remove_file(&named).unwrap();
        std::fs::create_dir(&named).unwrap();
        directories.check(&named).unwrap();
    }

    #[test]
    fn equal_values_are_held_once_and_others_apart() {
        let interner = Interner::default();
        let (one, other) = (interner.share(Arc::new(1)), interner.share(Arc::new(2)));
        assert!(Arc::ptr_eq(&one, &interner.share(Arc::new(1))));
        assert_eq!((*one, *other), (1, 2));
    }

    #[test]
    fn what_was_asked_for_last_is_kept_within_the_bound() {
        let interner = Interner::default();
        let first = interner.share(Arc::new(0));
        for number in 1..=KEPT_MAX {
            interner.share(Arc::new(number));
        }
        assert_eq!(interner.0.lock().unwrap().len(), KEPT_MAX);
        assert!(!Arc::ptr_eq(&first, &interner.share(Arc::new(0))));
    }
}
