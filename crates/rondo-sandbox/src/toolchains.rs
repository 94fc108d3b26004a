//! Locations of a developer's programs and of their dependencies.
//!
//! A directory in `PATH` seldom is all of a toolchain: programs in it are links, scripts that name their interpreter, or
//! shims, and libraries lie beside it. So links and scripts are followed, and around a program the whole of its
//! toolchain is opened, as far as it can be told to be one.

use crate::readable::{Readable, SHARED_BY_ALL};
use std::collections::{HashSet, VecDeque};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Toolchains and caches below the home directory.
const OF_HOME: [&str; 105] = [
    // Rust.
    ".cargo/bin",
    ".cargo/config.toml",
    ".cargo/env",
    ".cargo/git",
    ".cargo/registry",
    ".rustup",
    // Python.
    ".pyenv",
    ".local/lib",
    ".local/share/pipx",
    ".local/pipx",
    ".local/share/uv",
    ".local/share/pypoetry",
    ".local/share/virtualenvs",
    ".local/share/hatch",
    ".poetry",
    ".rye",
    ".virtualenvs",
    ".conda/envs",
    ".conda/pkgs",
    "anaconda3",
    "mambaforge",
    "micromamba",
    "miniconda3",
    "miniforge3",
    ".cache/pip",
    ".cache/pre-commit",
    ".cache/pypoetry",
    ".cache/uv",
    ".config/pypoetry/config.toml",
    // JavaScript.
    ".bun/bin",
    ".bun/install",
    ".deno/bin",
    ".fnm",
    ".n",
    ".nodenv",
    ".nvm",
    ".volta",
    ".yarn",
    ".npm/_cacache",
    ".pnpm-store",
    ".cache/bun",
    ".cache/deno",
    ".cache/ms-playwright",
    ".cache/node",
    ".cache/pnpm",
    ".cache/yarn",
    ".local/share/fnm",
    ".local/share/pnpm",
    // Ruby.
    ".bundle/cache",
    ".gem/ruby",
    ".local/share/gem/ruby",
    ".rbenv",
    ".rubies",
    ".rvm",
    // Go.
    ".cache/go-build",
    ".gvm",
    ".goenv",
    "go/bin",
    "go/pkg",
    "sdk",
    // Java.
    ".gradle/caches",
    ".gradle/wrapper",
    ".ivy2/cache",
    ".jdks",
    ".jenv",
    ".konan",
    ".m2/repository",
    ".m2/wrapper",
    ".cache/coursier",
    ".local/share/coursier",
    ".sdkman",
    // PHP.
    ".cache/composer",
    ".composer/vendor",
    ".config/composer/vendor",
    ".phpenv",
    // Haskell and OCaml.
    ".cabal/bin",
    ".cabal/packages",
    ".cabal/store",
    ".local/state/cabal",
    ".ghcup",
    ".stack/pantry",
    ".stack/programs",
    ".stack/snapshots",
    ".opam",
    // .NET.
    ".dotnet",
    ".nuget/packages",
    // Julia and R.
    ".julia/artifacts",
    ".julia/compiled",
    ".julia/juliaup",
    ".julia/packages",
    ".julia/registries",
    ".juliaup",
    ".cache/R",
    "R",
    // Others, and those of several languages.
    ".asdf",
    ".asdfrc",
    ".config/mise",
    ".elan",
    ".linuxbrew",
    ".local/bin",
    ".local/share/mise",
    ".local/state/nix",
    ".nix-profile",
    ".swiftly",
    ".tool-versions",
];
/// Variables that say where a toolchain is. Some name several directories.
const VARIABLES: [&str; 44] = [
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "BUN_INSTALL",
    "CONDA_PREFIX",
    "DENO_INSTALL",
    "DOTNET_ROOT",
    "ELAN_HOME",
    "FNM_DIR",
    "FNM_MULTISHELL_PATH",
    "GEM_HOME",
    "GEM_PATH",
    "GOENV_ROOT",
    "GOMODCACHE",
    "GOROOT",
    "GRADLE_HOME",
    "HOMEBREW_PREFIX",
    "JAVA_HOME",
    "JENV_ROOT",
    "JULIAUP_DEPOT_PATH",
    "MAMBA_ROOT_PREFIX",
    "MAVEN_HOME",
    "MISE_DATA_DIR",
    "M2_HOME",
    "NIX_PROFILES",
    "NODENV_ROOT",
    "NUGET_PACKAGES",
    "NVM_BIN",
    "NVM_DIR",
    "OPAMROOT",
    "OPAM_SWITCH_PREFIX",
    "PIPX_HOME",
    "PNPM_HOME",
    "POETRY_HOME",
    "PRE_COMMIT_HOME",
    "PYENV_ROOT",
    "R_LIBS_USER",
    "RBENV_ROOT",
    "RUSTUP_HOME",
    "SDKMAN_DIR",
    "UV_PYTHON_INSTALL_DIR",
    "VIRTUAL_ENV",
    "VOLTA_HOME",
];
/// Variables of toolchains with secrets beside the rest, and what is opened of the directory that one names.
const PARTS: [(&str, &[&str]); 3] = [
    ("CARGO_HOME", &["bin", "config.toml", "git", "registry"]),
    ("GOPATH", &["bin", "pkg"]),
    ("COMPOSER_HOME", &["vendor"]),
];
/// Entries that make the parent of a program directory a whole toolchain.
const MARKS: [&str; 14] = [
    "Cellar",
    "candidates",
    "conda-meta",
    "installs",
    "jmods",
    "libexec",
    "lib/node_modules",
    "lib/rustlib",
    "lib/jvm.cfg",
    "pkg/tool",
    "pyvenv.cfg",
    "release",
    "shared",
    "versions",
];
/// Entries of other parents that are opened.
const PARTS_OF_PREFIX: [&str; 7] = [
    "etc", "include", "lib", "lib32", "lib64", "libexec", "share",
];
/// The execute bits of a file's mode.
const EXECUTABLE: u32 = 0o111;
/// Names of directories of programs in a toolchain.
const PROGRAMS: [&str; 5] = ["bin", "condabin", "sbin", "shims", "tools"];
/// Directories of the system's own programs, which lead nowhere else.
const OF_SYSTEM: [&str; 4] = ["/bin", "/sbin", "/usr/bin", "/usr/sbin"];
/// File with a virtual environment's settings, and the key that names its Python.
const ENVIRONMENT: (&str, &str) = ("pyvenv.cfg", "home");
/// Directory of modules of JavaScript programs.
const MODULES: &str = "node_modules";
/// The bound on directories of programs that are looked into.
const DIRECTORIES_MAX: usize = 128;
/// The bound on programs that are looked at in one directory.
const PROGRAMS_MAX: usize = 1_024;
/// The bound on the part of a program that is read, in bytes: the line that names its interpreter.
const LINE_BYTES_MAX: u64 = 512;
/// The bound on the part of a virtual environment's settings that is read, in bytes.
const SETTINGS_BYTES_MAX: u64 = 4_096;

