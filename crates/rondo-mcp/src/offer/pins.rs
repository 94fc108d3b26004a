//! Stored facts about servers: their tools as the user has accepted them, and the version of their protocol.
//!
//! A file for each server, named by its fingerprint, so that a server that is started in another way is another one.
//! It makes the tools of a server known before it has started, and shows when one of them changes.

use super::definition::ToolDefinition;
use crate::private_file;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The bound on one such file, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// The form of the files; those of a later one are left alone.
const VERSION: u32 = 1;

/// Which of the protocol's lifecycles a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Era {
    /// It begins with `initialize`.
    Initialize,
    /// Each request says what is needed to understand it.
    Discover,
}

/// Stored facts about one server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Pins {
    /// How it was spoken to last.
    #[serde(default)]
    pub era: Option<Era>,
    /// Its tools, in the order of its list; `None` if it has not been listed yet.
    #[serde(default)]
    pub tools: Option<Vec<ToolDefinition>>,
}

#[derive(Serialize, Deserialize)]
struct PinsFile {
    version: u32,
    #[serde(flatten)]
    pins: Pins,
}

/// The directory of these files; if there is none, nothing is remembered.
#[derive(Debug, Clone, Default)]
pub struct PinStore(Option<PathBuf>);

impl PinStore {
    /// Keeps the files in a directory, which is made when something is kept.
    #[must_use]
    pub fn in_directory(directory: PathBuf) -> Self {
        Self(Some(directory))
    }

    /// Returns the pins of a server. An unreadable file counts as a missing one.
    #[must_use]
    pub fn load(&self, fingerprint: &str) -> Pins {
        let Some(file) = self.file(fingerprint) else {
            return Pins::default();
        };
        match read(&file) {
            Ok(pins) => pins,
            Err(err) if err.kind() == io::ErrorKind::NotFound => Pins::default(),
            Err(err) => {
                tracing::warn!(%err, "what was known of a server cannot be read");
                Pins::default()
            }
        }
    }

    /// Replaces what is known of a server.
    ///
    /// # Errors
    /// When it cannot be written; what was known stays.
    pub fn save(&self, fingerprint: &str, pins: &Pins) -> io::Result<()> {
        let Some(file) = self.file(fingerprint) else {
            return Ok(());
        };
        let written = PinsFile {
            version: VERSION,
            pins: pins.clone(),
        };
        private_file::write(&file, &serde_json::to_vec(&written)?)
    }

    /// Forgets a server.
    ///
    /// # Errors
    /// When it cannot be forgotten.
    pub fn forget(&self, fingerprint: &str) -> io::Result<()> {
        match self.file(fingerprint).map(fs::remove_file) {
            Some(Err(err)) if err.kind() != io::ErrorKind::NotFound => Err(err),
            _ => Ok(()),
        }
    }

    fn file(&self, fingerprint: &str) -> Option<PathBuf> {
        Some(self.0.as_ref()?.join(format!("{fingerprint}.json")))
    }
}

fn read(file: &Path) -> io::Result<Pins> {
    let bytes = private_file::read(file, FILE_BYTES_MAX)?;
    let written: PinsFile = serde_json::from_slice(&bytes)?;
    match written.version {
        VERSION => Ok(written.pins),
        later => Err(io::Error::other(format!("it has version {later}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn what_is_known_is_found_again_and_is_the_users_alone() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("mcp");
        let store = PinStore::in_directory(directory.clone());
        assert_eq!(store.load("f"), Pins::default());
        let tool = ToolDefinition::read(&json!({"name": "t", "inputSchema": {}})).unwrap();
        let pins = Pins {
            era: Some(Era::Discover),
            tools: Some(vec![tool]),
        };
        store.save("f", &pins).unwrap();
        assert_eq!(store.load("f"), pins);
        assert_eq!(store.load("g"), Pins::default());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(
            (mode(&directory), mode(&directory.join("f.json"))),
            (0o700, 0o600)
        );
        store.forget("f").unwrap();
        store.forget("f").unwrap();
        assert_eq!(store.load("f"), Pins::default());
        PinStore::default().save("f", &pins).unwrap();
        assert_eq!(PinStore::default().load("f"), Pins::default());
    }

    #[test]
    fn a_file_that_is_none_is_as_good_as_none() {
        let home = tempfile::tempdir().unwrap();
        let store = PinStore::in_directory(home.path().to_owned());
        for text in ["", "{", "[]", r#"{"version": 2, "tools": []}"#] {
            fs::write(home.path().join("f.json"), text).unwrap();
            assert_eq!(store.load("f"), Pins::default(), "{text}");
        }
    }
}
