//! The size of files.

use crate::tree;

/// Lines past which a file has more than one subject.
const LINES_MAX: usize = 800;

#[test]
fn no_source_file_is_too_long() {
    let long: Vec<String> = tree::files_ending("rs")
        .into_iter()
        .map(|path| (tree::read(&path).lines().count(), path))
        .filter(|(lines, _)| *lines > LINES_MAX)
        .map(|(lines, path)| format!("{path}: {lines} lines"))
        .collect();
    tree::assert_none("files are split before 800 lines", &long);
}
