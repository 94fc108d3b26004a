//! Permanent grants of the user, written into their own file of rules.

use crate::error::{Result, SetupError, SetupErrorKind};
use crate::files;
use crate::paths::Paths;
use crate::policy::PolicyFile;
use rondo_core::shown;
use rondo_policy::rules::{GrantSpec, Rules};
use rondo_types::Grant;
use std::path::{Path, PathBuf};
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, value};

/// The bound on the file, in bytes.
const BYTES_MAX: u64 = 1 << 20;
/// The key of grants in it.
const GRANT: &str = "grant";

/// The user's own file of rules.
#[derive(Debug, Clone)]
pub struct UserPolicy(PathBuf);

/// A change of it that is not written yet, to be shown first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyChange {
    path: PathBuf,
    before: String,
    after: String,
}

impl UserPolicy {
    /// Returns the path of the file; it need not exist.
    #[must_use]
    pub fn of(paths: &Paths) -> Self {
        Self(paths.user_policy())
    }

    /// Returns the file with a permission added; comments, order and everything else in it stay as they are.
    ///
    /// # Errors
    /// When the file cannot be read or used, or would have too many grants.
    pub fn with(&self, grant: &Grant) -> Result<PolicyChange> {
        // A link, as those who keep their files elsewhere have, is followed and stays.
        let path = self.0.canonicalize().unwrap_or_else(|_| self.0.clone());
        let before = read(&path)?;
        let invalid = |why: String| {
            let context = format!("`{}` cannot be changed", path.display());
            SetupError::because(SetupErrorKind::Config, context, why)
        };
        let mut document: DocumentMut = before
            .parse()
            .map_err(|err: toml_edit::TomlError| invalid(err.to_string()))?;
        let item = document
            .entry(GRANT)
            .or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
        let tables = item.as_array_of_tables_mut();
        let tables = tables.ok_or_else(|| {
            invalid(format!(
                "its `{GRANT}` is written as one value; write it as `[[{GRANT}]]`"
            ))
        })?;
        tables.push(table(&GrantSpec::of(grant)));
        let after = document.to_string();
        let written: PolicyFile = toml::from_str(&after).map_err(|err| invalid(err.to_string()))?;
        Rules::default().grant(written.grants).map_err(invalid)?;
        Ok(PolicyChange {
            path,
            before,
            after,
        })
    }
}

impl PolicyChange {
    /// Returns the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its current text, and the new one.
    #[must_use]
    pub fn texts(&self) -> (&str, &str) {
        (&self.before, &self.after)
    }

    /// Writes it, atomically.
    ///
    /// # Errors
    /// When the file was changed since it was read, or cannot be written; it is unchanged then.
    pub fn save(&self) -> Result<()> {
        if read(&self.path)? != self.before {
            let message = format!("`{}` was changed meanwhile", self.path.display());
            return Err(SetupError::new(SetupErrorKind::Config, message));
        }
        files::replace(&self.path, &self.after).map_err(|err| {
            let context = format!("failed to write `{}`", self.path.display());
            SetupError::because(SetupErrorKind::Config, context, err)
        })
    }
}

fn read(path: &Path) -> Result<String> {
    match files::read_text(path, BYTES_MAX) {
        Ok(text) => Ok(text),
        Err(_) if !files::is_present(path) => Ok(String::new()),
        Err(err) => {
            let context = format!("failed to read `{}`", path.display());
            Err(SetupError::because(SetupErrorKind::Config, context, err))
        }
    }
}

fn table(spec: &GrantSpec) -> Table {
    let mut table = Table::new();
    table.insert("tool", value(&spec.tool));
    if !spec.command.is_empty() {
        table.insert("command", value(Array::from_iter(&spec.command)));
    }
    if let Some(runs) = &spec.runs {
        table.insert("runs", value(shown::line(runs)));
    }
    if let Some(hash) = &spec.hash {
        table.insert("hash", value(hash));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_types::GrantScope;
    use std::fs;

    fn grant(scope: GrantScope) -> Grant {
        Grant {
            scope,
            despite_outside_text: true,
        }
    }

    fn prefix() -> Grant {
        grant(GrantScope::Commands {
            tool: "exec".to_owned(),
            prefix: vec!["git".to_owned(), "add".to_owned()],
        })
    }

    #[test]
    fn a_grant_is_added_and_everything_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/policy.toml");
        let policy = UserPolicy(file.clone());
        let change = policy.with(&prefix()).unwrap();
        assert_eq!(change.texts().0, "");
        assert!(!file.exists(), "it is shown first");
        change.save().unwrap();
        let written = "[[grant]]\ntool = \"exec\"\ncommand = [\"git\", \"add\"]\n";
        assert_eq!(fs::read_to_string(&file).unwrap(), written);

        let own = format!(
            "# Mine.\nlift = ['raw-disk'] # why\n\n[[rule]]\ntool = 't'\ndecision = 'deny'\n\n{written}"
        );
        fs::write(&file, &own).unwrap();
        let exactly = grant(GrantScope::Call {
            tool: "exec".to_owned(),
            hash: "a".repeat(64),
            shown: "echo \"a\u{1b}\"".to_owned(),
        });
        let change = policy.with(&exactly).unwrap();
        change.save().unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with(&own), "{text}");
        let read: PolicyFile = toml::from_str(&text).unwrap();
        assert_eq!(read.grants.len(), 2);
        assert_eq!(read.grants.last().unwrap().hash, Some("a".repeat(64)));
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn a_file_that_changed_meanwhile_or_cannot_be_used_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.toml");
        let policy = UserPolicy(file.clone());
        let change = policy.with(&prefix()).unwrap();
        fs::write(&file, "lift = []\n").unwrap();
        let error = change.save().unwrap_err().line();
        assert!(error.contains("was changed meanwhile"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "lift = []\n");
        for wrong in ["x = ", "nonsense = 1\n", "grant = []\n"] {
            fs::write(&file, wrong).unwrap();
            assert!(policy.with(&prefix()).is_err(), "{wrong}");
        }
    }
}
