//! Decides whether the names of programs lead to the programs that are meant, given the search path and
//! variables that make programs load code.

use crate::analysis::AllowedDirs;
use crate::environment::CommandEnvironment;
use crate::unix::{self, Way};
use crate::workdir::Variables;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Variables that say where the shell is, which the hash of a call has by itself.
const OF_PLACE: [&str; 6] = ["COLUMNS", "LINES", "OLDPWD", "PWD", "SHLVL", "_"];

/// Builtins of the shell, which are not looked up in the search path.
const BUILTINS: [&str; 8] = ["cd", "echo", "false", "printf", "pwd", "test", "true", "["];

/// Variables that name files or directories from which any program takes code.
const LOADED: [&str; 6] = [
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "GCONV_PATH",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
];

/// Variables from which one program takes code or settings.
const LOADED_BY: [(&str, &str); 7] = [
    ("awk", "AWKLIBPATH"),
    ("awk", "AWKPATH"),
    ("file", "MAGIC"),
    ("python3", "PYTHONHOME"),
    ("python3", "PYTHONPATH"),
    ("python3", "PYTHONSTARTUP"),
    ("rg", "RIPGREP_CONFIG_PATH"),
];

/// Variables that send `git` to another repository or have it run or write something.
const OF_GIT: [&str; 13] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_ATTR_SOURCE",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_DIFF_OPTS",
    "GIT_DIR",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_TRACE",
    "GIT_WORK_TREE",
];

/// The programs of a command, and where and with what they start.
pub(crate) struct Lookup<'a> {
    pub(crate) rules: &'a CommandEnvironment,
    /// The variables; those of this process where there are none.
    pub(crate) variables: Option<&'a Variables>,
    pub(crate) dirs: &'a AllowedDirs,
    pub(crate) settled: &'a SettledNames,
}

/// The most names that are remembered.
const NAMES_MAX: usize = 256;

/// Names of programs that a search path finds outside of the allowed directories, by directories that no link and
/// nothing inside is a part of. They are not looked for again: whoever can change what lies there could put a program
/// there that is not looked at either.
#[derive(Debug, Default)]
pub(crate) struct SettledNames(Mutex<Settled>);

#[derive(Debug, Default)]
struct Settled {
    search_path: OsString,
    /// Its directories that are so.
    entries: HashSet<PathBuf>,
    names: HashSet<String>,
}

impl SettledNames {
    fn has(&self, search_path: &OsStr, name: &str) -> bool {
        self.of(search_path, |it| it.names.contains(name))
    }

    fn add(&self, search_path: &OsStr, name: &str) {
        self.of(search_path, |it| {
            if it.names.len() < NAMES_MAX {
                it.names.insert(name.to_owned());
            }
        });
    }

    /// Returns whether a directory of the search path is known to be so, or is found to be.
    fn has_entry(&self, search_path: &OsStr, entry: &Path, find: impl FnOnce() -> bool) -> bool {
        if self.of(search_path, |it| it.entries.contains(entry)) {
            return true;
        }
        // The disk may take its time, with which no other judgement has to wait.
        let is_found = find();
        if is_found {
            self.of(search_path, |it| it.entries.insert(entry.to_owned()));
        }
        is_found
    }

    /// Looks at what is settled for a search path, which replaces that for another one.
    fn of<T>(&self, search_path: &OsStr, look: impl FnOnce(&mut Settled) -> T) -> T {
        let mut settled = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if settled.search_path != search_path {
            *settled = Settled {
                search_path: search_path.to_owned(),
                ..Settled::default()
            };
        }
        look(&mut settled)
    }
}

