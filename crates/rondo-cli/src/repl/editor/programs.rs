//! Completion of programs in the search path.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;

/// The bound on programs that are looked at.
const PROGRAMS_MAX: usize = 20_000;
/// Names that a shell knows by itself.
const BUILTINS: [&str; 14] = [
    "alias", "bg", "cd", "echo", "exit", "export", "fg", "history", "jobs", "kill", "pwd",
    "source", "unset", "wait",
];

/// The programs that could be run by name. They are looked for once, at the first completion.
pub(super) struct Programs {
    path: Option<String>,
    found: Option<BTreeSet<String>>,
}

impl Programs {
    /// Takes the directories as `PATH` has them.
    pub(super) fn new(path: Option<String>) -> Self {
        Self { path, found: None }
    }

    /// Returns their names, in order.
    pub(super) fn names(&mut self) -> &BTreeSet<String> {
        let path = self.path.as_deref();
        self.found.get_or_insert_with(|| find(path))
    }
}

fn find(path: Option<&str>) -> BTreeSet<String> {
    let folders = path.into_iter().flat_map(|path| path.split(':'));
    let entries = folders.filter_map(|folder| std::fs::read_dir(folder).ok());
    let programs = entries.flatten().flatten().take(PROGRAMS_MAX);
    let executable = programs.filter(|entry| {
        let metadata = std::fs::metadata(entry.path());
        metadata.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    });
    let names = executable.filter_map(|entry| entry.file_name().into_string().ok());
    names.chain(BUILTINS.map(str::to_owned)).collect()
}
