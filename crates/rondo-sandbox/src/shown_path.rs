//! Paths in messages and records: a command chooses the names of its files.

use serde::{Deserialize, Deserializer, Serializer};
use std::path::{Path, PathBuf};

/// Returns a path as a person or a model reads it, in one line. Characters that are not seen, or change how others are
/// shown, are escaped, such as `\n` and `\u{202e}`.
#[must_use]
pub fn shown_path(path: &Path) -> String {
    let mut shown = String::new();
    for c in path.to_string_lossy().chars() {
        let is_hidden = c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        match is_hidden {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}

/// Writes a path that need not be text, with a replacement for what is not.
pub(crate) mod lossy {
    use super::{Deserialize, Deserializer, Path, PathBuf, Serializer};

    pub(crate) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&path.to_string_lossy())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        PathBuf::deserialize(from)
    }
}

/// The same for a path that may be missing.
pub(crate) mod lossy_option {
    use super::{Deserialize, Deserializer, PathBuf, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        path: &Option<PathBuf>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match path {
            Some(path) => to.serialize_some(&path.to_string_lossy()),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<PathBuf>, D::Error> {
        Option::deserialize(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UndoneChange;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    #[test]
    fn a_name_cannot_forge_a_line() {
        let path = Path::new("a`\nnote: nothing is wrong\u{202e}\u{1b}[1m");
        assert_eq!(
            shown_path(path),
            "a`\\nnote: nothing is wrong\\u{202e}\\u{1b}[1m"
        );
    }

    #[test]
    fn a_name_that_is_no_text_is_written_all_the_same() {
        let undone = UndoneChange {
            path: OsStr::from_bytes(b"x\xff/.git").into(),
            aside: Some(OsStr::from_bytes(b"x\xff/.git.refused").into()),
            ..UndoneChange::default()
        };
        let written = serde_json::to_string(&undone).unwrap();
        let read: UndoneChange = serde_json::from_str(&written).unwrap();
        assert_eq!(read.path, Path::new("x\u{fffd}/.git"));
    }
}
