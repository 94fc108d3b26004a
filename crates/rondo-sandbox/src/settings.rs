//! Variables by which programs in the sandbox fail at once, or do what they can do there.

/// For every command: `git` does not ask for a password, and collects garbage before it ends. In the background it would be
/// ended with its command, and begin again with the next one.
const ALWAYS: [(&str, &str); 3] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    // Unlike `GIT_CONFIG_COUNT`, this is not set by users, whose settings would be lost.
    (
        "GIT_CONFIG_PARAMETERS",
        "'gc.autodetach=false' 'maintenance.autodetach=false'",
    ),
    // Its shims look for commands that were installed, and wait a minute for a lock that they cannot take.
    ("PYENV_REHASH_TIMEOUT", "0"),
];
/// For commands that reach no other machine: programs do not try again, or say that they are offline.
const OFFLINE: [(&str, &str); 16] = [
    ("npm_config_fetch_retries", "0"),
    ("npm_config_audit", "false"),
    ("npm_config_update_notifier", "false"),
    ("pnpm_config_fetch_retries", "0"),
    ("YARN_HTTP_RETRY", "0"),
    ("PIP_RETRIES", "0"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("UV_HTTP_RETRIES", "0"),
    ("POETRY_REQUESTS_MAX_RETRIES", "0"),
    // `poetry` tries five times more, 7.5 s in all, and no setting changes that. It does not for a time that is none.
    ("POETRY_REQUESTS_TIMEOUT", "0"),
    ("CARGO_NET_OFFLINE", "true"),
    ("BUNDLE_RETRY", "0"),
    ("CONDA_REMOTE_MAX_RETRIES", "0"),
    ("HOMEBREW_NO_AUTO_UPDATE", "1"),
    ("HEX_OFFLINE", "1"),
    ("NUGET_ENHANCED_MAX_NETWORK_TRY_COUNT", "1"),
];

/// Returns the variables of a command.
pub(crate) fn variables(is_offline: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    let offline = is_offline.then_some(OFFLINE).into_iter().flatten();
    ALWAYS.into_iter().chain(offline)
}
