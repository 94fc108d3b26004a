//! Repositories in a tree, and what of them would run something.

use super::look::Snapshot;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Settings that have git run a program, or take settings from elsewhere: a section, and a name; `*` is any.
const HARMFUL: &[(&str, &str)] = &[
    ("core", "fsmonitor"),
    ("core", "hookspath"),
    ("core", "pager"),
    ("core", "editor"),
    ("core", "sshcommand"),
    ("core", "gitproxy"),
    ("core", "askpass"),
    ("alias", "*"),
    ("include", "path"),
    ("includeif", "path"),
    ("filter", "*"),
    ("diff", "external"),
    ("diff", "textconv"),
    ("diff", "command"),
    ("merge", "driver"),
    ("credential", "helper"),
    ("gpg", "program"),
    ("pager", "*"),
    ("sequence", "editor"),
    ("uploadpack", "packobjectshook"),
];

/// Programs that a repository would run, by the directory that holds its configuration.
pub(super) type Harms = BTreeMap<PathBuf, Vec<String>>;

/// Returns the directories in which git finds a repository: `.git`, bare ones, and modules of others.
pub(super) fn find<'a>(snapshot: &'a Snapshot, ground: &'a Path) -> impl Iterator<Item = &'a Path> {
    let directories = snapshot.iter().filter(|it| it.1.is_directory());
    let directories = directories.map(|it| it.0.as_path());
    directories.filter(move |it| it.starts_with(ground) && is_repository(snapshot, it))
}

fn is_repository(snapshot: &Snapshot, path: &Path) -> bool {
    let is_there = |name: &str| snapshot.contains_key(&path.join(name));
    is_there("HEAD") && (is_there("objects") && is_there("refs") || is_there("commondir"))
}

/// Returns the programs that the repositories of a tree would run.
pub(super) fn harms(snapshot: &Snapshot, ground: &Path) -> Harms {
    let harmful = find(snapshot, ground).filter_map(|path| {
        let found = harms_of(snapshot, path, ground);
        (!found.is_empty()).then(|| (path.to_owned(), found))
    });
    harmful.collect()
}

fn harms_of(snapshot: &Snapshot, path: &Path, ground: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for name in ["config", "config.worktree"] {
        let text = fs::read_to_string(path.join(name)).unwrap_or_default();
        found.extend(harmful_settings(&text, path, ground));
    }
    let hooks = path.join("hooks");
    let below = snapshot
        .range(hooks.clone()..)
        .take_while(|it| it.0.starts_with(&hooks));
    for (hook, entry) in below {
        // No hook has a dot in its name: `*.sample` and what was renamed to `*.refused` is not run.
        let is_hook = hook.extension().is_none() && !entry.is_directory();
        if is_hook && entry.mode & 0o111 != 0 {
            found.push(format!("the hook `{}`", hook.display()));
        }
    }
    let todo = fs::read_to_string(path.join("rebase-merge/git-rebase-todo")).unwrap_or_default();
    let is_exec = |line: &str| line.starts_with("exec ") || line.starts_with("x ");
    if todo.lines().any(is_exec) {
        found.push("a rebase with `exec`".to_owned());
    }
    let common = fs::read_to_string(path.join("commondir")).unwrap_or_default();
    let is_worktree = path.parent().and_then(Path::file_name) == Some(OsStr::new("worktrees"));
    let leads_to = path.join(common.trim()).canonicalize();
    if !common.is_empty() && !is_worktree && leads_to.is_ok_and(|it| it != path) {
        found.push("`commondir`".to_owned());
    }
    found
}

/// Returns the settings of a configuration that run something.
fn harmful_settings(text: &str, path: &Path, ground: &Path) -> Vec<String> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(head) = line.strip_prefix('[') {
            let end = head.find([' ', ']', '.']).unwrap_or(head.len());
            section = head.get(..end).unwrap_or_default().to_lowercase();
            continue;
        }
        let (name, value) = line.split_once('=').unwrap_or((line, "true"));
        let (name, value) = (name.trim().to_lowercase(), value.trim());
        let is_listed = HARMFUL
            .iter()
            .any(|(of, key)| *of == section && (*key == name || *key == "*"));
        let is_plain = name == "fsmonitor" && ["true", "false"].contains(&value);
        let leads_out =
            section == "core" && name == "worktree" && !path.join(value).starts_with(ground);
        if !name.is_empty()
            && !name.starts_with(['#', ';'])
            && (is_listed && !is_plain || leads_out)
        {
            found.push(format!("`{section}.{name}`"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::look::look;
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn what_runs_something_is_found_in_each_shape_of_a_repository_and_what_is_ordinary_is_not() {
        let place = tempfile::tempdir().unwrap();
        let make = |name: &str, config: &str| {
            let git = place.path().join(name);
            for folder in ["objects", "refs", "hooks"] {
                fs::create_dir_all(git.join(folder)).unwrap();
            }
            fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
            for name in ["pre-push.sample", "pre-push.refused"] {
                let hook = git.join("hooks").join(name);
                fs::write(&hook, "").unwrap();
                fs::set_permissions(hook, fs::Permissions::from_mode(0o755)).unwrap();
            }
            fs::write(git.join("config"), config).unwrap();
            git
        };
        make(
            "plain/.git",
            "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = /a\n[user]\n\tname = A\n",
        );
        make(
            "monitored/.git",
            "[core]\n\tbare = false\n\tfsmonitor = ./evil\n",
        );
        make("bare", "[alias]\nx = !y\n");
        let hooked = make("hooked/.git", "");
        let hook = hooked.join("hooks/pre-push");
        fs::write(&hook, "").unwrap();
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
        let rebased = make("rebased/.git", "");
        fs::create_dir(rebased.join("rebase-merge")).unwrap();
        fs::write(
            rebased.join("rebase-merge/git-rebase-todo"),
            "exec ./evil\n",
        )
        .unwrap();
        fs::write(make("elsewhere/.git", "").join("commondir"), "../../bare\n").unwrap();
        let snapshot = look(&[place.path().to_str().unwrap()]).unwrap();
        let found = harms(&snapshot, place.path());
        let found: Vec<_> = found
            .keys()
            .map(|it| it.strip_prefix(place.path()).unwrap().to_str().unwrap())
            .collect();
        assert_eq!(
            found,
            [
                "bare",
                "elsewhere/.git",
                "hooked/.git",
                "monitored/.git",
                "rebased/.git"
            ]
        );
    }
}
