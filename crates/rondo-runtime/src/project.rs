//! The configuration of the project that a directory is in.

use crate::config::untrusted_layer;
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::known_files::KnownFiles;
use crate::paths::{project_config, project_root, repository_root};
use crate::table::Layer;
use std::path::{Path, PathBuf};

/// The configuration of an untrusted folder.
#[derive(Debug)]
pub struct UntrustedProject {
    /// The folder.
    pub folder: PathBuf,
    /// Configuration file of the project.
    pub file: PathBuf,
    /// The settings that apply even without trust, since they only restrict.
    pub layer: Layer,
    /// The settings that are ignored, as the file has them.
    pub ignored: Vec<(String, toml::Value)>,
}

impl UntrustedProject {
    /// Reads the configuration of the project that `directory` is in; none if there is none.
    ///
    /// # Errors
    /// When it cannot be read, or does not say what it should.
    pub fn read(directory: &Path) -> Result<Option<Self>> {
        Self::read_unless_known(directory, &KnownFiles::default())
    }

    /// Reads it unless it is known.
    pub(crate) fn read_unless_known(directory: &Path, files: &KnownFiles) -> Result<Option<Self>> {
        let Some(file) = project_config(directory) else {
            return Ok(None);
        };
        let (layer, ignored) = untrusted_layer(&file, files)?;
        Ok(Some(Self {
            folder: folder_of(directory)?,
            file,
            layer,
            ignored,
        }))
    }

    /// Returns the names of the ignored settings, for display.
    #[must_use]
    pub fn ignored_names(&self) -> String {
        let names = self.ignored.iter().map(|(name, _)| format!("`{name}`"));
        names.collect::<Vec<_>>().join(", ")
    }
}

/// Returns the folder to trust for a directory: that of the project's configuration, or else the repository's
/// root, or else the directory itself.
///
/// # Errors
/// When the directory does not exist.
pub fn folder_of(directory: &Path) -> Result<PathBuf> {
    let folder = trusted_folder(directory);
    folder.canonicalize().map_err(|err| {
        let what = format!("failed to find `{}`", folder.display());
        SetupError::because(SetupErrorKind::Input, what, err)
    })
}

/// Returns the same folder as it is named.
pub(crate) fn trusted_folder(directory: &Path) -> PathBuf {
    let file = project_config(directory);
    let of_file = file.as_deref().and_then(project_root);
    let folder = of_file.or_else(|| repository_root(directory));
    folder.unwrap_or(directory).to_owned()
}
