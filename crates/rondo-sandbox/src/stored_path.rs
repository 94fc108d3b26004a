//! Paths in what processes tell each other and keep: as text, or as bytes if they are not text. To be named in
//! `#[serde(with = "..")]`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A path, also one that is not text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StoredPath {
    /// One that is text.
    Text(String),
    /// The bytes of any other.
    Bytes(Vec<u8>),
}

impl StoredPath {
    /// Takes a path.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        match path.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes(path.as_os_str().as_bytes().to_vec()),
        }
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        match self {
            Self::Text(text) => PathBuf::from(text),
            Self::Bytes(bytes) => PathBuf::from(OsStr::from_bytes(bytes)),
        }
    }
}

/// Paths as types have them: one, one that may be missing, or several.
pub trait Paths: Sized {
    /// The same as it is stored.
    type Stored: Serialize + for<'de> Deserialize<'de>;

    /// Returns the stored form.
    fn stored(&self) -> Self::Stored;

    /// Returns the paths of what was stored.
    fn of_stored(stored: Self::Stored) -> Self;
}

impl Paths for PathBuf {
    type Stored = StoredPath;

    fn stored(&self) -> StoredPath {
        StoredPath::of(self)
    }

    fn of_stored(stored: StoredPath) -> Self {
        stored.path()
    }
}

impl Paths for Option<PathBuf> {
    type Stored = Option<StoredPath>;

    fn stored(&self) -> Option<StoredPath> {
        self.as_deref().map(StoredPath::of)
    }

    fn of_stored(stored: Option<StoredPath>) -> Self {
        stored.map(|it| it.path())
    }
}

impl Paths for Vec<PathBuf> {
    type Stored = Vec<StoredPath>;

    fn stored(&self) -> Vec<StoredPath> {
        self.iter().map(|it| StoredPath::of(it)).collect()
    }

    fn of_stored(stored: Vec<StoredPath>) -> Self {
        stored.iter().map(StoredPath::path).collect()
    }
}

impl Paths for Arc<Vec<PathBuf>> {
    type Stored = Vec<StoredPath>;

    fn stored(&self) -> Vec<StoredPath> {
        self.as_ref().stored()
    }

    fn of_stored(stored: Vec<StoredPath>) -> Self {
        Self::new(Vec::of_stored(stored))
    }
}

/// Writes paths.
///
/// # Errors
/// Errors of the serializer.
pub fn serialize<P: Paths, S: Serializer>(paths: &P, to: S) -> Result<S::Ok, S::Error> {
    paths.stored().serialize(to)
}

/// Reads paths.
///
/// # Errors
/// Errors of the deserializer.
pub fn deserialize<'de, P: Paths, D: Deserializer<'de>>(from: D) -> Result<P, D::Error> {
    P::Stored::deserialize(from).map(P::of_stored)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SandboxMode, SandboxSpec};

    #[test]
    fn a_specification_with_names_that_are_no_text_is_the_same_on_the_other_side() {
        let path = PathBuf::from(OsStr::from_bytes(b"/x\xff"));
        let mut spec = SandboxSpec::new(SandboxMode::WorkspaceWrite, [path.clone()]);
        spec.hidden = vec![path.join(OsStr::from_bytes(b"\xfe")), "/text".into()];
        spec.readable = Arc::new(vec![path.clone()]);
        spec.home = Some(path.clone());
        spec.scratch = Some(path);
        let line = serde_json::to_string(&spec).unwrap();
        assert!(line.contains(r#""/text""#), "{line}");
        assert_eq!(serde_json::from_str::<SandboxSpec>(&line).unwrap(), spec);
    }
}
