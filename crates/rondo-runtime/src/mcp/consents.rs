//! The user's decisions about servers that a project defines: a line for each, with the hash of the question.

use crate::error::{Result, SetupError, SetupErrorKind};
use crate::files::{Readers, replace_file};
use crate::known_files::KnownFiles;
use crate::paths::Paths;
use crate::tools::private_dir;
use crate::trust_question;
use rondo_mcp::config::WrittenServer;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The bound on the file, in bytes; the oldest lines are forgotten.
const BYTES_MAX: u64 = 256 << 10;

/// The file, as it was read.
#[derive(Debug, Clone)]
pub struct Consents {
    file: PathBuf,
    /// Decision about each, in order.
    said: BTreeMap<String, bool>,
}

impl Consents {
    /// Reads the file; one that does not exist says nothing.
    #[must_use]
    pub fn read(paths: &Paths) -> Self {
        Self::read_unless_known(paths, &KnownFiles::default())
    }

    /// Reads it unless it is known.
    pub(crate) fn read_unless_known(paths: &Paths, files: &KnownFiles) -> Self {
        let file = paths.data.join(super::DIRECTORY).join("consents");
        let text = files.read(&file, BYTES_MAX).unwrap_or_default();
        let lines = text.lines().filter_map(|line| {
            let (word, hash) = line.split_once(' ')?;
            let may = match word {
                "yes" => true,
                "no" => false,
                _ => return None,
            };
            Some((hash.to_owned(), may))
        });
        Self {
            said: lines.collect(),
            file,
        }
    }

    /// Returns whether a server of a folder may be started; nothing if it has not been asked.
    #[must_use]
    pub fn said(&self, folder: &Path, name: &str, server: &WrittenServer) -> Option<bool> {
        self.said.get(&hash(folder, name, server)).copied()
    }

    /// Records the user's consent to a server, or their refusal.
    pub fn say(&mut self, folder: &Path, name: &str, server: &WrittenServer, may: bool) {
        self.said.insert(hash(folder, name, server), may);
    }

    /// Replaces the file atomically.
    ///
    /// # Errors
    /// When it cannot be written; the old file is then unchanged.
    pub fn save(&self) -> Result<()> {
        if let Some(parent) = self.file.parent() {
            private_dir(parent)?;
        }
        let lines = self.said.iter().map(|(hash, may)| {
            let word = if *may { "yes" } else { "no" };
            format!("{word} {hash}\n")
        });
        let text: String = lines.collect();
        let written = replace_file(&self.file, text.as_bytes(), Readers::Owner);
        written.map_err(|err| {
            let what = format!("failed to write `{}`", self.file.display());
            SetupError::because(SetupErrorKind::Other, what, err)
        })
    }
}

/// The folder and the name count too: what is allowed in one project is asked about in another.
fn hash(folder: &Path, name: &str, server: &WrittenServer) -> String {
    trust_question::hash_of([
        folder.as_os_str().as_encoded_bytes(),
        name.as_bytes(),
        server.consent_hash().as_bytes(),
    ])
}