/// Returns whether a variable of this name says where a toolchain is.
pub(crate) fn names_one(name: &str) -> bool {
    VARIABLES.contains(&name) || PARTS.iter().any(|(it, _)| *it == name)
}

/// Adds the toolchains and caches of a user: those in known places, those that variables name, and those that `PATH` leads
/// to.
pub(crate) fn add(
    readable: &mut Readable,
    home: Option<&Path>,
    variable: &dyn Fn(&str) -> Option<OsString>,
) {
    for path in home.iter().flat_map(|home| OF_HOME.map(|it| home.join(it))) {
        readable.add(&path);
    }
    for path in VARIABLES.iter().filter_map(|it| variable(it)) {
        for path in std::env::split_paths(&path) {
            readable.add(&path);
        }
    }
    for (name, parts) in PARTS {
        let directory = variable(name).map(PathBuf::from);
        for directory in directory.iter() {
            for part in parts {
                readable.add(&directory.join(part));
            }
        }
    }
    let search_path = variable("PATH").unwrap_or_default();
    let mut search = Search {
        readable,
        next: std::env::split_paths(&search_path).collect(),
        visited: Vec::new(),
        interpreters: HashSet::new(),
    };
    search.run();
}

/// Follows programs to their toolchains.
struct Search<'a> {
    readable: &'a mut Readable,
    /// Directories of programs that are yet to be looked into.
    next: VecDeque<PathBuf>,
    visited: Vec<PathBuf>,
    /// Interpreters of scripts that were followed: most scripts of a directory name the same one.
    interpreters: HashSet<PathBuf>,
}

