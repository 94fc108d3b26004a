//! The environment in which an interpreter starts: before any code was asked about, nothing of the
//! directory that it works in may run.
//!
//! `sitecustomize.py`, `usercustomize.py`, `.pth` files, cached bytecode and whole standard libraries
//! are taken from where variables say. What these name in the directory, or relative to it, is left
//! out of the start. Code of the session finds its modules and its variables as if it were not.

use serde_json::json;
use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

/// Variable with directories of modules that precede those of the interpreter.
const MODULES: &str = "PYTHONPATH";
/// Turns off the user's own modules.
const NO_USER_SITE: &str = "PYTHONNOUSERSITE";
/// Variable with the directory of the user's own modules, instead of the home directory.
const USER_BASE: &str = "PYTHONUSERBASE";
/// Further variables that name a place of code. The last two are macOS's.
const PLACES: [&str; 5] = [
    "PYTHONHOME",
    "PYTHONPLATLIBDIR",
    "PYTHONPYCACHEPREFIX",
    "PYTHONEXECUTABLE",
    "__PYVENV_LAUNCHER__",
];

/// Differences from our own environment while the interpreter starts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Startup {
    /// Variables that have another value, or none.
    pub(crate) variables: BTreeMap<&'static str, Option<OsString>>,
    /// First entries of `sys.path` for code of the session, after the working directory.
    paths: Vec<String>,
    /// The variables as that code finds them.
    restored: BTreeMap<&'static str, Option<String>>,
    adds_user_site: bool,
}

impl Startup {
    /// Looks at our own environment.
    pub(crate) fn from_env(directory: &Path) -> Self {
        Self::with(|name| env::var_os(name), directory)
    }

    fn with(variable: impl Fn(&str) -> Option<OsString>, directory: &Path) -> Self {
        let mut startup = Self::default();
        let is_outside = |place: &Path| is_outside(place, directory);
        if let Some(paths) = variable(MODULES) {
            let (kept, left): (Vec<PathBuf>, Vec<PathBuf>) =
                env::split_paths(&paths).partition(|path| is_outside(path));
            if !left.is_empty() {
                startup.paths = left
                    .iter()
                    .filter_map(|path| text(path.as_os_str()))
                    .collect();
                let kept = env::join_paths(kept).ok().filter(|paths| !paths.is_empty());
                startup.set(MODULES, kept, &variable);
            }
        }
        for name in PLACES {
            let is_kept = |value: &OsString| match name {
                // A name, such as `lib64`.
                "PYTHONPLATLIBDIR" => !value.as_encoded_bytes().contains(&b'/') && value != "..",
                _ => env::split_paths(value).all(|path| is_outside(&path)),
            };
            if variable(name).is_some_and(|value| !is_kept(&value)) {
                startup.set(name, None, &variable);
            }
        }
        let base = variable(USER_BASE).map(PathBuf::from);
        let base = base.or_else(|| Some(Path::new(&variable("HOME")?).join(".local")));
        let is_off = variable(NO_USER_SITE).is_some_and(|value| !value.is_empty());
        if !is_off && !base.is_some_and(|base| is_outside(&base)) {
            startup.set(NO_USER_SITE, Some("1".into()), &variable);
            startup.adds_user_site = true;
        }
        startup
    }

    fn set(
        &mut self,
        name: &'static str,
        value: Option<OsString>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) {
        self.variables.insert(name, value);
        self.restored
            .insert(name, variable(name).and_then(|value| text(&value)));
    }

    /// Returns all variables with which the interpreter starts, without those that are `withheld`.
    pub(crate) fn all_variables_from_env(&self, withheld: &[String]) -> Vec<(OsString, OsString)> {
        let is_kept = |name: &OsStr| {
            let is_changed = self.variables.keys().any(|it| name == *it);
            !is_changed && !withheld.iter().any(|it| name == it.as_str())
        };
        let changed = self.variables.iter();
        let changed = changed.filter_map(|(name, value)| Some((name.into(), value.clone()?)));
        env::vars_os()
            .filter(|(name, _)| is_kept(name))
            .chain(changed)
            .collect()
    }

