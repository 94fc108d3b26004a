//! Variables by which programs put their caches where a sandboxed command may write, or find the user's own.

use crate::{Enforcement, SandboxSpec};
use std::path::{Path, PathBuf};

/// Each variable, and the name of its directory. The user's own caches are at most read in the sandbox: what a command puts
/// into them would be run by others. Cargo has no row: `CARGO_HOME` moves the user's registry and settings along with the
/// cache, so its crates are read where they are (`OF_HOME` in `toolchains.rs`).
const CACHES: [(&str, &str); 12] = [
    ("XDG_CACHE_HOME", "cache"),
    ("npm_config_cache", "npm"),
    ("YARN_CACHE_FOLDER", "yarn"),
    ("PIP_CACHE_DIR", "pip"),
    ("UV_CACHE_DIR", "uv"),
    ("GOCACHE", "go-build"),
    ("CCACHE_DIR", "ccache"),
    ("DENO_DIR", "deno"),
    ("POETRY_CACHE_DIR", "pypoetry"),
    ("BUN_INSTALL_CACHE_DIR", "bun"),
    ("COMPOSER_CACHE_DIR", "composer"),
    ("COURSIER_CACHE", "coursier"),
];
/// Where temporary files go, where `/tmp` is not a command's own.
const TEMPORARY: (&str, &str) = ("TMPDIR", "tmp");

/// A cache whose programs make do with one that they can only read.
struct Shared {
    variables: &'static [&'static str],
    /// The user's own, below the home directory.
    of_user: &'static str,
    /// The one of the session, if the user has none.
    of_session: Option<&'static str>,
    /// Whether it can be used without namespaces. Then a program that asks whether it may write is told that it may.
    is_partial: bool,
}

const SHARED: [Shared; 3] = [
    Shared {
        variables: &["npm_config_store_dir", "pnpm_config_store_dir"],
        of_user: ".local/share/pnpm/store",
        of_session: Some("pnpm"),
        is_partial: true,
    },
    Shared {
        variables: &["PRE_COMMIT_HOME"],
        of_user: ".cache/pre-commit",
        of_session: Some("pre-commit"),
        is_partial: false,
    },
    // Otherwise the environments that the user has would be looked for in the cache of the session.
    Shared {
        variables: &["POETRY_VIRTUALENVS_PATH"],
        of_user: ".cache/pypoetry/virtualenvs",
        of_session: None,
        is_partial: true,
    },
];

/// Returns the variables, with directories in `scratch`, which are to be made.
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
    let home = spec.home.as_ref().and_then(|it| it.canonicalize().ok());
    let of_user = |shared: &Shared| {
        let path = home.as_ref()?.join(shared.of_user);
        let is_readable = || spec.readable.iter().any(|it| path.starts_with(it));
        let is_usable =
            spec.is_offline() && (shared.is_partial || spec.enforcement == Enforcement::Full);
        (is_usable && path.is_dir() && is_readable()).then_some(path)
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