impl Search<'_> {
    fn run(&mut self) {
        while let Some(directory) = self.next.pop_front()
            && self.visited.len() < DIRECTORIES_MAX
        {
            self.visit(&directory);
        }
    }

    fn visit(&mut self, directory: &Path) {
        let is_left_out = OF_SYSTEM.iter().any(|it| Path::new(it) == directory);
        if is_left_out || !directory.is_absolute() || self.visited.iter().any(|it| it == directory)
        {
            return;
        }
        self.visited.push(directory.to_owned());
        let Some(real) = self.readable.resolve(directory) else {
            return;
        };
        self.readable.add(directory);
        self.add_prefix(directory);
        self.add_prefix(&real);
        if self.readable.is_home(&real) {
            return;
        }
        let entries = fs::read_dir(&real).into_iter().flatten().flatten();
        for entry in entries.take(PROGRAMS_MAX) {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_symlink() => self.follow(&path),
                Ok(kind) if kind.is_file() => {
                    let interpreter = interpreter(&path).filter(|it| !is_of_system(it));
                    if let Some(interpreter) = interpreter
                        && self.interpreters.insert(interpreter.clone())
                    {
                        self.follow(&interpreter);
                    }
                }
                _ => {}
            }
        }
    }

    /// Adds the toolchain of a program.
    fn follow(&mut self, program: &Path) {
        let is_program = |it: &Path| {
            let metadata = it.metadata();
            metadata.is_ok_and(|it| it.is_file() && it.permissions().mode() & EXECUTABLE != 0)
        };
        let Some(real) = self.readable.resolve(program).filter(|it| is_program(it)) else {
            return;
        };
        // A link may lead over others, each of which is needed.
        if let Ok(target) = fs::read_link(program)
            && let Some(parent) = program.parent()
            && let Some(folder) = parent.join(target).parent()
            && !self.readable.is_of_system(folder)
        {
            self.add_around(folder);
        }
        if self.readable.is_of_system(&real) {
            return;
        }
        if let Some(modules) = real.ancestors().find(|it| it.ends_with(MODULES)) {
            self.readable.add(modules);
        }
        if let Some(folder) = real.parent() {
            self.add_around(folder);
        }
        self.readable.add(&real);
    }

    /// Adds a directory with a program in it if it is the top of a toolchain, and looks into it later if it is a
    /// directory of programs.
    ///
    /// Any other directory is not opened: what lies beside a program there need not belong to it.
    fn add_around(&mut self, folder: &Path) {
        if is_of_programs(folder) {
            self.next.push_back(folder.to_owned());
        } else if folder.join("lib").is_dir() || is_marked(folder) {
            self.readable.add(folder);
        }
    }

    /// Adds the parts that a directory of programs needs of the directory around it.
    fn add_prefix(&mut self, programs: &Path) {
        let Some(prefix) = programs.parent().filter(|_| is_of_programs(programs)) else {
            return;
        };
        let is_shared = SHARED_BY_ALL.iter().any(|it| prefix.ends_with(it));
        if is_shared || self.readable.is_home(prefix) || self.readable.has(prefix) {
            return;
        }
        if let Some(base) = base_of_environment(prefix) {
            self.next.push_back(base);
        }
        if !is_marked(prefix) || self.readable.add(prefix).is_none() {
            for part in PARTS_OF_PREFIX {
                self.readable.add(&prefix.join(part));
            }
        }
    }
}

/// Returns whether a program is one of the system's own.
fn is_of_system(program: &Path) -> bool {
    let folder = program.parent();
    OF_SYSTEM.iter().any(|it| folder == Some(Path::new(it)))
}

fn is_of_programs(directory: &Path) -> bool {
    PROGRAMS.iter().any(|it| directory.ends_with(it))
}

/// Returns whether all of a directory is a toolchain.
fn is_marked(directory: &Path) -> bool {
    MARKS.iter().any(|it| directory.join(it).exists())
}

/// Returns the directory of programs of the Python that a virtual environment is of.
fn base_of_environment(prefix: &Path) -> Option<PathBuf> {
    let (file, key) = ENVIRONMENT;
    let file = File::open(prefix.join(file)).ok()?;
    let mut text = String::new();
    file.take(SETTINGS_BYTES_MAX)
        .read_to_string(&mut text)
        .ok()?;
    let mut pairs = text.lines().filter_map(|it| it.split_once('='));
    let (_, base) = pairs.find(|(name, _)| name.trim() == key)?;
    Some(base.trim().into()).filter(|it: &PathBuf| it.is_absolute())
}

/// Returns the interpreter that a script names in its first line.
fn interpreter(path: &Path) -> Option<PathBuf> {
    let mut line = Vec::new();
    let mut reader = BufReader::new(File::open(path).ok()?.take(LINE_BYTES_MAX));
    if !reader.fill_buf().ok()?.starts_with(b"#!/") {
        return None;
    }
    reader.read_until(b'\n', &mut line).ok()?;
    let line = String::from_utf8(line).ok()?;
    let name = line.strip_prefix("#!")?.split_whitespace().next()?;
    Some(name.into())
}
