//! Decides whether a repository's configuration makes read-only `git` commands run programs.
//!
//! A repository's own configuration can name programs that these commands start (`core.fsmonitor`,
//! `diff.external`, filters, hooks), and it may have come with an archive that was unpacked here. So it is read, and
//! only settings that are known to start nothing are accepted. The user's own configuration is
//! trusted.

use super::paths::AllowedDirs;
use crate::unix;
use std::fs;
use std::io::Read;
use std::path::Path;

/// The largest configuration that is read, in bytes.
const CONFIG_BYTES_MAX: u64 = 64 << 10;
/// The largest index that is read, in bytes.
const INDEX_BYTES_MAX: u64 = 16 << 20;
/// The most entries of a `.git` that are looked at.
const ENTRIES_MAX: usize = 50_000;
/// The longest `HEAD` that is read, in bytes.
const HEAD_BYTES_MAX: u64 = 255;
/// The length of a commit's name.
const HASH_DIGITS: usize = 40;
/// The mode of a nested repository in an index, with the two bytes before it.
const GITLINK_MODE: [u8; 4] = [0, 0, 0xe0, 0];

/// Sections whose settings start nothing, each with its settings; `*` is all of them.
const HARMLESS: [(&str, &[&str]); 13] = [
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
            "autocrlf",
            "eol",
            "safecrlf",
            "quotepath",
            "abbrev",
        ],
    ),
    (
        "remote",
        &[
            "url",
            "pushurl",
            "fetch",
            "push",
            "tagopt",
            "gh-resolved",
            "prune",
        ],
    ),
    ("branch", &["*"]),
    ("user", &["name", "email"]),
    ("init", &["defaultbranch"]),
    ("pull", &["rebase", "ff"]),
    ("push", &["default", "autosetupremote"]),
    ("fetch", &["prune"]),
    ("merge", &["conflictstyle", "ff"]),
    ("rebase", &["autostash", "autosquash"]),
    ("color", &["*"]),
    ("advice", &["*"]),
    ("commit", &["gpgsign"]),
];

/// Finds the repository as `git` does, from the current directory upwards.
pub(super) fn check(dirs: &AllowedDirs) -> Result<(), String> {
    let is_there = |path: &Path| fs::symlink_metadata(path).is_ok();
    for directory in dirs.current().ancestors() {
        // First, since `git` takes it if it does not know the `.git` beside it.
        let holds = |name: &str| is_there(&directory.join(name));
        if holds("HEAD") && (holds("objects") || holds("commondir")) {
            return Err("it runs inside a bare repository".to_owned());
        }
        let git = directory.join(".git");
        if is_there(&git) {
            if !dirs.contains(directory) {
                return Err("its repository lies outside the allowed directories".to_owned());
            }
            return is_harmless(&git)
                .then_some(())
                .ok_or_else(|| "its repository may make `git` run a program".to_owned());
        }
    }
    Ok(())
}

fn is_harmless(git: &Path) -> bool {
    let is_directory = fs::symlink_metadata(git).is_ok_and(|found| found.is_dir());
    let absent = |name: &str| fs::symlink_metadata(git.join(name)).is_err();
    is_directory
        && is_known_to_git(git)
        && is_all_plain(git)
        && [
            "hooks/post-index-change",
            "modules",
            "commondir",
            "config.worktree",
            "objects/info/alternates",
        ]
        .iter()
        .all(|name| absent(name))
        && read_bounded(&git.join("config"), CONFIG_BYTES_MAX)
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .is_some_and(|config| is_harmless_config(&config))
        && (absent("index")
            || read_bounded(&git.join("index"), INDEX_BYTES_MAX).is_some_and(|index| {
                !index
                    .windows(GITLINK_MODE.len())
                    .any(|at| at == GITLINK_MODE)
                    && !index.windows(4).any(|at| at == b"link")
            }))
}

/// Returns whether `git` takes this for a repository, instead of looking for one further up. Its
/// parts must not be links, which could lead to a repository outside.
fn is_known_to_git(git: &Path) -> bool {
    let is_directory = |name: &str| {
        let path = git.join(name);
        // `git` asks for the right to look into it.
        fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir())
            && fs::metadata(path.join(".")).is_ok()
    };
    let head = git.join("HEAD");
    fs::symlink_metadata(&head).is_ok_and(|found| found.is_file())
        && is_directory("objects")
        && is_directory("refs")
        && read_bounded(&head, HEAD_BYTES_MAX).is_some_and(|head| {
            let head = head.trim_ascii_end();
            head.starts_with(b"ref: refs/")
                || (head.len() == HASH_DIGITS && head.iter().all(u8::is_ascii_hexdigit))
        })
}

/// Returns whether there are files and directories in it and nothing else: a link may lead to the
/// objects or the branches of a repository outside. The hooks are for commands that change something.
fn is_all_plain(git: &Path) -> bool {
    let mut left = vec![git.to_path_buf()];
    let mut count = 0;
    while let Some(directory) = left.pop() {
        let Ok(entries) = fs::read_dir(&directory) else {
            return false;
        };
        for entry in entries {
            count += 1;
            let Some((entry, kind)) = entry
                .ok()
                .and_then(|entry| Some((entry.path(), entry.file_type().ok()?)))
            else {
                return false;
            };
            if count > ENTRIES_MAX || !(kind.is_file() || kind.is_dir()) {
                return false;
            }
            if kind.is_dir() && entry != git.join("hooks") {
                left.push(entry);
            }
        }
    }
    true
}

fn read_bounded(path: &Path, bytes_max: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = unix::open_regular(path).ok()?;
    let length = file.take(bytes_max + 1).read_to_end(&mut bytes).ok()?;
    (length as u64 <= bytes_max).then_some(bytes)
}

fn is_harmless_config(config: &str) -> bool {
    let mut allowed: &[&str] = &[];
    for line in config.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if line.ends_with('\\') {
            return false;
        }
        if let Some(header) = line.strip_prefix('[') {
            let Some(header) = header.strip_suffix(']').filter(|rest| !rest.contains(']')) else {
                return false;
            };
            let section = header.split([' ', '"', '.']).next().unwrap_or_default();
            let section = section.to_ascii_lowercase();
            let Some((_, keys)) = HARMLESS.iter().find(|(name, _)| *name == section) else {
                return false;
            };
            allowed = keys;
            continue;
        }
        let key = line.split('=').next().unwrap_or_default();
        let key = key.trim().to_ascii_lowercase();
        if !allowed.contains(&"*") && !allowed.contains(&key.as_str()) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_that_start_nothing_are_accepted() {
        let usual = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote \"origin\"]\n\turl = x\n";
        assert!(is_harmless_config(usual));
        for line in [
            "[core]\nfsmonitor = evil",
            "[core] fsmonitor = evil",
            "[core]\nfsmonitor",
            "[CORE]\nhooksPath = x",
            "[core]\nbare = \\\nfalse\nfsmonitor = evil",
            "[diff]\nexternal = evil",
            "[diff \"x\"]\ntextconv = evil",
            "[filter \"x\"]\nclean = evil",
            "[include]\npath = x",
            "[includeIf \"gitdir:/\"]\npath = x",
            "[extensions]\nworktreeConfig = true",
            "[remote \"x\"]\npromisor = true",
            "[remote \"]\"]\nurl = x",
            "[alias]\nlog = !evil",
            "[gpg]\nprogram = evil",
            "fsmonitor = evil",
        ] {
            assert!(!is_harmless_config(&format!("{usual}{line}\n")), "{line}");
        }
    }
}
