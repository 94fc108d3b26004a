//! The files of the workspace.

use std::fs;
use std::path::{Path, PathBuf};

/// Directories that hold no sources of ours.
const SKIPPED: [&str; 4] = ["target", ".git", "fixtures", "snapshots"];

/// Returns the workspace's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the workspace")
        .to_owned()
}

/// Returns paths relative to the root, with `/`, of all files with the extension.
pub(crate) fn files_ending(extension: &str) -> Vec<String> {
    let mut files = Vec::new();
    collect(&root(), &mut files);
    let mut names: Vec<String> = files
        .iter()
        .filter(|path| path.extension().is_some_and(|end| end == extension))
        .map(|path| {
            let relative = path.strip_prefix(root()).expect("found below the root");
            relative.to_string_lossy().replace('\\', "/")
        })
        .collect();
    names.sort();
    assert!(!names.is_empty(), "no `.{extension}` file was found");
    names
}

/// Reads a file by its path relative to the root.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path))
        .unwrap_or_else(|err| panic!("failed to read `{path}`: {err}"))
}

/// Fails with all that was found, one a line.
pub(crate) fn assert_none(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a directory of the workspace can be listed") {
        let entry = entry.expect("an entry can be read");
        let path = entry.path();
        let name = entry.file_name();
        if !path.is_dir() {
            files.push(path);
        } else if !SKIPPED.iter().any(|skipped| name == *skipped) {
            collect(&path, files);
        }
    }
}