impl Lookup<'_> {
    /// Returns why one of the programs may be another one than its name says, or do something else.
    pub(crate) fn refusal(&self, names: &[String]) -> Option<String> {
        let loaded = LOADED.iter().find(|name| self.loads_from_inside(name));
        if let Some(name) = loaded {
            return Some(misleads(name));
        }
        names.iter().find_map(|name| self.program(name, names))
    }

    fn program(&self, name: &str, all: &[String]) -> Option<String> {
        if self.get(&format!("BASH_FUNC_{name}%%")).is_some() {
            return Some(format!("the environment has a function named `{name}`"));
        }
        let given = match name {
            "git" => self.of_git(),
            _ => LOADED_BY
                .iter()
                .find(|(program, variable)| *program == name && self.loads_from_inside(variable))
                .map(|(_, variable)| (*variable).to_owned()),
        };
        if let Some(given) = given {
            return Some(misleads(&given));
        }
        if BUILTINS.contains(&name) || name.contains('/') {
            return None;
        }
        let moves = all.iter().any(|name| name == "cd");
        self.leads_astray(name, moves)
            .then(|| format!("`{name}` may be a file of the workspace, by `PATH`"))
    }

    fn of_git(&self) -> Option<String> {
        self.names()
            .into_iter()
            .find(|it| OF_GIT.iter().any(|of| it.starts_with(of)) && self.get(it).is_some())
    }

    /// Returns whether the search path finds a program inside the allowed directories, or may.
    fn leads_astray(&self, name: &str, moves: bool) -> bool {
        let Some(search_path) = self.get("PATH") else {
            return false;
        };
        if self.settled.has(&search_path, name) {
            return false;
        }
        let mut is_settled = true;
        for entry in std::env::split_paths(&search_path) {
            if entry.is_relative() && moves {
                return true;
            }
            let is_plain = || entry.is_absolute() && self.is_plainly_outside(&entry);
            is_settled &= self.settled.has_entry(&search_path, &entry, is_plain);
            let place = self.dirs.current().join(&entry);
            let found = place.join(name);
            // A link that leads nowhere, or what cannot be looked at, may be something later.
            if found.symlink_metadata().is_err() {
                continue;
            }
            if entry.is_relative() || self.is_ours(&place, &found) {
                return true;
            }
            if found.is_file() {
                if is_settled && self.is_plainly_outside(&found) {
                    self.settled.add(&search_path, name);
                }
                return false;
            }
        }
        false
    }

    /// Returns whether an absolute path lies outside of the allowed directories with no link on its way, be it that
    /// nothing is there.
    fn is_plainly_outside(&self, path: &Path) -> bool {
        match unix::way(Path::new("/"), path) {
            Way::To(real) => real == path && !self.dirs.contains(&real),
            Way::Ends(last) => path.starts_with(&last) && !self.dirs.contains(path),
            Way::Differs | Way::Unknown => false,
        }
    }

    /// Returns whether a program, or its directory, is inside the allowed ones, by whatever links.
    fn is_ours(&self, place: &Path, found: &Path) -> bool {
        let contains = |path: &Path| match unix::way(Path::new("/"), path) {
            Way::To(real) => (self.dirs.contains(&real), real == path),
            Way::Ends(_) | Way::Differs | Way::Unknown => (true, false),
        };
        let (is_inside, is_plain) = contains(found);
        // Without links on its way, the program lies where its directory does.
        is_inside || (!is_plain && contains(place).0)
    }

    /// Returns whether a variable names a relative path or one inside the allowed directories.
    fn loads_from_inside(&self, name: &str) -> bool {
        let Some(value) = self.get(name).filter(|value| !value.is_empty()) else {
            return false;
        };
        let Some(text) = value.to_str() else {
            return true;
        };
        // Spaces separate too, and a library without a slash is one of the system's.
        let mut parts = text.split([':', ' ', ';', ',']);
        parts.any(|part| {
            let path = Path::new(part);
            let is_library = name == "LD_PRELOAD" && !part.contains('/');
            !is_library && self.is_inside(path)
        })
    }

    fn is_inside(&self, path: &Path) -> bool {
        if path.is_relative() {
            return true;
        }
        let nearest = path
            .ancestors()
            .find_map(|it| std::fs::canonicalize(it).ok());
        nearest.is_none_or(|real| self.dirs.contains(&real))
    }

    /// Returns a variable as the command finds it.
    fn get(&self, name: &str) -> Option<OsString> {
        if let Some(value) = self.rules.set.get(name) {
            return Some(value.into());
        }
        if self.rules.is_withheld(name) {
            return None;
        }
        match self.variables {
            Some(variables) => variables.get(name).map(OsStr::to_owned),
            None => from_env(name),
        }
    }

    /// Returns the variables that commands get from the user's shell and that differ from this process's own, in the
    /// order of their names; those that tell where and how deep the shell is are left out.
    pub(crate) fn changed(&self) -> Vec<(OsString, OsString)> {
        let Some(variables) = self.variables else {
            return Vec::new();
        };
        let own = |name: &OsStr| name.to_str().and_then(from_env);
        let is_told = |name: &OsStr| {
            let text = name.to_string_lossy();
            let is_set = self.rules.set.contains_key(text.as_ref());
            !is_set && !self.rules.is_withheld(&text) && !OF_PLACE.contains(&text.as_ref())
        };
        let changed = variables
            .iter()
            .filter(|(name, value)| is_told(name) && own(name).as_deref() != Some(*value));
        let mut changed: Vec<_> = changed
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        // A variable that the shell no longer exports changes what runs, too.
        let gone = names_from_env().into_iter().map(OsString::from);
        let gone = gone.filter(|name| is_told(name) && variables.get(name).is_none());
        changed.extend(gone.map(|name| (name, OsString::from("unset"))));
        changed.sort();
        changed
    }

    fn names(&self) -> Vec<String> {
        let owned = |name: &OsStr| name.to_string_lossy().into_owned();
        match self.variables {
            Some(variables) => variables.iter().map(|(name, _)| owned(name)).collect(),
            None => names_from_env(),
        }
    }
}

fn from_env(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

fn names_from_env() -> Vec<String> {
    let names = std::env::vars_os().map(|(name, _)| name);
    names
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

fn misleads(name: &str) -> String {
    format!("the variable `{name}` may change what it runs or reads")
}