    /// Returns the text before the helper: the same as names of Python's.
    pub(crate) fn preamble(&self) -> String {
        let restored: BTreeMap<_, _> = self
            .restored
            .iter()
            .filter(|(_, value)| value.is_some())
            .collect();
        let removed: Vec<_> = self
            .restored
            .iter()
            .filter(|(_, value)| value.is_none())
            .map(|(name, _)| name)
            .collect();
        let adds_user_site = if self.adds_user_site { "True" } else { "False" };
        format!(
            "RESTORED, REMOVED, USERS_PATHS, ADDS_USER_SITE = {}, {}, {}, {adds_user_site}\n",
            json!(restored),
            json!(removed),
            json!(self.paths),
        )
    }
}

fn text(value: &OsStr) -> Option<String> {
    value.to_str().map(str::to_owned)
}

/// Returns whether a place is neither relative nor in the directory. The root holds every place, so
/// that being in it says nothing.
pub(crate) fn is_outside(place: &Path, directory: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let directory_real = real(directory);
    if !place.is_absolute() {
        return false;
    }
    let holds = |directory: &Path, place: &Path| {
        place.starts_with(directory) && directory.parent().is_some()
    };
    !holds(directory, place) && !holds(&directory_real, &real_of_nearest(place))
}

/// A missing path may be created later, so its nearest directory counts.
fn real_of_nearest(place: &Path) -> PathBuf {
    for ancestor in place.ancestors() {
        if let Ok(real) = fs::canonicalize(ancestor) {
            return match place.strip_prefix(ancestor) {
                Ok(rest) if rest.as_os_str().is_empty() => real,
                Ok(rest) => real.join(rest),
                Err(_) => real,
            };
        }
    }
    place.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)], directory: &Path) -> Startup {
        let find = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        Startup::with(find, directory)
    }

    #[test]
    fn what_lies_outside_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let variables = [
            ("HOME", "/home/person"),
            ("PYTHONPATH", "/opt/lib:/opt/more"),
            ("PYTHONHOME", "/opt/python"),
            ("PYTHONPLATLIBDIR", "lib64"),
            ("PYTHONPYCACHEPREFIX", "/var/cache/python"),
        ];
        assert_eq!(of(&variables, folder.path()), Startup::default());
        assert_eq!(of(&variables, Path::new("/")), Startup::default());
    }

    #[test]
    fn places_of_the_directory_are_left_out_of_the_start_and_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        let work = folder.path().join("work");
        fs::create_dir(&work).unwrap();
        std::os::unix::fs::symlink(&work, &link).unwrap();
        let inside = link.join("new").display().to_string();
        let path = format!(":/opt/lib:src:{inside}");
        let home = work.display().to_string();
        let variables = [
            ("HOME", home.as_str()),
            ("PYTHONPATH", path.as_str()),
            ("PYTHONHOME", inside.as_str()),
            ("PYTHONPLATLIBDIR", "../lib"),
            ("PYTHONPYCACHEPREFIX", "cache"),
        ];
        let startup = of(&variables, &work);
        let one = |value: &str| Some(OsString::from(value));
        let expected = BTreeMap::from([
            ("PYTHONPATH", one("/opt/lib")),
            ("PYTHONHOME", None),
            ("PYTHONPLATLIBDIR", None),
            ("PYTHONPYCACHEPREFIX", None),
            ("PYTHONNOUSERSITE", one("1")),
        ]);
        assert_eq!(startup.variables, expected);
        let path = json!(path);
        let preamble = format!(
            "RESTORED, REMOVED, USERS_PATHS, ADDS_USER_SITE = {{\"PYTHONHOME\":{},\"PYTHONPATH\":{path},\
             \"PYTHONPLATLIBDIR\":\"../lib\",\"PYTHONPYCACHEPREFIX\":\"cache\"}}, [\"PYTHONNOUSERSITE\"], \
             [\"\",\"src\",{}], True\n",
            json!(inside),
            json!(inside),
        );
        assert_eq!(startup.preamble(), preamble);
    }
}
