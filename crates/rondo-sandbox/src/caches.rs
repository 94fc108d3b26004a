//! Variables by which programs put their caches where a sandboxed command may write, or find the user's own.

use crate::SandboxSpec;
#[cfg(target_os = "linux")]
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Each variable, and the name of its directory. The user's own caches are at most read in the sandbox: what a command puts
/// into them would be run by others. Cargo has no row: `CARGO_HOME` moves the user's registry and settings along with the
/// cache, so its crates are read where they are (`OF_HOME` in `toolchains.rs`).
///
/// A program that `cargo install` builds is not a cache, but would be found in `PATH` by others in the same way.
const CACHES: [(&str, &str); 14] = [
    ("XDG_CACHE_HOME", "cache"),
    ("npm_config_cache", "npm"),
    ("YARN_CACHE_FOLDER", "yarn"),
    ("PIP_CACHE_DIR", "pip"),
    ("UV_CACHE_DIR", "uv"),
    ("GOCACHE", "go-build"),
    ("CCACHE_DIR", "ccache"),
    ("DENO_DIR", "deno"),
    ("POETRY_CACHE_DIR", "pypoetry"),
    ("PRE_COMMIT_HOME", "pre-commit"),
    ("BUN_INSTALL_CACHE_DIR", "bun"),
    ("COMPOSER_CACHE_DIR", "composer"),
    ("COURSIER_CACHE", "coursier"),
    ("CARGO_INSTALL_ROOT", "cargo-install"),
];
/// Variable and directory of temporary files, if `/tmp` is not the command's own.
const TEMPORARY: (&str, &str) = ("TMPDIR", "tmp");

/// A cache whose programs make do with one that they can only read.
struct Shared {
    variables: &'static [&'static str],
    /// The user's own, below the home directory.
    of_user: &'static str,
    /// The one of the session, if the user has none.
    of_session: Option<&'static str>,
}

const SHARED: [Shared; 2] = [
    Shared {
        // Not `npm_config_store_dir`, of which each call of npm warns.
        variables: &["pnpm_config_store_dir"],
        of_user: ".local/share/pnpm/store",
        of_session: Some("pnpm"),
    },
    // Otherwise the environments that the user has would be looked for in the cache of the session.
    Shared {
        variables: &["POETRY_VIRTUALENVS_PATH"],
        of_user: ".cache/pypoetry/virtualenvs",
        of_session: None,
    },
];

/// The list of environments of `pre-commit`: the user's, below the home directory, and the directory and name of the
/// session's.
#[cfg(target_os = "linux")]
const ENVIRONMENTS: (&str, &str, &str) = (".cache/pre-commit/db.db", "pre-commit", "db.db");
/// The bound on such a list, in bytes.
#[cfg(target_os = "linux")]
const LIST_BYTES_MAX: u64 = 4 << 20;

/// Returns the variables, with directories in `scratch`, which must be created.
pub(crate) fn variables(
    scratch: &Path,
    has_own_tmp: bool,
) -> impl Iterator<Item = (&'static str, PathBuf)> {
    let temporary = (!has_own_tmp).then_some(TEMPORARY);
    CACHES
        .into_iter()
        .chain(temporary)
        .map(|(name, folder)| (name, scratch.join(folder)))
}

/// Returns the variables of caches that are the user's own if the command can read these, and reaches nothing to fill
/// another with. Otherwise they are ones of the session.
pub(crate) fn shared(spec: &SandboxSpec, scratch: &Path) -> Vec<(&'static str, PathBuf)> {
    let of_user = |shared: &Shared| {
        let path = readable(spec, shared.of_user).filter(|_| spec.is_offline())?;
        path.is_dir().then_some(path)
    };
    let directory = |shared: &Shared| {
        let of_session = || shared.of_session.map(|it| scratch.join(it));
        of_user(shared).or_else(of_session)
    };
    let named = |shared: &'static Shared| {
        let directory = directory(shared);
        let names = shared.variables.iter();
        names.filter_map(move |name| Some((*name, directory.clone()?)))
    };
    SHARED.iter().flat_map(named).collect()
}

/// Gives the cache of a session the list of the environments that the user's `pre-commit` has, which are read where they
/// are. New ones are made in the cache of the session.
///
/// Commands write that cache, and could have a link in it lead to any directory. No link is followed.
///
/// # Errors
/// When it cannot be written.
#[cfg(target_os = "linux")]
pub(crate) fn copy_lists(spec: &SandboxSpec, scratch: &Path) -> io::Result<()> {
    use rustix::fs::{Mode, OFlags};
    let (of_user, folder, name) = ENVIRONMENTS;
    let is_small = |it: &PathBuf| {
        let metadata = it.symlink_metadata();
        metadata.is_ok_and(|it| it.is_file() && it.len() <= LIST_BYTES_MAX)
    };
    let Some(of_user) = readable(spec, of_user).filter(is_small) else {
        return Ok(());
    };
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(folder) = rustix::fs::open(scratch.join(folder), flags, Mode::empty()) else {
        return Ok(());
    };
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(&folder, name, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => io::copy(&mut File::open(of_user)?, &mut File::from(file)).map(drop),
        Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(err) => Err(err.into()),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn copy_lists(_: &SandboxSpec, _: &Path) -> io::Result<()> {
    Ok(())
}

/// Returns a path below the home directory if commands may read it.
fn readable(spec: &SandboxSpec, below: &str) -> Option<PathBuf> {
    let path = spec.home.as_ref()?.canonicalize().ok()?.join(below);
    let mut readable = spec.readable.iter();
    readable.any(|it| path.starts_with(it)).then_some(path)
}
