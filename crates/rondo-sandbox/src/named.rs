//! Files that the settings of `git` name: more settings, hooks, and programs that `git` runs by itself.
//!
//! They are run or obeyed like the settings themselves, so if a command could write them they are protected.

use crate::git_config::{self, Setting};
use crate::harmless::Effect;
use crate::repository::resolved;
use std::collections::VecDeque;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The bound on files of settings that are read, by which includes in a circle end as well.
const FILES_MAX: usize = 64;
/// The bound on files that are named.
const NAMED_MAX: usize = 256;
/// Settings with a path of which nothing runs.
const READ_ONLY: [&[u8]; 6] = [
    b"blame.ignorerevsfile",
    b"commit.template",
    b"core.attributesfile",
    b"core.excludesfile",
    b"gpg.ssh.allowedsignersfile",
    b"mailmap.file",
];
/// Bytes that end a word of a command in a setting.
const ENDS: &[u8] = b" \t\"'`;&|()<>=!$";

/// Returns the files that settings name, and those that they include: hooks, and programs relative to the working tree
/// at `around`. They need not exist, but for programs.
pub(crate) fn by_settings(
    files: impl IntoIterator<Item = PathBuf>,
    around: Option<&Path>,
) -> Vec<PathBuf> {
    let home = std::env::home_dir();
    let mut next: VecDeque<PathBuf> = files.into_iter().collect();
    let mut named: Vec<PathBuf> = Vec::new();
    for _ in 0..FILES_MAX {
        let Some(file) = next.pop_front() else {
            break;
        };
        for setting in git_config::read(&file) {
            let (section, _, name) = setting.parts();
            let is_include = matches!(section, b"include" | b"includeif") && name == b"path";
            let base = if is_include { file.parent() } else { around };
            if is_include || setting.key == b"core.hookspath" {
                let path = setting
                    .value
                    .as_deref()
                    .and_then(|it| of_path(it, base, home.as_deref()));
                next.extend(path.clone().filter(|_| is_include));
                named.extend(path);
            } else if let Some(around) = around {
                named.extend(programs(&setting, around));
            }
        }
    }
    let real: Vec<PathBuf> = named
        .iter()
        .filter_map(|it| it.canonicalize().ok())
        .collect();
    named.extend(real);
    named.sort();
    named.dedup();
    named.truncate(NAMED_MAX);
    named
}

fn of_path(value: &[u8], base: Option<&Path>, home: Option<&Path>) -> Option<PathBuf> {
    match value.strip_prefix(b"~/") {
        Some(below) => resolved(home?, below),
        None if value.starts_with(b"/") => resolved(Path::new("/"), value),
        None => resolved(base?, value),
    }
}

/// Returns the files of a working tree that a setting names which runs programs. Those that a person calls by an alias
/// are not among them.
fn programs(setting: &Setting, around: &Path) -> Vec<PathBuf> {
    let (section, _, _) = setting.parts();
    let is_run = section != b"alias" && !READ_ONLY.contains(&&*setting.key);
    if !is_run || setting.effect() != Effect::Harmful {
        return Vec::new();
    }
    let value = setting.value.as_deref().unwrap_or_default();
    let words = value.split(|it| ENDS.contains(it));
    let words = words.filter(|it| !it.is_empty() && it.len() < 4_096);
    words
        .filter_map(|it| resolved(around, it))
        .filter(|it| it.as_os_str().as_bytes() != around.as_os_str().as_bytes())
        .filter(|it| it.starts_with(around) && it.is_file())
        .collect()
}
