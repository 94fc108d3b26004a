//! The files that the user's own configuration of `git` names: ignored files, attributes, hooks, and more configuration.
//!
//! Only the user's and the system's configuration counts. That of a repository could name any file of the home
//! directory, and a repository may come from anyone.

use crate::git_config::{self, Setting};
use crate::readable::Readable;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Variables whose values are paths that `git` reads, or runs what is in them.
const PATHS: [&str; 8] = [
    "blame.ignorerevsfile",
    "commit.template",
    "core.attributesfile",
    "core.excludesfile",
    "core.hookspath",
    "gpg.ssh.allowedsignersfile",
    "init.templatedir",
    "mailmap.file",
];
/// Parts of names of variables whose values are secrets. A file with one of them is opened only if it is the user's main
/// configuration.
const SECRETS: [&str; 8] = [
    "extraheader",
    "oauth",
    "passwd",
    "password",
    "private",
    "secret",
    "smtppass",
    "token",
];
/// Parts of a value with which a helper gives a secret.
const GIVEN: [&str; 2] = ["password=", "token="];
/// The bound on configuration files that are read, by which includes in a circle end as well.
const FILES_MAX: usize = 64;
/// The bound on files in the directory of the user's configuration.
const ENTRIES_MAX: usize = 64;
/// The names of files in that directory that have passwords in them contain this.
const CREDENTIALS: &str = "credentials";
/// The configuration of the system.
const SYSTEM: &str = "/etc/gitconfig";

/// Adds the user's configuration and the files it names. `variable` looks a variable of the environment up.
pub(crate) fn add(
    readable: &mut Readable,
    home: &Path,
    variable: &dyn Fn(&str) -> Option<OsString>,
) {
    let path = |name: &str| absolute(variable, name);
    let directory = directory(home, variable);
    let mut files = of_user(home, variable);
    for file in &files {
        readable.add(file);
    }
    add_directory(readable, &directory);
    files.push(path("GIT_CONFIG_SYSTEM").unwrap_or_else(|| SYSTEM.into()));
    let mut read = 0;
    while let Some(file) = files.pop()
        && read < FILES_MAX
    {
        read += 1;
        for found in git_config::read(&file) {
            let Some(named) = named(&found, &file, home) else {
                continue;
            };
            if !is_include(&found) {
                readable.add(&named);
            } else if !has_secret(&named) && readable.add(&named).is_some() {
                files.push(named);
            }
        }
    }
}

/// Returns the user's main files of settings, which need not exist.
pub(crate) fn of_user(home: &Path, variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    match absolute(variable, "GIT_CONFIG_GLOBAL") {
        Some(global) => vec![global],
        None => {
            let directory = directory(home, variable);
            vec![directory.join("config"), home.join(".gitconfig")]
        }
    }
}

/// Returns the directory of the user's configuration.
fn directory(home: &Path, variable: &dyn Fn(&str) -> Option<OsString>) -> PathBuf {
    let all = absolute(variable, "XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
    all.join("git")
}

fn absolute(variable: &dyn Fn(&str) -> Option<OsString>, name: &str) -> Option<PathBuf> {
    let path = variable(name).map(PathBuf::from);
    path.filter(|it| it.is_absolute())
}

/// Adds the files in the directory of the user's configuration, but for passwords.
fn add_directory(readable: &mut Readable, directory: &Path) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.take(ENTRIES_MAX) {
        if !entry.file_name().to_string_lossy().contains(CREDENTIALS) {
            readable.add(&entry.path());
        }
    }
}

/// Returns the path that a setting names, if it is one of those with paths.
fn named(setting: &Setting, file: &Path, home: &Path) -> Option<PathBuf> {
    let is_include = is_include(setting);
    let is_known = is_include || PATHS.iter().any(|it| it.as_bytes() == setting.key);
    let value = setting.path().filter(|_| is_known)?.to_str()?;
    let value = value.trim_start_matches(":(optional)");
    let path = match value.strip_prefix("~/") {
        Some(below) => home.join(below),
        // Other relative paths are ones of the repository.
        None if is_include => file.parent()?.join(value),
        None => PathBuf::from(value),
    };
    (!value.is_empty() && path.is_absolute()).then_some(path)
}

/// Returns whether a setting names another file of settings; of one with a condition, that does not matter here.
fn is_include(setting: &Setting) -> bool {
    let (section, _, name) = setting.parts();
    matches!(section, b"include" | b"includeif") && name == b"path"
}

/// Returns whether a text is an address with a password, such as `https://user:password@host`.
fn has_password(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let user = || text.split_once("://")?.1.split('/').next()?.split_once('@');
    user().is_some_and(|(user, _)| user.contains(':'))
}

/// Returns whether a configuration file has a secret in it.
fn has_secret(file: &Path) -> bool {
    let is_secret = |it: &Setting| {
        let key = String::from_utf8_lossy(&it.key).to_lowercase();
        let is_named_so = SECRETS.iter().any(|name| key.contains(name));
        let (_, between, _) = it.parts();
        let texts = [between, it.value.as_deref()];
        let value = String::from_utf8_lossy(it.value.as_deref().unwrap_or_default());
        let is_given = GIVEN.iter().any(|it| value.contains(it));
        is_named_so || is_given || texts.into_iter().flatten().any(has_password)
    };
    git_config::read(file).iter().any(is_secret)
}
