//! Variables by which programs put their caches where a sandboxed command may write.

use std::path::{Path, PathBuf};

/// Each variable, and the name of its directory. The user's own caches are at most read in the sandbox: what a command puts
/// into them would be run by others. Cargo has no row: `CARGO_HOME` moves the user's registry and settings along with the
/// cache, so its crates are read where they are (`HOME` in `roots.rs`).
const CACHES: [(&str, &str); 8] = [
    ("XDG_CACHE_HOME", "cache"),
    ("npm_config_cache", "npm"),
    ("YARN_CACHE_FOLDER", "yarn"),
    ("PIP_CACHE_DIR", "pip"),
    ("UV_CACHE_DIR", "uv"),
    ("GOCACHE", "go-build"),
    ("CCACHE_DIR", "ccache"),
    ("DENO_DIR", "deno"),
];
/// Where temporary files go, where `/tmp` is not a command's own.
const TEMPORARY: (&str, &str) = ("TMPDIR", "tmp");

/// Returns the variables, with directories in `scratch`.
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
