//! The names under which sessions record their directories.

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, percent_encode};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// What the name of a directory begins with whose path is not Unicode. No path does: they are absolute.
const ADDRESS: &str = "file://";
/// What is written by its digits in such a name.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%').add(b' ');

/// Returns the name under which sessions record a directory. Different directories have different names.
pub fn directory_name(directory: &Path) -> String {
    let real = directory.canonicalize();
    let real = real.as_deref().unwrap_or(directory);
    match real.to_str() {
        Some(name) => name.to_owned(),
        None => format!(
            "{ADDRESS}{}",
            percent_encode(real.as_os_str().as_bytes(), ENCODED)
        ),
    }
}

/// Returns the directory that a session recorded under a name.
pub(super) fn named_directory(name: &str) -> PathBuf {
    match name.strip_prefix(ADDRESS) {
        Some(encoded) => OsString::from_vec(percent_decode_str(encoded).collect()).into(),
        None => PathBuf::from(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_whose_names_are_not_unicode_are_told_apart_and_found_again() {
        let names = [
            &b"a\xff"[..],
            b"a\xfe",
            b"a%FF",
            b"a b",
            "\u{e9}".as_bytes(),
        ];
        let home = tempfile::tempdir().unwrap();
        let made = names.map(|it| {
            let directory = home.path().join(OsString::from_vec(it.to_vec()));
            std::fs::create_dir(&directory).unwrap();
            directory.canonicalize().unwrap()
        });
        let recorded = made.each_ref().map(|it| directory_name(it));
        assert!(recorded[0].ends_with("/a%FF") && recorded[0].starts_with(ADDRESS));
        for (at, (name, directory)) in recorded.iter().zip(&made).enumerate() {
            assert_eq!(named_directory(name), *directory);
            assert!(!recorded[..at].contains(name), "{name}");
        }
    }
}
