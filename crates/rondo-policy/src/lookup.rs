//! Decides whether the names of programs lead to the programs that are meant, given the search path and
//! variables that make programs load code.

use crate::analysis::AllowedDirs;
use crate::environment::CommandEnvironment;
use crate::unix::{self, Way};
use crate::workdir::Variables;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

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

/// Directories of the system's own programs.
const SYSTEM: [&str; 9] = [
    "/bin",
    "/home/linuxbrew",
    "/lib",
    "/lib64",
    "/nix/store",
    "/opt",
    "/sbin",
    "/snap",
    "/usr",
];

/// The programs of a command, and where and with what they start.
pub(crate) struct Lookup<'a> {
    pub(crate) rules: &'a CommandEnvironment,
    /// The variables; those of this process if there are none.
    pub(crate) variables: Option<&'a Variables>,
    pub(crate) dirs: &'a AllowedDirs,
    pub(crate) settled: &'a Settled,
}

/// The most names that are remembered, and the most places.
const SETTLED_MAX: usize = 256;

/// Links, and where they lead.
type Links = Vec<(PathBuf, PathBuf)>;

/// Findings outside of the allowed directories, with nothing inside them on the way; only their links are checked
/// again.
/// Anyone who can change them could also put a program or a library there that is never checked.
#[derive(Debug, Default)]
pub(crate) struct Settled(Mutex<Outside>);

#[derive(Debug, Default)]
struct Outside {
    /// Of the search path, and of variables that name code; each with the links on its way.
    places: HashMap<PathBuf, Links>,
    /// Names of programs that the search path finds there, without links, and with only such places before.
    names: HashSet<String>,
    search_path: OsString,
}

impl Settled {
    fn has(&self, search_path: &OsStr, name: &str) -> bool {
        let outside = self.outside();
        outside.search_path == search_path && outside.names.contains(name)
    }

    /// Adds a name. Those of another search path are forgotten.
    fn add(&self, search_path: &OsStr, name: &str) {
        let mut outside = self.outside();
        if outside.search_path != search_path {
            outside.search_path = search_path.to_owned();
            outside.names.clear();
        }
        if outside.names.len() < SETTLED_MAX {
            outside.names.insert(name.to_owned());
        }
    }

    /// Returns the links on the way to a place that is known to be outside, or is found to be.
    fn links(&self, place: &Path, find: impl FnOnce() -> Option<Links>) -> Option<Links> {
        let known = self.outside().places.get(place).cloned();
        let leads = |(link, to): &(PathBuf, PathBuf)| link.read_link().is_ok_and(|it| it == *to);
        if let Some(links) = known.filter(|links| links.iter().all(leads)) {
            return Some(links);
        }
        // The disk may take its time, with which no other judgment has to wait.
        let found = find();
        let mut outside = self.outside();
        outside.places.remove(place);
        let has_room = outside.places.len() < SETTLED_MAX;
        if let Some(links) = found.clone().filter(|_| has_room) {
            outside.places.insert(place.to_owned(), links);
        }
        found
    }

    fn outside(&self) -> MutexGuard<'_, Outside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Returns whether programs are the system's own: files of the system that lie outside of the allowed directories. A
    /// program that is nowhere is taken for one, since nothing runs.
    pub(crate) fn are_of_system(&self, names: &[String]) -> bool {
        names.iter().all(|name| match name.contains('/') {
            true => self.is_of_system(Path::new(name)),
            false => {
                let search_path = self.get("PATH").unwrap_or_default();
                let mut places = std::env::split_paths(&search_path);
                let found = places.find_map(|place| {
                    let file = place.join(name);
                    (place.is_relative() || file.is_file()).then_some(file)
                });
                found.is_none_or(|file| self.is_of_system(&file))
            }
        })
    }

    fn is_of_system(&self, program: &Path) -> bool {
        let real = program.is_absolute().then(|| program.canonicalize().ok());
        real.flatten().is_some_and(|real| {
            let is_in_system = SYSTEM.iter().any(|it| real.starts_with(it));
            is_in_system && !self.dirs.contains(&real)
        })
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
            let links = || self.links_outside(&entry);
            is_settled &= entry.is_absolute()
                && self
                    .settled
                    .links(&entry, links)
                    .is_some_and(|it| it.is_empty());
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
                let links = || self.links_outside(&found);
                if is_settled && links().is_some_and(|it| it.is_empty()) {
                    self.settled.add(&search_path, name);
                }
                return false;
            }
        }
        false
    }

    /// Returns the links on an absolute path's way if it lies outside of the allowed directories with nothing inside them on
    /// that way, also if nothing is there.
    fn links_outside(&self, path: &Path) -> Option<Links> {
        let (mut is_outside, mut links) = (true, Links::new());
        let way = unix::way_past(Path::new("/"), path, |at, target| {
            is_outside &= !self.dirs.contains(at);
            links.extend(target.map(|target| (at.to_owned(), target.to_owned())));
        });
        let ends_outside = match way {
            Way::To(_) => true,
            // A missing file may become a link, from which `..` leads anywhere.
            Way::Ends(last) => {
                let has_parents = path.components().any(|part| part == Component::ParentDir);
                path.starts_with(&last) && !has_parents && !self.dirs.contains(path)
            }
            Way::Differs | Way::Unknown => false,
        };
        (is_outside && ends_outside).then_some(links)
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
        let links = || self.links_outside(path);
        if self.settled.links(path, links).is_some() {
            return false;
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
        let value = match self.variables {
            Some(variables) => variables.get(name).map(OsStr::to_owned),
            None => from_env(name),
        };
        // Most that are asked for are not there, which is sooner known than whether they are withheld.
        value.filter(|_| !self.rules.is_withheld(name))
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
